//! Checking a whole object, an example Network say, against its schema: what the API server would refuse for the
//! structure alone. CEL rules of the CRD are the server's business.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{ListKind, Schema, Shape};
use crate::rules::suggest::did_you_mean;

/// One step from the root of an object to a value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A field.
    Key(String),
    /// An element, from 0.
    Index(usize),
}

/// What is wrong with one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where the value stands.
    pub path: Vec<Step>,
    /// The kind of fault, as in diagnostics.
    pub code: &'static str,
    /// What is wrong, one line.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// Unknown fields are dropped by the server, not refused.
    pub is_warning: bool,
    /// The fault is the last key of the path itself, not its value.
    pub at_key: bool,
}

/// A path as a person writes it: `spec.subnets[0].cidr`.
#[derive(Debug)]
pub struct Path<'a>(pub &'a [Step]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if position == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Everything that is wrong with an object, in the order of its fields.
pub fn violations(object: &Value, schema: &Arc<Schema>) -> Vec<Violation> {
    violations_of(object, schema, "the object")
}

/// Everything that is wrong with a value that messages call by a name.
pub fn violations_of(object: &Value, schema: &Arc<Schema>, name: &str) -> Vec<Violation> {
    let mut checker = Checker { root: name.to_owned(), path: Vec::new(), found: Vec::new() };
    checker.value(object, schema);
    checker.found
}

struct Checker {
    root: String,
    path: Vec<Step>,
    found: Vec<Violation>,
}

impl Checker {
    fn wrong(&mut self, code: &'static str, message: String, help: Option<String>) {
        let violation = Violation { path: self.path.clone(), code, message, help, is_warning: false, at_key: false };
        self.found.push(violation);
    }

    fn inside(&mut self, step: Step, check: impl FnOnce(&mut Self)) {
        self.path.push(step);
        check(self);
        self.path.pop();
    }

    fn name(&self) -> String {
        if self.path.is_empty() { self.root.clone() } else { format!("`{}`", Path(&self.path)) }
    }

    fn value(&mut self, value: &Value, schema: &Arc<Schema>) {
        if value.is_null() {
            if !schema.nullable && !matches!(schema.shape, Shape::Any) {
                let help = "leave the field out instead".to_owned();
                self.wrong(
                    "null-value",
                    format!("{} must be `{}`, this is null", self.name(), schema.describe()),
                    Some(help),
                );
            }
            return;
        }
        match (&schema.shape, value) {
            (Shape::Any, _) | (Shape::Bool, Value::Bool(_)) | (Shape::IntOrString, Value::Number(_)) => {}
            (Shape::Int, Value::Number(number)) if number.is_i64() || number.is_u64() => self.number(value, schema),
            (Shape::Number, Value::Number(_)) => self.number(value, schema),
            (Shape::String | Shape::IntOrString, Value::String(text)) => self.text(text, schema),
            (Shape::List(items), Value::Array(elements)) => {
                let items = items.get();
                self.size("elements", elements.len(), schema.bounds.min_items, schema.bounds.max_items);
                for (index, element) in elements.iter().enumerate() {
                    self.inside(Step::Index(index), |inner| inner.value(element, &items));
                }
                self.repeated(elements, schema);
            }
            (Shape::Map(values), Value::Object(entries)) => {
                let values = values.get();
                let bounds = &schema.bounds;
                self.size("keys", entries.len(), bounds.min_properties, bounds.max_properties);
                for (key, entry) in entries {
                    self.inside(Step::Key(key.clone()), |inner| inner.value(entry, &values));
                }
            }
            (Shape::Object(_), Value::Object(entries)) => self.object(entries, schema),
            _ => {
                let message = format!("{} must be `{}`, this is {}", self.name(), schema.describe(), said(value));
                self.wrong("wrong-type", message, quote(value, schema));
                return;
            }
        }
        if !schema.allowed.is_empty() && !schema.allowed.contains(value) {
            let similar = value.as_str().and_then(|text| {
                did_you_mean(text, schema.allowed.iter().filter_map(Value::as_str))
                    .map(|name| format!("did you mean `{name}`? "))
            });
            let choice =
                schema.allowed_list().map(|list| format!("{}it is one of {list}", similar.unwrap_or_default()));
            let value = value.as_str().map_or_else(|| format!("`{value}`"), quoted);
            self.wrong("not-allowed", format!("{} cannot be {value}", self.name()), choice);
        }
    }

    fn object(&mut self, entries: &serde_json::Map<String, Value>, schema: &Arc<Schema>) {
        let Some(fields) = schema.fields() else { return };
        for (key, entry) in entries {
            match fields.known.get(key) {
                Some(node) => self.inside(Step::Key(key.clone()), |inner| inner.value(entry, &node.get())),
                None if fields.open => {}
                None => {
                    let similar = did_you_mean(key, fields.known.keys().map(String::as_str));
                    self.inside(Step::Key(key.clone()), |inner| {
                        let message = format!("unknown field `{}`: the API server drops it", Path(&inner.path));
                        let help = similar.map(|name| format!("did you mean `{name}`?"));
                        let path = inner.path.clone();
                        inner.found.push(Violation {
                            path,
                            code: "unknown-field",
                            message,
                            help,
                            is_warning: true,
                            at_key: true,
                        });
                    });
                }
            }
        }
        for name in fields.required.iter().filter(|name| !entries.contains_key(*name)) {
            if fields.known.get(name).is_some_and(|node| node.get().has_default) {
                continue;
            }
            let mut path = self.path.clone();
            path.push(Step::Key(name.clone()));
            self.wrong("missing-field", format!("`{}` is missing", Path(&path)), None);
        }
    }

    fn number(&mut self, value: &Value, schema: &Schema) {
        let Some(number) = value.as_f64() else { return };
        let bounds = &schema.bounds;
        if let Some(minimum) = bounds.minimum
            && (number < minimum || (bounds.exclusive_minimum && number <= minimum))
        {
            let word = if bounds.exclusive_minimum { "more than" } else { "at least" };
            self.wrong("bad-value", format!("{} is {value}, {word} {minimum} is wanted", self.name()), None);
        }
        if let Some(maximum) = bounds.maximum
            && (number > maximum || (bounds.exclusive_maximum && number >= maximum))
        {
            let word = if bounds.exclusive_maximum { "less than" } else { "at most" };
            self.wrong("bad-value", format!("{} is {value}, {word} {maximum} is wanted", self.name()), None);
        }
        if schema.format.as_deref() == Some("int32") && value.as_i64().is_none_or(|n| i32::try_from(n).is_err()) {
            self.wrong("bad-value", format!("{} is {value}, which does not fit 32 bits", self.name()), None);
        }
    }

    fn text(&mut self, text: &str, schema: &Schema) {
        self.size("characters", text.chars().count(), schema.bounds.min_length, schema.bounds.max_length);
        if let Some(pattern) = &schema.pattern
            && let Ok(regex) = regex::Regex::new(pattern)
            && !regex.is_match(text)
        {
            let message = format!("{} is {}, which does not match its pattern", self.name(), quoted(text));
            self.wrong("bad-value", message, Some(format!("the pattern is `{pattern}`")));
        }
        if let Some(pattern) = &schema.forbidden
            && let Ok(regex) = regex::Regex::new(pattern)
            && let Some(part) = regex.find(text).filter(|part| !part.is_empty())
        {
            let message = format!("{} is {}, in which `{}` is not allowed", self.name(), quoted(text), part.as_str());
            self.wrong("bad-value", message, Some(format!("refused is what matches `{pattern}`")));
        }
        let wrong: Vec<&str> = schema.formats.iter().filter_map(|format| bad_format(text, format)).collect();
        if !wrong.is_empty() && wrong.len() == schema.formats.len() {
            self.wrong(
                "bad-value",
                format!("{} is {}, {} is wanted", self.name(), quoted(text), wrong.join(" or ")),
                None,
            );
        }
        if let Some(wanted) = schema.format.as_deref().and_then(|format| bad_format(text, format)) {
            let encoded = || format!("as base64, this text is `{}`", STANDARD.encode(text));
            let help = (schema.format.as_deref() == Some("byte") && text.len() <= 60).then(encoded);
            self.wrong("bad-value", format!("{} is {}, {wanted} is wanted", self.name(), quoted(text)), help);
        }
    }

    fn size(&mut self, what: &str, size: usize, minimum: Option<u64>, maximum: Option<u64>) {
        let size = size as u64;
        let what = if size == 1 { what.trim_end_matches('s') } else { what };
        if let Some(minimum) = minimum.filter(|minimum| size < *minimum) {
            self.wrong("bad-value", format!("{} has {size} {what}, at least {minimum} are wanted", self.name()), None);
        }
        if let Some(maximum) = maximum.filter(|maximum| size > *maximum) {
            self.wrong("bad-value", format!("{} has {size} {what}, at most {maximum} are allowed", self.name()), None);
        }
    }

    /// Elements that a set or a keyed list has twice.
    fn repeated(&mut self, elements: &[Value], schema: &Schema) {
        let key = |element: &Value| match &schema.list {
            ListKind::Atomic => None,
            ListKind::Set => Some(element.to_string()),
            ListKind::Map(keys) => Some(keys.iter().map(|key| element[key].to_string()).collect::<Vec<_>>().join(", ")),
        };
        for (index, element) in elements.iter().enumerate() {
            let Some(mine) = key(element) else { return };
            if elements[..index].iter().any(|earlier| key(earlier).as_ref() == Some(&mine)) {
                let what = match &schema.list {
                    ListKind::Map(keys) => format!("the same {}", keys.join(" and ")),
                    _ => "the same value".to_owned(),
                };
                self.inside(Step::Index(index), |inner| {
                    inner.wrong(
                        "bad-value",
                        format!("{} has {what} as an earlier element: {mine}", inner.name()),
                        None,
                    );
                });
            }
        }
    }
}

/// A value as it is said in a message.
fn said(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Number(number) => format!("the number `{number}`"),
        Value::Bool(flag) => format!("`{flag}`"),
        Value::Null => "null".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("`{short}{dots}`")
}

/// A number or a bool where text is wanted is a missing pair of quotes.
fn quote(value: &Value, schema: &Schema) -> Option<String> {
    match (&schema.shape, value) {
        (Shape::String, Value::Number(_) | Value::Bool(_)) => Some(format!("put it in quotes: `\"{value}\"`")),
        (Shape::List(_), Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
            Some(format!("for a list of one: `[{}]`", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        }
        (Shape::Int | Shape::Number | Shape::Bool, Value::String(text)) => {
            let plain = text.parse::<f64>().is_ok() || matches!(text.as_str(), "true" | "false");
            plain.then(|| format!("write it without quotes: `{text}`"))
        }
        _ => None,
    }
}

/// What a text of a format should have been; `None` when it is fine or the format is not known.
fn bad_format(text: &str, format: &str) -> Option<&'static str> {
    let (fine, wanted) = match format {
        "ipv4" => (text.parse::<Ipv4Addr>().is_ok(), "an IPv4 address"),
        "ipv6" => (text.parse::<Ipv6Addr>().is_ok(), "an IPv6 address"),
        "cidr" => (text.parse::<ipnet::IpNet>().is_ok(), "a CIDR such as `192.168.0.0/16`"),
        "date-time" => (chrono::DateTime::parse_from_rfc3339(text).is_ok(), "a time such as `2026-01-31T12:00:00Z`"),
        // As Go reads `[]byte`: line ends count for nothing.
        "byte" => (STANDARD.decode(text.replace(['\r', '\n'], "")).is_ok(), "base64 such as `aGVsbG8=`"),
        "date" => (text.parse::<chrono::NaiveDate>().is_ok(), "a date such as `2026-01-31`"),
        _ => return None,
    };
    (!fine).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::schema::openapi::schema;
    use serde_json::json;

    fn messages(schema_json: &Value, object: &Value) -> Vec<String> {
        let schema = Arc::new(schema(schema_json, None));
        let said = |violation: Violation| {
            let help = violation.help.map(|help| format!(" ({help})")).unwrap_or_default();
            format!("{}{help}", violation.message)
        };
        violations(object, &schema).into_iter().map(said).collect()
    }

    #[test]
    fn every_fault_of_an_object_is_said_at_once() {
        let network = json!({"type": "object", "required": ["cidr"], "properties": {
            "cidr": {"type": "string", "format": "cidr"},
            "gateway": {"type": "string", "pattern": "^[0-9.]+$"},
            "mtu": {"type": "integer", "minimum": 576, "maximum": 9000},
            "mode": {"type": "string", "enum": ["bridge", "routed"]},
            "ports": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
            "name": {"type": "string", "minLength": 3},
            "open": {"type": "boolean"}}});
        let object = json!({"cidr": "300.1.1.0/24", "gateway": "x", "mtu": 12, "mode": "tap", "ports": [1, 1, "2"],
            "name": "é", "open": "true", "gatway": "1"});
        let null_and_text = messages(&network, &json!({"cidr": null, "mtu": "1500"}));
        let missing = messages(&network, &json!({"open": false}));
        insta::assert_snapshot!([messages(&network, &object), null_and_text, missing].concat().join("\n"));
    }
}
