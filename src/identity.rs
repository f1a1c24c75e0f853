//! Who belongs to whom: the marks that the engine puts on every child, and how it reads them back. Pure.
//!
//! A child carries a controller owner reference to its parent (unless its rule says `onDelete: keep`), the label
//! `app.kubernetes.io/managed-by`, a label that names the parent, and an annotation that names rule set and resource.
//! These keys and the field manager are an interface: changing one orphans children in clusters that run an older version.

use std::hash::Hasher;

use serde_json::{Map, Value, json};
use siphasher::sip::SipHasher13;

use crate::fingerprint::{self, ListKinds};
use crate::rules::{Child, Gvk, OnDelete, OnDrift, OnRemove};

/// Field manager of every write, and the value of the managed-by label.
pub const MANAGER: &str = "network-operator";
/// Set on every child; the informers of children select by it.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// On every child: `RULESET/ID` or `RULESET/ID[ITEM]`, the resource in the rules that made it.
pub const SOURCE: &str = "rules.samplecrd.k8s.io/source";
/// On a child whose rule says `onRemove: keep`, since the rule may be gone when the question comes up.
pub const ON_REMOVE: &str = "rules.samplecrd.k8s.io/on-remove";

/// On a child whose rule says `onDrift: report`: a hash of what the rule wants, so that a restarted operator can still tell
/// a rule edit from someone else's edit.
pub const INTENT: &str = "rules.samplecrd.k8s.io/intent";

/// Longest value of a label, <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/>.
const LABEL_MAX: usize = 63;

/// A parent object, as far as its children need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its kind.
    pub gvk: Gvk,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: a parent of the same name made later is another one.
    pub uid: String,
}

/// The key of the label that names the parent: `GROUP/KIND` in lower case, such as `samplecrd.k8s.io/network`.
pub fn parent_label_key(parent: &Gvk) -> String {
    let kind = parent.kind.to_ascii_lowercase();
    if parent.group.is_empty() { kind } else { format!("{}/{kind}", parent.group) }
}

/// The value of that label: the parent's name, or, where that is longer than a label may be, its beginning and a hash of
/// all of it. Equal names give equal values, different names different ones.
pub fn parent_label_value(name: &str) -> String {
    if name.len() <= LABEL_MAX {
        return name.to_owned();
    }
    let mut hasher = SipHasher13::new();
    hasher.write(name.as_bytes());
    // 12 hex digits: two names that also share their first 50 characters clash once in 2^48.
    let suffix = format!("{:012x}", hasher.finish() >> 16);
    let head: String = name.chars().take(LABEL_MAX - suffix.len() - 1).collect();
    format!("{}-{suffix}", head.trim_end_matches(['-', '.', '_']))
}

/// The value of the [`SOURCE`] annotation.
pub fn source(rule_set: &str, id: &str, item: &str) -> String {
    if item.is_empty() { format!("{rule_set}/{id}") } else { format!("{rule_set}/{id}[{item}]") }
}

/// Splits a [`SOURCE`] value into rule set, id and item.
pub fn parse_source(source: &str) -> Option<(&str, &str, &str)> {
    let (rule_set, rest) = source.split_once('/')?;
    match rest.split_once('[') {
        Some((id, item)) => Some((rule_set, id, item.strip_suffix(']')?)),
        None => Some((rule_set, rest, "")),
    }
}

/// Adds the engine's marks to a rendered manifest: what is returned is the body of the apply request.
pub fn mark(manifest: &Value, parent: &Parent, rule_set: &str, child: &Child) -> Value {
    let mut body = manifest.clone();
    let metadata = object_at(&mut body, "metadata");
    metadata.insert("namespace".to_owned(), json!(parent.namespace));
    if child.policy.on_delete == OnDelete::Delete {
        let api_version = match parent.gvk.group.as_str() {
            "" => parent.gvk.version.clone(),
            group => format!("{group}/{}", parent.gvk.version),
        };
        metadata.insert(
            "ownerReferences".to_owned(),
            json!([{"apiVersion": api_version, "kind": parent.gvk.kind, "name": parent.name, "uid": parent.uid,
                    "controller": true, "blockOwnerDeletion": true}]),
        );
    }
    let labels = object_in(metadata, "labels");
    labels.insert(MANAGED_BY.to_owned(), json!(MANAGER));
    labels.insert(parent_label_key(&parent.gvk), json!(parent_label_value(&parent.name)));
    let annotations = object_in(metadata, "annotations");
    annotations.insert(SOURCE.to_owned(), json!(source(rule_set, &child.id, &child.item)));
    if child.policy.on_remove == OnRemove::Keep {
        annotations.insert(ON_REMOVE.to_owned(), json!("keep"));
    }
    if child.policy.on_drift == OnDrift::Report {
        let intent = intent(&body);
        object_in(object_at(&mut body, "metadata"), "annotations").insert(INTENT.to_owned(), json!(intent));
    }
    body
}

/// The value of the [`INTENT`] annotation for a body that does not have it yet.
fn intent(body: &Value) -> String {
    fingerprint::of_desired(body, &ListKinds::default()).to_string()
}

fn object_at<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => object_in(map, key),
        _ => unreachable!("made an object above"),
    }
}

fn object_in<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let slot = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(inner) => inner,
        _ => unreachable!("made an object above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_give_different_legal_labels_even_when_their_beginnings_are_equal() {
        let base = "a".repeat(52);
        let one = parent_label_value(&format!("{base}.{}-one", "b".repeat(190)));
        let two = parent_label_value(&format!("{base}.{}-two", "b".repeat(190)));
        assert_ne!(one, two);
        for name in
            [&"n".repeat(253), &format!("{}.{}", "a".repeat(49), "b".repeat(100)), &format!("{}-", "a".repeat(63))]
        {
            let value = parent_label_value(name);
            assert!(value.len() <= 63, "{value}");
            assert!(value.ends_with(|c: char| c.is_ascii_alphanumeric()), "{value}");
        }
        assert_eq!(parent_label_value("example-network"), "example-network");
    }

    #[test]
    fn a_source_reads_back_as_it_was_written() {
        for (id, item) in [("config", ""), ("subnet", "a"), ("subnet", "a/b[0]")] {
            assert_eq!(parse_source(&source("network", id, item)), Some(("network", id, item)));
        }
        assert_eq!(parse_source("nonsense"), None);
    }
}
