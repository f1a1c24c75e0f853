//! What must hold of every manifest whatever its kind: the engine has to know which object it is, and a rule may not
//! write what the engine or the API server writes.

use super::Gvk;
use super::file::{Patch, Resource, RuleSet};
use super::names;
use super::template::{Piece, Template, Tree, TreeEntry, TreeKind};
use crate::diagnostic::{Diagnostic, Span};

/// Label that says who writes the object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Prefix of the annotations by which the engine finds its children again.
pub const OWN_PREFIX: &str = "rules.samplecrd.k8s.io/";

/// Fields of `metadata` that a rule may not give, and why.
const OWNED: &[(&str, &str)] = &[
    ("namespace", "a child lives in its parent's namespace; an owner elsewhere would have it garbage-collected"),
    ("ownerReferences", "the engine sets the owner reference"),
    ("managedFields", "the API server keeps them"),
    ("resourceVersion", "the API server sets it"),
    ("uid", "the API server sets it"),
    ("generation", "the API server sets it"),
    ("creationTimestamp", "the API server sets it"),
    ("deletionTimestamp", "the API server sets it"),
    ("deletionGracePeriodSeconds", "the API server sets it"),
    ("selfLink", "the API server sets it"),
    ("generateName", "a child is found again by its name; give `name`"),
];

/// Why a rule may not write a place in a manifest, given as its keys from the root; `None` if it may.
pub(super) fn owned(parent: &Gvk, path: &[&str]) -> Option<String> {
    match path {
        ["status", ..] => Some("the child's controller writes its status".to_owned()),
        ["metadata", field, ..] if OWNED.iter().any(|(name, _)| name == field) => {
            OWNED.iter().find(|(name, _)| name == field).map(|(_, reason)| (*reason).to_owned())
        }
        ["metadata", "labels" | "annotations", key, ..]
            if *key == MANAGED_BY || key.starts_with(OWN_PREFIX) || is_parent_label(parent, key) =>
        {
            Some("the engine finds its children by it".to_owned())
        }
        _ => None,
    }
}

/// Whether a label is the one that names the parent: `GROUP/KIND` in small letters.
fn is_parent_label(parent: &Gvk, key: &str) -> bool {
    let (group, kind) = key.split_once('/').unwrap_or(("", key));
    group == parent.group && kind == parent.kind.to_ascii_lowercase()
}

/// The kind of a resource's manifest, if it can be told, and every fault of the manifest and its patches that needs
/// no schema.
pub(super) fn check(set: &RuleSet, resource: &Resource, faults: &mut Vec<Diagnostic>) -> Option<Gvk> {
    let manifest = &resource.manifest;
    let gvk = kind(set, resource, faults);
    match manifest.entry("metadata") {
        None => faults.push(
            Diagnostic::error("missing-field", "the manifest needs `metadata.name`", set.at(first(manifest)))
                .help("add `metadata: {name: \"${self.metadata.name}-NAME\"}`"),
        ),
        Some(entry) => metadata(set, entry, gvk.as_ref(), faults),
    }
    if let Some(entry) = manifest.entry("status") {
        refuse(set, entry.key_span, "status", "the child's controller writes its status", faults);
    }
    for patch in &resource.patches {
        check_patch(set, patch, faults);
    }
    gvk
}

fn kind(set: &RuleSet, resource: &Resource, faults: &mut Vec<Diagnostic>) -> Option<Gvk> {
    let mut text = |field: &'static str, example: &str| {
        let Some(entry) = resource.manifest.entry(field) else {
            faults.push(
                Diagnostic::error(
                    "missing-field",
                    format!("the manifest needs `{field}`"),
                    set.at(first(&resource.manifest)),
                )
                .help(format!("add `{field}: {example}`")),
            );
            return None;
        };
        if let Some(text) = entry.value.constant_text() {
            return Some((text, entry.value.span));
        }
        faults.push(
            Diagnostic::error(
                "kind-not-constant",
                format!("`{field}` must be constant text"),
                set.at(entry.value.span),
            )
            .label("the engine has to know which kinds to watch before there is any parent")
            .help("write one resource per kind, each with a `when`"),
        );
        None
    };
    let api_version = text("apiVersion", "v1");
    let kind = text("kind", "ConfigMap");
    let ((api_version, version_span), (kind, kind_span)) = (api_version?, kind?);
    let gvk = names::gvk(api_version, kind);
    if gvk.is_none() {
        let (field, text, span, help) = if names::is_kind(kind) {
            ("apiVersion", api_version, version_span, "write `group/version`, or `v1` for the core group")
        } else {
            ("kind", kind, kind_span, "a kind begins with a capital letter: `ConfigMap`")
        };
        faults
            .push(Diagnostic::error("bad-kind", format!("`{text}` is not a valid `{field}`"), set.at(span)).help(help));
    }
    gvk
}

fn metadata(set: &RuleSet, entry: &TreeEntry, gvk: Option<&Gvk>, faults: &mut Vec<Diagnostic>) {
    let TreeKind::Map(fields) = &entry.value.kind else {
        faults.push(
            Diagnostic::error("wrong-type", "`metadata` of a manifest is a mapping", set.at(entry.value.span))
                .help("write `metadata: {name: …}`"),
        );
        return;
    };
    match entry.value.entry("name") {
        None => faults.push(
            Diagnostic::error("missing-field", "the manifest needs `metadata.name`", set.at(entry.key_span))
                .help("add `name: \"${self.metadata.name}-NAME\"`"),
        ),
        Some(name) => self::name(set, &name.value, gvk, faults),
    }
    for field in fields {
        let Template::Literal(key) = &field.key else { continue };
        if let Some(reason) = owned(&set.parent, &["metadata", key]) {
            refuse(set, field.key_span, &format!("metadata.{key}"), &reason, faults);
        }
        let TreeKind::Map(values) = &field.value.kind else { continue };
        for value in values {
            let Template::Literal(label) = &value.key else { continue };
            if let Some(reason) = owned(&set.parent, &["metadata", key, label]) {
                refuse(set, value.key_span, &format!("metadata.{key}.{label}"), &reason, faults);
            }
        }
    }
}

fn refuse(set: &RuleSet, span: Span, field: &str, reason: &str, faults: &mut Vec<Diagnostic>) {
    faults.push(
        Diagnostic::error("engine-owned", format!("a rule may not give `{field}`"), set.at(span))
            .label(reason)
            .help("remove it"),
    );
}

/// What can be said of a name before it is rendered.
fn name(set: &RuleSet, name: &Tree, gvk: Option<&Gvk>, faults: &mut Vec<Diagnostic>) {
    let Some(gvk) = gvk else { return };
    let fault = match &name.kind {
        TreeKind::Constant(value) => match value.as_str() {
            Some(text) => {
                names::of_object(gvk, text).map(|reason| format!("`{text}` cannot name a {}: {reason}", gvk.kind))
            }
            None => Some("`metadata.name` is text".to_owned()),
        },
        TreeKind::Template(Template::Mixed(pieces)) if gvk.group != "rbac.authorization.k8s.io" => {
            let illegal = |c: &char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'));
            pieces.iter().find_map(|piece| match piece {
                Piece::Literal(text) => text
                    .chars()
                    .find(illegal)
                    .map(|c| format!("a {} can never have this name, because of `{c}`", gvk.kind)),
                Piece::Expression(_) => None,
            })
        }
        TreeKind::Template(_) => None,
        TreeKind::List(_) | TreeKind::Map(_) => Some("`metadata.name` is text".to_owned()),
    };
    if let Some(message) = fault {
        faults.push(Diagnostic::error("bad-name", message, set.at(name.span)).help(
            "names are small letters, digits, `-` and, for most kinds, `.`; they begin and end with a letter or digit",
        ));
    }
}

fn check_patch(set: &RuleSet, patch: &Patch, faults: &mut Vec<Diagnostic>) {
    // `test` and `copy`'s source only look; everything else writes.
    let writes = (patch.op != super::file::Op::Test).then_some(&patch.path);
    let takes = (patch.op == super::file::Op::Move).then_some(patch.from.as_ref()).flatten();
    for pointer in writes.into_iter().chain(takes) {
        let keys: Vec<String> =
            pointer.text.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let reason = match keys.as_slice() {
            [] => Some("the manifest as a whole names the kind; patch the fields below it".to_owned()),
            ["apiVersion" | "kind", ..] => Some("the engine has to know which kinds to watch".to_owned()),
            keys => owned(&set.parent, keys),
        };
        if let Some(reason) = reason {
            faults.push(
                Diagnostic::error(
                    "engine-owned",
                    format!("a patch may not write `{}`", pointer.text),
                    set.at(pointer.span),
                )
                .label(reason)
                .help("remove the patch"),
            );
        }
    }
}

/// Where messages about a whole manifest point.
fn first(manifest: &Tree) -> Span {
    match &manifest.kind {
        TreeKind::Map(entries) => entries.first().map_or(manifest.span, |entry| entry.key_span),
        TreeKind::Constant(_) | TreeKind::Template(_) | TreeKind::List(_) => manifest.span,
    }
}
