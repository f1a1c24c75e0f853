//! Field paths as the API server writes them in conflicts (`.spec.ports[port=80,protocol="TCP"].name`). Pure.
//!
//! Used for `onConflict: yield`: the fields that belong to others are taken out of what is applied. Keys in these paths are
//! not quoted although they may hold dots (`.metadata.labels.app.kubernetes.io/name`), so a path is resolved against the
//! object it is meant for: at each map, the longest key that fits.

use serde_json::{Map, Value};

/// Removes the value at `path` from `object`. False if there is no such value.
pub fn remove(object: &mut Value, path: &str) -> bool {
    match path.as_bytes().first() {
        Some(b'.') => remove_key(object, &path[1..]),
        Some(b'[') => remove_item(object, &path[1..]),
        _ => false,
    }
}

fn remove_key(object: &mut Value, path: &str) -> bool {
    let Some(map) = object.as_object_mut() else { return false };
    let fits = |key: &str| path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let Some(key) = map.keys().filter(|key| fits(key)).max_by_key(|key| key.len()).cloned() else { return false };
    let rest = &path[key.len()..];
    if rest.is_empty() {
        map.shift_remove(&key).is_some()
    } else {
        map.get_mut(&key).is_some_and(|inner| remove(inner, rest))
    }
}

fn remove_item(object: &mut Value, path: &str) -> bool {
    let Some(items) = object.as_array_mut() else { return false };
    let Some((selector, rest)) = split_selector(path) else { return false };
    let position = match selector {
        Selector::Index(index) => Some(index).filter(|index| *index < items.len()),
        Selector::Value(value) => items.iter().position(|item| *item == value),
        // A key that the rule leaves to its default is in the selector and not in the item.
        Selector::Keys(keys) => items.iter().position(|item| {
            keys.iter().all(|(key, value)| item.get(key).is_none_or(|found| found == value))
                && keys.keys().any(|key| item.get(key).is_some())
        }),
    };
    let Some(position) = position else { return false };
    if rest.is_empty() {
        items.remove(position);
        return true;
    }
    items.get_mut(position).is_some_and(|item| remove(item, rest))
}

enum Selector {
    Index(usize),
    Value(Value),
    Keys(Map<String, Value>),
}

/// Splits `port=80,protocol="TCP"].name` into the selector and what follows the bracket.
fn split_selector(path: &str) -> Option<(Selector, &str)> {
    if let Some(value) = path.strip_prefix('=') {
        let (value, rest) = json_prefix(value)?;
        return Some((Selector::Value(value), rest.strip_prefix(']')?));
    }
    if let Some((index, rest)) = path.split_once(']')
        && let Ok(index) = index.parse()
    {
        return Some((Selector::Index(index), rest));
    }
    let mut keys = Map::new();
    let mut rest = path;
    loop {
        let (key, value) = rest.split_once('=')?;
        let (value, after) = json_prefix(value)?;
        keys.insert(key.to_owned(), value);
        if let Some(after) = after.strip_prefix(']') {
            return Some((Selector::Keys(keys), after));
        }
        rest = after.strip_prefix(',')?;
    }
}

/// The JSON value that `text` begins with, and the rest.
fn json_prefix(text: &str) -> Option<(Value, &str)> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = stream.next()?.ok()?;
    Some((value, &text[stream.byte_offset()..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_value_at_a_servers_path_is_removed_and_nothing_else() {
        let object = json!({
            "metadata": {"labels": {"app": "a", "app.kubernetes.io/name": "b"}, "finalizers": ["x/y", "z"]},
            "spec": {"ports": [{"port": 80, "name": "web"}, {"port": 53, "protocol": "UDP", "name": "dns"}], "args": ["a", "b"]},
        });
        let table = [
            (".metadata.labels.app.kubernetes.io/name", "/metadata/labels", json!({"app": "a"})),
            (".metadata.labels.app", "/metadata/labels", json!({"app.kubernetes.io/name": "b"})),
            (".metadata.finalizers[=\"x/y\"]", "/metadata/finalizers", json!(["z"])),
            (".spec.ports[port=53,protocol=\"UDP\"].name", "/spec/ports/1", json!({"port": 53, "protocol": "UDP"})),
            (".spec.ports[port=80,protocol=\"TCP\"].name", "/spec/ports/0", json!({"port": 80})),
            (
                ".spec.ports[port=80,protocol=\"TCP\"]",
                "/spec/ports",
                json!([{"port": 53, "protocol": "UDP", "name": "dns"}]),
            ),
            (".spec.args[0]", "/spec/args", json!(["b"])),
        ];
        for (path, place, expected) in table {
            let mut changed = object.clone();
            assert!(remove(&mut changed, path), "{path}");
            assert_eq!(changed.pointer(place), Some(&expected), "{path}");
        }
        for path in [
            "",
            "data",
            ".data.x",
            ".spec.ports[port=81].name",
            ".spec.ports[port=",
            ".spec.args[7]",
            ".spec[0]",
            ".metadata.labels.app.none",
        ] {
            let mut changed = object.clone();
            assert!(!remove(&mut changed, path), "{path}");
            assert_eq!(changed, object);
        }
    }
}
