//! Reading fields: `self.spec.subnets[0].?name`. Whether each field exists, what type it has, and whether it may be
//! absent although it is read as if it were there.

use std::sync::Arc;

use cel::common::ast::{CallExpr, Expr as Tree, IdedExpr, LiteralValue, SelectExpr, operators};

use super::expression::{Checker, Goes};
use super::scope::{Path, Scope, Value};
use crate::diagnostic::{Diagnostic, Location};
use crate::rules::functions::type_named;
use crate::rules::schema::{Schema, Shape};
use crate::rules::suggest::did_you_mean;
use crate::rules::types::Type;

/// How a field is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// `a.b`: it must be there.
    Plain,
    /// `a.?b`
    Optional,
    /// `has(a.b)`
    Test,
}

/// Why a field may be absent: `Some(None)` because the schema does not require it, `None` when it is always there.
type Absent = Option<Option<String>>;

/// How the reason for a resource that may not be there begins.
pub(super) const HAS_WHEN: &str = "the resource has `when: ";

const MAP_KEY: &str = "a map has a key or has it not";

/// One step of a chain of selections.
enum Link<'n> {
    Field(&'n IdedExpr, &'n str, Reading),
    Index(&'n IdedExpr, &'n IdedExpr, Reading),
}

/// The first field of a chain that is read although it may be absent.
struct Unguarded {
    /// Position in the chain.
    link: usize,
    path: Path,
    /// Why it may be absent, when it is not the schema that says so.
    reason: Option<String>,
}

impl Checker<'_> {
    /// A chain of selections and indexings, from its root to its end, judged as a whole: one warning for a chain, with
    /// all of it rewritten.
    pub(super) fn chain(&mut self, node: &IdedExpr, scope: &Scope) -> Value {
        let (root, links) = unroll(node);
        // `google.protobuf.Duration` is the name of a type.
        if let Tree::Ident(name) = &root.expr
            && !scope.names.contains_key(name)
            && type_named(self.extents.text(self.extents.of(node))).is_some()
        {
            return Value::of(Type::Type);
        }
        let mut value = self.infer(root, scope);
        let mut unguarded: Option<Unguarded> = None;
        // The questions that would guard the whole chain.
        let mut guards = Vec::new();
        for (position, link) in links.iter().enumerate() {
            let ((next, absent), reading) = match link {
                Link::Field(node, name, reading) => (self.field(node, &value, name, *reading, scope), *reading),
                Link::Index(node, index, reading) => (self.index(node, &value, index, *reading, scope), *reading),
            };
            if let (Some(reason), Some(path)) = (absent, &next.path)
                && reading == Reading::Plain
                && !matches!(value.ty, Type::Optional(_))
                && !scope.facts.contains(path)
                && !self.warned.contains(path)
            {
                guards.push(match link {
                    Link::Field(node, ..) => format!("has({})", self.text(node)),
                    Link::Index(node, index, _) => format!("{} in {}", self.text(index), self.owner(node)),
                });
                let first = Unguarded { link: position, path: path.clone(), reason };
                unguarded = unguarded.or(Some(first));
            }
            value = next;
        }
        if let Some(unguarded) = unguarded.filter(|_| !matches!(value.ty.unwrapped(), Type::Error)) {
            self.warn_unguarded(node, &links, &unguarded, &value, &guards);
        }
        value
    }

    /// A field of a value, and whether it may be absent.
    fn field(
        &mut self,
        node: &IdedExpr,
        operand: &Value,
        name: &str,
        reading: Reading,
        scope: &Scope,
    ) -> (Value, Absent) {
        let wrap = |ty: Type| match reading {
            Reading::Test => Type::Bool,
            Reading::Optional => Type::optional(ty),
            Reading::Plain if matches!(operand.ty, Type::Optional(_)) => Type::optional(ty),
            Reading::Plain => ty,
        };
        let path = operand.path.as_ref().map(|path| path.child(name));
        let make = |ty: Type, schema: Option<Arc<Schema>>| Value { path: path.clone(), schema, ..Value::of(wrap(ty)) };
        match operand.ty.unwrapped() {
            Type::Error => (make(Type::Error, None), None),
            Type::Space(space) => self.member(node, space, name, reading, scope),
            unknown if unknown.is_unknown() => (make(Type::Dyn, None), None),
            Type::Object(schema) => {
                let schema = Arc::clone(schema);
                let Some(fields) = schema.fields() else { return (make(Type::Dyn, None), None) };
                match fields.known.get(name) {
                    Some(field) => {
                        let field = field.get();
                        let sure = fields.is_sure(name);
                        (make(field.value_type(), Some(field)), (!sure).then_some(None))
                    }
                    None if fields.open => (make(Type::Dyn, None), None),
                    None => {
                        self.unknown_field(self.at_name(node), &self.owner(node), name, &schema);
                        (make(Type::Error, None), None)
                    }
                }
            }
            Type::Map(_, value) => {
                let schema = operand.schema.as_ref().and_then(|schema| schema.field(name));
                (make((**value).clone(), schema), Some(Some(MAP_KEY.to_owned())))
            }
            other => {
                self.no_fields(node, name, other);
                (make(Type::Error, None), None)
            }
        }
    }

    /// `variables.NAME` or `resources.ID`.
    fn member(
        &mut self,
        node: &IdedExpr,
        space: &'static str,
        name: &str,
        reading: Reading,
        scope: &Scope,
    ) -> (Value, Absent) {
        let used = if space == "variables" { &mut self.uses.variables } else { &mut self.uses.resources };
        used.insert(name.to_owned());
        let Some(members) = scope.spaces.get(space) else { return (Value::of(Type::Dyn), None) };
        if let Some(member) = members.get(name) {
            for path in &member.needs {
                if !scope.facts.contains(path) && !self.warned.contains(path) {
                    self.unmet.insert((name.to_owned(), path.clone()));
                }
            }
            let mut value = member.value.clone();
            let absent = member.only_when.clone().filter(|_| value.path.is_some());
            value.ty = match reading {
                Reading::Plain => value.ty,
                Reading::Optional => Type::optional(value.ty),
                Reading::Test => Type::Bool,
            };
            return (value, absent.map(Some));
        }
        let what = if space == "variables" { "variable" } else { "resource" };
        let fault = Diagnostic::error(
            if space == "variables" { "undeclared-variable" } else { "undeclared-resource" },
            format!("there is no {what} `{name}` in this rule set"),
            self.at_name(node),
        );
        let similar = did_you_mean(name, members.keys().map(String::as_str));
        let all = members.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        self.found.push(match similar {
            Some(similar) => fault.help(format!("did you mean `{space}.{similar}`?")),
            None if members.is_empty() => fault.help(format!("the rule set declares no {what}s")),
            None => fault.help(format!("declared: {all}")),
        });
        (Value::of(Type::Error), None)
    }

    fn unknown_field(&mut self, at: Location, owner: &str, name: &str, schema: &Arc<Schema>) {
        let fault = Diagnostic::error("unknown-field", format!("`{owner}` has no field `{name}`"), at);
        let known = schema.fields().map(|fields| &fields.known);
        let names: Vec<&str> = known.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let deeper = || {
            let found = known
                .into_iter()
                .flatten()
                .find(|(_, field)| field.get().fields().is_some_and(|fields| fields.known.contains_key(name)));
            found.map(|(between, _)| format!("{between}.{name}"))
        };
        let meant = did_you_mean(name, names.iter().copied()).map(str::to_owned).or_else(deeper);
        self.found.push(match meant {
            Some(meant) => fault.help(format!("did you mean `{meant}`?")),
            None if names.len() <= 12 => {
                let list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                fault.help(format!("it has {list}"))
            }
            None => fault,
        });
    }

    fn no_fields(&mut self, node: &IdedExpr, name: &str, ty: &Type) {
        let owner = self.owner(node);
        let message = format!("`{owner}` is `{ty}`, which has no fields");
        let fault = Diagnostic::error("no-fields", message, self.at_name(node));
        let callable = !self.library.overloads(name, true).is_empty();
        self.found.push(match ty {
            _ if callable => fault.help(format!("`{name}` is a function: `{owner}.{name}(…)`")),
            Type::List(_) => fault.help(format!("take one element, `{owner}[0]`, or all, `{owner}.map(x, x.{name})`")),
            _ => fault,
        });
    }

    /// What a field was looked for in, as written.
    fn owner(&self, node: &IdedExpr) -> String {
        match &node.expr {
            Tree::Select(SelectExpr { operand, .. }) => self.text(operand),
            Tree::Call(CallExpr { args, .. }) => args.first().map(|operand| self.text(operand)).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// `a[i]` and `a[?i]`.
    fn index(
        &mut self,
        node: &IdedExpr,
        operand: &Value,
        index: &IdedExpr,
        reading: Reading,
        scope: &Scope,
    ) -> (Value, Absent) {
        let found = self.infer(index, scope);
        let mut absent = None;
        let wrap = |ty: Type| {
            let optional = reading == Reading::Optional || matches!(operand.ty, Type::Optional(_));
            if optional { Type::optional(ty) } else { ty }
        };
        let step = match &index.expr {
            Tree::Literal(LiteralValue::String(key)) => Some(key.inner().to_owned()),
            Tree::Literal(LiteralValue::Int(number)) => Some(format!("[{}]", number.inner())),
            _ => None,
        };
        let path = operand.path.as_ref().zip(step.as_ref()).map(|(path, step)| path.child(step));
        let (ty, schema, wanted) = match operand.ty.unwrapped() {
            Type::List(element) => {
                let items = operand.schema.as_ref().and_then(|schema| match &schema.shape {
                    Shape::List(items) => Some(items.get()),
                    _ => None,
                });
                ((**element).clone(), items, Type::Int)
            }
            Type::Map(key, value) => {
                let schema =
                    operand.schema.as_ref().and_then(|schema| schema.field(step.as_deref().unwrap_or_default()));
                absent = Some(Some(MAP_KEY.to_owned()));
                ((**value).clone(), schema, (**key).clone())
            }
            Type::Object(schema) => match step.as_deref().filter(|_| matches!(found.ty, Type::String)) {
                Some(name) => {
                    if let Some(field) = schema.field(name) {
                        let fields = schema.fields();
                        let sure = fields.is_none_or(|fields| fields.is_sure(name));
                        absent = (!sure).then_some(None);
                        (field.value_type(), Some(field), Type::String)
                    } else {
                        self.unknown_field(self.at(index), &self.owner(node), name, &Arc::clone(schema));
                        (Type::Error, None, Type::String)
                    }
                }
                None => (Type::Dyn, None, Type::String),
            },
            unknown if unknown.is_unknown() => (Type::Dyn, None, Type::Dyn),
            other => {
                let message = format!("`{other}` cannot be indexed");
                let fault = Diagnostic::error("not-indexable", message, self.at(node));
                self.found.push(fault.label("only lists and maps have elements"));
                (Type::Error, None, Type::Dyn)
            }
        };
        if !wanted.may_equal(&found.ty) {
            let what = if matches!(operand.ty.unwrapped(), Type::List(_)) { "a list's index" } else { "a map's key" };
            let message = format!("{what} is `{wanted}`, this is `{}`", found.ty);
            let fault = Diagnostic::error("wrong-index", message, self.at(index)).label(format!("`{}`", found.ty));
            self.found.push(match operand.ty.unwrapped() {
                Type::List(_) => fault.help("elements are numbered from 0"),
                _ => fault,
            });
        }
        (Value { path, schema, ..Value::of(wrap(ty)) }, absent)
    }

    fn warn_unguarded(
        &mut self,
        node: &IdedExpr,
        links: &[Link<'_>],
        unguarded: &Unguarded,
        value: &Value,
        guards: &[String],
    ) {
        self.warned.insert(unguarded.path.clone());
        let (Link::Field(first, ..) | Link::Index(first, ..)) = &links[unguarded.link];
        let optional = self.text(first);
        let message = match &unguarded.reason {
            None => format!("`{optional}` is optional, and read as if it were always there"),
            Some(reason) => format!("`{optional}` may not be there: {reason}"),
        };
        let fault = Diagnostic::warning("unguarded-optional", message, self.at(first));
        let rewritten = self.rewritten(links, unguarded.link);
        let guard = guards.join(" && ");
        let fault = if matches!(links.last(), Some(Link::Field(_, _, Reading::Test))) {
            fault
                .label("`has()` asks only for the last field")
                .help(format!("ask for each: `{guard} && {}`", self.text(node)))
                .help(format!("or read it with `.?`: `{rewritten}.hasValue()`"))
        } else {
            let fault = fault.label("when it is absent, this is an error");
            let whole = node.id == self.source.expr.ast().id && self.goes == Goes::Manifest;
            let fault = if whole { fault.help(format!("to leave the key out then: `{rewritten}`")) } else { fault };
            let default = super::call::default(value.ty.unwrapped());
            let fault = fault.help(format!("to use something else then: `{rewritten}.orValue({default})`"));
            let condition =
                unguarded.reason.as_deref().and_then(|reason| reason.strip_prefix(HAS_WHEN)?.strip_suffix('`'));
            if let Some(variable) = unguarded.path.macro_variable() {
                self.unguarded.push((
                    unguarded.path.clone(),
                    fault.help(format!(
                        "or take only the elements that have it: `.filter({variable}, {guard})` before this"
                    )),
                ));
                return;
            }
            match (self.goes, condition) {
                // Longer than the value that it guards: the other ways are better.
                (_, None) if guards.len() > 2 => fault,
                (Goes::Manifest | Goes::Text, Some(condition)) => {
                    fault.help(format!("or give this resource the same `when: {condition}`"))
                }
                (Goes::Manifest | Goes::Text, None) => {
                    fault.help(format!("or make it depend on `{guard}`, in `when:` or before `?`"))
                }
                (Goes::Condition | Goes::Validation, _) => fault.help(format!("or ask first: `{guard} && …`")),
                (Goes::Elsewhere, _) => fault.help(format!("or ask first: `{guard} ? … : …`")),
            }
        };
        self.unguarded.push((unguarded.path.clone(), fault));
    }

    /// The chain with `.?` from the first optional field on.
    fn rewritten(&self, links: &[Link<'_>], from: usize) -> String {
        let (Link::Field(first, ..) | Link::Index(first, ..)) = &links[from];
        let mut text = self.owner(first);
        for link in &links[from..] {
            match link {
                Link::Field(_, name, _) => {
                    text.push_str(".?");
                    text.push_str(name);
                }
                Link::Index(_, index, _) => {
                    text.extend(["[?", &self.text(index), "]"]);
                }
            }
        }
        text
    }
}

/// The root of a chain and its steps, in reading order.
fn unroll(node: &IdedExpr) -> (&IdedExpr, Vec<Link<'_>>) {
    let (mut at, mut links) = (node, Vec::new());
    loop {
        at = match &at.expr {
            Tree::Select(select) => {
                let reading = if select.test { Reading::Test } else { Reading::Plain };
                links.push(Link::Field(at, &select.field, reading));
                &select.operand
            }
            Tree::Call(CallExpr { func_name, target: None, args }) => match (func_name.as_str(), args.as_slice()) {
                (operators::OPT_SELECT, [operand, field]) => {
                    let Tree::Literal(LiteralValue::String(name)) = &field.expr else { break };
                    links.push(Link::Field(at, name.inner(), Reading::Optional));
                    operand
                }
                (operators::INDEX, [operand, index]) => {
                    links.push(Link::Index(at, index, Reading::Plain));
                    operand
                }
                (operators::OPT_INDEX, [operand, index]) => {
                    links.push(Link::Index(at, index, Reading::Optional));
                    operand
                }
                _ => break,
            },
            _ => break,
        };
    }
    links.reverse();
    (at, links)
}
