//! What a condition says about optional fields: after `has(self.spec.gateway) && …` the gateway is there.

use std::cell::Cell;
use std::sync::Arc;

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::extent::Extents;
use super::scope::{Facts, Path, Scope};

/// How many nodes of a condition are looked at: each `?:` has its condition looked at twice, and they can be nested. What
/// is not looked at says nothing, which costs at most a warning.
const NODES: u32 = 2_000;

/// Reads conditions in a scope.
pub struct Conditions<'a> {
    /// The names.
    pub scope: &'a Scope,
    /// For the text of a condition.
    pub extents: &'a Extents<'a>,
    left: Cell<u32>,
}

impl<'a> Conditions<'a> {
    /// A reader of one condition.
    pub fn new(scope: &'a Scope, extents: &'a Extents<'a>) -> Self {
        Self { scope, extents, left: Cell::new(NODES) }
    }

    /// What is known when the condition turned out `outcome`.
    pub fn when(&self, node: &IdedExpr, outcome: bool) -> Facts {
        let Some(left) = self.left.get().checked_sub(1) else { return Facts::default() };
        self.left.set(left);
        let mut facts = self.inner(node, outcome);
        if outcome {
            facts.insert_condition(self.extents.text(self.extents.of(node)));
        }
        facts
    }

    fn inner(&self, node: &IdedExpr, outcome: bool) -> Facts {
        let mut facts = Facts::default();
        match &node.expr {
            Expr::Select(select) if select.test => {
                if outcome && let Some(path) = self.path(&select.operand) {
                    facts.insert(&path.child(&select.field));
                }
            }
            Expr::Call(call) => return self.call(call, outcome),
            _ => {
                if let Some(implied) = self.variable(node) {
                    facts = facts.and(if outcome { &implied.0 } else { &implied.1 });
                }
            }
        }
        facts
    }

    /// What a variable that holds a condition implies.
    fn variable(&self, node: &IdedExpr) -> Option<std::rc::Rc<(Facts, Facts)>> {
        let value = match &node.expr {
            Expr::Ident(name) => self.scope.names.get(name)?,
            Expr::Select(select) => {
                let Expr::Ident(space) = &select.operand.expr else { return None };
                &self.scope.spaces.get(space.as_str())?.get(&select.field)?.value
            }
            _ => return None,
        };
        value.implies.clone()
    }

    fn call(&self, call: &CallExpr, outcome: bool) -> Facts {
        let mut facts = Facts::default();
        match (call.func_name.as_str(), &call.target, call.args.as_slice()) {
            (operators::LOGICAL_NOT, None, [inner]) => return self.when(inner, !outcome),
            (operators::LOGICAL_AND, None, [left, right]) => {
                let (left, right) = (self.when(left, outcome), self.when(right, outcome));
                return if outcome { left.and(&right) } else { left.or(&right) };
            }
            (operators::LOGICAL_OR, None, [left, right]) => {
                let (left, right) = (self.when(left, outcome), self.when(right, outcome));
                return if outcome { left.or(&right) } else { left.and(&right) };
            }
            (operators::CONDITIONAL, None, [condition, yes, no]) => {
                let path = |branch: &IdedExpr, taken: bool| {
                    if is_bool(branch, !outcome) {
                        return None;
                    }
                    Some(self.when(condition, taken).and(&self.when(branch, outcome)))
                };
                return match (path(yes, true), path(no, false)) {
                    (Some(yes), Some(no)) => yes.or(&no),
                    (Some(only), None) | (None, Some(only)) => only,
                    (None, None) => facts,
                };
            }
            ("hasValue", Some(target), []) => {
                if outcome && let Some(path) = self.path(target) {
                    facts.insert(&path);
                }
            }
            ("orValue", Some(target), [default]) => {
                // `x.orValue(false)` is true only when x is there.
                if is_bool(default, !outcome)
                    && let Some(path) = self.path(target)
                {
                    facts.insert(&path);
                }
            }
            (operators::IN, None, [key, map]) => {
                if outcome
                    && let Expr::Literal(LiteralValue::String(key)) = &key.expr
                    && let Some(path) = self.path(map)
                {
                    facts.insert(&path.child(key.inner()));
                }
            }
            (operators::EQUALS | operators::NOT_EQUALS, None, [left, right]) => {
                let equal = (call.func_name == operators::EQUALS) == outcome;
                for (value, other) in [(left, right), (right, left)] {
                    if let Some(path) = self.defaulted(value, other, equal) {
                        facts.insert(&path);
                    }
                }
            }
            (operators::GREATER, None, [value, other]) if outcome => {
                facts.extend(self.sized(value, other, 0));
            }
            (operators::GREATER_EQUALS, None, [value, other]) if outcome => {
                facts.extend(self.sized(value, other, 1));
            }
            _ => {}
        }
        facts
    }

    /// `x.orValue(default) == other`, or `size(x.orValue([])) != 0`: whether that means that x is there.
    fn defaulted(&self, value: &IdedExpr, other: &IdedExpr, equal: bool) -> Option<Path> {
        let (target, default) = or_value(size_of(value).unwrap_or(value))?;
        let Expr::Literal(other) = &other.expr else { return None };
        let default = match size_of(value) {
            Some(_) => empty(default).then(|| LiteralValue::Int(0.into()))?,
            None => match &default.expr {
                Expr::Literal(default) => default.clone(),
                _ => return None,
            },
        };
        // Equal to something that is not the default, or unequal to the default.
        ((default == *other) != equal).then(|| self.path(target))?
    }

    /// `size(x.orValue([])) > 0`
    fn sized(&self, value: &IdedExpr, other: &IdedExpr, least: i64) -> Option<Path> {
        let (target, default) = or_value(size_of(value)?)?;
        let Expr::Literal(LiteralValue::Int(number)) = &other.expr else { return None };
        (empty(default) && *number.inner() >= least).then(|| self.path(target))?
    }

    /// Where an expression reads from; optional steps count as plain ones.
    pub fn path(&self, node: &IdedExpr) -> Option<Path> {
        match &node.expr {
            Expr::Ident(name) => match self.scope.names.get(name) {
                Some(value) => value.path.clone(),
                None => self.scope.spaces.contains_key(name.as_str()).then(|| Path::root(name)),
            },
            Expr::Select(select) if !select.test => {
                let variable = match &select.operand.expr {
                    Expr::Ident(space) if !self.scope.names.contains_key(space) => {
                        self.scope.spaces.get(space.as_str()).and_then(|members| members.get(&select.field))
                    }
                    _ => None,
                };
                // A variable that is nothing but a field is that field.
                if let Some(path) = variable.and_then(|member| member.value.path.clone()) {
                    return Some(path);
                }
                Some(self.path(&select.operand)?.child(&select.field))
            }
            Expr::Call(CallExpr { func_name, target: None, args }) => match (func_name.as_str(), args.as_slice()) {
                (operators::OPT_SELECT | operators::OPT_INDEX | operators::INDEX, [operand, step]) => {
                    let step: Arc<str> = match &step.expr {
                        Expr::Literal(LiteralValue::String(name)) => name.inner().into(),
                        Expr::Literal(LiteralValue::Int(index)) => format!("[{}]", index.inner()).into(),
                        _ => return None,
                    };
                    Some(self.path(operand)?.child(&step))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl Extend<Path> for Facts {
    fn extend<T: IntoIterator<Item = Path>>(&mut self, paths: T) {
        for path in paths {
            self.insert(&path);
        }
    }
}

fn is_bool(node: &IdedExpr, wanted: bool) -> bool {
    matches!(&node.expr, Expr::Literal(LiteralValue::Boolean(value)) if *value.inner() == wanted)
}

fn empty(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::List(list) => list.elements.is_empty(),
        Expr::Map(map) => map.entries.is_empty(),
        Expr::Literal(LiteralValue::String(text)) => text.inner().is_empty(),
        _ => false,
    }
}

/// `x` and `default` of `x.orValue(default)`.
fn or_value(node: &IdedExpr) -> Option<(&IdedExpr, &IdedExpr)> {
    match &node.expr {
        Expr::Call(CallExpr { func_name, target: Some(target), args }) if func_name == "orValue" => {
            Some((target, args.first()?))
        }
        _ => None,
    }
}

/// `x` of `size(x)` or `x.size()`.
fn size_of(node: &IdedExpr) -> Option<&IdedExpr> {
    match &node.expr {
        Expr::Call(CallExpr { func_name, target, args }) if func_name == "size" => {
            target.as_deref().or_else(|| args.first())
        }
        _ => None,
    }
}
