//! Diagnostics for people, in the style of the Rust compiler.

use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Location, Severity, SourceFile, Span};

/// Longest part of a line that is shown, in bytes; a value that was encoded into one line can be megabytes long.
const LONGEST_LINE: usize = 400;
/// Farthest that two places of one file may be apart to be shown in one picture, in bytes.
const ONE_PICTURE: usize = 64 * 1024;

/// How the text is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// With ANSI colours.
    pub colour: bool,
    /// Columns that may be used.
    pub width: usize,
}

impl Default for Style {
    /// Without colour, for 140 columns.
    fn default() -> Self {
        Style { colour: false, width: 140 }
    }
}

/// All diagnostics, in their order, with an empty line between.
pub fn render(diagnostics: &[Diagnostic], style: Style) -> String {
    let renderer = if style.colour { Renderer::styled() } else { Renderer::plain() }.term_width(style.width);
    let mut text = String::new();
    for diagnostic in diagnostics {
        if !text.is_empty() {
            text.push('\n');
        }
        let picture = one(diagnostic, &renderer);
        // The renderer pads lines; what is read in a terminal is also compared in tests and copied into reports.
        for line in picture.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

fn one(diagnostic: &Diagnostic, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let file = &diagnostic.at.file;
    let together =
        |at: &Location| Arc::ptr_eq(&at.file, file) && at.span.start.abs_diff(diagnostic.at.span.start) <= ONE_PICTURE;
    let (same, elsewhere): (Vec<_>, Vec<_>) = diagnostic.related.iter().partition(|(at, _)| together(at));
    let mut marks = vec![Mark { span: diagnostic.at.span, label: diagnostic.label.as_deref(), primary: true }];
    marks.extend(same.iter().map(|(at, label)| Mark { span: at.span, label: Some(label), primary: false }));
    let mut group =
        level.primary_title(diagnostic.message.as_str()).id(diagnostic.code).elements(picture(file, &marks));
    group = group.elements(diagnostic.help.iter().map(|help| Level::HELP.message(help.as_str())));
    let mut groups = vec![group];
    for (at, label) in elsewhere {
        let mark = Mark { span: at.span, label: None, primary: true };
        groups
            .push(Group::with_title(Level::NOTE.secondary_title(label.as_str())).elements(picture(&at.file, &[mark])));
    }
    renderer.render(&groups)
}

/// A place to be marked in a picture.
struct Mark<'a> {
    span: Span,
    label: Option<&'a str>,
    primary: bool,
}

/// Where, and the lines with their marks. A file without text is only named.
fn picture<'a>(file: &'a SourceFile, marks: &[Mark<'a>]) -> Vec<Element<'a>> {
    let Some(first) = marks.first() else { return Vec::new() };
    let (line, column) = file.line_column(first.span.start);
    let origin = Origin::path(file.path.as_str()).line(line).char_column(column);
    if file.text.is_empty() {
        return vec![origin.into()];
    }
    let spans: Vec<Range<usize>> = marks.iter().map(|mark| first_line(&file.text, mark.span)).collect();
    let start = spans.iter().map(|span| span.start).min().unwrap_or_default();
    let end = spans.iter().map(|span| span.end).max().unwrap_or_default();
    let window = window(&file.text, start, end);
    let excerpt = file.text.get(window.clone()).unwrap_or_default();
    let (line_start, _) = file.line_column(window.start);
    let annotations = marks.iter().zip(spans).map(|(mark, span)| {
        let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        let clip = |at: usize| at.clamp(window.start, window.end) - window.start;
        kind.span(clip(span.start)..clip(span.end)).label(mark.label)
    });
    let annotations: Vec<Annotation<'_>> = annotations.collect();
    let snippet = Snippet::source(excerpt).line_start(line_start).annotations(annotations);
    let whole_line = window.start == 0 || file.text.as_bytes().get(window.start - 1) == Some(&b'\n');
    if whole_line && !file.text.starts_with('\u{feff}') {
        vec![snippet.path(file.path.as_str()).into()]
    } else {
        // The snippet would count its columns from where it was cut.
        vec![origin.into(), snippet.into()]
    }
}

/// A span cut at the end of its first line, on character boundaries.
fn first_line(text: &str, span: Span) -> Range<usize> {
    let start = boundary(text, span.start);
    let end = boundary(text, span.end.max(start));
    let within = text.get(start..end).unwrap_or_default();
    let line = within.lines().next().unwrap_or_default();
    start..start + line.len()
}

/// The lines that hold a range; of very long lines only what is near it.
fn window(text: &str, start: usize, end: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let line_start =
        bytes.get(..start).and_then(|before| before.iter().rposition(|b| *b == b'\n')).map_or(0, |at| at + 1);
    let line_end =
        bytes.get(end..).and_then(|after| after.iter().position(|b| *b == b'\n')).map_or(text.len(), |at| end + at);
    let from = if start - line_start > LONGEST_LINE { boundary(text, start - LONGEST_LINE / 2) } else { line_start };
    let until = if line_end - end > LONGEST_LINE { boundary(text, end + LONGEST_LINE / 2) } else { line_end };
    from..until
}

/// The nearest character boundary at or before an offset.
fn boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
