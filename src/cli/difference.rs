//! Two texts, line by line, as `diff -u` shows them.

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use super::output::{Stream, Style, paint};
use crate::yaml_text;

/// The lines that differ, with three lines around them; empty where nothing differs. `names` head the two sides.
pub fn unified(old: &str, new: &str, names: Option<(&str, &str)>, stream: Stream) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        if let (true, Some((old, new))) = (text.is_empty(), names) {
            text = format!("--- {old}\n+++ {new}\n");
        }
        text += &paint(stream, Style::Dim, &hunk.header().to_string());
        text.push('\n');
        for change in hunk.iter_changes() {
            let line = change.value().trim_end_matches('\n');
            let (sign, style) = match change.tag() {
                ChangeTag::Equal => (' ', None),
                ChangeTag::Delete => ('-', Some(Style::Error)),
                ChangeTag::Insert => ('+', Some(Style::Good)),
            };
            let line = format!("{sign}{line}");
            text += &style.map_or(line.clone(), |style| paint(stream, style, &line));
            text.push('\n');
        }
    }
    text
}

/// The YAML of a value with its keys in order, so that two of them can be compared by line.
pub fn sorted_yaml(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => yaml_text::document(&sorted(value)),
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}
