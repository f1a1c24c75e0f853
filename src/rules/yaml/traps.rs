//! YAML's traps, explained: what the person most likely meant, and how to write it.
//!
//! The scanner knows which rule of YAML was broken. The person who wrote `${a ? b : c}` did not know that there was
//! one. So the characters around the fault are looked at for the usual stories, and the rule is told only when no
//! story fits.

use std::sync::Arc;

use granit_parser::ErrorKind;

use super::{Scalar, Style, Text};
use crate::diagnostic::{Diagnostic, SourceFile, Span};

/// A syntax error at a byte offset.
pub(super) fn syntax(file: &Arc<SourceFile>, kind: &ErrorKind, at: usize) -> Diagnostic {
    let text = file.text.as_str();
    let line = Line::around(text, at);
    if let ErrorKind::TabInIndentation | ErrorKind::TabInBlockIndentation | ErrorKind::TabNotAllowed = kind {
        return tab(file, &line, at);
    }
    if let Some(tab_at) = line.indent_tab() {
        return tab(file, &line, tab_at);
    }
    if let Some(fault) = missing_space(file, at, kind) {
        return fault;
    }
    if let ErrorKind::UnknownQuotedScalarEscape = kind {
        return escape(file, at);
    }
    if let Some(span) = line.expression(text, at) {
        return expression(file, &line, span, kind);
    }
    if let Some(fault) = unquoted_value(file, &line, at, kind) {
        return fault;
    }
    let (message, help) = rule(kind);
    let fault = Diagnostic::error("yaml-syntax", message, file.at(point(text, at)));
    match help {
        Some(help) => fault.help(help),
        None => fault,
    }
}

/// `key:value` on the line before: YAML takes it for text, and stumbles over the next key.
fn missing_space(file: &Arc<SourceFile>, at: usize, kind: &ErrorKind) -> Option<Diagnostic> {
    if !matches!(kind, ErrorKind::MappingValueNotAllowed | ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey) {
        return None;
    }
    let here = Line::around(&file.text, at);
    let before = Line::around(&file.text, here.start.checked_sub(1)?);
    let body = before.text.trim_start().trim_start_matches("- ");
    let key = body.find(':')?;
    let word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let (name, value) = (body.get(..key)?, body.get(key + 1..)?);
    if name.is_empty() || !name.chars().all(word) || value.is_empty() || value.starts_with([' ', '\t', '/']) {
        return None;
    }
    let colon = before.start + (before.text.len() - body.len()) + key;
    Some(
        Diagnostic::error("missing-space", "a space is missing after this `:`", file.at(Span::new(colon, colon + 1)))
            .label("without it YAML takes the line for text")
            .help(format!("write `{name}: {value}`")),
    )
}

/// An escape that YAML does not know, in double quotes that begin at `at`.
fn escape(file: &Arc<SourceFile>, at: usize) -> Diagnostic {
    const KNOWN: &str = "0abtnvfre \"/\\N_LPxuU\t\n\r";
    let rest = file.text.get(at..).unwrap_or_default();
    let mut chars = rest.char_indices();
    let mut span = point(&file.text, at);
    while let Some((offset, c)) = chars.next() {
        if c != '\\' {
            continue;
        }
        match chars.next() {
            Some((_, escaped)) if KNOWN.contains(escaped) => {}
            Some((after, escaped)) => {
                span = Span::new(at + offset, at + after + escaped.len_utf8());
                break;
            }
            None => break,
        }
    }
    let (message, help) = rule(&ErrorKind::UnknownQuotedScalarEscape);
    let fault = Diagnostic::error("yaml-syntax", message, file.at(span));
    help.into_iter().fold(fault, Diagnostic::help)
}

/// A tag where rule files have none. Mostly CEL's `!`.
pub(super) fn tag(file: &Arc<SourceFile>, span: Span) -> Diagnostic {
    let line = Line::around(&file.text, span.start);
    let fault = Diagnostic::error("yaml-tag", "YAML takes a value that begins with `!` for a tag", file.at(span));
    match line.value() {
        Some(value) if !file.text[span.start..span.end].starts_with("!!") => {
            fault.help(format!("quote the whole value: {}", quoted(value)))
        }
        _ => fault.help("rule files have no use for tags; `!!str` alone is understood"),
    }
}

/// An alias without its anchor. Mostly a value that begins with `*`.
pub(super) fn unknown_alias(file: &Arc<SourceFile>, name: &str, span: Span) -> Diagnostic {
    Diagnostic::error("unknown-alias", format!("nothing has been named `&{name}` before this alias"), file.at(span))
        .help(format!("if this is text, quote it: \"*{name}\""))
}

/// A list or mapping where a key belongs. Mostly an unquoted `{…}`.
pub(super) fn key_not_text(file: &Arc<SourceFile>, span: Span) -> Diagnostic {
    let double = file.text.get(..span.start).is_some_and(|before| before.ends_with('{'))
        && file.text.get(span.start..).is_some_and(|text| text.starts_with('{'));
    if double {
        return Diagnostic::error("key-not-text", "`{{…}}` means nothing in a rule file", file.at(span))
            .help("expressions are written `${…}` here, in quotes: \"${self.metadata.name}\"");
    }
    Diagnostic::error("key-not-text", "a key must be text, this is a list or a mapping", file.at(span))
        .help("a value that begins with `{` or `[` and is text needs quotes")
}

fn tab(file: &Arc<SourceFile>, line: &Line<'_>, at: usize) -> Diagnostic {
    let start = line.indent_tab().unwrap_or(at);
    let width = file.text.get(start..).map_or(1, |rest| rest.len() - rest.trim_start_matches('\t').len()).max(1);
    Diagnostic::error("tab", "YAML is indented with spaces, this is a tab", file.at(Span::new(start, start + width)))
        .help("replace each tab by spaces; `expand -t 2 FILE` does it for a whole file")
}

/// `${…}` that YAML cut in pieces.
fn expression(file: &Arc<SourceFile>, line: &Line<'_>, span: Span, kind: &ErrorKind) -> Diagnostic {
    let in_flow = line.flow_before(span.start)
        || matches!(
            kind,
            ErrorKind::ExpectedFlowMappingSeparator
                | ErrorKind::ExpectedFlowSequenceSeparator
                | ErrorKind::MisplacedFlowCollectionEnd
                | ErrorKind::MismatchedFlowCollectionEnd { .. }
        );
    let reason = match kind {
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidMappingValueWhitespace | ErrorKind::SimpleKeyExpected => {
            "`: ` outside quotes makes a mapping"
        }
        ErrorKind::UnclosedQuotedScalar => "the quote is not closed",
        _ if in_flow => "`{`, `}`, `[`, `]` and `,` belong to YAML inside `{…}` and `[…]`",
        ErrorKind::InvalidTrailingDoubleQuotedScalar | ErrorKind::InvalidTrailingSingleQuotedScalar => {
            "a value that begins with a quote ends at the next one"
        }
        _ => "YAML reads these characters as its own",
    };
    let value = match line.value() {
        Some(value) if !in_flow => value,
        _ => line.flow_value(span),
    };
    Diagnostic::error("expression-needs-quotes", "this expression must be quoted in YAML", file.at(span))
        .label(reason)
        .help(format!("write {}", quoted(value)))
}

/// A value without `${…}` that needs quotes: bare CEL, mostly.
fn unquoted_value(file: &Arc<SourceFile>, line: &Line<'_>, at: usize, kind: &ErrorKind) -> Option<Diagnostic> {
    if let ErrorKind::UnexpectedEofFlowSequence
    | ErrorKind::UnexpectedEofFlowMapping
    | ErrorKind::UnexpectedEofImplicitFlowMapping
    | ErrorKind::UnclosedFlowCollection { .. } = kind
    {
        return None;
    }
    let value = line.value()?;
    let start = line.start + line.text.len() - line.text.trim_start().len();
    let start = file.text.get(start..)?.find(value)? + start;
    let span = Span::new(start, start + value.len());
    let reason = match kind {
        ErrorKind::MappingValueNotAllowed if value.contains(": ") => "`: ` outside quotes makes a mapping",
        ErrorKind::InvalidTrailingDoubleQuotedScalar | ErrorKind::InvalidTrailingSingleQuotedScalar => {
            "a value that begins with a quote ends at the next one"
        }
        _ if value.starts_with(['[', '{']) && span.start <= at => {
            "a value that begins with `[` or `{` is a YAML list or mapping"
        }
        _ if value.starts_with(['!', '&', '*', '%', '@', '`', '|', '>']) => {
            "YAML gives this first character a meaning of its own"
        }
        _ => return None,
    };
    Some(
        Diagnostic::error("value-needs-quotes", "this value must be quoted in YAML", file.at(span))
            .label(reason)
            .help(format!("write {}", quoted(without_quotes(value)))),
    )
}

/// `'a ? b : 'c''`: the outer quotes were meant for YAML, which ended the value at the first inner one.
fn without_quotes(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| inner.ends_with(quote));
    inner('\'').or_else(|| inner('"')).unwrap_or(value)
}

/// A value as YAML takes it for text: without quotes where that is possible.
pub(crate) fn as_text(value: &str) -> String {
    let special = |c: char| "!&*?|>%@`\"'#,[]{}-:~".contains(c);
    let plain = !value.starts_with(special)
        && !value.contains(": ")
        && !value.contains(" #")
        && !value.ends_with(':')
        && !value.contains(['\n', '\t'])
        && value.trim() == value
        && matches!(
            Text { value: value.to_owned(), style: Style::Plain, span: Span::default() }.resolve(),
            Ok(Scalar::Text(_))
        );
    if plain { value.to_owned() } else { quoted(value) }
}

/// A value in quotes: double where that needs no escape, single else.
fn quoted(value: &str) -> String {
    if value.contains(['"', '\\']) { format!("'{}'", value.replace('\'', "''")) } else { format!("\"{value}\"") }
}

/// One character, or the end of the text.
fn point(text: &str, at: usize) -> Span {
    let at = at.min(text.len());
    let width = text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    Span::new(at, at + width)
}

/// The line that a fault is on.
struct Line<'a> {
    /// Byte offset of the line in the file.
    start: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn around(text: &'a str, at: usize) -> Self {
        let at = at.min(text.len());
        let bytes = text.as_bytes();
        let start = bytes.get(..at).and_then(|b| b.iter().rposition(|b| *b == b'\n')).map_or(0, |i| i + 1);
        let end = bytes.get(at..).and_then(|b| b.iter().position(|b| *b == b'\n')).map_or(text.len(), |i| at + i);
        Line { start, text: text.get(start..end).unwrap_or_default().trim_end_matches('\r') }
    }

    /// The first tab of the indentation.
    fn indent_tab(&self) -> Option<usize> {
        let indent = self.text.len() - self.text.trim_start_matches([' ', '\t']).len();
        let at = self.text.get(..indent)?.find('\t')?;
        (indent < self.text.len()).then_some(self.start + at)
    }

    /// `value` of `key: value` or `- value` or `- key: value`.
    fn value(&self) -> Option<&'a str> {
        let mut text = self.text.trim();
        while let Some(rest) = text.strip_prefix("- ") {
            text = rest.trim_start();
        }
        let key = text.find(": ").filter(|at| {
            text.get(..*at).is_some_and(|key| key.chars().all(|c| c.is_alphanumeric() || "-_./\"'".contains(c)))
        });
        let value = match key {
            Some(at) => text.get(at + 2..)?.trim_start(),
            None => text,
        };
        (!value.is_empty()).then_some(value)
    }

    /// The whole text around an expression inside `{…}` or `[…]`: from the last separator before it to the next after it.
    fn flow_value(&self, expression: Span) -> &'a str {
        let (from, until) = (expression.start.saturating_sub(self.start), expression.end.saturating_sub(self.start));
        let before = self.text.get(..from).unwrap_or_default();
        let start = [": ", ", ", "{", "["].iter().filter_map(|mark| before.rfind(mark).map(|at| at + mark.len())).max();
        let rest = self.text.get(until..).unwrap_or_default();
        // A further `${…}` is part of the same text; its braces end nothing.
        let mut end = until;
        let mut depth = 0_usize;
        for (i, c) in rest.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                '}' | ']' | ',' if depth == 0 => break,
                _ => {}
            }
            end = until + i + c.len_utf8();
        }
        self.text.get(start.unwrap_or(from)..end).unwrap_or_default().trim()
    }

    /// Whether a `{` or `[` of YAML is open on this line before an offset.
    fn flow_before(&self, at: usize) -> bool {
        let before = self.text.get(..at.saturating_sub(self.start)).unwrap_or_default();
        let opened = before.matches(['{', '[']).count();
        opened > before.matches(['}', ']']).count()
    }

    /// The `${…}` on this line that the fault at `at` belongs to: the last one that begins before it, unless it stands
    /// in quotes.
    fn expression(&self, text: &str, at: usize) -> Option<Span> {
        let until = (at + 1).saturating_sub(self.start).min(self.text.len());
        let before = self.text.get(..until).unwrap_or(self.text);
        let start = before.rfind("${")?;
        let lead = before.get(..start)?;
        if lead.matches('"').count() % 2 == 1 || lead.matches('\'').count() % 2 == 1 {
            return None;
        }
        let rest = self.text.get(start..)?;
        let mut depth = 0_usize;
        let mut end = rest.trim_end().len();
        for (i, c) in rest.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        end = i + 1;
                        break;
                    }
                }
                _ => {}
            }
        }
        let span = Span::new(self.start + start, self.start + start + end);
        debug_assert!(span.end <= text.len());
        Some(span)
    }
}

/// The rule of YAML that was broken, for faults without a better story.
fn rule(kind: &ErrorKind) -> (&'static str, Option<&'static str>) {
    use ErrorKind as E;
    match kind {
        E::UnexpectedEofFlowSequence
        | E::UnexpectedEofFlowMapping
        | E::UnexpectedEofImplicitFlowMapping
        | E::UnclosedFlowCollection { .. } => ("a `{` or `[` is not closed", Some("close it with `}` or `]`")),
        E::UnexpectedEof | E::UnexpectedEofBlockMapping | E::UnexpectedEofBlockSequence => {
            ("the file ends in the middle of a value", None)
        }
        E::MisplacedFlowCollectionEnd | E::MismatchedFlowCollectionEnd { .. } => {
            ("this closing bracket does not belong to any open one", Some("if it is part of a text, quote the text"))
        }
        E::ExpectedFlowMappingSeparator => ("`,` or `}` is missing before this", Some("if this is text, quote it")),
        E::ExpectedFlowSequenceSeparator => ("`,` or `]` is missing before this", Some("if this is text, quote it")),
        E::UnclosedQuotedScalar => ("this quote is not closed", Some("close it; inside '…' a quote is written twice")),
        E::DocumentIndicatorInQuotedScalar => {
            ("`---` or `...` at the start of a line inside a quoted text", Some("indent it"))
        }
        E::UnknownQuotedScalarEscape | E::InvalidQuotedScalarHexEscape | E::InvalidUnicodeEscape => (
            "this escape does not exist in YAML",
            Some("write `\\\\` for a backslash, or use single quotes, which have no escapes"),
        ),
        E::InvalidLowSurrogate | E::InvalidLowSurrogateHexEscape | E::MissingLowSurrogate | E::UnpairedLowSurrogate => {
            ("half of a surrogate pair", Some("write the character itself"))
        }
        E::MappingValueNotAllowed | E::MappingKeyNotAllowed | E::InvalidSimpleKey | E::SimpleKeyExpected => (
            "a `key: value` is not possible here",
            Some("check the indentation; if it is text with `: ` in it, quote it"),
        ),
        E::ExpectedBlockMappingKey | E::ExpectedBlockSequenceEntry | E::InvalidIndentation => (
            "the indentation fits nothing above",
            Some("keys of one mapping, and the dashes of one list, stand in the same column"),
        ),
        E::BlockSequenceEntryNotAllowed | E::BlockEntryInFlowCollection | E::InvalidBlockEntryWhitespace => {
            ("a list item (`- `) is not possible here", Some("check the indentation; if it is text, quote it"))
        }
        E::InvalidTrailingDoubleQuotedScalar | E::InvalidTrailingSingleQuotedScalar => (
            "text after the closing quote",
            Some("a value that begins with a quote ends at the next one; quote the whole value"),
        ),
        E::InvalidBlockScalarHeader | E::ZeroBlockScalarIndent => {
            ("nothing may follow `|` or `>` on its line", Some("if the value begins with `|` or `>`, quote it"))
        }
        E::InvalidBlockScalarIndent | E::TabAtBlockScalarStart => {
            ("the lines of this text are indented less than its first line", Some("indent them alike"))
        }
        E::BomInsideDocument => ("a byte order mark in the middle of the file", Some("remove it")),
        E::RecursionLimitExceeded => {
            ("lists and mappings are nested too deep", Some("look for a missing closing bracket"))
        }
        E::UnexpectedCharacter { .. } => ("no value can begin with this character", Some("quote the value")),
        E::CommentInterceptedScalar => (
            "a comment in the middle of a text of several lines",
            Some("` #` begins a comment: quote the text, or move the comment"),
        ),
        E::CommentNotSeparated => {
            ("a `#` here needs a space before it to be a comment", Some("if it is text, quote it"))
        }
        E::ExpectedDocumentStart | E::InvalidDocumentEnd | E::MissingDocumentEndBeforeDirective => {
            ("this belongs to no document", Some("separate documents by a line `---`; check the indentation"))
        }
        E::MissingAnchorOrAliasName => ("`&` or `*` without a name", Some("if it is text, quote it")),
        E::TabInPlainScalar => ("a tab here", Some("use spaces")),
        _ => ("this is not YAML", Some("if it is text, quote it")),
    }
}
