//! Values as JSON and YAML text, for a document inside a `ConfigMap`: our own.
//!
//! What is printed reads back as the same values, whoever reads it. YAML 1.1 readers (Python's, and kubectl's) see a bool in
//! `on`, a number in `1_000` and a time in `12:30:00`; so a text is written bare only when no reader can take it for
//! anything else, and in quotes, or as a block, otherwise.

use std::fmt::Write;

use serde_json::Value as Json;

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::to_json;
use crate::rules::expr::value::text;

pub(super) static LIBRARY: Library = Library { name: "encoding", kubernetes: false, entries: ENTRIES };

const ENTRIES: &[Entry] = &[
    entry(
        "toJson",
        &["toJson(A) -> string"],
        "The value as JSON on one line, keys sorted.",
        &[("toJson({'b': [1, true], 'a': 'x'})", "'{\"a\":\"x\",\"b\":[1,true]}'")],
        |args| {
            let json = json(args)?;
            Ok(text(json.to_string()))
        },
    ),
    entry(
        "toYaml",
        &["toYaml(A) -> string"],
        "The value as a YAML document, keys sorted, with a newline at its end. Texts that some reader could take for something \
         else are quoted.",
        &[("toYaml({'b': [1, 'on'], 'a': 'x'})", "'a: x\\nb:\\n- 1\\n- \"on\"\\n'")],
        |args| {
            let json = json(args)?;
            let mut out = String::new();
            write_value(&json, 0, Place::Document, &mut out);
            args.budget.bytes(out.len())?;
            Ok(text(out))
        },
    ),
];

fn json(args: &Args<'_>) -> Result<Json, Failure> {
    args.count(1)?;
    let json = to_json(args.value(0)?).map_err(Failure::Message)?;
    let json = json.ok_or_else(|| Failure::new("the optional holds no value; write `.orValue(…)`"))?;
    let (values, bytes) = measure(&json);
    args.budget.steps(values)?;
    args.budget.bytes(bytes)?;
    Ok(json)
}

/// The number of values, and roughly the bytes of the text they become.
fn measure(json: &Json) -> (usize, usize) {
    let sum = |parts: &mut dyn Iterator<Item = (usize, usize)>| {
        parts.fold((1, 4), |(values, bytes), (v, b)| (values + v, bytes + b))
    };
    match json {
        Json::String(source) => (1, source.len() + 4),
        Json::Array(items) => sum(&mut items.iter().map(measure)),
        Json::Object(fields) => sum(&mut fields.iter().map(|(key, value)| {
            let (values, bytes) = measure(value);
            (values, bytes + key.len())
        })),
        _ => (1, 16),
    }
}

/// Where a value is written: what stands before it on its line.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Document,
    /// Behind `key:`
    Key,
    /// Behind `- `
    Item,
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

fn write_value(value: &Json, depth: usize, place: Place, out: &mut String) {
    match value {
        Json::Object(fields) if !fields.is_empty() => {
            if place == Place::Key {
                out.push('\n');
            }
            for (index, (key, value)) in fields.iter().enumerate() {
                // The first key stands on the line of its list item's dash.
                if index > 0 || place != Place::Item {
                    indent(depth, out);
                }
                out.push_str(&scalar_text(key));
                out.push(':');
                write_value(value, depth + 1, Place::Key, out);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            // A list behind a key is not indented further: its dashes are.
            let depth = if place == Place::Key { depth.saturating_sub(1) } else { depth };
            if place != Place::Document {
                out.push('\n');
            }
            for item in items {
                indent(depth, out);
                out.push('-');
                if matches!(item, Json::Object(fields) if !fields.is_empty()) {
                    out.push(' ');
                }
                write_value(item, depth + 1, Place::Item, out);
            }
        }
        scalar => {
            if place != Place::Document {
                out.push(' ');
            }
            match scalar {
                Json::Object(_) => out.push_str("{}"),
                Json::Array(_) => out.push_str("[]"),
                Json::String(source) if is_block(source) => return write_block(source, depth.max(1), out),
                Json::String(source) => out.push_str(&scalar_text(source)),
                Json::Number(number) => out.push_str(&number_text(number)),
                other => {
                    let _ = write!(out, "{other}");
                }
            }
            out.push('\n');
        }
    }
}

/// YAML 1.1 takes `1e21` for a text: a double needs a point and its exponent a sign.
fn number_text(number: &serde_json::Number) -> String {
    let written = number.to_string();
    let Some((digits, exponent)) = written.split_once('e') else { return written };
    let point = if digits.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
    format!("{digits}{point}e{sign}{exponent}")
}

/// A text of several lines that a block can hold without any escape.
fn is_block(source: &str) -> bool {
    let ordinary = |c: char| c == '\n' || is_printable(c);
    source.trim_end_matches('\n').contains('\n')
        && !source.ends_with("\n\n")
        && !source.starts_with([' ', '\n'])
        && source.chars().all(ordinary)
        && source.lines().all(|line| !line.ends_with(' '))
}

fn write_block(source: &str, depth: usize, out: &mut String) {
    out.push_str(if source.ends_with('\n') { "|\n" } else { "|-\n" });
    for line in source.lines() {
        if !line.is_empty() {
            indent(depth, out);
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn is_printable(c: char) -> bool {
    // Beyond ASCII: no separators that readers take for line ends, no byte order mark, no invisible or private characters.
    match c {
        ' '..='~'
        | '\u{a0}'..='\u{1fff}'
        | '\u{2010}'..='\u{2027}'
        | '\u{2030}'..='\u{205e}'
        | '\u{2070}'..='\u{d7ff}'
        | '\u{f900}'..='\u{fefe}'
        | '\u{ff00}'..='\u{ffef}' => true,
        '\u{1_0000}'..='\u{e_ffff}' => !matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff),
        _ => false,
    }
}

/// A text on one line, bare or quoted.
fn scalar_text(source: &str) -> String {
    if is_bare(source) {
        return source.to_owned();
    }
    let mut quoted = String::with_capacity(source.len() + 2);
    quoted.push('"');
    for c in source.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if is_printable(c) => quoted.push(c),
            c if u32::from(c) <= 0xffff => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Whether no reader can take the bare text for anything but this text.
fn is_bare(source: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    source.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/')
        && source.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
        && !WORDS.iter().any(|word| source.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn yaml(value: &Json) -> String {
        let mut out = String::new();
        write_value(value, 0, Place::Document, &mut out);
        out
    }

    fn read(text: &str) -> Json {
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn texts_that_yaml_bends_come_back_as_they_were() {
        for source in [
            "",
            "on",
            "Off",
            "YES",
            "y",
            "~",
            "null",
            "Null",
            "0123",
            "1e3",
            "0x10",
            "1_000",
            ".5",
            ".inf",
            "1:30",
            "12:30:00",
            "-",
            "- a",
            "a: b",
            "a #b",
            "#",
            "'",
            "\"",
            "\\",
            "a\nb",
            "a\nb\n",
            "a\nb\n\n",
            "\na",
            " a",
            "a ",
            "a \nb",
            "\ta",
            "a\r\nb",
            "=",
            "<<",
            "!a",
            "&a",
            "*a",
            "{",
            "[",
            "]",
            "%a",
            "@a",
            "`a",
            "2024-01-01",
            "😀",
            "é",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\u{0}",
            "\u{7f}",
            "a:",
            "? a",
            "|",
            ">",
            "---",
            "...",
            "1",
            "-1",
            "+1",
            "1.0",
            "true",
            "NaN",
            "a\u{a0}b",
        ] {
            for value in [
                json!(source),
                json!({ source: source }),
                json!([source, [source]]),
                json!({"k": {"l": source}, "m": [{"n": source, "o": 1}]}),
            ] {
                assert_eq!(read(&yaml(&value)), value, "{source:?}\n{}", yaml(&value));
            }
        }
    }

    #[test]
    fn documents_look_as_people_write_them() {
        let value = json!({"a": 1, "b": {"c": [1, "x", {"d": "e", "f": []}, [2, 3]], "g": {}}, "h": "one\ntwo\n", "i": null, "j": 1.5, "k": 1e21});
        insta::assert_snapshot!(yaml(&value), @r"
        a: 1
        b:
          c:
          - 1
          - x
          - d: e
            f: []
          -
            - 2
            - 3
          g: {}
        h: |
          one
          two
        i: null
        j: 1.5
        k: 1.0e+21
        ");
    }
}
