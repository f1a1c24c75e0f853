//! What every part of the evaluator needs to know of a value: its type's name, equality and order as Kubernetes answers
//! them, and how it is shown in a message.

use std::cmp::Ordering;
use std::sync::Arc;

use cel::Value;
use cel::objects::{Key, Map, Opaque, OptionalValue};

use super::budget::{Budget, Failure};

/// A type as a value: what `type(x)` returns and what the names `int`, `string`, … stand for.
#[derive(Debug, PartialEq, Eq)]
pub struct TypeValue(pub Arc<str>);

impl Opaque for TypeValue {
    fn runtime_type_name(&self) -> &'static str {
        "type"
    }
}

/// The type of that name, as a value.
pub fn type_value(name: &str) -> Value {
    Value::Opaque(Arc::new(TypeValue(name.into())))
}

/// A string value.
pub fn text(text: impl Into<String>) -> Value {
    Value::String(Arc::new(text.into()))
}

/// A list value.
pub fn list(items: Vec<Value>) -> Value {
    Value::List(Arc::new(items))
}

/// A value of one of our own types.
pub fn opaque(value: impl Opaque) -> Value {
    Value::Opaque(Arc::new(value))
}

/// `optional.of(value)`, or `optional.none()`.
pub fn optional(value: Option<Value>) -> Value {
    Value::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// The value as a `T`, when it is one of our own types.
pub fn downcast<T: 'static>(value: &Value) -> Option<&T> {
    match value {
        Value::Opaque(opaque) => opaque.downcast_ref::<T>(),
        _ => None,
    }
}

/// What an optional holds; the outer `None` says that the value is no optional.
#[allow(clippy::option_option)]
pub fn as_optional(value: &Value) -> Option<Option<&Value>> {
    downcast::<OptionalValue>(value).map(OptionalValue::value)
}

/// The name that `type(value)` has in CEL.
pub fn type_name(value: &Value) -> &str {
    match value {
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Bool(_) => "bool",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Null => "null_type",
        Value::Opaque(opaque) => opaque.runtime_type_name(),
        Value::Function(..) | Value::Struct(_) => "unknown",
    }
}

/// The type's name as people say it.
pub fn plain_type_name(value: &Value) -> &str {
    match type_name(value) {
        "google.protobuf.Duration" => "duration",
        "google.protobuf.Timestamp" => "timestamp",
        "null_type" => "null",
        "optional_type" => "optional",
        other => other,
    }
}

/// A map key as a value.
pub fn key_value(key: &Key) -> Value {
    match key {
        Key::Int(i) => Value::Int(*i),
        Key::Uint(u) => Value::UInt(*u),
        Key::Bool(b) => Value::Bool(*b),
        Key::String(s) => Value::String(Arc::clone(s)),
    }
}

/// The key that a value is in a map; whole doubles are ints, as everywhere in CEL.
pub fn as_key(value: &Value) -> Option<Key> {
    match value {
        Value::Int(i) => Some(Key::Int(*i)),
        Value::UInt(u) => Some(Key::Uint(*u)),
        Value::Bool(b) => Some(Key::Bool(*b)),
        Value::String(s) => Some(Key::String(Arc::clone(s))),
        Value::Float(f) => exact_int(*f).map(Key::Int),
        _ => None,
    }
}

/// The int that a double is, if it is one.
#[allow(clippy::cast_possible_truncation)]
pub fn exact_int(f: f64) -> Option<i64> {
    // -2^63 is a double, 2^63 - 1 is not: the upper bound is exclusive.
    let whole = f.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&f);
    whole.then_some(f as i64)
}

/// Looks a key up; ints, uints and whole doubles find each other.
pub fn lookup<'m>(map: &'m Map, key: &Value) -> Option<&'m Value> {
    match as_key(key)? {
        key @ (Key::Bool(_) | Key::String(_)) => map.map.get(&key),
        key => map.get(&key),
    }
}

/// A map's keys in a fixed order: bools, then numbers, then strings. CEL leaves the order open; rules must not.
pub fn sorted_keys(map: &Map) -> Vec<&Key> {
    let mut keys: Vec<&Key> = map.map.keys().collect();
    keys.sort_by(|a, b| key_order(a, b));
    keys
}

fn key_order(a: &Key, b: &Key) -> Ordering {
    let rank = |key: &Key| match key {
        Key::Bool(_) => 0,
        Key::Int(_) | Key::Uint(_) => 1,
        Key::String(_) => 2,
    };
    let number = |key: &Key| match key {
        Key::Int(i) => i128::from(*i),
        Key::Uint(u) => i128::from(*u),
        _ => 0,
    };
    match (a, b) {
        (Key::Bool(a), Key::Bool(b)) => a.cmp(b),
        (Key::String(a), Key::String(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)).then_with(|| number(a).cmp(&number(b))),
    }
}

/// `a == b`. Numbers are equal by value whatever their type; values of different types are never equal. Charges what it
/// visits, since shared structure can be larger than what was ever allocated.
pub fn equal(a: &Value, b: &Value, budget: &Budget) -> Result<bool, Failure> {
    budget.step()?;
    Ok(match (a, b) {
        (Value::List(a), Value::List(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal(a, b, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(a), Value::Map(b)) => {
            if a.map.len() != b.map.len() {
                return Ok(false);
            }
            for (key, a) in a.map.iter() {
                match b.get(key) {
                    Some(b) if equal(a, b, budget)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::String(_), Value::String(_)) | (Value::Bytes(_), Value::Bytes(_)) => {
            budget.steps(long(a).min(long(b)))?;
            match (a, b) {
                (Value::String(a), Value::String(b)) => a == b,
                (Value::Bytes(a), Value::Bytes(b)) => a == b,
                _ => false,
            }
        }
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Null, Value::Null) => true,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Opaque(x), Value::Opaque(y)) => match (as_optional(a), as_optional(b)) {
            (Some(Some(a)), Some(Some(b))) => equal(a, b, budget)?,
            (Some(a), Some(b)) => a.is_none() && b.is_none(),
            _ => x.opaque_eq(y.as_ref()),
        },
        _ => numbers(a, b) == Some(Some(Ordering::Equal)),
    })
}

/// The steps that reading a long text costs beyond the one that every value costs.
pub fn long(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() / 256,
        Value::Bytes(bytes) => bytes.len() / 256,
        _ => 0,
    }
}

/// Whether lists, maps and optionals nest no deeper in the value than `levels`.
pub fn nests_within(value: &Value, levels: usize, budget: &Budget) -> Result<bool, Failure> {
    budget.step()?;
    let Some(inner) = levels.checked_sub(1) else { return Ok(false) };
    match value {
        Value::List(items) => {
            for item in items.iter() {
                if !nests_within(item, inner, budget)? {
                    return Ok(false);
                }
            }
        }
        Value::Map(map) => {
            for item in map.map.values() {
                if !nests_within(item, inner, budget)? {
                    return Ok(false);
                }
            }
        }
        other => {
            if let Some(Some(held)) = as_optional(other) {
                return nests_within(held, inner, budget);
            }
        }
    }
    Ok(true)
}

/// Orders two numbers; `None` when one is none, `Some(None)` when one is NaN.
#[allow(clippy::option_option)]
fn numbers(a: &Value, b: &Value) -> Option<Option<Ordering>> {
    Some(match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::UInt(a), Value::UInt(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::UInt(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::UInt(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Float(a), Value::Int(b)) => with_int(*a, i128::from(*b)),
        (Value::Float(a), Value::UInt(b)) => with_int(*a, i128::from(*b)),
        (Value::Int(a), Value::Float(b)) => with_int(*b, i128::from(*a)).map(Ordering::reverse),
        (Value::UInt(a), Value::Float(b)) => with_int(*b, i128::from(*a)).map(Ordering::reverse),
        _ => return None,
    })
}

/// A double against an int or uint, as Kubernetes compares them: as doubles, so that 2⁶³ - 1 is equal to 2⁶³.
#[allow(clippy::cast_precision_loss)]
fn with_int(f: f64, i: i128) -> Option<Ordering> {
    f.partial_cmp(&(i as f64))
}

/// How `a` orders against `b`: `None` when the two types have no order, `Some(None)` when a NaN is among them.
#[allow(clippy::option_option)]
pub fn order(a: &Value, b: &Value) -> Option<Option<Ordering>> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(Some(a.cmp(b))),
        (Value::Bytes(a), Value::Bytes(b)) => Some(Some(a.cmp(b))),
        (Value::Bool(a), Value::Bool(b)) => Some(Some(a.cmp(b))),
        (Value::Duration(a), Value::Duration(b)) => Some(Some(a.cmp(b))),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(Some(a.cmp(b))),
        _ => numbers(a, b),
    }
}

/// The longest that a value may be in a message, in characters.
const SHOWN: usize = 80;

/// Cuts text for a message.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eq(a: &Value, b: &Value) -> bool {
        equal(a, b, &Budget::default()).unwrap()
    }

    #[test]
    fn numbers_are_equal_by_value() {
        assert!(eq(&Value::Int(1), &Value::Float(1.0)));
        assert!(eq(&Value::UInt(1), &Value::Int(1)));
        assert!(!eq(&Value::Float(f64::NAN), &Value::Float(f64::NAN)));
        assert!(eq(&Value::Int(i64::MAX), &Value::Float(9_223_372_036_854_775_807.0)));
    }

    #[test]
    fn fractions_order_between_their_neighbours() {
        assert_eq!(order(&Value::Float(1.5), &Value::Int(1)), Some(Some(Ordering::Greater)));
        assert_eq!(order(&Value::Float(-1.5), &Value::Int(-1)), Some(Some(Ordering::Less)));
        assert_eq!(order(&Value::Int(2), &Value::Float(1.5)), Some(Some(Ordering::Greater)));
        assert_eq!(order(&Value::Float(-0.5), &Value::Int(0)), Some(Some(Ordering::Less)));
        assert_eq!(order(&Value::Float(-0.0), &Value::Int(0)), Some(Some(Ordering::Equal)));
    }

    #[test]
    fn a_message_never_holds_a_long_value() {
        assert_eq!(shorten(&"é".repeat(200)).chars().count(), 81);
    }
}
