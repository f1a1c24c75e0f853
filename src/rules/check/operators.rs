//! Operators: what they are defined for, and comparisons that can only come out one way.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators as op};

use super::call::default;
use super::expression::Checker;
use super::scope::{Scope, Value};
use crate::diagnostic::Diagnostic;
use crate::rules::schema::Schema;
use crate::rules::suggest::did_you_mean;
use crate::rules::types::Type;

impl Checker<'_> {
    /// The value of an operator; `None` when the call is none.
    pub(super) fn operator(&mut self, node: &IdedExpr, call: &CallExpr, scope: &Scope) -> Option<Value> {
        if call.target.is_some() {
            return None;
        }
        let value = match (call.func_name.as_str(), call.args.as_slice()) {
            (op::OPT_SELECT | op::INDEX | op::OPT_INDEX, [_, _]) => self.chain(node, scope),
            (op::LOGICAL_AND, [left, right]) => self.logical(left, right, true, scope),
            (op::LOGICAL_OR, [left, right]) => self.logical(left, right, false, scope),
            (op::LOGICAL_NOT, [inner]) => {
                let value = self.infer(inner, scope);
                self.want_bool(inner, &value, "what `!` negates");
                Value::of(Type::Bool)
            }
            (op::NOT_STRICTLY_FALSE, [inner]) => {
                self.infer(inner, scope);
                Value::of(Type::Bool)
            }
            (op::CONDITIONAL, [condition, yes, no]) => {
                let (yes, no) = self.branches(condition, yes, no, scope);
                let ty = yes.ty.join(&no.ty);
                Value::of(ty)
            }
            (op::NEGATE, [inner]) => {
                let value = self.infer(inner, scope);
                match value.ty {
                    Type::Int | Type::Double | Type::IntOrString => value,
                    unknown if unknown.is_unknown() => Value::of(Type::Dyn),
                    other => {
                        let message = format!("`-` is not defined for `{other}`");
                        let fault = Diagnostic::error("wrong-operator", message, self.at(inner));
                        self.found.push(fault.label(format!("`{other}`")));
                        Value::of(Type::Error)
                    }
                }
            }
            (op::EQUALS | op::NOT_EQUALS, [left, right]) => {
                let (a, b) = (self.infer(left, scope), self.infer(right, scope));
                self.comparable(node, call, (left, &a), (right, &b));
                Value::of(Type::Bool)
            }
            (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [left, right]) => {
                let (a, b) = (self.infer(left, scope), self.infer(right, scope));
                self.ordered(node, call, (left, &a), (right, &b));
                Value::of(Type::Bool)
            }
            (op::IN, [left, right]) => {
                let (a, b) = (self.infer(left, scope), self.infer(right, scope));
                self.membership((left, &a), (right, &b));
                Value::of(Type::Bool)
            }
            (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, [left, right]) => {
                let (a, b) = (self.infer(left, scope), self.infer(right, scope));
                let sign = sign(&call.func_name);
                let ty = arithmetic(sign, &a.ty, &b.ty).unwrap_or_else(|| {
                    self.wrong_operator(node, sign, (left, &a.ty), (right, &b.ty));
                    Type::Error
                });
                Value { elements: common(&a, &b), ..Value::of(ty) }
            }
            _ => return None,
        };
        Some(value)
    }

    /// `&&` and `||`; the right side knows what the left one said.
    fn logical(&mut self, left: &IdedExpr, right: &IdedExpr, and: bool, scope: &Scope) -> Value {
        let sign = if and { "`&&`" } else { "`||`" };
        let value = self.infer(left, scope);
        self.want_bool(left, &value, &format!("what {sign} joins"));
        let inner = scope.knowing(&self.facts(left, scope, and));
        let value = self.infer(right, &inner);
        self.want_bool(right, &value, &format!("what {sign} joins"));
        Value::of(Type::Bool)
    }

    /// The branches of `?:`, each knowing what the condition said.
    pub(super) fn branches(
        &mut self,
        condition: &IdedExpr,
        yes: &IdedExpr,
        no: &IdedExpr,
        scope: &Scope,
    ) -> (Value, Value) {
        let (then, otherwise) = self.choose(condition, scope);
        (self.infer(yes, &then), self.infer(no, &otherwise))
    }

    /// Checks the condition of `?:` and gives the scopes of its branches.
    pub(super) fn choose(&mut self, condition: &IdedExpr, scope: &Scope) -> (Scope, Scope) {
        let value = self.infer(condition, scope);
        self.want_bool(condition, &value, "the condition before `?`");
        let then = scope.knowing(&self.facts(condition, scope, true));
        let otherwise = scope.knowing(&self.facts(condition, scope, false));
        (then, otherwise)
    }

    fn comparable(&mut self, node: &IdedExpr, call: &CallExpr, left: (&IdedExpr, &Value), right: (&IdedExpr, &Value)) {
        let outcome = if call.func_name == op::EQUALS { "false" } else { "true" };
        if !left.1.ty.may_equal(&right.1.ty) {
            let message = format!("this is always {outcome}: `{}` never equals `{}`", left.1.ty, right.1.ty);
            let fault = Diagnostic::error("never-equal", message, self.at(node));
            let fault = self.convert_one(fault, left, right, outcome == "false");
            self.found.push(fault);
            return;
        }
        if left.1.ty.is_number() && right.1.ty.is_number() && !left.1.ty.same(&right.1.ty) {
            let message = format!("Kubernetes refuses to compare `{}` with `{}`", left.1.ty, right.1.ty);
            let fault = Diagnostic::warning("kubernetes-differs", message, self.at(node));
            let (from, to) = if matches!(left.1.ty, Type::Double) { (right, left) } else { (left, right) };
            let fault = fault.label("here it compares the values");
            self.found.push(match self.convert(from.0, &from.1.ty, &to.1.ty) {
                Some(help) => fault.help(help),
                None => fault,
            });
            return;
        }
        for ((read, value), (constant, _)) in [(left, right), (right, left)] {
            let (Some(schema), Expr::Literal(LiteralValue::String(text))) = (&value.schema, &constant.expr) else {
                continue;
            };
            if !matches!(value.ty.unwrapped(), Type::String) {
                continue;
            }
            if let Some(fault) = self.not_allowed(read, constant, text.inner(), schema, outcome) {
                self.found.push(fault);
            }
        }
    }

    /// A comparison with a text that the field's enum does not have.
    fn not_allowed(
        &self,
        read: &IdedExpr,
        constant: &IdedExpr,
        text: &str,
        schema: &Schema,
        outcome: &str,
    ) -> Option<Diagnostic> {
        let list = schema.allowed_list()?;
        if schema.allowed.iter().any(|allowed| allowed == text) {
            return None;
        }
        let message = format!("this is always {outcome}: `{}` is never `'{text}'`", self.text(read));
        let fault = Diagnostic::error("never-equal", message, self.at(constant));
        let similar = did_you_mean(text, schema.allowed.iter().filter_map(|allowed| allowed.as_str()));
        Some(match similar {
            Some(similar) => fault.help(format!("did you mean `'{similar}'`?")),
            None => fault.help(format!("it is one of {list}")),
        })
    }

    /// How the two sides of a comparison could be made to fit.
    fn convert_one(
        &self,
        fault: Diagnostic,
        left: (&IdedExpr, &Value),
        right: (&IdedExpr, &Value),
        equal: bool,
    ) -> Diagnostic {
        for ((node, value), (other, wanted)) in [(left, right), (right, left)] {
            let text = self.text(node);
            match (&value.ty, &wanted.ty) {
                (_, Type::Null) => {
                    return match &node.expr {
                        Expr::Select(_) => {
                            let not = if equal { "!" } else { "" };
                            fault.help(format!("an absent field is not null: ask `{not}has({text})`"))
                        }
                        _ if matches!(value.ty, Type::Optional(_)) => {
                            let not = if equal { "!" } else { "" };
                            fault.help(format!("ask whether it is there: `{not}{text}.hasValue()`"))
                        }
                        _ => fault,
                    };
                }
                (Type::Optional(inner), other) if inner.may_equal(other) => {
                    return fault.help(format!("say what an absent value means: `{text}.orValue({})`", default(inner)));
                }
                (Type::List(element), other) if element.may_equal(other) => {
                    return fault.help(format!(
                        "to ask for one element: `{} in {text}`",
                        self.text(other_node(right, left, node))
                    ));
                }
                (from, to) => {
                    // A literal is the side to change; a field is made into the type of a literal.
                    let literal = matches!(node.expr, Expr::Literal(_));
                    let other_literal = matches!(other.expr, Expr::Literal(_));
                    if let Some(help) = self.convert(node, from, to).filter(|_| literal || !other_literal) {
                        return fault.help(help);
                    }
                }
            }
        }
        fault
    }

    fn ordered(&mut self, node: &IdedExpr, call: &CallExpr, left: (&IdedExpr, &Value), right: (&IdedExpr, &Value)) {
        let (a, b) = (&left.1.ty, &right.1.ty);
        let same = a.is_unknown() || b.is_unknown() || a.may_equal(b);
        if same && (a.is_unknown() || a.is_ordered()) && (b.is_unknown() || b.is_ordered()) {
            return;
        }
        let sign = sign(&call.func_name);
        let message = if same {
            format!("`{sign}` is not defined for `{a}`")
        } else {
            format!("`{sign}` does not compare `{a}` with `{b}`")
        };
        let fault = Diagnostic::error("wrong-operator", message, self.at(node));
        let fault = match a {
            Type::Opaque(_) if same => fault.help("use its own functions, such as `isLessThan` and `compareTo`"),
            Type::List(_) | Type::Map(..) if b.is_number() => {
                fault.help(format!("compare its size: `size({}) {sign} {}`", self.text(left.0), self.text(right.0)))
            }
            _ => self.convert_one(fault, left, right, true),
        };
        self.found.push(fault);
    }

    fn membership(&mut self, left: (&IdedExpr, &Value), right: (&IdedExpr, &Value)) {
        let element = match &right.1.ty {
            Type::List(element) => (**element).clone(),
            Type::Map(key, _) => (**key).clone(),
            Type::Object(_) => Type::String,
            unknown if unknown.is_unknown() => return,
            other => {
                let message = format!("`in` looks into a list or a map, this is `{other}`");
                let fault = Diagnostic::error("wrong-operator", message, self.at(right.0)).label(format!("`{other}`"));
                let (part, whole) = (self.text(left.0), self.text(right.0));
                self.found.push(match other {
                    Type::String => fault.help(format!("for a part of a text: `{whole}.contains({part})`")),
                    Type::Optional(inner) => {
                        fault.help(format!("say what an absent value means: `{whole}.orValue({})`", default(inner)))
                    }
                    _ => fault,
                });
                return;
            }
        };
        if !left.1.ty.may_equal(&element) {
            let message = format!("this is always false: no `{}` is in `{}`", left.1.ty, right.1.ty);
            let fault = Diagnostic::error("never-equal", message, self.at(left.0)).label(format!("`{}`", left.1.ty));
            self.found.push(fault);
        }
    }

    fn wrong_operator(&mut self, node: &IdedExpr, sign: &str, left: (&IdedExpr, &Type), right: (&IdedExpr, &Type)) {
        let message = format!("`{sign}` is not defined for `{}` and `{}`", left.1, right.1);
        let fault = Diagnostic::error("wrong-operator", message, self.at(node));
        let fault =
            fault.related(self.at(left.0), format!("`{}`", left.1)).related(self.at(right.0), format!("`{}`", right.1));
        let mut help = None;
        for ((node, ty), (_, other)) in [(left, right), (right, left)] {
            let text = self.text(node);
            help = help.or(match (ty, other) {
                (Type::Optional(inner), _) => {
                    Some(format!("say what an absent value means: `{text}.orValue({})`", default(inner)))
                }
                (
                    Type::Int
                    | Type::Uint
                    | Type::Double
                    | Type::Bool
                    | Type::Opaque(_)
                    | Type::Timestamp
                    | Type::Duration,
                    Type::String,
                ) if sign == "+" => self.convert(node, ty, other),
                (Type::List(_), Type::String) if sign == "+" => Some(format!("join the list: `{text}.join(', ')`")),
                (other, Type::List(element))
                    if sign == "+" && !matches!(other, Type::String) && element.may_equal(other) =>
                {
                    Some(format!("put it in a list: `[{text}]`"))
                }
                (Type::String, Type::Int | Type::Double) if sign != "+" => self.convert(node, ty, other),
                (Type::Int, Type::Double | Type::Uint) => self.convert(node, ty, other),
                _ => None,
            });
        }
        self.found.push(match help {
            Some(help) => fault.help(help),
            None => fault,
        });
    }
}

fn other_node<'n>(a: (&'n IdedExpr, &Value), b: (&'n IdedExpr, &Value), node: &IdedExpr) -> &'n IdedExpr {
    if std::ptr::eq(a.0, node) { b.0 } else { a.0 }
}

/// Facts about the elements that both lists have.
fn common(a: &Value, b: &Value) -> Vec<super::scope::Path> {
    a.elements.iter().filter(|path| b.elements.contains(path)).cloned().collect()
}

/// How an operator is written.
fn sign(function: &str) -> &str {
    function.trim_matches('_')
}

/// The type of `a sign b`; `None` when there is no such operation.
fn arithmetic(sign: &str, a: &Type, b: &Type) -> Option<Type> {
    if a.is_unknown() || b.is_unknown() {
        // A text or a number on one side tells what the result is, whatever the other turns out to be.
        let known = if a.is_unknown() { b } else { a };
        return match known {
            Type::Error => Some(Type::Error),
            Type::String if sign == "+" => Some(Type::String),
            Type::Optional(_) | Type::Object(_) | Type::Map(..) | Type::Bool | Type::Null => None,
            _ => Some(Type::Dyn),
        };
    }
    match (sign, a, b) {
        (_, Type::IntOrString, Type::IntOrString | Type::Int) | (_, Type::Int, Type::IntOrString) => Some(Type::Dyn),
        ("+", Type::String | Type::IntOrString, Type::String) | ("+", Type::String, Type::IntOrString) => {
            Some(Type::String)
        }
        ("+", Type::Bytes, Type::Bytes) => Some(Type::Bytes),
        ("+", Type::List(_), Type::List(_)) => Some(a.join(b)),
        ("+" | "-", Type::Timestamp, Type::Duration) | ("+", Type::Duration, Type::Timestamp) => Some(Type::Timestamp),
        ("+" | "-", Type::Duration, Type::Duration) | ("-", Type::Timestamp, Type::Timestamp) => Some(Type::Duration),
        ("%", Type::Double, Type::Double) => None,
        _ if a.is_number() && a.same(b) => Some(a.clone()),
        _ => None,
    }
}
