//! Manifests (and `status`, and the values of patches) against the schema of what they become: which fields there are,
//! which must be there, and whether what is written in each place may stand there.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::context::{Context, Place};
use super::expression::Goes;
use super::names;
use super::scope::Scope;
use crate::diagnostic::{Diagnostic, Span};
use crate::rules::schema::instance::{self, violations_of};
use crate::rules::schema::{Schema, Shape};
use crate::rules::suggest::did_you_mean;
use crate::rules::template::{Expression, Piece, Template, Tree, TreeEntry, TreeKind};
use crate::rules::types::Type;

impl Context<'_> {
    /// A tree of templates that goes to a place. `added` are fields, as paths, that patches add to it.
    pub fn tree(&mut self, tree: &Tree, place: &Place, scope: &Scope, added: &BTreeSet<String>) -> Option<Type> {
        match &tree.kind {
            TreeKind::Constant(value) => self.constant(value, tree.span, place),
            TreeKind::Template(Template::Literal(text)) => {
                self.constant(&Value::String(text.clone()), tree.span, place);
            }
            TreeKind::Template(Template::Expression(expression)) => {
                let what = place.path.as_str();
                let value = self
                    .expression(expression, |checker| checker.goes(Goes::Manifest).place(scope, &place.schema, what));
                return value.map(|value| value.ty);
            }
            TreeKind::Template(Template::Mixed(pieces)) => self.mixed(pieces, tree.span, place, scope),
            TreeKind::List(items) => self.list(items, tree, place, scope, added),
            TreeKind::Map(entries) => self.map(entries, tree, place, scope, added),
        }
        None
    }

    /// The expressions of a tree whose place is not known.
    fn anywhere(&mut self, tree: &Tree, place: &Place, scope: &Scope) {
        let free = Place { schema: Arc::default(), ..place.clone() };
        self.tree(tree, &free, scope, &BTreeSet::new());
    }

    fn constant(&mut self, value: &Value, span: Span, place: &Place) {
        let name = format!("`{}`", place.path);
        for violation in violations_of(value, &place.schema, &name) {
            let fault = Diagnostic::error(violation.code, violation.message, self.at(span));
            self.found.push(match violation.help {
                Some(help) => fault.help(help),
                None => fault,
            });
        }
    }

    fn mixed(&mut self, pieces: &[Piece], span: Span, place: &Place, scope: &Scope) {
        for piece in pieces {
            if let Piece::Expression(expression) = piece {
                self.expression(expression, |checker| checker.goes(Goes::Text).text_part(scope));
            }
        }
        let text = Arc::new(Schema::of(Shape::String));
        if super::place::fits(&text.value_type(), &place.schema, 1) {
            return;
        }
        let wanted = place.schema.describe();
        let message = format!("`{}` must be `{wanted}`, this is text", place.path);
        let fault = Diagnostic::error("wrong-type", message, self.at(span))
            .label("text around `${…}` makes all of it text")
            .help("make it one `${…}` and nothing else: the type of the expression is kept then");
        self.found.push(fault);
    }

    fn list(&mut self, items: &[Tree], tree: &Tree, place: &Place, scope: &Scope, added: &BTreeSet<String>) {
        let inner = match &place.schema.shape {
            Shape::List(items) => items.get(),
            Shape::Any => Arc::default(),
            _ => {
                self.wrong_shape("a list", tree, place);
                return items.iter().for_each(|item| self.anywhere(item, place, scope));
            }
        };
        for (index, item) in items.iter().enumerate() {
            self.tree(item, &place.element(index, Arc::clone(&inner)), scope, added);
        }
    }

    fn map(&mut self, entries: &[TreeEntry], tree: &Tree, place: &Place, scope: &Scope, added: &BTreeSet<String>) {
        if !matches!(place.schema.shape, Shape::Any | Shape::Object(_) | Shape::Map(_)) {
            self.wrong_shape("a map", tree, place);
            return entries.iter().for_each(|entry| self.anywhere(&entry.value, place, scope));
        }
        let mut computed = false;
        for entry in entries {
            let Template::Literal(name) = &entry.key else {
                computed = true;
                self.computed_key(&entry.key, scope);
                let schema = place.schema.field("").unwrap_or_default();
                self.tree(&entry.value, &place.field("…", schema), scope, added);
                continue;
            };
            let Some(schema) = place.schema.field(name) else {
                self.unknown(name, entry, place);
                self.anywhere(&entry.value, &place.field(name, Arc::default()), scope);
                continue;
            };
            let inner = place.field(name, schema);
            let ty = self.tree(&entry.value, &inner, scope, added);
            let required = place.schema.fields().is_some_and(|fields| fields.required.contains(name));
            if required && matches!(ty, Some(Type::Optional(_))) {
                let message = format!("{} needs `{name}`, and this may leave it out", place.said());
                let fault = Diagnostic::warning("missing-field", message, self.at(entry.value.span));
                self.found.push(
                    fault.help("say what an absent value means with `.orValue(…)`, or give the resource a `when`"),
                );
            }
            let of_metadata = place.path == "metadata" || place.path.ends_with(".metadata");
            // Pod templates and selectors inside of the manifest too, as far as their kind is known.
            let is_map = matches!(inner.schema.shape, Shape::Map(_));
            match name.as_str() {
                "labels" | "annotations" if of_metadata && (is_map || place.path == "metadata") => {
                    names::labels(self, &entry.value, name == "labels");
                }
                "matchLabels" if is_map => names::labels(self, &entry.value, true),
                "selector" if is_map && place.path == "spec" => names::labels(self, &entry.value, true),
                _ => {}
            }
        }
        if !computed {
            self.missing(entries, tree, place, added);
        }
    }

    fn computed_key(&mut self, key: &Template, scope: &Scope) {
        let mut part = |expression: &Expression| {
            self.expression(expression, |checker| checker.goes(Goes::Text).text_part(scope));
        };
        match key {
            Template::Literal(_) => {}
            Template::Expression(expression) => part(expression),
            Template::Mixed(pieces) => pieces.iter().for_each(|piece| {
                if let Piece::Expression(expression) = piece {
                    part(expression);
                }
            }),
        }
    }

    fn unknown(&mut self, name: &str, entry: &TreeEntry, place: &Place) {
        let message = format!("{} has no field `{name}`", place.said());
        let fault = Diagnostic::error("unknown-field", message, self.at(entry.key_span));
        let fields = place.schema.fields();
        let names = || fields.into_iter().flat_map(|fields| fields.known.iter());
        let similar = did_you_mean(name, names().map(|(name, _)| name.as_str()));
        // One level too high or too low is the other common slip.
        let below = || {
            let has = |field: &Schema| field.fields().is_some_and(|fields| fields.known.contains_key(name));
            let owner = names().find(|(known, field)| *known != "status" && has(&field.get()));
            owner.map(|(owner, _)| owner.clone())
        };
        self.found.push(match (similar, below()) {
            (Some(similar), _) => fault.help(format!("did you mean `{similar}`?")),
            (None, Some(owner)) => fault.help(format!("it belongs under `{owner}`")),
            (None, None) if names().count() <= 12 => {
                let list = names().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                fault.help(format!("it has {list}"))
            }
            _ => fault,
        });
    }

    fn missing(&mut self, entries: &[TreeEntry], tree: &Tree, place: &Place, added: &BTreeSet<String>) {
        let Some(fields) = place.schema.fields() else { return };
        for name in &fields.required {
            let given = entries.iter().any(|entry| matches!(&entry.key, Template::Literal(key) if key == name));
            let Some(schema) = fields.known.get(name).map(crate::rules::schema::Node::get) else { continue };
            if given || schema.has_default || added.contains(&place.field(name, Arc::default()).path) {
                continue;
            }
            let message = format!("{} needs the field `{name}`", place.said());
            let span = entries.first().map_or(tree.span, |entry| entry.key_span);
            let mut fault = Diagnostic::error("missing-field", message, self.at(span));
            fault = fault.help(match schema.allowed_list() {
                Some(list) => format!("add `{name}`, one of {list}"),
                None => format!("add `{name}`, which is `{}`", schema.describe()),
            });
            self.found.push(fault);
        }
    }

    fn wrong_shape(&mut self, this: &str, tree: &Tree, place: &Place) {
        let wanted = place.schema.describe();
        let message = format!("`{}` must be `{wanted}`, this is {this}", place.path);
        let span = match &tree.kind {
            TreeKind::Map(entries) => entries.first().map_or(tree.span, |entry| entry.key_span),
            TreeKind::List(items) => items.first().map_or(tree.span, |item| item.span),
            _ => tree.span,
        };
        let fault = Diagnostic::error("wrong-type", message, self.at(span));
        self.found.push(match (&place.schema.shape, this) {
            (Shape::List(_), "a map") => fault.help("put `- ` before it to make it the one element of a list"),
            (Shape::String, "a map") => {
                fault.help("for text that looks like this, use a block: `|` after the key, the lines below it indented")
            }
            _ => fault,
        });
    }
}

/// An object's violations as diagnostics, for example objects in files: `span` finds the place of a path.
pub(super) fn as_diagnostics(
    violations: Vec<instance::Violation>,
    locate: &dyn Fn(&[instance::Step], bool) -> crate::diagnostic::Location,
) -> Vec<Diagnostic> {
    let said = |violation: instance::Violation| {
        let at = locate(&violation.path, violation.at_key);
        let fault = if violation.is_warning {
            Diagnostic::warning(violation.code, violation.message, at)
        } else {
            Diagnostic::error(violation.code, violation.message, at)
        };
        match violation.help {
            Some(help) => fault.help(help),
            None => fault,
        }
    };
    violations.into_iter().map(said).collect()
}
