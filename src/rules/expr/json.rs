//! Between JSON, which objects are made of, and CEL values.

use std::collections::HashMap;
use std::sync::Arc;

use cel::Value;
use cel::objects::{Key, Map};
use serde_json::{Map as Object, Value as Json};

use super::value::{as_optional, list, plain_type_name, sorted_keys, text};

/// The CEL value of a JSON value. Whole numbers are ints (uints beyond them), others doubles.
pub fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => number
            .as_i64()
            .map(Value::Int)
            .or_else(|| number.as_u64().map(Value::UInt))
            .unwrap_or_else(|| Value::Float(number.as_f64().unwrap_or(f64::NAN))),
        Json::String(source) => text(source.as_str()),
        Json::Array(items) => list(items.iter().map(from_json).collect()),
        Json::Object(fields) => {
            let map: HashMap<Key, Value> =
                fields.iter().map(|(name, value)| (Key::from(name.as_str()), from_json(value))).collect();
            Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// The most values that one JSON value may be made of: shared parts count as often as they are written.
const MAX_VALUES: usize = 1_000_000;
/// The most text in one JSON value, in bytes.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// The JSON value of a CEL value: `None` for an optional without a value. Optionals inside lists and maps are left out when
/// they hold nothing. Keys are sorted.
///
/// The error says which type has no JSON form, and how to give it one.
pub fn to_json(value: &Value) -> Result<Option<Json>, String> {
    Writer { values: MAX_VALUES, text: MAX_TEXT }.write(value)
}

struct Writer {
    values: usize,
    text: usize,
}

impl Writer {
    fn pay(&mut self, text: usize) -> Result<(), String> {
        let (values, text) = (self.values.checked_sub(1), self.text.checked_sub(text));
        let (Some(values), Some(text)) = (values, text) else {
            return Err("the value is too large: more than 16 MiB of text or a million parts".to_owned());
        };
        (self.values, self.text) = (values, text);
        Ok(())
    }

    fn write(&mut self, value: &Value) -> Result<Option<Json>, String> {
        self.pay(0)?;
        Ok(Some(match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(i) => Json::from(*i),
            Value::UInt(u) => Json::from(*u),
            Value::Float(f) => match serde_json::Number::from_f64(*f) {
                Some(number) => Json::Number(number),
                None => return Err("an infinite or undefined double has no JSON form".to_owned()),
            },
            Value::String(source) => {
                self.pay(source.len())?;
                Json::String(source.as_str().to_owned())
            }
            Value::List(items) => {
                let mut array = Vec::with_capacity(items.len().min(self.values));
                for item in items.iter() {
                    array.extend(self.write(item)?);
                }
                Json::Array(array)
            }
            Value::Map(map) => {
                let mut object = Object::new();
                for key in sorted_keys(map) {
                    let name = key.to_string();
                    self.pay(name.len())?;
                    if let Some(value) = map.map.get(key)
                        && let Some(value) = self.write(value)?
                    {
                        object.insert(name, value);
                    }
                }
                Json::Object(object)
            }
            other => match as_optional(other) {
                Some(Some(inner)) => return self.write(inner),
                Some(None) => return Ok(None),
                None => {
                    let name = plain_type_name(other);
                    let help = match (other, name) {
                        (Value::Bytes(_), _) => "; write `base64.encode(…)`",
                        (_, "type" | "kubernetes.NamedFormat" | "unknown") => "",
                        _ => "; write `string(…)`",
                    };
                    // Of a namespaced type the last part is what people call it.
                    let name = name.rsplit('.').next().unwrap_or(name);
                    return Err(format!("{} has no JSON form{help}", super::article(name)));
                }
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_survives_the_round_trip() {
        let json = json!({"a": [1, -2, 1.5, true, null, "x"], "b": {"c": 18_446_744_073_709_551_615_u64}});
        assert_eq!(to_json(&from_json(&json)), Ok(Some(json)));
    }

    #[test]
    fn optionals_without_a_value_are_left_out() {
        let none = super::super::value::optional(None);
        assert_eq!(to_json(&none), Ok(None));
        assert_eq!(to_json(&list(vec![none, Value::Int(1)])), Ok(Some(json!([1]))));
    }

    #[test]
    fn types_without_a_json_form_are_named() {
        let error = to_json(&Value::Bytes(Arc::new(vec![1]))).unwrap_err();
        assert_eq!(error, "a bytes value has no JSON form; write `base64.encode(…)`");
        assert!(to_json(&Value::Float(f64::NAN)).is_err());
    }
}
