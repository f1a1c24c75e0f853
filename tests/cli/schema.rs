//! `schema`: the JSON Schema of rule files accepts good ones and underlines bad ones.

use std::process::Command;

use serde_json::{Value, json};

use crate::run_cli::{filter, operator};

/// Which of the documents the schema accepts, by Python's JSON Schema validator; `None` where there is none.
fn accepted(documents: &[Value]) -> Option<Vec<bool>> {
    let program = "import json, sys, jsonschema
data = json.load(sys.stdin)
validator = jsonschema.Draft7Validator(data['schema'])
jsonschema.Draft7Validator.check_schema(data['schema'])
json.dump([validator.is_valid(document) for document in data['documents']], sys.stdout)";
    let schema: Value = serde_json::from_str(&operator(&["schema"]).ok()).expect("the schema is JSON");
    let input = json!({"schema": schema, "documents": documents}).to_string();
    let answer = filter(Command::new("python3").args(["-c", program]), &input)?;
    Some(serde_json::from_str(&answer).expect("a list of booleans"))
}

fn good() -> Value {
    json!({
        "apiVersion": "rules.samplecrd.k8s.io/v1alpha1",
        "kind": "RuleSet",
        "metadata": {"name": "network"},
        "spec": {
            "for": {"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network"},
            "validations": [{"rule": "true", "messageExpression": "'no'"}],
            "variables": {"one": "1", "two": "variables.one + 1"},
            "resources": [{
                "id": "config",
                "when": true,
                "forEach": {"subnet": "self.spec.subnets"},
                "itemKey": "subnet.name",
                "manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "${self.spec.cidr}"}},
                "patches": [
                    {"op": "add", "path": "/data/b", "value": {"x": [1, true]}, "when": "true"},
                    {"op": "remove", "path": "/data/a~1b"},
                    {"op": "move", "from": "/data/b", "path": "/data/c"},
                ],
                "readyWhen": ["has(resource.data)"],
                "onExists": "adopt", "onDrift": "report", "onRemove": "keep", "onDelete": "keep", "onImmutable": "recreate", "onConflict": "yield",
            }, {
                "id": "long",
                "forEach": {"key": "k", "value": "v", "in": "self.spec.labels"},
                "manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${k}"}},
                "readyWhen": "true",
            }],
            "status": {"gatewayIP": "${self.spec.gateway}"},
        },
    })
}

/// Sets the value at a pointer; the last step may be new.
fn set(mut document: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
    match document.pointer_mut(parent).expect("the parent is there") {
        Value::Array(list) => list[key.parse::<usize>().expect("an index")] = value,
        parent => parent[key] = value,
    }
    document
}

#[test]
fn good_rule_files_pass() {
    let shipped = serde_saphyr::from_str(include_str!("fixtures/rules/network.yaml")).expect("YAML");
    if let Some(accepted) = accepted(&[good(), shipped]) {
        assert_eq!(accepted, [true, true]);
    }
}

#[test]
fn bad_rule_files_are_underlined_where_they_are_bad() {
    let resource = "/spec/resources/0";
    let changes = [
        ("/apiVersion".to_owned(), json!("v1")),
        ("/kind".to_owned(), json!("Rules")),
        ("/metadata/name".to_owned(), json!(1)),
        ("/metadata/namespace".to_owned(), json!("default")),
        ("/spec/for".to_owned(), json!({"kind": "Network"})),
        ("/spec/resource".to_owned(), json!([])),
        ("/spec/resources".to_owned(), json!({})),
        ("/spec/variables/one".to_owned(), json!(["1"])),
        ("/spec/validations/0".to_owned(), json!({"message": "no rule"})),
        (format!("{resource}/id"), json!(7)),
        (format!("{resource}/onExist"), json!("adopt")),
        (format!("{resource}/onExists"), json!("take")),
        (format!("{resource}/manifest"), json!("text")),
        (format!("{resource}/manifest"), json!({"kind": "ConfigMap", "metadata": {"name": "a"}})),
        (format!("{resource}/forEach"), json!({"a": "[1]", "b": "[2]"})),
        (format!("{resource}/forEach"), json!({"in": "[1]"})),
        (format!("{resource}/readyWhen"), json!({"a": "b"})),
        (format!("{resource}/patches/0/op"), json!("set")),
        (format!("{resource}/patches/0/path"), json!("data/b")),
        (format!("{resource}/patches/0/path"), json!("/data/b~2")),
        (format!("{resource}/patches/0/from"), json!("/data/a")),
        (format!("{resource}/patches/1/value"), json!(1)),
        (format!("{resource}/patches/2"), json!({"op": "copy", "path": "/a"})),
        ("/spec/status".to_owned(), json!("text")),
    ];
    let documents: Vec<Value> = changes.iter().map(|(pointer, value)| set(good(), pointer, value.clone())).collect();
    for (accepted, (pointer, value)) in accepted(&documents).unwrap_or_default().into_iter().zip(&changes) {
        assert!(!accepted, "{pointer}: {value} should be wrong");
    }
}

#[test]
fn every_field_has_a_description_that_an_editor_can_show() {
    fn walk(schema: &Value, path: &str, bare: &mut Vec<String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}/{name}");
            if *property != Value::Bool(false) && property["description"].as_str().is_none_or(str::is_empty) {
                bare.push(path.clone());
            }
            walk(property, &path, bare);
            walk(&property["items"], &path, bare);
        }
    }
    let schema: Value = serde_json::from_str(&operator(&["schema"]).ok()).expect("JSON");
    let mut bare = Vec::new();
    walk(&schema, "", &mut bare);
    assert!(bare.is_empty(), "{bare:?}");
}
