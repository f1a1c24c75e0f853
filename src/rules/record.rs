//! Reads a mapping by its table of fields: what is unknown, missing or of the wrong shape is said here, once for all.

use super::fields::{Field, Object, Shape};
use super::suggest::did_you_mean;
use super::template::{Expression, Reader, in_yaml};
use super::yaml::{Entry, Node, NodeKind, Scalar, Text};
use crate::diagnostic::{Diagnostic, Span};

/// A mapping whose keys are known to be in its table, and whose scalars have their shape.
pub(super) struct Record<'n> {
    fields: Vec<(&'static str, &'n Entry)>,
    /// The first key: what messages about the whole mapping point at.
    pub span: Span,
}

impl<'n> Record<'n> {
    /// The value under a key that passed.
    pub fn get(&self, name: &str) -> Option<&'n Node> {
        self.entry(name).map(|entry| &entry.value)
    }

    /// The entry of a key that passed.
    pub fn entry(&self, name: &str) -> Option<&'n Entry> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, entry)| *entry)
    }

    /// The scalar under a key that passed.
    pub fn text(&self, name: &str) -> Option<&'n Text> {
        self.get(name).and_then(Node::text)
    }
}

impl Reader<'_> {
    /// Reads a mapping. A key whose value has the wrong shape is reported and left out.
    pub(super) fn record<'n>(&mut self, node: &'n Node, object: &'static Object) -> Option<Record<'n>> {
        if node.kind == NodeKind::Refused {
            return None;
        }
        let NodeKind::Map(entries) = &node.kind else {
            self.wrong_shape(node, &format!("{} is a mapping", object.name), object.fields.first());
            return None;
        };
        let span = entries.first().map_or(node.span, |entry| entry.key.span);
        let mut record = Record { fields: Vec::new(), span };
        for entry in entries {
            let Some(field) = object.fields.iter().find(|field| field.name == entry.key.value) else {
                self.unknown_field(&entry.key, object);
                continue;
            };
            if self.shape(field, entry) {
                record.fields.push((field.name, entry));
            }
        }
        for field in object.fields.iter().filter(|field| field.required) {
            if !entries.iter().any(|entry| entry.key.value == field.name) {
                self.faults.push(
                    Diagnostic::error(
                        "missing-field",
                        format!("{} needs the field `{}`", object.name, field.name),
                        self.file.at(span),
                    )
                    .help(format!("add `{}`: {}", example(field), lower_first(field.doc))),
                );
            }
        }
        Some(record)
    }

    /// The items of a list of mappings.
    pub(super) fn records<'n>(&mut self, node: Option<&'n Node>, object: &'static Object) -> Vec<Record<'n>> {
        let Some(Node { kind: NodeKind::List(items), .. }) = node else { return Vec::new() };
        items.iter().filter_map(|item| self.record(item, object)).collect()
    }

    /// A field of one expression.
    pub(super) fn expression_field(&mut self, record: &Record<'_>, name: &str) -> Option<Expression> {
        record.text(name).map(|text| self.bare(text))
    }

    fn unknown_field(&mut self, key: &Text, object: &'static Object) {
        let names: Vec<&str> = object.fields.iter().map(|field| field.name).collect();
        let fault = Diagnostic::error(
            "unknown-field",
            format!("{} has no field `{}`", object.name, key.value),
            self.file.at(key.span),
        );
        self.faults.push(match did_you_mean(&key.value, names.iter().copied()) {
            Some(name) => fault.help(format!("did you mean `{name}`?")),
            None => fault.help(format!("the fields are {}", listed(&names))),
        });
    }

    fn shape(&mut self, field: &'static Field, entry: &Entry) -> bool {
        let node = &entry.value;
        if node.kind == NodeKind::Refused {
            return false;
        }
        match field.shape {
            Shape::Constant(expected) => self.constant(field, node, expected),
            Shape::Word(words) => self.word(field, node, words),
            Shape::Text => self.plain_text(field, node),
            Shape::Pointer => self.plain_text(field, node) && self.pointer(field, node),
            Shape::Expression => {
                if node.text().is_none() {
                    self.wrong_shape(node, &format!("`{}` is an expression", field.name), Some(field));
                } else if node.text().is_some_and(|text| text.value.trim().is_empty()) {
                    self.no_value(&entry.key);
                    return false;
                }
                node.text().is_some()
            }
            Shape::Expressions => {
                let fits = match &node.kind {
                    NodeKind::Scalar(_) => !node.is_null(),
                    NodeKind::List(items) => items
                        .iter()
                        .all(|item| item.kind == NodeKind::Refused || (item.text().is_some() && !item.is_null())),
                    NodeKind::Map(_) | NodeKind::Refused => false,
                };
                if !fits {
                    self.wrong_shape(
                        node,
                        &format!("`{}` is an expression or a list of them", field.name),
                        Some(field),
                    );
                }
                fits
            }
            Shape::List(_) => {
                let fits = matches!(node.kind, NodeKind::List(_));
                if node.is_null() {
                    self.no_value(&entry.key);
                } else if !fits {
                    self.wrong_shape(node, &format!("`{}` is a list", field.name), Some(field));
                }
                fits
            }
            Shape::Manifest | Shape::NamedExpressions | Shape::ForEach(_) | Shape::Object(_) => {
                let fits = matches!(node.kind, NodeKind::Map(_));
                if node.is_null() {
                    self.no_value(&entry.key);
                } else if !fits {
                    self.wrong_shape(node, &format!("`{}` is a mapping", field.name), Some(field));
                }
                fits
            }
            Shape::Tree => true,
        }
    }

    fn no_value(&mut self, key: &Text) {
        self.faults.push(
            Diagnostic::error("no-value", format!("`{}` has no value", key.value), self.file.at(key.span))
                .help("give it one, or leave the key out")
                .help("what belongs under a key is indented more than the key"),
        );
    }

    fn wrong_shape(&mut self, node: &Node, expected: &str, field: Option<&Field>) {
        let fault = Diagnostic::error(
            "wrong-type",
            format!("{expected}, this is {}", node.describe()),
            self.file.at(node.span),
        );
        let dashed = match &node.kind {
            NodeKind::Map(entries) => entries.first().is_some_and(|entry| entry.key.value.starts_with('-')),
            _ => false,
        };
        self.faults.push(match (field, node.text()) {
            (Some(Field { shape: Shape::List(_), .. }), _) if dashed => {
                fault.help("a list item begins with a dash and a space: `- `")
            }
            (Some(Field { shape: Shape::ForEach(_), name, .. }), Some(text)) => {
                fault.help(format!("write `{name}: {{item: {}}}`", in_yaml(&text.value)))
            }
            (Some(field), _) => fault.help(format!("write `{}`", example(field))),
            (None, _) => fault,
        });
    }

    fn constant(&mut self, field: &'static Field, node: &Node, expected: &'static str) -> bool {
        if node.text().is_some_and(|text| text.value == expected) {
            return true;
        }
        let found = node.text().map_or_else(|| node.describe(), |text| format!("`{}`", text.value));
        let code = if field.name == "kind" { "unknown-kind" } else { "unknown-api-version" };
        self.faults.push(
            Diagnostic::error(
                code,
                format!("`{}` of a rule file is `{expected}`, this is {found}", field.name),
                self.file.at(node.span),
            )
            .help(format!("write `{}: {expected}`", field.name)),
        );
        false
    }

    fn word(&mut self, field: &'static Field, node: &Node, words: &'static [&'static str]) -> bool {
        if let Some(text) = node.text() {
            if words.contains(&text.value.as_str()) {
                return true;
            }
            let fault = Diagnostic::error(
                "unknown-word",
                format!("`{}` is not a value of `{}`", text.value, field.name),
                self.file.at(node.span),
            );
            self.faults.push(match did_you_mean(&text.value, words.iter().copied()) {
                Some(word) => fault.help(format!("did you mean `{word}`?")),
                None => fault.help(format!("write one of {}", listed(words))),
            });
        } else {
            self.wrong_shape(node, &format!("`{}` is one of {}", field.name, listed(words)), None);
        }
        false
    }

    fn plain_text(&mut self, field: &'static Field, node: &Node) -> bool {
        let Some(text) = node.text() else {
            self.wrong_shape(node, &format!("`{}` is text", field.name), Some(field));
            return false;
        };
        match text.resolve() {
            Ok(Scalar::Text(_)) => true,
            Ok(Scalar::Null) => {
                self.faults.push(
                    Diagnostic::error("no-value", format!("`{}` has no value", field.name), self.file.at(node.span))
                        .help(format!("write `{}`", example(field))),
                );
                false
            }
            Ok(Scalar::Bool(_) | Scalar::Number(_)) => {
                self.faults.push(
                    Diagnostic::error(
                        "wrong-type",
                        format!("`{}` is text, this is {}", field.name, node.describe()),
                        self.file.at(node.span),
                    )
                    .help(format!("quote it: \"{}\"", text.value)),
                );
                false
            }
            Err(bent) => {
                let mut fault = Diagnostic::error("ambiguous-scalar", bent.message, self.file.at(node.span));
                fault.help = bent.help;
                self.faults.push(fault);
                false
            }
        }
    }

    fn pointer(&mut self, field: &'static Field, node: &Node) -> bool {
        let Some(text) = node.text() else { return false };
        let value = text.value.as_str();
        let fault = |message: String, range: std::ops::Range<usize>| {
            Diagnostic::error("bad-pointer", message, self.file.at(text.span_of(&self.file.text, range)))
        };
        let whole = 0..value.len();
        let fault = if let Some(at) = value.find("${") {
            fault(format!("`{}` is a constant JSON Pointer; it cannot hold expressions", field.name), at..value.len())
                .help("give the patch a `when`, or write the field into the manifest with `${…}` in its key")
        } else if !value.is_empty() && !value.starts_with('/') {
            let slashed = value.trim_start_matches("$.").replace('.', "/");
            fault("a JSON Pointer begins with `/`".to_owned(), whole).help(format!("write `/{slashed}`"))
        } else if let Some(at) = bad_escape(value) {
            fault("`~` in a JSON Pointer is followed by 0 or 1".to_owned(), at..at + 1)
                .help("write `~0` for `~` and `~1` for `/` inside a key")
        } else {
            return true;
        };
        self.faults.push(fault);
        false
    }
}

fn bad_escape(pointer: &str) -> Option<usize> {
    pointer.match_indices('~').map(|(at, _)| at).find(|at| !pointer[at + 1..].starts_with(['0', '1']))
}

/// `a`, `b` and `c`, each in backticks.
pub fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", first.join(", "))
        }
    }
}

fn example(field: &Field) -> String {
    match field.shape {
        Shape::Constant(value) => format!("{}: {value}", field.name),
        Shape::Text => format!("{}: TEXT", field.name),
        Shape::Word(words) => format!("{}: {}", field.name, words.join("|")),
        Shape::Expression => format!("{}: CEL", field.name),
        Shape::Expressions => format!("{}: [CEL, …]", field.name),
        Shape::NamedExpressions => format!("{}: {{NAME: CEL, …}}", field.name),
        Shape::Pointer => format!("{}: /data/key", field.name),
        Shape::Manifest => format!("{}: {{…}}", field.name),
        Shape::Tree => format!("{}: VALUE", field.name),
        Shape::ForEach(_) => format!("{}: {{NAME: CEL}}", field.name),
        Shape::Object(object) => {
            let fields: Vec<String> =
                object.fields.iter().filter(|field| field.required).map(|field| format!("{}: …", field.name)).collect();
            format!("{}: {{{}}}", field.name, fields.join(", "))
        }
        Shape::List(_) => format!("{}: [{{…}}, …]", field.name),
    }
}

/// The first sentence of a field's description, to stand after a colon.
fn lower_first(sentence: &str) -> String {
    let sentence = sentence.split_once(". ").map_or(sentence, |(first, _)| first);
    let sentence = sentence.trim_end_matches('.');
    let mut chars = sentence.chars();
    match chars.next() {
        // An acronym stays one.
        Some(first) if chars.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => sentence.to_owned(),
    }
}
