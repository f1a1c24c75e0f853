//! An `OpenAPI` v3 schema, as CRDs and API servers write it, read into a [`Schema`]. What is not understood is free-form,
//! so that the checker says too little rather than something wrong.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Bounds, Fields, Library, ListKind, Node, Schema, Shape};

/// Reads a schema; the `$ref`s of its fields are looked up in the library, by the part after the last `/`, when they are
/// asked for. A schema that is nothing but a `$ref` is free-form: it could refer to itself.
pub fn schema(value: &Value, library: Option<&Arc<Library>>) -> Schema {
    let Some(object) = value.as_object() else {
        return Schema::default();
    };
    let flag = |word: &str| object.get(word).and_then(Value::as_bool).unwrap_or(false);
    let text = |word: &str| object.get(word).and_then(Value::as_str).map(str::to_owned);
    Schema {
        shape: shape(object, library),
        nullable: flag("nullable"),
        has_default: object.contains_key("default"),
        allowed: object.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
        format: text("format"),
        pattern: text("pattern"),
        forbidden: object.get("not").and_then(|not| not["pattern"].as_str()).map(str::to_owned),
        formats: formats(object),
        bounds: bounds(object),
        list: list_kind(object),
    }
}

/// A field's schema without parsing what it refers to, so that schemas that contain themselves end.
fn node(value: &Value, library: Option<&Arc<Library>>) -> Node {
    value
        .as_object()
        .and_then(|object| reference(object, library))
        .unwrap_or_else(|| Node::Here(Arc::new(schema(value, library))))
}

/// The target of `$ref`, alone or as the only member of `allOf` (how Kubernetes writes a reference with a description).
fn reference(object: &Map<String, Value>, library: Option<&Arc<Library>>) -> Option<Node> {
    let direct = object.get("$ref").and_then(Value::as_str);
    let only = || match object.get("allOf")?.as_array()?.as_slice() {
        [one] => one.get("$ref")?.as_str(),
        _ => None,
    };
    let target = direct.or_else(only)?;
    let name = target.rsplit('/').next().unwrap_or(target);
    Some(Node::Named(Arc::clone(library?), name.into()))
}

fn shape(object: &Map<String, Value>, library: Option<&Arc<Library>>) -> Shape {
    let flag = |word: &str| object.get(word).and_then(Value::as_bool).unwrap_or(false);
    let format = object.get("format").and_then(Value::as_str);
    if flag("x-kubernetes-int-or-string") || matches!(format, Some("int-or-string" | "quantity")) {
        return Shape::IntOrString;
    }
    match object.get("type").and_then(Value::as_str) {
        Some("boolean") => Shape::Bool,
        Some("integer") => Shape::Int,
        Some("number") => Shape::Number,
        Some("string") => Shape::String,
        Some("array") => Shape::List(object.get("items").map_or_else(anything, |items| node(items, library))),
        Some("object") => object_shape(object, library),
        None if object.contains_key("properties") => object_shape(object, library),
        _ => Shape::Any,
    }
}

fn object_shape(object: &Map<String, Value>, library: Option<&Arc<Library>>) -> Shape {
    let open = object.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool).unwrap_or(false);
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        let known = properties.iter().map(|(name, value)| (name.clone(), node(value, library))).collect();
        let required = object.get("required").and_then(Value::as_array).into_iter().flatten();
        let required = required.filter_map(Value::as_str).map(str::to_owned).collect();
        let embedded = object.get("x-kubernetes-embedded-resource").and_then(Value::as_bool).unwrap_or(false);
        let filled_in = |value: &Value| value.get("default").is_some() || value["x-always"] == true;
        let always = properties.iter().filter(|(_, value)| filled_in(value)).map(|(name, _)| name.clone()).collect();
        return Shape::Object(Fields { known, required, always, open: open || embedded });
    }
    match object.get("additionalProperties") {
        Some(Value::Object(values)) => Shape::Map(node(&Value::Object(values.clone()), library)),
        Some(Value::Bool(true)) => Shape::Map(anything()),
        _ => Shape::Object(Fields { open: true, ..Fields::default() }),
    }
}

fn anything() -> Node {
    Node::Here(Arc::default())
}

/// The formats of an `anyOf` that is nothing but formats.
fn formats(object: &Map<String, Value>) -> Vec<String> {
    let alternatives = object.get("anyOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let format = |one: &Value| match one.as_object() {
        Some(fields) if fields.len() == 1 => fields.get("format")?.as_str().map(str::to_owned),
        _ => None,
    };
    alternatives.iter().map(format).collect::<Option<_>>().unwrap_or_default()
}

fn bounds(object: &Map<String, Value>) -> Bounds {
    let size = |word: &str| object.get(word).and_then(Value::as_u64);
    let number = |word: &str| object.get(word).and_then(Value::as_f64);
    let flag = |word: &str| object.get(word).and_then(Value::as_bool).unwrap_or(false);
    Bounds {
        minimum: number("minimum"),
        maximum: number("maximum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        min_length: size("minLength"),
        max_length: size("maxLength"),
        min_items: size("minItems"),
        max_items: size("maxItems"),
        min_properties: size("minProperties"),
        max_properties: size("maxProperties"),
        unique_items: flag("uniqueItems"),
    }
}

fn list_kind(object: &Map<String, Value>) -> ListKind {
    match object.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = object.get("x-kubernetes-list-map-keys").and_then(Value::as_array).into_iter().flatten();
            ListKind::Map(keys.filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => ListKind::Atomic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_structural_schema_becomes_types() {
        let read = Arc::new(schema(
            &json!({"type": "object", "required": ["cidr"], "properties": {
                "cidr": {"type": "string", "pattern": "/"},
                "mtu": {"type": "integer", "format": "int32"},
                "port": {"x-kubernetes-int-or-string": true},
                "subnets": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "note": {"type": "string", "nullable": true},
            }}),
            None,
        ));
        let ty = |name: &str| read.field(name).unwrap().value_type().to_string();
        assert_eq!(ty("cidr"), "string");
        assert_eq!(ty("mtu"), "int");
        assert_eq!(ty("port"), "int or string");
        assert_eq!(ty("subnets"), "list<object>");
        assert_eq!(ty("labels"), "map<string, string>");
        assert_eq!(ty("extra"), "dyn");
        assert_eq!(ty("note"), "dyn");
        assert_eq!(read.field("subnets").unwrap().list, ListKind::Map(vec!["name".to_owned()]));
        assert!(read.field("cdir").is_none());
    }

    #[test]
    fn what_is_not_a_schema_is_free_form() {
        for value in [json!(null), json!([]), json!({"type": 7}), json!({"type": "object", "properties": 3})] {
            let _ = Arc::new(schema(&value, None)).value_type();
        }
    }
}
