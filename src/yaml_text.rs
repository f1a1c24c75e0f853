//! JSON values as YAML text that every reader understands alike.
//!
//! `kubectl` and Python read YAML 1.1, where `on`, `0123`, `1_000`, `1:20` and `2001-01-01` are no strings; others read 1.2. Here a
//! text stands without quotes only where no version of YAML could take it for anything else. The same value gives the
//! same bytes always.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// Words that some version of YAML, or some parser, takes for a boolean, a null or a number. In lower case.
const WORDS: [&str; 12] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity"];

/// One document, with a line end and without `---`.
pub fn document(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => entries(map, 0, &mut text),
        Value::Array(list) if !list.is_empty() => items(list, 0, &mut text),
        other => {
            scalar(other, 0, &mut text);
            text.push('\n');
        }
    }
    text
}

/// Several documents, each but the first after `---`.
pub fn documents<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let documents: Vec<String> = values.into_iter().map(document).collect();
    documents.join("---\n")
}

/// A value below a key at `indent`, from the key's colon to the line end.
fn below(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            entries(map, indent + 2, text);
        }
        Value::Array(list) if !list.is_empty() => {
            text.push('\n');
            items(list, indent, text);
        }
        other => {
            text.push(' ');
            scalar(other, indent, text);
            text.push('\n');
        }
    }
}

fn entries(map: &Map<String, Value>, indent: usize, text: &mut String) {
    for (key, value) in map {
        spaces(indent, text);
        entry(key, value, indent, text);
    }
}

fn entry(key: &str, value: &Value, indent: usize, text: &mut String) {
    inline(key, text);
    text.push(':');
    below(value, indent, text);
}

fn items(list: &[Value], indent: usize, text: &mut String) {
    for item in list {
        spaces(indent, text);
        text.push('-');
        match item {
            Value::Object(map) if !map.is_empty() => {
                text.push(' ');
                for (index, (key, value)) in map.iter().enumerate() {
                    if index > 0 {
                        spaces(indent + 2, text);
                    }
                    entry(key, value, indent + 2, text);
                }
            }
            Value::Array(inner) if !inner.is_empty() => {
                text.push('\n');
                items(inner, indent + 2, text);
            }
            other => {
                text.push(' ');
                scalar(other, indent, text);
                text.push('\n');
            }
        }
    }
}

fn spaces(count: usize, text: &mut String) {
    text.extend(std::iter::repeat_n(' ', count));
}

fn scalar(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => number(value, text),
        Value::String(value) if is_block(value) => block(value, indent, text),
        Value::String(value) => inline(value, text),
        // Only empty ones come here.
        Value::Array(_) => text.push_str("[]"),
        Value::Object(_) => text.push_str("{}"),
    }
}

/// YAML 1.1 takes `1e21` for a string: a float needs a point and a signed exponent.
fn number(value: &Number, text: &mut String) {
    let digits = value.to_string();
    let Some((mantissa, exponent)) = digits.split_once(['e', 'E']) else {
        return text.push_str(&digits);
    };
    text.push_str(mantissa);
    if !mantissa.contains('.') {
        text.push_str(".0");
    }
    text.push('e');
    if !exponent.starts_with(['+', '-']) {
        text.push('+');
    }
    text.push_str(exponent);
}

/// Text on one line, quoted where it must be.
fn inline(value: &str, text: &mut String) {
    if is_plain(value) {
        return text.push_str(value);
    }
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            // Writing to a string cannot fail.
            other if is_printable(other) => text.push(other),
            other if u32::from(other) <= 0xff => drop(write!(text, "\\x{:02x}", u32::from(other))),
            other if u32::from(other) <= 0xffff => drop(write!(text, "\\u{:04x}", u32::from(other))),
            other => drop(write!(text, "\\U{:08x}", u32::from(other))),
        }
    }
    text.push('"');
}

/// Whether no reader takes the bare text for anything but this text.
fn is_plain(value: &str) -> bool {
    let Some(first) = value.chars().next() else { return false };
    let harmless = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, ' ' | '_' | '-' | '.' | '/' | ':' | '(' | ')' | '+' | '@' | '=' | ',' | ';' | '$')
    };
    // What begins with a digit may be a number, a time or a date, unless it has a slash.
    let begins = first.is_ascii_alphabetic() || first == '/' || (first.is_ascii_digit() && value.contains('/'));
    begins
        && value.chars().all(harmless)
        && !value.ends_with([' ', ':'])
        && !value.contains(": ")
        && !WORDS.contains(&value.to_ascii_lowercase().as_str())
}

/// Whether text of several lines can stand as a literal block and read back the same.
fn is_block(value: &str) -> bool {
    value.trim_end_matches('\n').contains('\n')
        && !value.starts_with([' ', '\n', '\t'])
        && value.chars().all(|c| c == '\n' || is_printable(c))
        && value.lines().all(|line| !line.ends_with([' ', '\t']))
}

fn block(value: &str, indent: usize, text: &mut String) {
    let body = value.trim_end_matches('\n');
    text.push_str(match value.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    // The caller ends the last line.
    for line in value.strip_suffix('\n').unwrap_or(value).split('\n') {
        text.push('\n');
        if !line.is_empty() {
            spaces(indent + 2, text);
            text.push_str(line);
        }
    }
}

/// Characters that YAML lets stand for themselves everywhere: no controls, no other line ends, no byte-order mark.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_yaml_likes_to_bend_is_quoted_and_the_rest_is_not() {
        for bent in [
            "on",
            "Off",
            "y",
            "N",
            "~",
            "null",
            "0123",
            "1e3",
            "0x10",
            "1_000",
            ".5",
            "1:20",
            "2001-01-01",
            "",
            " a",
            "a ",
            "- a",
            "a: b",
            "a #b",
            "192.168.0.1",
            "=",
            "<<",
            "+1",
            "a:",
            "\u{85}",
            "☃",
        ] {
            assert_eq!(document(&json!({"k": bent})), format!("k: {}\n", quoted(bent)), "{bent}");
        }
        for plain in
            ["a", "example-network", "192.168.0.0/16", "fd00:10::/64", "v1", "samplecrd.k8s.io/v1", "a b", "sha256:0a"]
        {
            assert_eq!(document(&json!({"k": plain})), format!("k: {plain}\n"));
        }
    }

    fn quoted(text: &str) -> String {
        match text {
            "\u{85}" => "\"\\x85\"".to_owned(),
            text => format!("\"{text}\""),
        }
    }

    #[test]
    fn objects_look_like_the_ones_that_people_write() {
        let value = json!({
            "apiVersion": "v1", "metadata": {"name": "a", "labels": {}},
            "spec": {"ports": [{"name": "http", "port": 80}, {"port": 443}], "list": [[1, 2], [], "x"], "text": "a\n\n  b\n", "big": 1e300},
        });
        insta::assert_snapshot!(document(&value), @r"
        apiVersion: v1
        metadata:
          name: a
          labels: {}
        spec:
          ports:
          - name: http
            port: 80
          - port: 443
          list:
          -
            - 1
            - 2
          - []
          - x
          text: |
            a

              b
          big: 1.0e+300
        ");
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[a-z0-9.:_ \n#'\"-]{0,12}",
            "(on|off|~|0[0-7]{1,3}|[0-9]e[0-9]|[0-9]:[0-9]{2})"
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((text.clone(), inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_reads_back_as_it_was_written(value in values()) {
            let text = document(&value);
            let read: Value = serde_saphyr::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(read, value, "{}", text);
        }
    }
}
