//! Diagnostics for machines: `--format json`.
//!
//! ```json
//! {
//!   "errors": 1,
//!   "warnings": 0,
//!   "diagnostics": [{
//!     "severity": "error",
//!     "code": "unknown-field",
//!     "message": "a resource has no field `wen`",
//!     "file": "rules/network.yaml",
//!     "line": 7, "column": 7, "endLine": 7, "endColumn": 10,
//!     "label": null,
//!     "help": ["did you mean `when`?"],
//!     "related": [{"message": "first here", "file": "…", "line": 3, "column": 7, "endLine": 3, "endColumn": 9}]
//!   }]
//! }
//! ```
//!
//! Lines and columns are from 1; columns count characters; the end is one past the last character. Keys are never
//! removed or given another meaning; new ones may come.

use serde_json::{Map, Value, json};

use super::{Diagnostic, Location, Severity};

/// The document.
pub fn render(diagnostics: &[Diagnostic]) -> Value {
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    json!({
        "errors": count(Severity::Error),
        "warnings": count(Severity::Warning),
        "diagnostics": diagnostics.iter().map(one).collect::<Vec<_>>(),
    })
}

fn one(diagnostic: &Diagnostic) -> Value {
    let mut object = Map::new();
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    object.insert("severity".to_owned(), severity.into());
    object.insert("code".to_owned(), diagnostic.code.into());
    object.insert("message".to_owned(), diagnostic.message.as_str().into());
    place(&diagnostic.at, &mut object);
    object.insert("label".to_owned(), diagnostic.label.clone().into());
    object.insert("help".to_owned(), diagnostic.help.clone().into());
    let related = diagnostic.related.iter().map(|(at, message)| {
        let mut object = Map::new();
        object.insert("message".to_owned(), message.as_str().into());
        place(at, &mut object);
        Value::Object(object)
    });
    object.insert("related".to_owned(), related.collect());
    Value::Object(object)
}

fn place(at: &Location, object: &mut Map<String, Value>) {
    let (line, column) = at.file.line_column(at.span.start);
    let (end_line, end_column) = at.file.line_column(at.span.end.max(at.span.start));
    object.insert("file".to_owned(), at.file.path.as_str().into());
    for (key, value) in [("line", line), ("column", column), ("endLine", end_line), ("endColumn", end_column)] {
        object.insert(key.to_owned(), value.into());
    }
}
