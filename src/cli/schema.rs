//! `network-operator schema`: the JSON Schema of rule files, so that editors complete and underline them.
//!
//! It is made from the same table of fields that the reader of rule files works by, so the two cannot disagree.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::output::{self, Outcome};
use crate::rules::fields::{Field, Object, RULE_SET, Shape};

/// Arguments of `schema`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: network-operator schema > ruleset.schema.json, and as the first line of each rule file
  # yaml-language-server: $schema=./ruleset.schema.json"
)]
pub struct Args {}

/// Prints the schema.
pub fn main(_: &Args) -> Outcome {
    output::data(&format!("{:#}\n", rule_file()))?;
    Ok(ExitCode::SUCCESS)
}

/// The JSON Schema (draft-07, which editors know best) of one document of a rule file.
pub fn rule_file() -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    schema.insert("title".to_owned(), json!("network-operator rule set"));
    if let Value::Object(root) = object(&RULE_SET) {
        schema.extend(root);
    }
    schema.insert(
        "definitions".to_owned(),
        json!({
            // A condition may be written as the boolean that it is.
            "cel": {"type": ["string", "boolean", "number"], "description": "An expression in CEL."},
            "tree": {"description": "Any YAML; `${CEL}` in a text is replaced."},
            "manifest": {
                "type": "object",
                "description": "An object as one would write it for kubectl; `${CEL}` in a text is replaced.",
                "required": ["apiVersion", "kind", "metadata"],
                "properties": {
                    "apiVersion": {"type": "string", "description": "API group and version, constant."},
                    "kind": {"type": "string", "description": "Kind, constant."},
                    "metadata": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string", "description": "Name of the child; unique for each Network."},
                            "labels": {"description": "Labels; the operator adds its own."},
                            "annotations": {"description": "Annotations; the operator adds its own."},
                        },
                    },
                },
            },
        }),
    );
    Value::Object(schema)
}

fn object(table: &Object) -> Value {
    let properties: Map<String, Value> =
        table.fields.iter().map(|field| (field.name.to_owned(), property(field, table))).collect();
    let required: Vec<&str> = table.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object", "description": table.doc, "additionalProperties": false, "properties": properties,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn property(field: &Field, table: &Object) -> Value {
    let mut schema = match field.shape {
        Shape::Constant(value) => json!({"const": value}),
        Shape::Text => json!({"type": "string"}),
        Shape::Word(words) if words.len() == 2 => json!({"enum": words, "default": words.first()}),
        Shape::Word(words) => json!({"enum": words}),
        Shape::Expression => json!({"allOf": [{"$ref": "#/definitions/cel"}]}),
        Shape::Expressions => json!({
            "anyOf": [{"$ref": "#/definitions/cel"}, {"type": "array", "items": {"$ref": "#/definitions/cel"}}],
        }),
        Shape::NamedExpressions => json!({"type": "object", "additionalProperties": {"$ref": "#/definitions/cel"}}),
        Shape::Pointer => json!({"type": "string", "pattern": "^(/([^~]|~[01])*)?$"}),
        // The status mapping is a manifest's tree without being an object of its own.
        Shape::Manifest if field.name == "status" => json!({"type": "object"}),
        Shape::Manifest => json!({"allOf": [{"$ref": "#/definitions/manifest"}]}),
        Shape::Tree => json!({"allOf": [{"$ref": "#/definitions/tree"}]}),
        Shape::ForEach(long) => json!({
            "anyOf": [
                object(long),
                {
                    "type": "object", "minProperties": 1, "maxProperties": 1,
                    "propertyNames": {"not": {"enum": ["in"]}},
                    "additionalProperties": {"$ref": "#/definitions/cel"},
                },
            ],
        }),
        Shape::Object(inner) => object(inner),
        Shape::List(inner) => json!({"type": "array", "items": item(inner)}),
    };
    let default = if table.name == "a resource" && matches!(field.shape, Shape::Word(_)) {
        " The first is the default."
    } else {
        ""
    };
    schema["description"] = json!(format!("{}{default}", field.doc));
    schema
}

/// An item of a list; what an operation of RFC 6902 needs depends on which one it is.
fn item(table: &Object) -> Value {
    let mut schema = object(table);
    if table.fields.iter().any(|field| field.name == "op") {
        schema["allOf"] = json!([
            {
                "if": {"properties": {"op": {"enum": ["add", "replace", "test"]}}},
                "then": {"required": ["value"], "properties": {"from": false}},
            },
            {
                "if": {"properties": {"op": {"enum": ["move", "copy"]}}},
                "then": {"required": ["from"], "properties": {"value": false}},
            },
            {
                "if": {"properties": {"op": {"enum": ["remove"]}}},
                "then": {"properties": {"from": false, "value": false}},
            },
        ]);
    }
    schema
}
