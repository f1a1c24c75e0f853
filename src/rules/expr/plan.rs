//! A parsed expression → the tree that is evaluated: names resolved to slots, functions looked up, constants folded, the
//! accumulating loops of `map`, `filter` and `transformMap` recognised so that they need not copy what they built so far.

use std::sync::Arc;

use cel::IdedExpr;
use cel::Value;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use cel::objects::Key;

use super::budget::Budget;
use super::eval::Frame;
use super::scope::Scope;
use super::syntax::RESERVED;
use super::value::{list, text, type_value};
use crate::rules::functions::{self, Overloads};

/// The accumulator's operation that `transformMap` and `transformMapEntry` expand to.
pub(super) const MAP_INSERT: &str = "cel.@mapInsert";

/// A node, with the id that the parser gave it (for its place in the source).
#[derive(Debug)]
pub(super) struct Node {
    pub id: u64,
    pub op: Op,
}

/// A field name, ready to be looked up.
#[derive(Debug)]
pub(super) struct Field {
    pub key: Key,
    /// What the name stands for when Kubernetes' escaping of property names (`foo__dash__bar`) is undone.
    pub unescaped: Option<Key>,
}

/// What a node does.
#[derive(Debug)]
pub(super) enum Op {
    Const(Value),
    Local(usize),
    Variable {
        name: String,
        type_value: Option<Value>,
    },
    Select {
        operand: Box<Node>,
        field: Field,
        optional: bool,
    },
    Has {
        operand: Box<Node>,
        field: Field,
    },
    Index {
        operands: Box<[Node; 2]>,
        optional: bool,
    },
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Not(Box<Node>),
    Negate(Box<Node>),
    NotStrictlyFalse(Box<Node>),
    Conditional(Box<[Node; 3]>),
    Binary(Binary, Box<[Node; 2]>),
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Call(Box<Call>),
    Loop(Box<Loop>),
    /// Something that CEL's grammar allows and that Kubernetes has no use for, such as constructing a message.
    Unsupported(String),
}

/// Operators of two operands that are both always evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
}

/// A function call; the receiver of a member call is the first argument.
#[derive(Debug)]
pub(super) struct Call {
    pub name: String,
    pub functions: Overloads,
    pub member: bool,
    pub args: Vec<Node>,
}

/// A comprehension.
#[derive(Debug)]
pub(super) struct Loop {
    pub range: Node,
    pub init: Node,
    /// Whether there are two loop variables: index and element, or key and value.
    pub pair: bool,
    pub fold: Fold,
    pub result: Node,
}

/// What a loop does with its accumulator.
#[derive(Debug)]
pub(super) enum Fold {
    /// Appends an item, if the condition holds.
    Append { condition: Option<Node>, item: Node },
    /// Inserts one entry (`key`, `value`), or all entries of a map (`value` alone), if the condition holds.
    Insert { condition: Option<Node>, key: Option<Node>, value: Node },
    /// Replaces it by `step` as long as `condition` holds.
    General { condition: Node, step: Node },
}

/// Plans an expression.
pub(super) fn plan(expr: &IdedExpr) -> Node {
    Planner { locals: Vec::new() }.node(expr)
}

struct Planner {
    /// Names of the loop variables and accumulators in scope; the index is the slot.
    locals: Vec<String>,
}

impl Planner {
    fn node(&mut self, expr: &IdedExpr) -> Node {
        let op = match &expr.expr {
            Expr::Unspecified => Op::Unsupported("an incomplete expression".to_owned()),
            Expr::Literal(literal) => Op::Const(literal_value(literal)),
            Expr::Ident(name) => self.ident(name),
            Expr::Select(select) => {
                let qualified = qualified_name(expr);
                match qualified.as_deref().and_then(functions::type_named) {
                    Some(name) if !select.test => Op::Const(type_value(name)),
                    _ => {
                        let operand = Box::new(self.node(&select.operand));
                        let field = Field::new(&select.field);
                        if select.test {
                            Op::Has { operand, field }
                        } else {
                            Op::Select { operand, field, optional: false }
                        }
                    }
                }
            }
            Expr::Call(call) => self.call(call.func_name.as_str(), call.target.as_deref(), &call.args),
            Expr::List(items) => Op::List(
                items
                    .elements
                    .iter()
                    .enumerate()
                    .map(|(index, item)| (self.node(item), items.optional_indices.contains(&index)))
                    .collect(),
            ),
            Expr::Map(map) => Op::Map(
                map.entries
                    .iter()
                    .filter_map(|entry| match &entry.expr {
                        EntryExpr::MapEntry(entry) => {
                            Some((self.node(&entry.key), self.node(&entry.value), entry.optional))
                        }
                        EntryExpr::StructField(_) => None,
                    })
                    .collect(),
            ),
            Expr::Struct(message) => Op::Unsupported(format!("constructing a `{}`", message.type_name)),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        };
        fold_constants(Node { id: expr.id, op })
    }

    fn boxed(&mut self, expr: &IdedExpr) -> Box<Node> {
        Box::new(self.node(expr))
    }

    fn ident(&self, name: &str) -> Op {
        if let Some(slot) = self.locals.iter().rposition(|local| local == name) {
            return Op::Local(slot);
        }
        let name = name.trim_start_matches('.');
        Op::Variable { name: name.to_owned(), type_value: functions::type_named(name).map(type_value) }
    }

    fn call(&mut self, name: &str, target: Option<&IdedExpr>, args: &[IdedExpr]) -> Op {
        if target.is_none()
            && let Some(op) = self.operator(name, args)
        {
            return op;
        }
        if let Some(target) = target {
            let qualified = qualified_name(target).map(|target| format!("{target}.{name}"));
            if let Some(global) = qualified.filter(|name| functions::is_global(name)) {
                return self.function(&global, None, args);
            }
        }
        self.function(name, target, args)
    }

    fn function(&mut self, name: &str, target: Option<&IdedExpr>, args: &[IdedExpr]) -> Op {
        let name = name.trim_start_matches('.');
        Op::Call(Box::new(Call {
            name: name.to_owned(),
            functions: functions::find(name, target.is_some()),
            member: target.is_some(),
            args: target.into_iter().chain(args).map(|arg| self.node(arg)).collect(),
        }))
    }

    fn operator(&mut self, name: &str, args: &[IdedExpr]) -> Option<Op> {
        Some(match (name, args) {
            (operators::CONDITIONAL, [condition, yes, no]) => {
                Op::Conditional(Box::new([self.node(condition), self.node(yes), self.node(no)]))
            }
            (operators::LOGICAL_AND, [a, b]) => Op::And(Box::new([self.node(a), self.node(b)])),
            (operators::LOGICAL_OR, [a, b]) => Op::Or(Box::new([self.node(a), self.node(b)])),
            (operators::LOGICAL_NOT, [a]) => Op::Not(self.boxed(a)),
            (operators::NEGATE, [a]) => Op::Negate(self.boxed(a)),
            (operators::NOT_STRICTLY_FALSE, [a]) => Op::NotStrictlyFalse(self.boxed(a)),
            (operators::INDEX, [a, b]) => {
                Op::Index { operands: Box::new([self.node(a), self.node(b)]), optional: false }
            }
            (operators::OPT_INDEX, [a, b]) => {
                Op::Index { operands: Box::new([self.node(a), self.node(b)]), optional: true }
            }
            (operators::OPT_SELECT, [operand, field]) => match &field.expr {
                Expr::Literal(LiteralValue::String(field)) => {
                    Op::Select { operand: self.boxed(operand), field: Field::new(field.inner()), optional: true }
                }
                _ => Op::Unsupported("an optional selection without a field name".to_owned()),
            },
            (_, [a, b]) => Op::Binary(binary(name)?, Box::new([self.node(a), self.node(b)])),
            _ => return None,
        })
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Op {
        let range = self.node(&comprehension.iter_range);
        let init = self.node(&comprehension.accu_init);
        let base = self.locals.len();
        self.locals.push(comprehension.accu_var.clone());
        self.locals.push(comprehension.iter_var.clone());
        self.locals.extend(comprehension.iter_var2.clone());
        let fold = self.fold(comprehension, &init);
        self.locals.truncate(base + 1);
        let result = self.node(&comprehension.result);
        self.locals.truncate(base);
        Op::Loop(Box::new(Loop { range, init, pair: comprehension.iter_var2.is_some(), fold, result }))
    }

    fn fold(&mut self, comprehension: &ComprehensionExpr, init: &Node) -> Fold {
        let accumulator = |expr: &IdedExpr| matches!(&expr.expr, Expr::Ident(name) if *name == comprehension.accu_var);
        let (condition, step) = match &comprehension.loop_step.expr {
            Expr::Call(call)
                if call.func_name == operators::CONDITIONAL && call.args.len() == 3 && accumulator(&call.args[2]) =>
            {
                (Some(&call.args[0]), &call.args[1])
            }
            _ => (None, &comprehension.loop_step),
        };
        if let (Expr::Call(call), Op::Const(start)) = (&step.expr, &init.op)
            && call.args.first().is_some_and(accumulator)
        {
            match (call.func_name.as_str(), call.args.as_slice(), start) {
                (operators::ADD, [_, added], Value::List(_)) => {
                    if let Expr::List(items) = &added.expr
                        && let ([item], []) = (items.elements.as_slice(), items.optional_indices.as_slice())
                    {
                        return Fold::Append { condition: condition.map(|c| self.node(c)), item: self.node(item) };
                    }
                }
                (MAP_INSERT, [_, entries], Value::Map(_)) => {
                    let condition = condition.map(|c| self.node(c));
                    return Fold::Insert { condition, key: None, value: self.node(entries) };
                }
                (MAP_INSERT, [_, key, value], Value::Map(_)) => {
                    let condition = condition.map(|c| self.node(c));
                    return Fold::Insert { condition, key: Some(self.node(key)), value: self.node(value) };
                }
                _ => {}
            }
        }
        Fold::General { condition: self.node(&comprehension.loop_cond), step: self.node(&comprehension.loop_step) }
    }
}

impl Field {
    fn new(name: &str) -> Self {
        Self { key: Key::from(name), unescaped: unescape(name).map(Key::from) }
    }
}

/// The property name that Kubernetes escapes as `name`, when it is an escaped one: `foo__dash__bar` is `foo-bar`.
pub fn unescape(name: &str) -> Option<String> {
    if !name.contains("__") {
        return None;
    }
    if let Some(word) = name.strip_prefix("__").and_then(|name| name.strip_suffix("__"))
        && (RESERVED.contains(&word) || ["true", "false", "null", "in"].contains(&word))
    {
        return Some(word.to_owned());
    }
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("__") {
        plain.push_str(&rest[..at]);
        let escaped = &rest[at..];
        let (sequence, replacement) =
            [("__underscores__", "__"), ("__dot__", "."), ("__dash__", "-"), ("__slash__", "/")]
                .into_iter()
                .find(|(sequence, _)| escaped.starts_with(sequence))?;
        plain.push_str(replacement);
        rest = &escaped[sequence.len()..];
    }
    plain.push_str(rest);
    Some(plain)
}

fn binary(name: &str) -> Option<Binary> {
    Some(match name {
        operators::ADD => Binary::Add,
        operators::SUBSTRACT => Binary::Subtract,
        operators::MULTIPLY => Binary::Multiply,
        operators::DIVIDE => Binary::Divide,
        operators::MODULO => Binary::Modulo,
        operators::EQUALS => Binary::Equal,
        operators::NOT_EQUALS => Binary::NotEqual,
        operators::LESS => Binary::Less,
        operators::LESS_EQUALS => Binary::LessEqual,
        operators::GREATER => Binary::Greater,
        operators::GREATER_EQUALS => Binary::GreaterEqual,
        operators::IN => Binary::In,
        _ => return None,
    })
}

fn literal_value(literal: &LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(b) => Value::Bool(*b.inner()),
        LiteralValue::Bytes(b) => Value::Bytes(Arc::new(b.inner().to_vec())),
        LiteralValue::Double(f) => Value::Float(*f.inner()),
        LiteralValue::Int(i) => Value::Int(*i.inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(s) => text(s.inner()),
        LiteralValue::UInt(u) => Value::UInt(*u.inner()),
    }
}

/// The dotted name that an expression spells, if it is nothing but names and dots.
pub(super) fn qualified_name(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => Some(format!("{}.{}", qualified_name(&select.operand)?, select.field)),
        _ => None,
    }
}

/// The node's value instead of the node, where all it depends on is constant. What fails stays as it is, to fail when (and
/// only if) it is evaluated.
fn fold_constants(node: Node) -> Node {
    let constant = |node: &Node| matches!(node.op, Op::Const(_));
    let foldable = match &node.op {
        Op::Not(a) | Op::Negate(a) => constant(a),
        Op::Binary(_, operands) => operands.iter().all(constant),
        Op::List(items) => items.iter().all(|(item, optional)| constant(item) && !optional),
        Op::Map(entries) => entries.iter().all(|(key, value, optional)| constant(key) && constant(value) && !optional),
        Op::Call(call) => !call.functions.is_empty() && call.args.iter().all(constant),
        _ => false,
    };
    if let Op::List(items) = &node.op
        && items.is_empty()
    {
        return Node { id: node.id, op: Op::Const(list(Vec::new())) };
    }
    if !foldable {
        return node;
    }
    // Small on purpose: a constant that needs more is evaluated, and charged for, when it is used.
    let budget = Budget::new(1_000, 16 * 1024);
    match Frame::new(&Scope::new(), &budget).eval(&node) {
        Ok(value) => Node { id: node.id, op: Op::Const(value) },
        Err(_) => node,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_property_names_are_understood() {
        assert_eq!(unescape("foo__dash__bar").as_deref(), Some("foo-bar"));
        assert_eq!(unescape("a__dot__b__slash__c").as_deref(), Some("a.b/c"));
        assert_eq!(unescape("__namespace__").as_deref(), Some("namespace"));
        assert_eq!(unescape("x__underscores__y").as_deref(), Some("x__y"));
        assert_eq!(unescape("a_b"), None);
        assert_eq!(unescape("a__other__b"), None);
    }
}
