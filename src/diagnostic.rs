//! What the checker says: a message, the exact characters it is about, and what to do.
//!
//! Every fault found in a rule file, a CRD or an example is a [`Diagnostic`]. They are collected, never returned one at
//! a time, so that one run shows them all; how they are drawn for people and for machines lives here as well. Nothing
//! in this module knows what a rule is.

pub mod human;
pub mod json;
pub mod sarif;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// A text that diagnostics point into, with the name that people know it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// The path as the user wrote it, or `<stdin>`.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// Where the bytes of the file stopped being UTF-8, and the byte there; the text has U+FFFD in its place.
    pub not_utf8: Option<(usize, u8)>,
}

impl SourceFile {
    /// A source file from its path and text.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { path: path.into(), text: text.into(), not_utf8: None })
    }

    /// A source file from its path and bytes, whatever they are. That they are no UTF-8 is remembered for whoever reads
    /// the text to report.
    pub fn from_bytes(path: impl Into<String>, bytes: Vec<u8>) -> Arc<Self> {
        match String::from_utf8(bytes) {
            Ok(text) => Self::new(path, text),
            Err(error) => {
                let offset = error.utf8_error().valid_up_to();
                let byte = error.as_bytes().get(offset).copied().unwrap_or_default();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                Arc::new(Self { path: path.into(), text, not_utf8: Some((offset, byte)) })
            }
        }
    }

    /// A place in this file.
    pub fn at(self: &Arc<Self>, span: Span) -> Location {
        Location { file: Arc::clone(self), span }
    }

    /// Line and column (both from 1; the column counts characters) of a byte offset. Offsets past the end give the end.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        // A byte order mark is nothing that an editor shows or counts.
        let before = &self.text[..offset];
        let before = before.strip_prefix('\u{feff}').unwrap_or(before);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// A range of bytes in a [`SourceFile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The span from `start` to `end` (exclusive).
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }
}

/// A place in a rule file that a compiled rule remembers, so that errors at run time can still name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub file: Arc<SourceFile>,
    /// The bytes in it.
    pub span: Span,
}

impl fmt::Display for Location {
    /// `path:line:column`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.file.line_column(self.span.start);
        write!(f, "{}:{line}:{column}", self.file.path)
    }
}

/// How bad it is: an error refuses the rule set, a warning does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The rule set cannot be used.
    Error,
    /// It can, but a person should look.
    Warning,
}

/// One fault, where it is, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// A stable kebab-case name of the kind of fault, for SARIF rule ids and tests (`unknown-field`).
    pub code: &'static str,
    /// One line, no full stop, code in backticks.
    pub message: String,
    /// Where it is.
    pub at: Location,
    /// Said under the caret.
    pub label: Option<String>,
    /// Other places that explain it (`first defined here`).
    pub related: Vec<(Location, String)>,
    /// What to do, one hint a line.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: &'static str, message: impl Into<String>, at: Location) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: one_line(message.into()),
            at,
            label: None,
            related: Vec::new(),
            help: Vec::new(),
        }
    }

    /// A warning at a place.
    pub fn warning(code: &'static str, message: impl Into<String>, at: Location) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message, at) }
    }

    /// Adds what is said under the caret.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = Some(one_line(text.into()));
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(one_line(text.into()));
        self
    }

    /// Adds another place.
    #[must_use]
    pub fn related(mut self, at: Location, text: impl Into<String>) -> Self {
        self.related.push((at, text.into()));
        self
    }
}

impl fmt::Display for Diagnostic {
    /// One line: `path:line:column: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// Longest message, in characters; values that a message quotes can be of any length.
const LONGEST_MESSAGE: usize = 400;

/// A message on one line, and not too long: what it quotes may be neither.
pub fn one_line(message: String) -> String {
    if message.len() <= LONGEST_MESSAGE && !message.contains(char::is_control) {
        return message;
    }
    let mut line: String =
        message.chars().take(LONGEST_MESSAGE).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if message.chars().nth(LONGEST_MESSAGE).is_some() {
        line.push('…');
    }
    line
}

/// Puts diagnostics in the order of their files' paths and of their places in them, and drops what was said twice.
pub fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| {
        let key = |diagnostic: &Diagnostic| (diagnostic.at.span.start, diagnostic.severity, diagnostic.at.span.end);
        a.at.file.path.cmp(&b.at.file.path).then_with(|| key(a).cmp(&key(b)))
    });
    let mut said = HashSet::new();
    diagnostics.retain(|diagnostic| {
        said.insert((diagnostic.at.file.path.clone(), diagnostic.at.span, diagnostic.code, diagnostic.message.clone()))
    });
}

/// Whether any of them refuses a rule set.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}
