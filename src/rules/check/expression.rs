//! The type of one CEL expression, and everything that is wrong with it.
//!
//! [`Checker::infer`] walks the syntax tree. A part that is faulty gets the type [`Type::Error`], which fits everywhere,
//! so that each fault is said once and does not hide the next.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use cel::common::ast::{EntryExpr, Expr as Tree, IdedExpr, ListExpr, LiteralValue, MapExpr};

use super::extent::Extents;
use super::facts::Conditions;
use super::library::Library;
use super::scope::{Facts, Path, Scope, Value};
use crate::diagnostic::{Diagnostic, Location};
use crate::rules::expr::Expr;
use crate::rules::functions::type_named;
use crate::rules::suggest::did_you_mean;
use crate::rules::types::Type;

/// An expression and its place.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Parsed.
    pub expr: &'a Expr,
    /// Where bytes of its text are in the file.
    pub locate: &'a dyn Fn(Range<usize>) -> Location,
}

/// What an expression uses, gathered while it is checked.
#[derive(Debug, Clone, Default)]
pub struct Uses {
    /// Names of `variables` members.
    pub variables: BTreeSet<String>,
    /// Ids of `resources` members.
    pub resources: BTreeSet<String>,
}

/// Where the value of an expression goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goes {
    /// A manifest or a status: an optional without a value leaves its key out, and `when` can guard it.
    Manifest,
    /// A part of a text in a manifest.
    Text,
    /// `when`, `readyWhen`.
    Condition,
    /// `rule` of a validation, which could as well stand in a CRD.
    Validation,
    /// A variable, `forEach`, a message.
    Elsewhere,
}

/// Checks one expression.
pub struct Checker<'a> {
    pub(super) library: &'a Library,
    pub(super) source: Source<'a>,
    pub(super) extents: Extents<'a>,
    pub(super) found: Vec<Diagnostic>,
    /// Optional fields that are read unguarded, and the warnings.
    pub(super) unguarded: Vec<(Path, Diagnostic)>,
    /// Variables whose own unguarded reads are not guarded here either.
    pub(super) unmet: BTreeSet<(String, Path)>,
    /// Optional fields that this expression was already warned of.
    pub(super) warned: BTreeSet<Path>,
    pub(super) uses: Uses,
    /// Makes the variables of nested macros different from each other.
    pub(super) bound: u32,
    /// Where the value goes, for the fixes that messages propose.
    pub(super) goes: Goes,
}

/// What checking an expression gave.
#[derive(Debug)]
pub struct Checked {
    /// Its value.
    pub value: Value,
    /// Every fault but unguarded optional fields.
    pub found: Vec<Diagnostic>,
    /// Optional fields that are read unguarded, and the warnings.
    pub unguarded: Vec<(Path, Diagnostic)>,
    /// Variables that it uses without guarding what they read: name and path.
    pub unmet: BTreeSet<(String, Path)>,
    /// What it uses.
    pub uses: Uses,
}

impl<'a> Checker<'a> {
    /// A checker for an expression.
    pub fn new(library: &'a Library, source: Source<'a>) -> Self {
        Self {
            library,
            source,
            extents: Extents::new(source.expr),
            found: Vec::new(),
            unguarded: Vec::new(),
            unmet: BTreeSet::new(),
            warned: BTreeSet::new(),
            uses: Uses::default(),
            bound: 0,
            goes: Goes::Elsewhere,
        }
    }

    /// Says where the value goes.
    #[must_use]
    pub fn goes(mut self, goes: Goes) -> Self {
        self.goes = goes;
        self
    }

    /// The type of the whole expression, wherever it goes.
    pub fn any(mut self, scope: &Scope) -> Checked {
        let value = self.infer(self.source.expr.ast(), scope);
        self.done(value)
    }

    /// The type of the whole expression, which must be a bool.
    pub fn condition(mut self, scope: &Scope, what: &str) -> Checked {
        if self.goes == Goes::Elsewhere {
            self.goes = Goes::Condition;
        }
        let tree = self.source.expr.ast();
        let mut value = self.infer(tree, scope);
        self.want_bool(tree, &value, what);
        value.implies = Some(Rc::new((self.facts(tree, scope, true), self.facts(tree, scope, false))));
        self.done(value)
    }

    /// The value of a variable, which may be a condition.
    pub fn variable(mut self, scope: &Scope) -> Checked {
        let tree = self.source.expr.ast();
        let mut value = self.infer(tree, scope);
        if matches!(value.ty, Type::Bool) {
            value.implies = Some(Rc::new((self.facts(tree, scope, true), self.facts(tree, scope, false))));
        }
        self.done(value)
    }

    pub(super) fn done(mut self, value: Value) -> Checked {
        self.found.sort_by_key(|fault| (fault.at.span, fault.severity));
        // A macro may have put one part of the text into several places of the tree.
        self.found.dedup_by(|a, b| a.code == b.code && a.at == b.at);
        Checked { value, found: self.found, unguarded: self.unguarded, unmet: self.unmet, uses: self.uses }
    }

    /// What is known after a condition, for variables that hold one.
    pub(super) fn facts(&self, node: &IdedExpr, scope: &Scope, outcome: bool) -> Facts {
        Conditions::new(scope, &self.extents).when(node, outcome)
    }

    /// The type of a node.
    pub(super) fn infer(&mut self, node: &IdedExpr, scope: &Scope) -> Value {
        match &node.expr {
            Tree::Literal(literal) => Value::of(literal_type(literal)),
            Tree::Ident(name) => self.ident(node, name, scope),
            Tree::Select(_) => self.chain(node, scope),
            Tree::Call(call) => self.call(node, call, scope),
            Tree::List(list) => self.list(list, scope),
            Tree::Map(map) => self.map(map, scope),
            Tree::Comprehension(comprehension) => self.comprehension(node, comprehension, scope),
            Tree::Struct(literal) => {
                let message = format!("there is no type `{}` to make an object of", literal.type_name);
                let fault = Diagnostic::error("unknown-type", message, self.at(node));
                self.found.push(fault.help("write a map: `{'field': value}`"));
                Value::of(Type::Error)
            }
            Tree::Unspecified => Value::of(Type::Error),
        }
    }

    /// All of a node, in the file.
    pub(super) fn at(&self, node: &IdedExpr) -> Location {
        (self.source.locate)(self.extents.of(node))
    }

    /// The name in a node, in the file.
    pub(super) fn at_name(&self, node: &IdedExpr) -> Location {
        (self.source.locate)(self.extents.name(node))
    }

    /// A node as the user wrote it, cut when it is long.
    pub(super) fn text(&self, node: &IdedExpr) -> String {
        let text = self.extents.text(self.extents.of(node)).split_whitespace().collect::<Vec<_>>().join(" ");
        if text.chars().count() <= 60 { text } else { text.chars().take(57).chain("…".chars()).collect() }
    }

    pub(super) fn want_bool(&mut self, node: &IdedExpr, value: &Value, what: &str) {
        if value.ty.is_unknown() || matches!(value.ty, Type::Bool) {
            return;
        }
        let message = format!("{what} must be `bool`, this is `{}`", value.ty);
        let mut fault = Diagnostic::error("not-a-bool", message, self.at(node)).label(format!("`{}`", value.ty));
        let text = self.text(node);
        // An optional field as a condition: whether it is there is what was meant.
        let before = self.unguarded.len();
        self.unguarded.retain(|(_, warning)| warning.at != fault.at);
        if self.unguarded.len() < before {
            self.found.push(fault.help(format!("ask whether it is there: `has({text})`")));
            return;
        }
        fault = match &value.ty {
            Type::Optional(inner) if matches!(**inner, Type::Bool) => {
                fault.help(format!("say what an absent value means: `{text}.orValue(false)`"))
            }
            Type::Optional(_) => fault.help(format!("ask whether it is there: `{text}.hasValue()`")),
            Type::String => fault.help(format!("compare it: `{text} == '…'`, or `{text} != ''`")),
            Type::Int | Type::Uint | Type::Double => fault.help(format!("compare it: `{text} > 0`")),
            Type::List(_) | Type::Map(..) => fault.help(format!("ask for its size: `size({text}) > 0`")),
            Type::Object(_) => fault.help(format!("ask whether it is there: `has({text})`")),
            _ => fault,
        };
        self.found.push(fault);
    }

    fn ident(&mut self, node: &IdedExpr, name: &str, scope: &Scope) -> Value {
        if let Some(value) = scope.names.get(name) {
            return value.clone();
        }
        if let Some((space, _)) = scope.spaces.get_key_value(name) {
            return Value::of(Type::Space(space));
        }
        if type_named(name).is_some() {
            return Value::of(Type::Type);
        }
        let fault = Diagnostic::error("undeclared-name", format!("there is no `{name}` here"), self.at(node));
        let fault = match meant(name, scope) {
            Some(meant) => fault.help(format!("did you mean `{meant}`?")),
            None if self.library.is_namespace(name) || !self.library.overloads(name, false).is_empty() => {
                fault.help(format!("`{name}` is a function: call it with `(…)`"))
            }
            None => fault.help(format!("text is written in quotes, `'{name}'`; known here: {}", known(scope))),
        };
        self.found.push(fault);
        Value::of(Type::Error)
    }

    fn list(&mut self, list: &ListExpr, scope: &Scope) -> Value {
        let mut element = Type::Never;
        for (index, node) in list.elements.iter().enumerate() {
            let mut value = self.infer(node, scope);
            if list.optional_indices.contains(&index) {
                value.ty = self.optional_entry(node, &value);
            }
            element = element.join(&value.ty);
        }
        Value::of(Type::list(element))
    }

    fn map(&mut self, map: &MapExpr, scope: &Scope) -> Value {
        let (mut keys, mut values) = (Type::Never, Type::Never);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            keys = keys.join(&self.infer(&entry.key, scope).ty);
            let mut value = self.infer(&entry.value, scope);
            if entry.optional {
                value.ty = self.optional_entry(&entry.value, &value);
            }
            values = values.join(&value.ty);
        }
        Value::of(Type::Map(keys.into(), values.into()))
    }

    /// `[?x]` and `{?k: x}` take an optional and leave the element out when it holds nothing.
    pub(super) fn optional_entry(&mut self, node: &IdedExpr, value: &Value) -> Type {
        match &value.ty {
            Type::Optional(inner) => (**inner).clone(),
            unknown if unknown.is_unknown() => Type::Dyn,
            other => {
                let message = format!("`?` before an element needs an optional, this is `{other}`");
                let fault = Diagnostic::error("not-an-optional", message, self.at(node)).label(format!("`{other}`"));
                self.found.push(fault.help("drop the `?`, or read the field with `.?`"));
                Type::Error
            }
        }
    }
}

/// What an unknown name was meant to be: a variable, a member of `variables` or `resources`, a field of `self`.
fn meant(name: &str, scope: &Scope) -> Option<String> {
    for (space, members) in &scope.spaces {
        if members.contains_key(name) {
            return Some(format!("{space}.{name}"));
        }
    }
    for (root, value) in &scope.names {
        let schema = value.schema.as_ref().filter(|_| !root.starts_with('@'));
        if let Some(fields) = schema.and_then(|schema| schema.fields()) {
            if fields.known.contains_key(name) {
                return Some(format!("{root}.{name}"));
            }
            let deeper = fields.known.get("spec").map(super::super::schema::Node::get);
            if deeper.is_some_and(|spec| spec.fields().is_some_and(|fields| fields.known.contains_key(name))) {
                return Some(format!("{root}.spec.{name}"));
            }
        }
    }
    let names = scope.names.keys().map(String::as_str).filter(|name| !name.starts_with('@'));
    let names = names.chain(scope.spaces.keys().copied()).chain(["true", "false", "null"]);
    did_you_mean(name, names).map(str::to_owned)
}

/// The names that an expression may use, for messages.
fn known(scope: &Scope) -> String {
    let names = scope.names.keys().map(String::as_str).filter(|name| !name.starts_with('@'));
    names.chain(scope.spaces.keys().copied()).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}
