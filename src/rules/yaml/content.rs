//! The way back from a scalar's content to the file: which bytes were written for a range of the content.
//!
//! The scanner gives the content and where the scalar stands, not what became of each character. This module reads the
//! scalar's bytes a second time, only when a message needs it, and believes itself only if it arrives at the same content.

use std::ops::Range;

use super::{Style, Text};
use crate::diagnostic::Span;

/// A run of content and the bytes it was written as: one to one when the lengths are equal, an escape otherwise.
#[derive(Debug, Clone, Copy)]
struct Piece {
    content: usize,
    len: usize,
    file: usize,
    raw: usize,
}

pub(super) fn span_of(text: &Text, source: &str, range: Range<usize>) -> Span {
    let Some(raw) = source.get(text.span.start..text.span.end) else { return text.span };
    let pieces = match text.style {
        Style::Plain | Style::Tagged => lines(&text.value, raw, text.span.start, true),
        Style::Literal | Style::Folded => lines(&text.value, raw, text.span.start, false),
        Style::Single => single(&text.value, raw, text.span.start),
        Style::Double => double(&text.value, raw, text.span.start),
    };
    let Some(pieces) = pieces else { return text.span };
    let start = range.start.min(text.value.len());
    let end = range.end.clamp(start, text.value.len());
    let Some(first) = place(&pieces, start) else { return text.span };
    if start == end {
        return Span::new(first.start, first.start);
    }
    // The last byte's piece, not the end's: the end may already be the next line.
    let Some(last) = place(&pieces, end - 1) else { return text.span };
    Span::new(first.start, last.end.max(first.start))
}

/// The file bytes of one content byte (of the character's rest, when it is one of several bytes).
fn place(pieces: &[Piece], at: usize) -> Option<Range<usize>> {
    let index = pieces.partition_point(|piece| piece.content <= at).checked_sub(1);
    let Some(index) = index else {
        // Folded-away space before the first line's text.
        let first = pieces.first()?;
        return Some(first.file..first.file);
    };
    let piece = pieces.get(index)?;
    let offset = at - piece.content;
    if offset >= piece.len {
        // Between two lines: the line break stands after this piece.
        return Some(piece.file + piece.raw..piece.file + piece.raw);
    }
    if piece.len == piece.raw {
        Some(piece.file + offset..piece.file + offset + 1)
    } else {
        Some(piece.file..piece.file + piece.raw)
    }
}

/// Plain and block scalars: no escapes, so each line's text is in the content as it is, in order, with nothing but
/// white space between.
fn lines(content: &str, raw: &str, file: usize, trim_end: bool) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut offset = 0;
    for line in raw.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line = if trim_end { line.trim_end_matches([' ', '\t']) } else { line };
        let text = line.trim_start_matches([' ', '\t']);
        if text.is_empty() {
            continue;
        }
        let rest = content.get(at..)?;
        let gap = rest.len() - rest.trim_start_matches([' ', '\t', '\n']).len();
        at += gap;
        if !content.get(at..)?.starts_with(text) {
            return None;
        }
        let file = file + start + (line.len() - text.len());
        pieces.push(Piece { content: at, len: text.len(), file, raw: text.len() });
        at += text.len();
    }
    content.get(at..)?.trim_matches([' ', '\t', '\n']).is_empty().then_some(pieces)
}

/// Collects pieces while a quoted scalar is read, and the content they give.
struct Quoted {
    pieces: Vec<Piece>,
    content: String,
    file: usize,
}

impl Quoted {
    fn same(&mut self, at: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        self.pieces.push(Piece { content: self.content.len(), len: text.len(), file: self.file + at, raw: text.len() });
        self.content.push_str(text);
    }

    fn escape(&mut self, at: usize, raw: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        self.pieces.push(Piece { content: self.content.len(), len: text.len(), file: self.file + at, raw });
        self.content.push_str(text);
    }

    /// A line break at `at`: folds it and the blank lines after it; gives where the next line's text begins.
    fn fold(&mut self, raw: &str, at: usize, escaped: bool) -> usize {
        let mut breaks = 0;
        let mut next = at;
        let mut line = at;
        for (i, c) in raw.get(at..).unwrap_or_default().char_indices() {
            match c {
                '\n' => {
                    breaks += 1;
                    line = at + i + 1;
                }
                ' ' | '\t' | '\r' => {}
                _ => break,
            }
            next = at + i + c.len_utf8();
        }
        // Nothing but the first break was in front of the text: a space; an escaped break: nothing.
        let text = match breaks {
            0 => String::new(),
            1 if escaped => String::new(),
            1 => " ".to_owned(),
            n => "\n".repeat(n - 1),
        };
        let raw_len = line.max(at + 1) - at;
        self.escape(at, raw_len.max(text.len() + 1), &text);
        next
    }
}

fn single(content: &str, raw: &str, file: usize) -> Option<Vec<Piece>> {
    let inner = raw.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut quoted = Quoted { pieces: Vec::new(), content: String::new(), file: file + 1 };
    let mut at = 0;
    while at < inner.len() {
        let rest = inner.get(at..)?;
        let stop = rest.find(['\'', '\n']).unwrap_or(rest.len());
        let text = rest.get(..stop)?;
        if rest.get(stop..)?.starts_with('\'') {
            quoted.same(at, text);
            quoted.escape(at + stop, 2, "'");
            at += stop + 2;
        } else if rest.get(stop..)?.starts_with('\n') {
            let text = text.trim_end_matches([' ', '\t', '\r']);
            quoted.same(at, text);
            at = quoted.fold(inner, at + text.len(), false);
        } else {
            quoted.same(at, text);
            at += stop;
        }
    }
    (quoted.content == content).then_some(quoted.pieces)
}

fn double(content: &str, raw: &str, file: usize) -> Option<Vec<Piece>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    let mut quoted = Quoted { pieces: Vec::new(), content: String::new(), file: file + 1 };
    let mut at = 0;
    while at < inner.len() {
        let rest = inner.get(at..)?;
        let stop = rest.find(['\\', '\n']).unwrap_or(rest.len());
        let text = rest.get(..stop)?;
        match rest.get(stop..)?.chars().next() {
            Some('\\') => {
                quoted.same(at, text);
                at += stop;
                let after = inner.get(at + 1..)?;
                if after.starts_with('\n') || after.starts_with("\r\n") {
                    at = quoted.fold(inner, at + 1, true);
                } else {
                    let (len, text) = escape(after)?;
                    quoted.escape(at, len + 1, &text);
                    at += len + 1;
                }
            }
            Some(_) => {
                let text = text.trim_end_matches([' ', '\t', '\r']);
                quoted.same(at, text);
                at = quoted.fold(inner, at + text.len(), false);
            }
            None => {
                quoted.same(at, text);
                at += stop;
            }
        }
    }
    (quoted.content == content).then_some(quoted.pieces)
}

/// The escape after a backslash: how many bytes it takes, and what it stands for.
fn escape(after: &str) -> Option<(usize, String)> {
    let c = after.chars().next()?;
    let simple = |text: &str| Some((c.len_utf8(), text.to_owned()));
    let hex = |digits: usize| {
        let code = u32::from_str_radix(after.get(1..=digits)?, 16).ok()?;
        Some((1 + digits, code))
    };
    match c {
        '0' => simple("\0"),
        'a' => simple("\u{7}"),
        'b' => simple("\u{8}"),
        't' | '\t' => simple("\t"),
        'n' => simple("\n"),
        'v' => simple("\u{b}"),
        'f' => simple("\u{c}"),
        'r' => simple("\r"),
        'e' => simple("\u{1b}"),
        ' ' | '"' | '/' | '\\' => simple(c.encode_utf8(&mut [0; 4])),
        'N' => simple("\u{85}"),
        '_' => simple("\u{a0}"),
        'L' => simple("\u{2028}"),
        'P' => simple("\u{2029}"),
        'x' => hex(2).and_then(|(len, code)| Some((len, char::from_u32(code)?.to_string()))),
        'U' => hex(8).and_then(|(len, code)| Some((len, char::from_u32(code)?.to_string()))),
        'u' => {
            let (len, code) = hex(4)?;
            if let Some(c) = char::from_u32(code) {
                return Some((len, c.to_string()));
            }
            // A surrogate pair, as JSON writes it.
            let low = after.get(len..)?.strip_prefix("\\u")?;
            let low = u32::from_str_radix(low.get(..4)?, 16).ok()?;
            let code = 0x1_0000 + (code.checked_sub(0xd800)? << 10) + low.checked_sub(0xdc00)?;
            Some((len + 6, char::from_u32(code)?.to_string()))
        }
        _ => None,
    }
}
