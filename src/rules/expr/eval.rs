//! Evaluation. A tree walk over the plan; every node and every turn of a loop is paid for, and a failure knows the node at
//! which it happened.
//!
//! The `cel` crate's own interpreter is not used: it has no budget, walks maps in random order, ignores the second loop
//! variable, copies the variables deeply, and forgets where an error happened.

#![allow(clippy::unnecessary_box_returns)]

use cel::Value;
use cel::objects::Key;

use super::budget::{Budget, Failure};
use super::operators;
use super::plan::{Call, Field, Fold, Loop, Node, Op};
use super::scope::{Lazy, Scope};
use super::value::{as_key, as_optional, key_value, list, long, lookup, optional, plain_type_name, sorted_keys};
use crate::rules::functions;

/// Why an evaluation failed, and at which node.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub id: u64,
    pub why: Why,
}

/// The reasons of a [`Fault`]; those that name sub-expressions get their text where the source is known.
#[derive(Debug, Clone)]
pub(super) enum Why {
    Message(String),
    Limit(String),
    /// The operand (by id) has no such field.
    NoField {
        operand: u64,
        field: String,
    },
    /// The operand (by id) has no such key.
    NoKey {
        operand: u64,
        key: String,
    },
    /// The operand (by id), of the given type, has no fields at all.
    NotAnObject {
        operand: u64,
        type_name: String,
        field: String,
    },
    /// The operand (by id) has only so many elements.
    OutOfRange {
        operand: u64,
        index: i64,
        size: usize,
    },
    /// The node (by id) is of another type than the place wants.
    WrongType {
        operand: u64,
        type_name: String,
        wanted: &'static str,
    },
}

/// The fault is boxed: outcomes are passed up through every level, and nearly all of them are values.
type Outcome = Result<Value, Box<Fault>>;

/// One evaluation.
pub(super) struct Frame<'e> {
    scope: &'e Scope<'e>,
    budget: &'e Budget,
    /// Loop variables and accumulators. An accumulator may hold an error that a later turn overrules.
    locals: Vec<Outcome>,
}

fn fault(id: u64, why: Why) -> Box<Fault> {
    Box::new(Fault { id, why })
}

pub(super) fn failed(id: u64, failure: Failure) -> Box<Fault> {
    match failure {
        Failure::Message(message) => fault(id, Why::Message(message)),
        Failure::Limit(message) => fault(id, Why::Limit(message)),
        Failure::NoOverload => fault(id, Why::Message("the types do not fit".to_owned())),
    }
}

fn is_limit(outcome: &Outcome) -> bool {
    matches!(outcome, Err(fault) if matches!(fault.why, Why::Limit(_)))
}

impl<'e> Frame<'e> {
    pub fn new(scope: &'e Scope<'e>, budget: &'e Budget) -> Self {
        Self { scope, budget, locals: Vec::new() }
    }

    /// The value of a variable or of a field in one, in its place: nothing between is cloned.
    fn place<'a>(&'a self, node: &'a Node) -> Option<&'a Value> {
        match &node.op {
            Op::Local(slot) => self.locals.get(*slot)?.as_ref().ok(),
            Op::Variable { name, .. } => self.scope.get(name),
            Op::Select { operand, field, optional: false } => match self.place(operand)? {
                Value::Map(map) => map.map.get(&field.key),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn eval(&mut self, node: &Node) -> Outcome {
        self.budget.step().map_err(|failure| failed(node.id, failure))?;
        if let Op::Select { .. } = &node.op
            && let Some(value) = self.place(node)
        {
            return Ok(value.clone());
        }
        match &node.op {
            Op::Const(value) => Ok(value.clone()),
            Op::Local(slot) => self.locals.get(*slot).cloned().unwrap_or(Ok(Value::Null)),
            Op::Variable { name, type_value } => match self.scope.get(name).or(type_value.as_ref()) {
                Some(value) => Ok(value.clone()),
                None => Err(fault(node.id, Why::Message(format!("there is no variable `{name}` here")))),
            },
            Op::Select { operand, field, optional } => self.select(node, operand, field, *optional),
            Op::Has { operand, field } => self.has(node, operand, field),
            Op::Index { operands, optional } => self.index(node, operands, *optional),
            Op::And(operands) => self.logic(operands, false),
            Op::Or(operands) => self.logic(operands, true),
            Op::Not(operand) => Ok(Value::Bool(!self.bool(operand)?)),
            Op::Negate(operand) => {
                let value = self.eval(operand)?;
                operators::negate(&value).map_err(|failure| self.operator_failed(node, "-", &[&value], failure))
            }
            Op::NotStrictlyFalse(operand) => {
                let value = self.eval(operand);
                if is_limit(&value) {
                    return value;
                }
                Ok(Value::Bool(!matches!(value, Ok(Value::Bool(false)))))
            }
            Op::Conditional(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if self.bool(condition)? { self.eval(yes) } else { self.eval(no) }
            }
            Op::Binary(operator, operands) => {
                let a = self.eval(&operands[0])?;
                let b = self.eval(&operands[1])?;
                operators::binary(*operator, &a, &b, self.budget)
                    .map_err(|failure| self.operator_failed(node, operators::spelling(*operator), &[&a, &b], failure))
            }
            Op::List(items) => self.list(node, items),
            Op::Map(entries) => self.map(node, entries),
            Op::Call(call) => self.call(node, call),
            Op::Loop(comprehension) => self.comprehension(node, comprehension),
            Op::Unsupported(what) => Err(fault(node.id, Why::Message(format!("{what} is not supported")))),
        }
    }

    fn bool(&mut self, node: &Node) -> Result<bool, Box<Fault>> {
        match self.eval(node)? {
            Value::Bool(value) => Ok(value),
            other => Err(self.wrong_type(node, &other, "bool")),
        }
    }

    #[allow(clippy::unused_self)]
    fn wrong_type(&self, node: &Node, value: &Value, wanted: &'static str) -> Box<Fault> {
        let type_name = plain_type_name(value).to_owned();
        fault(node.id, Why::WrongType { operand: node.id, type_name, wanted })
    }

    /// `&&` and `||`: `decides` is the operand that settles the result, whatever the other one is, even an error.
    fn logic(&mut self, operands: &[Node; 2], decides: bool) -> Outcome {
        let left = self.bool(&operands[0]);
        if matches!(left, Ok(value) if value == decides) {
            return Ok(Value::Bool(decides));
        }
        if matches!(&left, Err(fault) if matches!(fault.why, Why::Limit(_))) {
            return left.map(Value::Bool);
        }
        match (left, self.bool(&operands[1])) {
            (_, Err(right)) if matches!(right.why, Why::Limit(_)) => Err(right),
            (_, Ok(right)) if right == decides => Ok(Value::Bool(decides)),
            (Err(left), _) => Err(left),
            (_, right) => right.map(Value::Bool),
        }
    }

    fn select(&mut self, node: &Node, operand: &Node, field: &Field, optional_select: bool) -> Outcome {
        if let Some(fields) = self.lazy(operand) {
            return Self::lazy_field(node, operand, fields, &field.key.to_string(), optional_select);
        }
        let value = self.eval(operand)?;
        let (target, chained) = match as_optional(&value) {
            Some(None) => return Ok(value),
            Some(Some(inner)) => (inner, true),
            None => (&value, false),
        };
        let Value::Map(map) = target else {
            let type_name = plain_type_name(target).to_owned();
            let field = field.key.to_string();
            return Err(fault(node.id, Why::NotAnObject { operand: operand.id, type_name, field }));
        };
        let found = map.map.get(&field.key).or_else(|| map.map.get(field.unescaped.as_ref()?));
        if optional_select || chained {
            return Ok(optional(found.cloned()));
        }
        found.cloned().ok_or_else(|| fault(node.id, Why::NoField { operand: operand.id, field: field.key.to_string() }))
    }

    fn has(&mut self, node: &Node, operand: &Node, field: &Field) -> Outcome {
        if let Some(fields) = self.lazy(operand) {
            return Ok(Value::Bool(fields.has(&field.key.to_string())));
        }
        let value = self.eval(operand)?;
        let target = match as_optional(&value) {
            Some(None) => return Ok(Value::Bool(false)),
            Some(Some(inner)) => inner,
            None => &value,
        };
        let Value::Map(map) = target else {
            let type_name = plain_type_name(target).to_owned();
            let field = field.key.to_string();
            return Err(fault(node.id, Why::NotAnObject { operand: operand.id, type_name, field }));
        };
        let there = map.map.contains_key(&field.key)
            || field.unescaped.as_ref().is_some_and(|unescaped| map.map.contains_key(unescaped));
        Ok(Value::Bool(there))
    }

    fn lazy(&self, operand: &Node) -> Option<&'e dyn Lazy> {
        match &operand.op {
            Op::Variable { name, .. } => self.scope.lazy(name),
            _ => None,
        }
    }

    /// A failure is never «absent», however the field is read.
    fn lazy_field(node: &Node, operand: &Node, fields: &dyn Lazy, name: &str, optional_select: bool) -> Outcome {
        match fields.field(name) {
            Some(Err(message)) => Err(fault(node.id, Why::Message(message))),
            Some(Ok(value)) if optional_select => Ok(optional(Some(value))),
            Some(Ok(value)) => Ok(value),
            None if optional_select => Ok(optional(None)),
            None => Err(fault(node.id, Why::NoField { operand: operand.id, field: name.to_owned() })),
        }
    }

    fn index(&mut self, node: &Node, operands: &[Node; 2], optional_index: bool) -> Outcome {
        if let Some(fields) = self.lazy(&operands[0]) {
            return match self.eval(&operands[1])? {
                Value::String(name) => Self::lazy_field(node, &operands[0], fields, &name, optional_index),
                other => Err(self.wrong_type(&operands[1], &other, "string")),
            };
        }
        let value = self.eval(&operands[0])?;
        let index = self.eval(&operands[1])?;
        let (target, chained) = match as_optional(&value) {
            Some(None) => return Ok(value),
            Some(Some(inner)) => (inner, true),
            None => (&value, false),
        };
        let operand = operands[0].id;
        self.budget.steps(long(&index)).map_err(|failure| failed(node.id, failure))?;
        let found = match target {
            Value::List(items) => match operators::list_index(&index) {
                Some(at) => usize::try_from(at).ok().and_then(|at| items.get(at)).cloned().ok_or(Why::OutOfRange {
                    operand,
                    index: at,
                    size: items.len(),
                }),
                None => return Err(self.wrong_type(&operands[1], &index, "int")),
            },
            Value::Map(map) => match as_key(&index) {
                Some(key) => lookup(map, &index).cloned().ok_or(Why::NoKey { operand, key: key.to_string() }),
                None => return Err(self.wrong_type(&operands[1], &index, "string")),
            },
            other => {
                let type_name = plain_type_name(other).to_owned();
                return Err(fault(node.id, Why::WrongType { operand, type_name, wanted: "list or map" }));
            }
        };
        if optional_index || chained {
            return Ok(optional(found.ok()));
        }
        found.map_err(|why| fault(node.id, why))
    }

    fn list(&mut self, node: &Node, items: &[(Node, bool)]) -> Outcome {
        self.budget.elements(items.len()).map_err(|failure| failed(node.id, failure))?;
        let mut values = Vec::with_capacity(items.len());
        for (item, is_optional) in items {
            let value = self.eval(item)?;
            if *is_optional { values.extend(self.present(item, &value)?) } else { values.push(value) }
        }
        Ok(list(values))
    }

    fn map(&mut self, node: &Node, entries: &[(Node, Node, bool)]) -> Outcome {
        self.budget.elements(entries.len() * 2).map_err(|failure| failed(node.id, failure))?;
        let mut map = std::collections::HashMap::with_capacity(entries.len());
        for (key_node, value_node, is_optional) in entries {
            let key = self.map_key(key_node)?;
            let value = self.eval(value_node)?;
            let value = if *is_optional { self.present(value_node, &value)? } else { Some(value) };
            if let Some(value) = value {
                map.insert(key, value);
            }
        }
        Ok(Value::Map(cel::objects::Map { map: std::sync::Arc::new(map) }))
    }

    fn map_key(&mut self, node: &Node) -> Result<Key, Box<Fault>> {
        match self.eval(node)? {
            Value::Float(value) => Err(self.wrong_type(node, &Value::Float(value), "string, int, uint or bool")),
            value => as_key(&value).ok_or_else(|| self.wrong_type(node, &value, "string, int, uint or bool")),
        }
    }

    /// The value of an element written with `?`, which must be an optional.
    fn present(&self, node: &Node, value: &Value) -> Result<Option<Value>, Box<Fault>> {
        match as_optional(value) {
            Some(inner) => Ok(inner.cloned()),
            None => Err(self.wrong_type(node, value, "optional")),
        }
    }

    fn call(&mut self, node: &Node, call: &Call) -> Outcome {
        if call.functions.is_empty() {
            return Err(fault(node.id, Why::Message(functions::unknown(&call.name, call.member))));
        }
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(self.eval(arg)?);
        }
        for function in call.functions {
            match function(&functions::Args { values: &args, budget: self.budget }) {
                Err(Failure::NoOverload) => {}
                outcome => return outcome.map_err(|failure| failed(node.id, failure)),
            }
        }
        Err(fault(node.id, Why::Message(functions::no_overload(&call.name, call.member, &args))))
    }

    #[allow(clippy::unused_self)]
    fn operator_failed(&self, node: &Node, operator: &str, operands: &[&Value], failure: Failure) -> Box<Fault> {
        match failure {
            Failure::NoOverload => {
                let types: Vec<&str> = operands.iter().map(|value| plain_type_name(value)).collect();
                let message = match types.as_slice() {
                    [one] => format!("`{operator}` does not work on {one}"),
                    _ => format!("`{operator}` does not work on {}", types.join(" and ")),
                };
                fault(node.id, Why::Message(message))
            }
            other => failed(node.id, other),
        }
    }

    fn comprehension(&mut self, node: &Node, comprehension: &Loop) -> Outcome {
        let range = self.eval(&comprehension.range)?;
        let items = match &range {
            Value::List(items) if comprehension.pair => {
                items.iter().enumerate().map(|(at, item)| (operators::int(at), Some(item.clone()))).collect()
            }
            Value::List(items) => items.iter().map(|item| (item.clone(), None)).collect(),
            Value::Map(map) => {
                let pair = comprehension.pair;
                sorted_keys(map)
                    .into_iter()
                    .map(|key| (key_value(key), if pair { map.map.get(key).cloned() } else { None }))
                    .collect::<Vec<_>>()
            }
            other => return Err(self.wrong_type(&comprehension.range, other, "list or map")),
        };
        let init = self.eval(&comprehension.init);
        let base = self.locals.len();
        self.locals.push(init);
        let outcome = self.turns(node, comprehension, items, base);
        self.locals.truncate(base + 1);
        let result = outcome.and_then(|()| self.eval(&comprehension.result));
        self.locals.truncate(base);
        result
    }

    fn turns(
        &mut self,
        node: &Node,
        comprehension: &Loop,
        items: impl IntoIterator<Item = (Value, Option<Value>)>,
        base: usize,
    ) -> Result<(), Box<Fault>> {
        let paid = |budget: &Budget, count| budget.elements(count).map_err(|failure| failed(node.id, failure));
        for (first, second) in items {
            self.budget.step().map_err(|failure| failed(node.id, failure))?;
            self.locals.truncate(base + 1);
            self.locals.push(Ok(first));
            self.locals.extend(second.map(Ok));
            match &comprehension.fold {
                Fold::Append { condition, item } => {
                    if condition.as_ref().map_or(Ok(true), |condition| self.bool(condition))? {
                        let item = self.eval(item)?;
                        paid(self.budget, 1)?;
                        operators::append(&mut self.locals[base], item);
                    }
                }
                Fold::Insert { condition, key, value } => {
                    if condition.as_ref().map_or(Ok(true), |condition| self.bool(condition))? {
                        let key = key.as_ref().map(|key| self.map_key(key)).transpose()?;
                        let value = self.eval(value)?;
                        let entries = match key {
                            Some(key) => vec![(key, value)],
                            None => self.entries(node, &value)?,
                        };
                        paid(self.budget, entries.len() * 2)?;
                        for (key, value) in entries {
                            operators::insert(&mut self.locals[base], key, value)
                                .map_err(|failure| failed(node.id, failure))?;
                        }
                    }
                }
                Fold::General { condition, step } => {
                    if !self.bool(condition)? {
                        break;
                    }
                    let next = self.eval(step);
                    if is_limit(&next) {
                        return next.map(|_| ());
                    }
                    self.locals[base] = next;
                }
            }
        }
        Ok(())
    }

    fn entries(&self, node: &Node, value: &Value) -> Result<Vec<(Key, Value)>, Box<Fault>> {
        match value {
            Value::Map(map) => Ok(sorted_keys(map)
                .into_iter()
                .filter_map(|key| Some((key.clone(), map.map.get(key)?.clone())))
                .collect()),
            other => Err(self.wrong_type(node, other, "map")),
        }
    }
}
