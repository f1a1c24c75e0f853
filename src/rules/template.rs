//! Text with `${…}` → literal pieces and expressions; manifests → trees of them.
//!
//! Where an expression ends is decided by CEL's own lexical rules (strings, raw strings, comments, nested braces), so
//! `${{'a': '}'}['a']}` is one expression. Every piece remembers the scalar it came from, so that a fault inside an
//! expression is shown under its exact characters, whatever quotes and folding stand in between.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::expr::Expr;
use super::yaml::{MAX_EXPRESSIONS, MAX_FAULTS, Node, NodeKind, Scalar, Style, Text};
use crate::diagnostic::{Diagnostic, Location, SourceFile, Span};

/// CEL as written in a rule file.
#[derive(Debug, Clone)]
pub struct Expression {
    /// The file.
    pub file: Arc<SourceFile>,
    /// The scalar that it stands in.
    pub text: Arc<Text>,
    /// Its bytes in the scalar's content, without `${` and `}`.
    pub range: Range<usize>,
    /// Parsed; `None` where it has a syntax error, which has been reported.
    pub expr: Option<Arc<Expr>>,
}

impl Expression {
    /// The expression's source.
    pub fn source(&self) -> &str {
        self.text.value.get(self.range.clone()).unwrap_or_default()
    }

    /// Where the whole expression stands in the file.
    pub fn at(&self) -> Location {
        self.at_range(0..self.range.len())
    }

    /// Where a byte range of the expression's source stands in the file.
    pub fn at_range(&self, range: Range<usize>) -> Location {
        let start = (self.range.start + range.start).min(self.range.end);
        let end = (self.range.start + range.end).clamp(start, self.range.end);
        self.file.at(self.text.span_of(&self.file.text, start..end))
    }
}

/// Text of a rule file with its expressions found.
#[derive(Debug, Clone)]
pub enum Template {
    /// No expression in it; `$${` undone.
    Literal(String),
    /// Exactly one `${…}`: the expression's type is kept.
    Expression(Expression),
    /// Text with expressions in it.
    Mixed(Vec<Piece>),
}

/// A part of mixed text.
#[derive(Debug, Clone)]
pub enum Piece {
    /// As it is.
    Literal(String),
    /// An expression whose value becomes text.
    Expression(Expression),
}

/// A manifest, a patch's value or a status mapping: YAML with expressions in it.
#[derive(Debug, Clone)]
pub struct Tree {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: TreeKind,
}

/// What a [`Tree`] is.
#[derive(Debug, Clone)]
pub enum TreeKind {
    /// A number, a boolean, or text without expressions.
    Constant(Value),
    /// Text with expressions.
    Template(Template),
    /// A list.
    List(Vec<Tree>),
    /// A mapping, in the order of the file.
    Map(Vec<TreeEntry>),
}

/// One key of a mapping.
#[derive(Debug, Clone)]
pub struct TreeEntry {
    /// The key: constant, or text with expressions.
    pub key: Template,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Tree,
}

impl Tree {
    /// The value under a constant key, with the key's place.
    pub fn entry(&self, key: &str) -> Option<&TreeEntry> {
        match &self.kind {
            TreeKind::Map(entries) => {
                entries.iter().find(|entry| matches!(&entry.key, Template::Literal(text) if text == key))
            }
            TreeKind::Constant(_) | TreeKind::Template(_) | TreeKind::List(_) => None,
        }
    }

    /// The value under a constant key.
    pub fn get(&self, key: &str) -> Option<&Tree> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The text, where it is text without expressions.
    pub fn constant_text(&self) -> Option<&str> {
        match &self.kind {
            TreeKind::Constant(value) => value.as_str(),
            TreeKind::Template(_) | TreeKind::List(_) | TreeKind::Map(_) => None,
        }
    }

    /// Calls `visit` with every expression, in the order of the file.
    pub fn each_expression<'a>(&'a self, visit: &mut dyn FnMut(&'a Expression)) {
        match &self.kind {
            TreeKind::Constant(_) => {}
            TreeKind::Template(template) => template.each_expression(visit),
            TreeKind::List(items) => items.iter().for_each(|item| item.each_expression(visit)),
            TreeKind::Map(entries) => entries.iter().for_each(|entry| {
                entry.key.each_expression(visit);
                entry.value.each_expression(visit);
            }),
        }
    }
}

impl Template {
    /// Calls `visit` with every expression, in order.
    pub fn each_expression<'a>(&'a self, visit: &mut dyn FnMut(&'a Expression)) {
        match self {
            Template::Literal(_) => {}
            Template::Expression(expression) => visit(expression),
            Template::Mixed(pieces) => {
                for piece in pieces {
                    if let Piece::Expression(expression) = piece {
                        visit(expression);
                    }
                }
            }
        }
    }
}

/// Reads templates out of nodes and collects what is wrong with them.
pub struct Reader<'a> {
    /// The file that the nodes came from.
    pub file: &'a Arc<SourceFile>,
    /// What was found so far.
    pub faults: &'a mut Vec<Diagnostic>,
    /// How many expressions were read so far.
    pub expressions: usize,
}

impl<'a> Reader<'a> {
    /// A reader that has read nothing.
    pub fn new(file: &'a Arc<SourceFile>, faults: &'a mut Vec<Diagnostic>) -> Self {
        Reader { file, faults, expressions: 0 }
    }
}

impl Reader<'_> {
    /// Whether enough was said. Past this, what costs time only to be dropped is left out.
    fn full(&self) -> bool {
        self.faults.len() >= MAX_FAULTS
    }

    /// A scalar that is CEL as a whole (`when`, `rule`…). Without a value if it is no scalar or empty, which is reported.
    pub fn bare(&mut self, text: &Text) -> Expression {
        let value = text.value.as_str();
        let wrapped = pieces(value)
            .ok()
            .and_then(|found| match found.as_slice() {
                [Found::Expression(range)] => Some(range.clone()),
                _ => None,
            })
            .filter(|_| value.starts_with("${"));
        if let Some(range) = wrapped {
            let inner = value.get(range.clone()).unwrap_or_default().trim();
            self.faults.push(
                Diagnostic::error(
                    "needless-template",
                    "this field is always an expression; `${…}` belongs into manifests",
                    self.file.at(text.span),
                )
                .help(format!("write {}", in_yaml(inner))),
            );
            return self.expression(&Arc::new(text.clone()), range);
        }
        let shared = Arc::new(text.clone());
        self.expression(&shared, 0..value.len())
    }

    /// Text with `${…}` in it.
    pub fn template(&mut self, text: &Text) -> Template {
        if !text.value.contains("${") {
            return Template::Literal(text.value.clone());
        }
        let found = match pieces(&text.value) {
            Ok(found) => found,
            Err(open) => {
                self.unterminated(text, open);
                return Template::Literal(text.value.clone());
            }
        };
        let shared = Arc::new(text.clone());
        if let [Found::Expression(range)] = found.as_slice() {
            return Template::Expression(self.expression(&shared, range.clone()));
        }
        if found.iter().all(|piece| matches!(piece, Found::Literal(_))) {
            return Template::Literal(found.into_iter().map(Found::into_literal).collect());
        }
        if let ([Found::Expression(_), Found::Literal(end)], Style::Literal | Style::Folded) =
            (found.as_slice(), text.style)
            && end == "\n"
        {
            self.faults.push(
                Diagnostic::warning(
                    "line-break-after-expression",
                    "this text is the expression's value with a line break after it",
                    self.file.at(text.span),
                )
                .label("so it is always text, whatever the expression's type")
                .help("end the line above with `|-` or `>-` to have the value alone"),
            );
        }
        let pieces = found.into_iter().map(|piece| match piece {
            Found::Literal(text) => Piece::Literal(text),
            Found::Expression(range) => Piece::Expression(self.expression(&shared, range)),
        });
        Template::Mixed(pieces.collect())
    }

    /// A subtree. Null is a fault: it is never sent.
    pub fn tree(&mut self, node: &Node) -> Tree {
        let kind = match &node.kind {
            NodeKind::List(items) => TreeKind::List(items.iter().map(|item| self.tree(item)).collect()),
            NodeKind::Map(entries) => TreeKind::Map(
                entries
                    .iter()
                    .map(|entry| TreeEntry {
                        key: self.template(&entry.key),
                        key_span: entry.key.span,
                        value: self.tree_under(&entry.value, &entry.key),
                    })
                    .collect(),
            ),
            NodeKind::Scalar(text) => self.scalar(text, None),
            NodeKind::Refused => TreeKind::Constant(Value::String(String::new())),
        };
        Tree { span: node.span, kind }
    }

    fn tree_under(&mut self, node: &Node, key: &Text) -> Tree {
        match &node.kind {
            NodeKind::Scalar(text) => Tree { span: node.span, kind: self.scalar(text, Some(key)) },
            NodeKind::List(_) | NodeKind::Map(_) | NodeKind::Refused => self.tree(node),
        }
    }

    fn scalar(&mut self, text: &Text, key: Option<&Text>) -> TreeKind {
        if let Some(bent) = text.bent_by_yaml_1_1() {
            let mut fault = Diagnostic::warning("yaml-1.1-word", bent.message, self.file.at(text.span));
            fault.help = bent.help;
            self.faults.push(fault);
        }
        match text.resolve() {
            Ok(Scalar::Text(_)) => match self.template(text) {
                Template::Literal(text) => TreeKind::Constant(Value::String(text)),
                template => TreeKind::Template(template),
            },
            Ok(Scalar::Bool(value)) => TreeKind::Constant(Value::Bool(value)),
            Ok(Scalar::Number(value)) => TreeKind::Constant(Value::Number(value)),
            Ok(Scalar::Null) => {
                self.null(text, key);
                TreeKind::Constant(Value::Null)
            }
            Err(bent) => {
                let mut fault = Diagnostic::error("ambiguous-scalar", bent.message, self.file.at(text.span));
                fault.help = bent.help;
                self.faults.push(fault);
                TreeKind::Constant(Value::String(text.value.clone()))
            }
        }
    }

    fn null(&mut self, text: &Text, key: Option<&Text>) {
        let (message, span) = match key {
            Some(key) if text.value.is_empty() => (format!("`{}` has no value", key.value), key.span),
            _ => ("null is never sent to the API server".to_owned(), text.span),
        };
        self.faults.push(
            Diagnostic::error("null", message, self.file.at(span))
                .help("for empty text write \"\", for an empty mapping {}, for an empty list []")
                .help("to leave a field out, leave its key out, or give it an optional such as `${self.spec.?field}`"),
        );
    }

    fn expression(&mut self, text: &Arc<Text>, range: Range<usize>) -> Expression {
        let mut expression = Expression { file: Arc::clone(self.file), text: Arc::clone(text), range, expr: None };
        self.expressions += 1;
        if self.expressions > MAX_EXPRESSIONS {
            if self.expressions == MAX_EXPRESSIONS + 1 {
                self.faults.push(
                    Diagnostic::error(
                        "too-many-expressions",
                        format!("the file has more than {MAX_EXPRESSIONS} expressions"),
                        expression.at(),
                    )
                    .help("split it into several files"),
                );
            }
            return expression;
        }
        if expression.source().trim().is_empty() {
            self.faults.push(
                Diagnostic::error("empty-expression", "there is no expression here", self.file.at(text.span))
                    .help("write a CEL expression; for the characters `${` themselves write `$${`"),
            );
            return expression;
        }
        match Expr::parse(expression.source()) {
            Ok(expr) => expression.expr = Some(Arc::new(expr)),
            Err(_) if self.full() => {}
            Err(faults) => {
                let cut = self.cut_by_comment(text);
                for fault in faults {
                    let mut diagnostic =
                        Diagnostic::error("expression-syntax", fault.message, expression.at_range(fault.range));
                    diagnostic.help.extend(fault.help);
                    if expression.source().starts_with('{') && expression.source().ends_with('}') {
                        diagnostic = diagnostic.help("an expression stands in single braces: `${…}`");
                    }
                    if let Some(whole) = &cut {
                        diagnostic = diagnostic.help(format!(
                            "YAML ended the text at ` #`, which begins a comment: write {}",
                            in_yaml(whole)
                        ));
                    }
                    self.faults.push(diagnostic);
                }
            }
        }
        expression
    }

    fn unterminated(&mut self, text: &Text, open: usize) {
        let at = self.file.at(text.span_of(&self.file.text, open..open + 2));
        let fault = Diagnostic::error("unterminated-expression", "this `${` has no closing `}`", at);
        self.faults.push(match self.cut_by_comment(text) {
            Some(whole) => fault
                .label("YAML ended the text at ` #`, which begins a comment")
                .help(format!("quote it: {}", in_yaml(&whole))),
            None => fault.help("close it with `}`; for the characters `${` themselves write `$${`"),
        });
    }

    /// The whole line's value, where a plain scalar ended because of a ` #` that was meant as text.
    fn cut_by_comment(&self, text: &Text) -> Option<String> {
        if text.style != Style::Plain {
            return None;
        }
        let rest = self.file.text.get(text.span.end..)?;
        let rest = rest.lines().next()?;
        rest.trim_start().starts_with('#').then(|| {
            let written = self.file.text.get(text.span.start..text.span.end).unwrap_or_default();
            format!("{written}{}", rest.trim_end())
        })
    }
}

/// CEL in a form that YAML takes as one text.
pub fn in_yaml(expression: &str) -> String {
    super::yaml::as_text(expression)
}

/// A piece of text before expressions are parsed.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Literal(String),
    Expression(Range<usize>),
}

impl Found {
    fn into_literal(self) -> String {
        match self {
            Found::Literal(text) => text,
            Found::Expression(_) => String::new(),
        }
    }
}

/// Splits text at its expressions; the offset of a `${` that is never closed otherwise.
fn pieces(text: &str) -> Result<Vec<Found>, usize> {
    let mut found = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("$${") {
            literal.push_str("${");
            at += 3;
        } else if rest.starts_with("${") {
            let end = expression_end(text, at + 2).ok_or(at)?;
            if !literal.is_empty() {
                found.push(Found::Literal(std::mem::take(&mut literal)));
            }
            found.push(Found::Expression(at + 2..end));
            at = end + 1;
        } else {
            let step = if rest.starts_with('$') { 1 } else { rest.find('$').unwrap_or(rest.len()) };
            literal.push_str(rest.get(..step).unwrap_or_default());
            at += step;
        }
    }
    if !literal.is_empty() || found.is_empty() {
        found.push(Found::Literal(literal));
    }
    Ok(found)
}

/// The offset of the `}` that closes the expression beginning at `start`.
fn expression_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            b'"' | b'\'' => {
                at = string_end(bytes, at, is_raw(bytes, start, at))?;
                continue;
            }
            b'`' => at += bytes.get(at + 1..)?.iter().position(|b| *b == b'`')? + 1,
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += bytes.get(at..)?.iter().position(|b| *b == b'\n')?;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether the string that begins at `quote` has the prefix `r`, in any of CEL's spellings.
fn is_raw(bytes: &[u8], start: usize, quote: usize) -> bool {
    let prefix = bytes.get(start..quote).unwrap_or_default();
    let letters = prefix.iter().rev().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let prefix = prefix.get(prefix.len() - letters..).unwrap_or_default();
    prefix.len() <= 2 && prefix.iter().all(|b| b"rRbB".contains(b)) && prefix.iter().any(|b| b"rR".contains(b))
}

/// One past the closing quote of the string that begins at `open`.
fn string_end(bytes: &[u8], open: usize, raw: bool) -> Option<usize> {
    let quote = *bytes.get(open)?;
    let triple = bytes.get(open..open + 3).is_some_and(|three| three.iter().all(|b| *b == quote));
    let closing = if triple { 3 } else { 1 };
    let mut at = open + closing;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'\\' && !raw {
            at += 2;
            continue;
        }
        if byte == quote && bytes.get(at..at + closing).is_some_and(|end| end.iter().all(|b| *b == quote)) {
            return Some(at + closing);
        }
        at += 1;
    }
    None
}
