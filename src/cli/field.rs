//! Paths to fields, as people write them, and who owns a field by `managedFields`.

use serde_json::Value;

/// Reads `data.cidr`, `spec.ports[0].name`, `metadata.labels['a.b/c']` or `/data/cidr`.
pub fn parse(text: &str) -> Result<Vec<String>, String> {
    if let Some(pointer) = text.strip_prefix('/') {
        return Ok(pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect());
    }
    let wrong = || {
        format!(
            "`{text}` is not a field; write `data.cidr`, `spec.ports[0].name`, `metadata.labels['a.b/c']` or `/data/cidr`"
        )
    };
    let mut steps = Vec::new();
    let mut rest = text.strip_prefix('.').unwrap_or(text);
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (step, after) = match inside.chars().next() {
                Some(quote @ ('\'' | '"')) => {
                    let quoted = inside.get(1..).unwrap_or_default();
                    let (step, after) = quoted.split_once(quote).ok_or_else(wrong)?;
                    (step, after.strip_prefix(']').ok_or_else(wrong)?)
                }
                _ => inside.split_once(']').ok_or_else(wrong)?,
            };
            steps.push(step.to_owned());
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (step, after) = rest.split_at(end);
            if step.is_empty() {
                return Err(wrong());
            }
            steps.push(step.to_owned());
            rest = after.strip_prefix('.').unwrap_or(after);
        }
    }
    if steps.is_empty() { Err(wrong()) } else { Ok(steps) }
}

/// A path as people read it; the inverse of [`parse`].
pub fn show(path: &[String]) -> String {
    let mut text = String::new();
    for step in path {
        let plain = !step.is_empty() && step.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if step.chars().all(|c| c.is_ascii_digit()) && !step.is_empty() {
            text.extend(["[", step, "]"]);
        } else if plain {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(step);
        } else {
            text.extend(["['", step, "']"]);
        }
    }
    text
}

/// The value at a path.
pub fn get<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

/// The managers that own a field, or something in it: `network-operator (Apply)`.
pub fn owners(object: &Value, path: &[String]) -> Vec<String> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let owning = entries.into_iter().flatten().filter(|entry| owns(entry.get("fieldsV1"), object, path));
    owning
        .map(|entry| {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
            format!("{} ({})", text("manager"), text("operation"))
        })
        .collect()
}

/// Whether a set of fields has the one at a path. An atomic list or map is owned as a whole.
fn owns(fields: Option<&Value>, value: &Value, path: &[String]) -> bool {
    let Some(Value::Object(fields)) = fields else { return false };
    let Some((step, rest)) = path.split_first() else { return true };
    if fields.is_empty() {
        return true;
    }
    match value {
        Value::Array(items) => {
            let Some(item) = step.parse::<usize>().ok().and_then(|index| items.get(index)) else { return false };
            fields.iter().any(|(key, inner)| is_item(key, item) && owns(Some(inner), item, rest))
        }
        value => {
            let inner = value.get(step).unwrap_or(&Value::Null);
            fields.get(&format!("f:{step}")).is_some_and(|fields| owns(Some(fields), inner, rest))
        }
    }
}

/// Whether `k:{"name":"a"}` or `v:"a"` is about an item of a list.
fn is_item(key: &str, item: &Value) -> bool {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    if let Some(keys) = key.strip_prefix("k:").and_then(parse) {
        let keys = keys.as_object().cloned().unwrap_or_default();
        return keys.iter().all(|(key, value)| item.get(key) == Some(value));
    }
    key.strip_prefix("v:").and_then(parse).is_some_and(|value| value == *item)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_read_back_as_they_are_shown() {
        for (text, steps) in [
            ("data.cidr", vec!["data", "cidr"]),
            ("spec.ports[0].name", vec!["spec", "ports", "0", "name"]),
            ("metadata.labels['a.b/c']", vec!["metadata", "labels", "a.b/c"]),
        ] {
            let path = parse(text).expect("a path");
            assert_eq!(path, steps);
            assert_eq!(show(&path), text);
        }
        assert_eq!(parse("/data/a~1b").expect("a pointer"), ["data", "a/b"]);
        for wrong in ["", "a..b", "a[", "a['b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn owners_are_found_in_maps_and_lists_and_of_what_is_owned_as_a_whole() {
        let object = json!({
            "metadata": {"managedFields": [
                {"manager": "we", "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}, "f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:name": {}}}}}},
                {"manager": "they", "operation": "Update", "fieldsV1": {"f:data": {"f:b": {}}, "f:spec": {"f:whole": {}}}},
            ]},
            "data": {"a": "1", "b": "2"}, "spec": {"ports": [{"port": 80, "name": "x"}], "whole": {"x": 1}},
        });
        let owners = |path: &str| super::owners(&object, &parse(path).expect("a path")).join(", ");
        assert_eq!(owners("data.a"), "we (Apply)");
        assert_eq!(owners("data.b"), "they (Update)");
        assert_eq!(owners("data"), "we (Apply), they (Update)");
        assert_eq!(owners("spec.ports[0].name"), "we (Apply)");
        assert_eq!(owners("spec.whole.x"), "they (Update)");
        assert_eq!(owners("spec.other"), "");
    }
}
