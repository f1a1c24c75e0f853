//! JSON Patch on rendered manifests.

use serde_json::{Value, json};

use super::{outcome, render};

/// What a `ConfigMap` with `data: {a: x, list: [1, 2]}` becomes by these operations.
fn patched(operations: &str) -> Value {
    let rule = format!(
        "  resources:
    - id: config
      manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: \"${{self.metadata.name}}\"}}, data: {{a: x, list: [1, 2], map: {{}}}}}}
      patches:
{operations}"
    );
    let (_, manifest) = outcome(&render(&rule)).remove(0);
    manifest.get("data").cloned().unwrap_or(manifest)
}

#[test]
fn all_six_operations_apply_in_order() {
    assert_eq!(
        patched(
            "        - {op: add, path: /data/b, value: {c: \"${self.spec.cidr}\"}}
        - {op: add, path: /data/list/-, value: \"${size(self.spec.subnets)}\"}
        - {op: add, path: /data/list/0, value: 0}
        - {op: copy, from: /data/b/c, path: /data/d}
        - {op: move, from: /data/a, path: /data/e}
        - {op: test, path: /data/e, value: x}
        - {op: replace, path: /data/e, value: v}
        - {op: remove, path: /data/list/1}
        - {op: add, path: /data/map/a~1b~0c, value: z}
"
        ),
        json!({
            "list": [0, 2, 2],
            "map": {"a/b~c": "z"},
            "b": {"c": "192.168.0.0/16"},
            "d": "192.168.0.0/16",
            "e": "v",
        })
    );
}

#[test]
fn an_operation_whose_when_is_false_or_whose_value_is_nothing_is_left_out() {
    assert_eq!(
        patched(
            "        - {op: remove, path: /data/nothing, when: \"false\"}
        - {op: add, path: /data/b, value: \"${self.spec.?nothing}\"}
        - {op: remove, path: /data/list, when: has(self.spec.gateway)}
"
        ),
        json!({"a": "x", "map": {}})
    );
}

#[test]
fn an_operation_that_cannot_be_done_says_why() {
    let operations = [
        "{op: test, path: /data/a, value: v}",
        "{op: test, path: /data/b, value: v}",
        "{op: add, path: /data/b/c, value: v}",
        "{op: add, path: /data/a/b, value: v}",
        "{op: add, path: /data/list/7, value: v}",
        "{op: add, path: /data/list/x, value: v}",
        "{op: remove, path: /data/b}",
        "{op: replace, path: /data/list/2, value: v}",
        "{op: move, from: /data/b, path: /data/c}",
        "{op: move, from: /data/map, path: /data/map/c}",
        "{op: copy, from: /data/b/c, path: /data/c}",
        "{op: add, path: /data/b, value: \"${self.spec.nothing}\"}",
        "{op: add, path: /data/b, value: v, when: self.metadata.name}",
    ];
    let told = operations.map(|operation| format!("{operation}\n  {}", patched(&format!("        - {operation}\n"))));
    insta::assert_snapshot!(told.join("\n"));
}
