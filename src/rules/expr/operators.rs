//! The operators, with Kubernetes' answers: arithmetic that overflows or divides by zero is an error, never a panic.

use std::cmp::Ordering;
use std::sync::Arc;

use cel::Value;
use cel::objects::Key;
use chrono::TimeDelta;

use super::budget::{Budget, Failure};
use super::eval::Fault;
use super::plan::Binary;
use super::value::{as_key, equal, exact_int, long, lookup, order, shorten, text};
use crate::rules::functions::time;

/// How the operator is written.
pub(super) fn spelling(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Modulo => "%",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Less => "<",
        Binary::LessEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterEqual => ">=",
        Binary::In => "in",
    }
}

/// A size or position as a CEL int.
pub(crate) fn int(size: usize) -> Value {
    Value::Int(i64::try_from(size).unwrap_or(i64::MAX))
}

/// The position that a value is in a list; whole doubles count.
pub(super) fn list_index(value: &Value) -> Option<i64> {
    match value {
        Value::Int(i) => Some(*i),
        Value::UInt(u) => Some(i64::try_from(*u).unwrap_or(i64::MAX)),
        Value::Float(f) => exact_int(*f),
        _ => None,
    }
}

/// `-value`
pub(super) fn negate(value: &Value) -> Result<Value, Failure> {
    match value {
        Value::Int(i) => i.checked_neg().map(Value::Int).ok_or_else(|| Failure::new("integer overflow")),
        Value::Float(f) => Ok(Value::Float(-f)),
        _ => Err(Failure::NoOverload),
    }
}

/// `a OP b`
pub(super) fn binary(operator: Binary, a: &Value, b: &Value, budget: &Budget) -> Result<Value, Failure> {
    if !matches!(operator, Binary::Equal | Binary::NotEqual | Binary::Add) {
        budget.steps(long(a))?;
    }
    match operator {
        Binary::Equal => equal(a, b, budget).map(Value::Bool),
        Binary::NotEqual => equal(a, b, budget).map(|equal| Value::Bool(!equal)),
        Binary::Less => compare(a, b, |order| order == Ordering::Less),
        Binary::LessEqual => compare(a, b, |order| order != Ordering::Greater),
        Binary::Greater => compare(a, b, |order| order == Ordering::Greater),
        Binary::GreaterEqual => compare(a, b, |order| order != Ordering::Less),
        Binary::In => contains(a, b, budget),
        Binary::Add => add(a, b, budget),
        _ => arithmetic(operator, a, b),
    }
}

fn compare(a: &Value, b: &Value, holds: impl Fn(Ordering) -> bool) -> Result<Value, Failure> {
    match order(a, b) {
        None => Err(Failure::NoOverload),
        Some(None) => Err(Failure::new("NaN has no order")),
        Some(Some(order)) => Ok(Value::Bool(holds(order))),
    }
}

fn contains(item: &Value, container: &Value, budget: &Budget) -> Result<Value, Failure> {
    match container {
        Value::List(items) => {
            for other in items.iter() {
                if equal(item, other, budget)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        Value::Map(map) => match as_key(item) {
            Some(_) => Ok(Value::Bool(lookup(map, item).is_some())),
            None => Ok(Value::Bool(false)),
        },
        _ => Err(Failure::NoOverload),
    }
}

/// `a + b`; also what `sum` and `join` grow by.
pub(crate) fn add(a: &Value, b: &Value, budget: &Budget) -> Result<Value, Failure> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => {
            budget.bytes(a.len() + b.len())?;
            Ok(text(format!("{a}{b}")))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            budget.bytes(a.len() + b.len())?;
            Ok(Value::Bytes(Arc::new([a.as_slice(), b.as_slice()].concat())))
        }
        (Value::List(a), Value::List(b)) => {
            budget.elements(a.len() + b.len())?;
            Ok(Value::List(Arc::new(a.iter().chain(b.iter()).cloned().collect())))
        }
        (Value::Duration(a), Value::Duration(b)) => time::duration_sum(Some(*a), Some(*b)),
        (Value::Timestamp(at), Value::Duration(by)) | (Value::Duration(by), Value::Timestamp(at)) => {
            time::timestamp(at.checked_add_signed(*by))
        }
        _ => arithmetic(Binary::Add, a, b),
    }
}

fn arithmetic(operator: Binary, a: &Value, b: &Value) -> Result<Value, Failure> {
    let overflow = |kind: &str| Failure::new(format!("{kind} overflow"));
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => {
            if *b == 0 && matches!(operator, Binary::Divide | Binary::Modulo) {
                return Err(by_zero(operator));
            }
            let result = match operator {
                Binary::Add => a.checked_add(*b),
                Binary::Subtract => a.checked_sub(*b),
                Binary::Multiply => a.checked_mul(*b),
                Binary::Divide => a.checked_div(*b),
                _ => a.checked_rem(*b),
            };
            result.map(Value::Int).ok_or_else(|| overflow("integer"))
        }
        (Value::UInt(a), Value::UInt(b)) => {
            if *b == 0 && matches!(operator, Binary::Divide | Binary::Modulo) {
                return Err(by_zero(operator));
            }
            let result = match operator {
                Binary::Add => a.checked_add(*b),
                Binary::Subtract => a.checked_sub(*b),
                Binary::Multiply => a.checked_mul(*b),
                Binary::Divide => a.checked_div(*b),
                _ => a.checked_rem(*b),
            };
            result.map(Value::UInt).ok_or_else(|| overflow("unsigned integer"))
        }
        (Value::Float(a), Value::Float(b)) => Ok(Value::Float(match operator {
            Binary::Add => a + b,
            Binary::Subtract => a - b,
            Binary::Multiply => a * b,
            Binary::Divide => a / b,
            _ => return Err(Failure::NoOverload),
        })),
        (Value::Duration(a), Value::Duration(b)) if operator == Binary::Subtract => {
            time::duration_sum(Some(*a), TimeDelta::zero().checked_sub(b))
        }
        (Value::Timestamp(at), Value::Duration(by)) if operator == Binary::Subtract => {
            time::timestamp(at.checked_sub_signed(*by))
        }
        (Value::Timestamp(a), Value::Timestamp(b)) if operator == Binary::Subtract => {
            time::duration_sum(Some(a.signed_duration_since(b)), Some(TimeDelta::zero()))
        }
        _ => Err(Failure::NoOverload),
    }
}

fn by_zero(operator: Binary) -> Failure {
    Failure::new(if operator == Binary::Divide { "division by zero" } else { "modulus by zero" })
}

/// Appends to an accumulator, without copying it when nothing else holds it.
pub(super) fn append(accumulator: &mut Result<Value, Box<Fault>>, item: Value) {
    if let Ok(Value::List(items)) = accumulator {
        Arc::make_mut(items).push(item);
    }
}

/// Inserts into an accumulator; a key that is there already is an error, as in Kubernetes.
pub(super) fn insert(accumulator: &mut Result<Value, Box<Fault>>, key: Key, value: Value) -> Result<(), Failure> {
    if let Ok(Value::Map(map)) = accumulator {
        if map.map.contains_key(&key) {
            return Err(Failure::new(format!("the key `{}` is there already", shorten(&key.to_string()))));
        }
        Arc::make_mut(&mut map.map).insert(key, value);
    }
    Ok(())
}
