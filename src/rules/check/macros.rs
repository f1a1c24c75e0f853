//! Macros: the parser has turned `list.filter(x, …)` into a loop; here the loop is recognised again, so that messages
//! speak of what was written.

use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators as op};

use super::expression::Checker;
use super::scope::{Path, Scope, Value};
use crate::diagnostic::Diagnostic;
use crate::rules::schema::{Schema, Shape};
use crate::rules::types::Type;

/// What a loop was written as.
enum Macro<'n> {
    /// `all`, `exists`, `exists_one`: a condition for each element.
    Condition(&'n IdedExpr),
    /// `filter`
    Filter(&'n IdedExpr),
    /// `map`, with or without a condition.
    Map(Option<&'n IdedExpr>, &'n IdedExpr),
    /// `optMap`, `cel.bind`: a name for a value.
    Bind,
    /// None of these.
    Other,
}

fn recognise(loop_: &ComprehensionExpr) -> Macro<'_> {
    if loop_.iter_var == "#unused" {
        return Macro::Bind;
    }
    let Expr::Call(step) = &loop_.loop_step.expr else { return Macro::Other };
    match (&loop_.accu_init.expr, step.func_name.as_str(), step.args.as_slice()) {
        (Expr::Literal(LiteralValue::Boolean(_)), op::LOGICAL_AND | op::LOGICAL_OR, [result, body])
            if is_result(result, loop_) =>
        {
            Macro::Condition(body)
        }
        (Expr::Literal(LiteralValue::Int(_)), op::CONDITIONAL, [body, _, result]) if is_result(result, loop_) => {
            Macro::Condition(body)
        }
        (Expr::List(_), op::ADD, _) => appended(step, loop_).map_or(Macro::Other, |element| Macro::Map(None, element)),
        (Expr::List(_), op::CONDITIONAL, [condition, taken, result]) if is_result(result, loop_) => match &taken.expr {
            Expr::Call(taken) => match appended(taken, loop_) {
                Some(element) if is_variable(element, loop_) => Macro::Filter(condition),
                Some(element) => Macro::Map(Some(condition), element),
                None => Macro::Other,
            },
            _ => Macro::Other,
        },
        _ => Macro::Other,
    }
}

/// `x` of `@result + [x]`
fn appended<'n>(call: &'n CallExpr, loop_: &ComprehensionExpr) -> Option<&'n IdedExpr> {
    let [result, list] = call.args.as_slice() else { return None };
    let Expr::List(list) = &list.expr else { return None };
    match list.elements.as_slice() {
        [element] if is_result(result, loop_) => Some(element),
        _ => None,
    }
}

fn is_result(node: &IdedExpr, loop_: &ComprehensionExpr) -> bool {
    matches!(&node.expr, Expr::Ident(name) if *name == loop_.accu_var)
}

fn is_variable(node: &IdedExpr, loop_: &ComprehensionExpr) -> bool {
    matches!(&node.expr, Expr::Ident(name) if *name == loop_.iter_var)
}

impl Checker<'_> {
    /// A macro that became a loop.
    pub(super) fn comprehension(&mut self, node: &IdedExpr, loop_: &ComprehensionExpr, scope: &Scope) -> Value {
        let kind = recognise(loop_);
        if let Macro::Bind = kind {
            let bound = self.infer(&loop_.accu_init, scope);
            return self.infer(&loop_.result, &scope.with(&loop_.accu_var, bound));
        }
        let range = self.infer(&loop_.iter_range, scope);
        let (inner, element) = self.element_scope(node, loop_, &range, scope);
        let name = self.extents.text(self.extents.name(node)).to_owned();
        match kind {
            Macro::Condition(body) => {
                let value = self.infer(body, &inner);
                self.want_bool(body, &value, &format!("the condition of `{name}`"));
                Value::of(Type::Bool)
            }
            Macro::Filter(condition) => {
                let value = self.infer(condition, &inner);
                self.want_bool(condition, &value, &format!("the condition of `{name}`"));
                let known = self.facts(condition, &inner, true);
                let mut elements = range.elements.clone();
                elements.extend(known.iter().filter_map(|path| path.below(&element)));
                let ty = match range.ty.unwrapped() {
                    Type::Map(key, _) => Type::list((**key).clone()),
                    Type::Object(_) => Type::list(Type::String),
                    other => other.clone(),
                };
                Value { elements, schema: range.schema, ..Value::of(ty) }
            }
            Macro::Map(condition, body) => {
                let inner = self.map_scope(condition, inner, &name);
                let value = self.infer(body, &inner);
                Value::of(Type::list(value.ty))
            }
            Macro::Bind | Macro::Other => {
                let initial = self.infer(&loop_.accu_init, scope);
                let step_scope = inner.with(&loop_.accu_var, Value::of(Type::Dyn));
                let step = self.infer(&loop_.loop_step, &step_scope);
                let result = Value::of(initial.ty.join(&step.ty));
                self.infer(&loop_.result, &scope.with(&loop_.accu_var, result))
            }
        }
    }

    /// The scope of the value of `map`, after its condition.
    fn map_scope(&mut self, condition: Option<&IdedExpr>, inner: Scope, name: &str) -> Scope {
        let Some(condition) = condition else { return inner };
        let value = self.infer(condition, &inner);
        self.want_bool(condition, &value, &format!("the condition of `{name}`"));
        inner.knowing(&self.facts(condition, &inner, true))
    }

    /// `list.map(x, value)` whose result goes to a list with a schema: the value is judged where it is written. `None`
    /// when the loop is no such thing.
    pub(super) fn put_mapped(
        &mut self,
        node: &IdedExpr,
        scope: &Scope,
        items: &Arc<Schema>,
        what: &str,
    ) -> Option<Value> {
        let Expr::Comprehension(loop_) = &node.expr else { return None };
        let Macro::Map(condition, body) = recognise(loop_) else { return None };
        let range = self.infer(&loop_.iter_range, scope);
        let (inner, _) = self.element_scope(node, loop_, &range, scope);
        let name = self.extents.text(self.extents.name(node)).to_owned();
        let inner = self.map_scope(condition, inner, &name);
        let value = self.put(body, &inner, items, &format!("{what}[]"));
        Some(Value::of(Type::list(value.ty)))
    }

    /// The scope inside a loop, and the path of its element.
    fn element_scope(
        &mut self,
        node: &IdedExpr,
        loop_: &ComprehensionExpr,
        range: &Value,
        scope: &Scope,
    ) -> (Scope, Path) {
        let (key, element, schema) = match &range.ty {
            Type::List(element) => {
                let items = range.schema.as_ref().and_then(|schema| match &schema.shape {
                    Shape::List(items) => Some(items.get()),
                    _ => None,
                });
                (Type::Int, (**element).clone(), items)
            }
            Type::Map(key, value) => ((**key).clone(), (**value).clone(), None),
            Type::Object(_) => (Type::String, Type::Dyn, None),
            unknown if unknown.is_unknown() => (Type::Dyn, Type::Dyn, None),
            other => {
                self.not_a_list(node, loop_, other);
                (Type::Error, Type::Error, None)
            }
        };
        let over_map = matches!(range.ty, Type::Map(..) | Type::Object(_));
        self.bound += 1;
        let path = Path::root(&format!("{}#{}", loop_.iter_var, self.bound));
        let mut inner = scope.clone();
        for known in &range.elements {
            inner.facts.insert(&known.on(&path));
        }
        let value = |ty: Type, schema| Value { path: Some(path.clone()), schema, ..Value::of(ty) };
        match &loop_.iter_var2 {
            Some(second) => {
                inner = inner.with(&loop_.iter_var, Value::of(key)).with(second, value(element, schema));
            }
            None if over_map => inner = inner.with(&loop_.iter_var, Value::of(key)),
            None => inner = inner.with(&loop_.iter_var, value(element, schema)),
        }
        (inner, path)
    }

    fn not_a_list(&mut self, node: &IdedExpr, loop_: &ComprehensionExpr, ty: &Type) {
        let name = self.extents.text(self.extents.name(node)).to_owned();
        let range = &loop_.iter_range;
        let message = format!("`{name}` goes over a list or a map, this is `{ty}`");
        let fault = Diagnostic::error("not-a-list", message, self.at(range)).label(format!("`{ty}`"));
        let text = self.text(range);
        self.found.push(match ty {
            Type::Optional(inner) if matches!(**inner, Type::List(_)) => {
                fault.help(format!("say what an absent list means: `{text}.orValue([])`"))
            }
            Type::Optional(_) if name == "map" => {
                fault.help(format!("for the value of an optional: `{text}.optMap({}, …)`", loop_.iter_var))
            }
            _ => fault,
        });
    }
}
