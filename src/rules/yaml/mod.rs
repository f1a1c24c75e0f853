//! First step of the rule pipeline: text → a tree of nodes that know where they stand in the file.
//!
//! The tree keeps what a later message needs and a value model throws away: the bytes of every key and value, how a
//! scalar was quoted, and the way from a character of its content back to the file. A plain scalar stays text until
//! someone asks for its value ([`Text::resolve`]): CEL written in a field is never a number, whatever it looks like.
//!
//! Whatever the bytes are, parsing ends, within bounds, with documents or with diagnostics that say what to write
//! instead. YAML's own traps for people who write expressions are explained in `traps`.

mod build;
mod content;
mod decode;
mod scalar;
mod traps;

pub use build::parse;
pub use scalar::{Bent, Scalar};
pub(crate) use traps::as_text;

use std::ops::Range;

use crate::diagnostic::Span;

/// Largest rule file that is read, in bytes.
pub const MAX_BYTES: usize = 10 * 1024 * 1024;
/// Most nodes of one file, each use of an alias counting as all that it stands for.
pub const MAX_NODES: usize = 200_000;
/// Most bytes of text that aliases of one file may stand for.
pub const MAX_ALIAS_BYTES: usize = MAX_BYTES;
/// Deepest nesting of lists and mappings.
pub const MAX_DEPTH: usize = 100;
/// Most faults told of one file; past a hundred, they are one fault's echo.
pub const MAX_FAULTS: usize = 100;

/// Most expressions of one file. The largest rule sets in use have a few hundred.
pub const MAX_EXPRESSIONS: usize = 20_000;

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// `'…'`
    Single,
    /// `"…"`
    Double,
    /// `|`
    Literal,
    /// `>`
    Folded,
    /// Without quotes, with the tag `!!str`: text whatever it looks like.
    Tagged,
}

/// A scalar as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The content: quotes, escapes and line folding undone.
    pub value: String,
    /// How it was written.
    pub style: Style,
    /// Its bytes in the file, quotes included; of a block scalar the lines below `|` or `>`.
    pub span: Span,
}

impl Text {
    /// The bytes in the file that a byte range of the content was written as. Where a character of the content was an
    /// escape, the whole escape. A range that cannot be followed gives the whole scalar.
    pub fn span_of(&self, source: &str, range: Range<usize>) -> Span {
        content::span_of(self, source, range)
    }
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its bytes in the file. Of a node that an alias stands for, those of the anchored node.
    pub span: Span,
    /// What it is.
    pub kind: NodeKind,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// Text, number, boolean or null, not yet told apart.
    Scalar(Text),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file, without duplicate keys.
    Map(Vec<Entry>),
    /// Something that was refused and reported: nobody says more about it.
    Refused,
}

/// One key of a mapping and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key: always text, as written.
    pub key: Text,
    /// The value.
    pub value: Node,
}

impl Node {
    /// What the node is, in words: `a list`.
    pub fn describe(&self) -> String {
        match &self.kind {
            NodeKind::List(_) => "a list".to_owned(),
            NodeKind::Map(_) => "a mapping".to_owned(),
            NodeKind::Refused => "something refused".to_owned(),
            NodeKind::Scalar(text) => match text.resolve() {
                Ok(Scalar::Null) => "nothing".to_owned(),
                Ok(Scalar::Bool(value)) => format!("the boolean `{value}`"),
                Ok(Scalar::Number(value)) => format!("the number `{value}`"),
                Ok(Scalar::Text(_)) | Err(_) => "text".to_owned(),
            },
        }
    }

    /// The scalar, where it is one.
    pub fn text(&self) -> Option<&Text> {
        match &self.kind {
            NodeKind::Scalar(text) => Some(text),
            NodeKind::List(_) | NodeKind::Map(_) | NodeKind::Refused => None,
        }
    }

    /// Whether it is an empty or `null` plain scalar.
    pub fn is_null(&self) -> bool {
        self.text().is_some_and(|text| matches!(text.resolve(), Ok(Scalar::Null)))
    }

    /// The value under a key, where the node is a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            NodeKind::Map(entries) => entries.iter().find(|entry| entry.key.value == key).map(|entry| &entry.value),
            NodeKind::List(_) | NodeKind::Scalar(_) | NodeKind::Refused => None,
        }
    }
}
