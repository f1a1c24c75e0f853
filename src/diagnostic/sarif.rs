//! Diagnostics for code hosting services and editors: `--format sarif`, SARIF 2.1.0
//! (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Diagnostic, Location, Severity};

/// The log of one run.
pub fn render(diagnostics: &[Diagnostic]) -> Value {
    let rules: BTreeSet<&str> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    let rules: Vec<&str> = rules.into_iter().collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": env!("CARGO_PKG_NAME"),
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|code| json!({"id": code})).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": diagnostics.iter().map(|diagnostic| result(diagnostic, &rules)).collect::<Vec<_>>(),
        }],
    })
}

fn result(diagnostic: &Diagnostic, rules: &[&str]) -> Value {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = diagnostic.message.clone();
    for line in diagnostic.label.iter().chain(&diagnostic.help) {
        text.push('\n');
        text.push_str(line);
    }
    let related: Vec<Value> = diagnostic
        .related
        .iter()
        .map(|(at, message)| json!({"physicalLocation": physical(at), "message": {"text": message}}))
        .collect();
    json!({
        "ruleId": diagnostic.code,
        "ruleIndex": rules.iter().position(|code| *code == diagnostic.code),
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": physical(&diagnostic.at)}],
        "relatedLocations": related,
    })
}

fn physical(at: &Location) -> Value {
    let (line, column) = at.file.line_column(at.span.start);
    let (end_line, end_column) = at.file.line_column(at.span.end.max(at.span.start));
    json!({
        "artifactLocation": {"uri": uri(&at.file.path)},
        "region": {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column},
    })
}

/// A path as a relative URI reference: what is not allowed in one is percent-encoded.
fn uri(path: &str) -> String {
    let hex = |digit: u8| char::from_digit(u32::from(digit), 16).unwrap_or('0').to_ascii_uppercase();
    let mut uri = String::with_capacity(path.len());
    for byte in path.trim_start_matches("./").bytes() {
        match byte {
            b'\\' => uri.push('/'),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(char::from(byte)),
            _ => uri.extend(['%', hex(byte >> 4), hex(byte & 15)]),
        }
    }
    uri
}
