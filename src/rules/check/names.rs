//! Names, labels and annotations: what can be said of them before they are rendered, and children that would want the
//! same name.

use std::collections::BTreeMap;

use super::context::Context;
use crate::diagnostic::{Diagnostic, Location};
use crate::rules::Gvk;
use crate::rules::file::{Resource, RuleSet};
use crate::rules::names;
use crate::rules::suggest::with_article;
use crate::rules::template::{Piece, Template, Tree, TreeKind};

/// The constant parts of labels (or annotations, of which only keys are restricted).
pub(super) fn labels(context: &mut Context<'_>, tree: &Tree, values: bool) {
    let TreeKind::Map(entries) = &tree.kind else { return };
    for entry in entries {
        if let Template::Literal(key) = &entry.key
            && let Some(reason) = bad_key(key)
        {
            let what = if values { "label" } else { "annotation" };
            let fault = Diagnostic::error(
                "bad-label",
                format!("`{key}` cannot be the key of {}: {reason}", with_article(what)),
                context.at(entry.key_span),
            );
            context.found.push(fault.help(
                "a key is letters, digits, `-`, `_` and `.`, at most 63, with a domain and `/` before it if you like",
            ));
        }
        if !values {
            continue;
        }
        let reason = match &entry.value.kind {
            TreeKind::Constant(value) => value.as_str().and_then(|text| bad_value(text, true)),
            TreeKind::Template(Template::Literal(text)) => bad_value(text, true),
            TreeKind::Template(Template::Mixed(pieces)) => pieces.iter().find_map(|piece| match piece {
                Piece::Literal(text) => bad_value(text, false),
                Piece::Expression(_) => None,
            }),
            _ => None,
        };
        if let Some(reason) = reason {
            let fault = Diagnostic::error(
                "bad-label",
                format!("this cannot be the value of a label: {reason}"),
                context.at(entry.value.span),
            );
            context.found.push(fault.help("other values fit into an annotation"));
        }
    }
}

fn bad_key(key: &str) -> Option<String> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if let Some(reason) = prefix.and_then(names::subdomain) {
        return Some(format!("of the part before `/`, {reason}"));
    }
    if name.is_empty() {
        return Some("nothing is left for the name".to_owned());
    }
    bad_value(name, true)
}

/// Why a text cannot be a label's value; a `whole` one also has an end that counts.
fn bad_value(text: &str, whole: bool) -> Option<String> {
    if let Some(c) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        return Some(format!("it contains `{c}`"));
    }
    if text.len() > 63 {
        return Some(format!("it has {} characters, more than 63", text.len()));
    }
    let end = |c: char| !c.is_ascii_alphanumeric();
    (whole && (text.starts_with(end) || text.ends_with(end)))
        .then(|| "it begins or ends with `-`, `_` or `.`".to_owned())
}

/// A child's name as it is written: what decides whether two are the same for every parent.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Written {
    kind: Gvk,
    name: String,
}

/// A resource of one of the rule sets, where its name stands and what it is.
struct Named<'a> {
    set: &'a RuleSet,
    resource: &'a Resource,
    at: Location,
}

/// Children that would have the same name: within a rule set, among rule sets for one kind, among the items of a
/// `forEach`, among all parents of a namespace.
pub(super) fn collisions(sets: &[&RuleSet]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut by_name: BTreeMap<(&Gvk, Written), Vec<Named<'_>>> = BTreeMap::new();
    for set in sets {
        for resource in &set.resources {
            let Some(name) = resource.manifest.get("metadata").and_then(|metadata| metadata.get("name")) else {
                continue;
            };
            let Some(kind) = kind_of(resource) else { continue };
            let at = set.at(name.span);
            alone(set, resource, name, &kind, &mut found);
            let written = Written { kind, name: normal(name) };
            by_name.entry((&set.parent, written)).or_default().push(Named { set, resource, at });
        }
    }
    for ((_, written), same) in by_name {
        let [first, others @ ..] = same.as_slice() else { continue };
        for other in others {
            // Two conditions may exclude each other.
            if first.resource.when.is_some() && other.resource.when.is_some() {
                continue;
            }
            let whose = if std::ptr::eq(first.set, other.set) {
                format!("`{}` and `{}`", first.resource.id.text, other.resource.id.text)
            } else {
                format!(
                    "`{}` of the rule set `{}` and `{}`",
                    first.resource.id.text, first.set.name.text, other.resource.id.text
                )
            };
            let message = format!("{whose} make the same {}", written.kind.kind);
            let fault = Diagnostic::error("same-name", message, other.at.clone());
            found.push(
                fault
                    .related(first.at.clone(), "the same kind and name")
                    .help("give one of them another name, or put what belongs together into one manifest"),
            );
        }
    }
    found
}

/// Whether one resource alone makes the same name twice.
fn alone(set: &RuleSet, resource: &Resource, name: &Tree, kind: &Gvk, found: &mut Vec<Diagnostic>) {
    let mut reads = std::collections::BTreeSet::new();
    let mut computed = false;
    name.each_expression(&mut |expression| {
        computed = true;
        reads.extend(expression.expr.iter().flat_map(|expr| expr.free_identifiers()));
    });
    if let Some(for_each) = &resource.for_each
        && !for_each.names().any(|item| reads.contains(&item.text))
        && (!reads.is_empty() || !computed)
    {
        let item = &for_each.value.text;
        let message = format!("every item of this `forEach` makes {} of the same name", with_article(&kind.kind));
        let fault = Diagnostic::error("same-name", message, set.at(name.span));
        found.push(
            fault
                .related(for_each.over.at(), format!("one child for each `{item}`"))
                .help(format!("put what tells the items apart into the name, such as `${{{item}.name}}`")),
        );
    } else if !computed {
        let message = format!("every {} of a namespace would make this {}", set.parent.kind, kind.kind);
        let fault = Diagnostic::warning("constant-name", message, set.at(name.span));
        found.push(
            fault
                .label("the name is the same for all of them")
                .help("begin it with the parent's name: `${self.metadata.name}-…`"),
        );
    }
}

/// The kind that a manifest names by constants.
pub(super) fn kind_of(resource: &Resource) -> Option<Gvk> {
    let text = |field: &str| resource.manifest.get(field).and_then(Tree::constant_text);
    names::gvk(text("apiVersion")?, text("kind")?)
}

/// A name with the blanks in its expressions taken out.
fn normal(name: &Tree) -> String {
    let expression = |source: &str| format!("\0{}\0", source.split_whitespace().collect::<String>());
    match &name.kind {
        TreeKind::Constant(value) => value.as_str().unwrap_or_default().to_owned(),
        TreeKind::Template(Template::Literal(text)) => text.clone(),
        TreeKind::Template(Template::Expression(whole)) => expression(whole.source()),
        TreeKind::Template(Template::Mixed(pieces)) => pieces
            .iter()
            .map(|piece| match piece {
                Piece::Literal(text) => text.clone(),
                Piece::Expression(inner) => expression(inner.source()),
            })
            .collect(),
        TreeKind::List(_) | TreeKind::Map(_) => String::new(),
    }
}
