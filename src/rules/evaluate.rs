//! Runs compiled expressions and trees for one parent: what names stand for, and how values become JSON and text.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::Fault;
use super::compile::{Code, Key, Node, Part, Program, has_null};
use super::expr::{CelValue, Lazy, Scope, to_json};
use crate::diagnostic::Location;

/// Everything that expressions of one parent can see.
#[derive(Debug)]
pub(super) struct World<'p> {
    pub program: &'p Program,
    /// `self`.
    parent: CelValue,
    /// Each variable once it has been needed.
    variables: RefCell<Vec<Option<Result<CelValue, Fault>>>>,
    /// Children that the rules speak of and the cluster has, by id.
    pub resources: BTreeMap<String, CelValue>,
}

impl<'p> World<'p> {
    pub fn new(program: &'p Program, parent: CelValue) -> Self {
        let variables = RefCell::new(vec![None; program.variables.len()]);
        World { program, parent, variables, resources: BTreeMap::new() }
    }

    /// A scope that knows the parent and the variables.
    pub fn scope(&self) -> Scope<'_> {
        let mut scope = Scope::new();
        scope.set("self", self.parent.clone());
        scope.set_lazy("variables", self);
        scope
    }

    /// Runs an expression.
    pub fn eval(&self, code: &Code, scope: &Scope<'_>) -> Result<CelValue, Fault> {
        let outcome = if code.resources.is_empty() {
            code.expr.eval(scope)
        } else {
            let there =
                code.resources.iter().filter_map(|id| Some((id.to_string(), self.resources.get(&**id)?.clone())));
            let mut inner = scope.child();
            inner.set("resources", CelValue::from(there.collect::<HashMap<_, _>>()));
            code.expr.eval(&inner)
        };
        outcome.map_err(|error| {
            // What failed may be a variable that the expression reads: then the fault is where the variable stands.
            let variables = self.variables.borrow();
            let mut read = code.variables.iter().filter_map(|index| variables.get(*index)?.as_ref()?.as_ref().err());
            if let Some(fault) = read.find(|fault| fault.message == error.message) {
                return fault.clone();
            }
            let at = match error.range {
                Some(range) => code.source.at_range(range),
                None => code.source.at(),
            };
            let unwanted = code.resources.iter().find(|id| {
                !self.resources.contains_key(&***id) && error.message == format!("`resources` has no field `{id}`")
            });
            let message = match unwanted {
                Some(id) => format!(
                    "there is no `{id}` here, its `when` is false; `resources.?{id}` reads it where it is there"
                ),
                None => error.message,
            };
            Fault::new(message, at)
        })
    }

    /// A variable's value, evaluated when it is first needed. Cycles were refused at load.
    fn variable(&self, index: usize) -> Result<CelValue, Fault> {
        if let Some(Some(known)) = self.variables.borrow().get(index) {
            return known.clone();
        }
        let Some(variable) = self.program.variables.get(index) else { return Ok(CelValue::Null) };
        let value = self.eval(&variable.code, &self.scope());
        if let Some(slot) = self.variables.borrow_mut().get_mut(index) {
            *slot = Some(value.clone());
        }
        value
    }

    /// Runs an expression that answers yes or no.
    pub fn truth(&self, code: &Code, scope: &Scope<'_>, what: &str) -> Result<bool, Fault> {
        match self.eval(code, scope)? {
            CelValue::Bool(truth) => Ok(truth),
            other => Err(fault(code, format!("`{what}` gives {}, and must be true or false", describe(&other)))),
        }
    }

    /// A subtree; `None` where it is one expression that is an optional without a value.
    pub fn node(&self, node: &Node, scope: &Scope<'_>) -> Result<Option<Value>, Fault> {
        match node {
            Node::Constant(value) => Ok(Some(value.clone())),
            Node::Code(code) => self.value(code, scope),
            Node::Mixed(parts) => self.text(parts, scope).map(|text| Some(Value::String(text))),
            Node::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.extend(self.node(item, scope)?);
                }
                Ok(Some(Value::Array(list)))
            }
            Node::Map(entries) => self.map(entries, scope).map(|map| Some(Value::Object(map))),
        }
    }

    fn map(&self, entries: &[(Key, Node)], scope: &Scope<'_>) -> Result<Map<String, Value>, Fault> {
        let mut map = Map::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(value) = self.node(value, scope)? else { continue };
            let (key, at) = match key {
                Key::Constant(key) => (key.clone(), None),
                Key::Mixed(parts, at) => (self.text(parts, scope)?, Some(at)),
            };
            if map.contains_key(&key) {
                let at = at.or_else(|| computed_key(entries)).cloned().unwrap_or_else(|| self.at());
                return Err(Fault::new(format!("two keys of one mapping are `{key}`"), at));
            }
            map.insert(key, value);
        }
        Ok(map)
    }

    fn at(&self) -> Location {
        self.program.set.at(self.program.set.name.span)
    }

    /// The value of an expression in a value's place.
    fn value(&self, code: &Code, scope: &Scope<'_>) -> Result<Option<Value>, Fault> {
        let value = to_json(&self.eval(code, scope)?).map_err(|message| fault(code, message))?;
        match value {
            Some(Value::Null) => Err(fault(
                code,
                "the value is null, and null is never sent; an optional such as `self.spec.?field` leaves the field out".to_owned(),
            )),
            Some(value) if has_null(&value) => {
                let path = null_path(&value).unwrap_or_default();
                Err(fault(code, format!("the value has null at `{path}`, and null is never sent")))
            }
            value => Ok(value),
        }
    }

    /// Mixed text.
    pub fn text(&self, parts: &[Part], scope: &Scope<'_>) -> Result<String, Fault> {
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Code(code) => {
                    as_text(&self.eval(code, scope)?, &mut text).map_err(|message| fault(code, message))?;
                }
            }
        }
        Ok(text)
    }
}

impl Lazy for World<'_> {
    fn field(&self, name: &str) -> Option<Result<CelValue, String>> {
        let index = self.program.variables.iter().position(|variable| variable.name == name)?;
        Some(self.variable(index).map_err(|fault| fault.message))
    }

    fn has(&self, name: &str) -> bool {
        self.program.variables.iter().any(|variable| variable.name == name)
    }
}

/// The first computed key of a mapping: where a collision with a constant key comes from.
fn computed_key(entries: &[(Key, Node)]) -> Option<&Location> {
    entries.iter().find_map(|(key, _)| match key {
        Key::Mixed(_, at) => Some(at),
        Key::Constant(_) => None,
    })
}

pub(super) fn fault(code: &Code, message: String) -> Fault {
    Fault::new(message, code.source.at())
}

/// A value inside a text: text as it is, numbers in decimal digits, booleans; nothing else has one obvious form.
fn as_text(value: &CelValue, text: &mut String) -> Result<(), String> {
    use std::fmt::Write as _;
    match value {
        CelValue::String(value) => text.push_str(value),
        // Writing to a string cannot fail.
        CelValue::Int(value) => drop(write!(text, "{value}")),
        CelValue::UInt(value) => drop(write!(text, "{value}")),
        CelValue::Float(value) if value.is_finite() => drop(write!(text, "{value}")),
        CelValue::Bool(value) => drop(write!(text, "{value}")),
        CelValue::Null => return Err("null inside a text; choose what to write instead: `has(…) ? … : ''`".to_owned()),
        CelValue::Opaque(_) => {
            return match to_json(value)? {
                None => Err("an optional without a value inside a text; say what to write instead with `.orValue('')`"
                    .to_owned()),
                Some(Value::String(value)) => {
                    text.push_str(&value);
                    Ok(())
                }
                Some(value @ (Value::Bool(_) | Value::Number(_))) => {
                    text.push_str(&value.to_string());
                    Ok(())
                }
                Some(_) => Err(not_text(value)),
            };
        }
        other => return Err(not_text(other)),
    }
    Ok(())
}

fn not_text(value: &CelValue) -> String {
    format!(
        "{} inside a text; turn it into text: `.join(',')` for a list of text, `string(…)` where that is possible",
        describe(value)
    )
}

/// A value's type, in words.
pub(super) fn describe(value: &CelValue) -> String {
    match value {
        CelValue::List(_) => "a list".to_owned(),
        CelValue::Map(_) => "a map".to_owned(),
        CelValue::Int(value) => format!("the integer `{value}`"),
        CelValue::UInt(value) => format!("the unsigned integer `{value}`"),
        CelValue::Float(value) => format!("the number `{value}`"),
        CelValue::String(_) => "text".to_owned(),
        CelValue::Bytes(_) => "bytes".to_owned(),
        CelValue::Bool(value) => format!("`{value}`"),
        CelValue::Null => "null".to_owned(),
        CelValue::Opaque(value) if value.runtime_type_name() == "optional_type" => "an optional".to_owned(),
        CelValue::Opaque(value) => format!("a value of the type `{}`", value.runtime_type_name()),
        other => format!("a {}", other.type_of()),
    }
}

/// Where the first null inside a value is.
fn null_path(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(i, item)| null_path(item).map(|rest| format!("[{i}]{rest}")))
        }
        Value::Object(map) => map.iter().find_map(|(key, value)| null_path(value).map(|rest| format!(".{key}{rest}"))),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
