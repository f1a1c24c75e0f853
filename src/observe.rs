//! From an object as the API server sends it to what the store keeps of it. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use crate::fingerprint::{self, Fingerprint, ListKinds};
use crate::identity::{INTENT, MANAGER, ON_REMOVE, SOURCE, parent_label_key, parse_source};
use crate::kinds::{Kind, KindId};
use crate::plan::Applied;
use crate::rules::{Program, ReadPath};
use crate::store::{ChildRecord, ParentRecord, Version};

/// What children are observed for: the label keys of the parent kinds, and the fields that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interest {
    /// Label key → parent kind.
    pub parents: BTreeMap<String, KindId>,
    /// `RULESET/ID` → fields.
    pub reads: BTreeMap<String, Vec<ReadPath>>,
}

impl Interest {
    /// Adds what a program whose parents are of this kind wants to know.
    pub fn add(&mut self, program: &Program, parent: KindId) {
        self.parents.insert(parent_label_key(program.parent()), parent);
        for (id, paths) in program.reads() {
            let known = self.reads.entry(format!("{}/{id}", program.name())).or_default();
            known.extend(paths.iter().filter(|path| !known.contains(path)).cloned().collect::<Vec<_>>());
        }
    }
}

/// The store's record of a child; `None` if it carries no parent's label. `applied` is the body that this object is the
/// answer to, if it is one; it is hashed after the object, which may have shown that one of its lists is associative.
pub fn child(object: DynamicObject, kind: &Kind, interest: &Interest, applied: Option<&Value>) -> Option<ChildRecord> {
    let metadata = object.metadata;
    let labels = metadata.labels.as_ref()?;
    let parent = interest.parents.iter().find_map(|(key, kind)| Some((*kind, Arc::from(labels.get(key)?.as_str()))))?;
    let annotation = |key: &str| metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
    let source: Box<str> = annotation(SOURCE).map(String::as_str).unwrap_or_default().into();
    let body = with_metadata(object.data, &metadata);
    let projection = own_fields(&metadata, None).map(|owned| fingerprint::of_observed(owned, &body, &kind.lists));
    let reads = parse_source(&source)
        .and_then(|(rule_set, id, _)| interest.reads.get(&format!("{rule_set}/{id}")))
        .filter(|paths| !paths.is_empty())
        .map(|paths| Box::new(pick(&body, paths)));
    Some(ChildRecord {
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        version: Version::parse(metadata.resource_version.as_deref()),
        owner: controller_uid(&metadata).map(Arc::from),
        parent,
        kept: annotation(ON_REMOVE).is_some_and(|word| word == "keep"),
        deleting: metadata.deletion_timestamp.is_some().then(|| metadata.finalizers.clone().unwrap_or_default().into()),
        applied: applied
            .zip(projection)
            .map(|(body, projection)| Applied { desired: fingerprint::of_desired(body, &kind.lists), projection }),
        intent: annotation(INTENT).map(|intent| intent.as_str().into()),
        yielded: None,
        projection,
        reads,
        source,
    })
}

/// The store's record of a parent. `applied_status` is the status that this object is the answer to, if it is one.
pub fn parent(
    object: DynamicObject,
    kind: &Kind,
    applied_status: Option<&Value>,
) -> Result<ParentRecord, serde_json::Error> {
    let mut metadata = object.metadata;
    let managed = metadata.managed_fields.take();
    let mut data = object.data;
    // Servers before 1.22 do not say that an entry is about the status; nothing else of a parent is ever applied.
    let about_status = |entry: &&ManagedFieldsEntry| is_own(entry, Some("status")) || is_own(entry, None);
    let status_fields = managed.iter().flatten().find(about_status).and_then(|entry| entry.fields_v1.as_ref());
    let status = status_fields.map(|owned| fingerprint::of_observed(&owned.0, &data, &kind.lists));
    let held = data.as_object_mut().and_then(|data| data.remove("status"));
    let mut intent_of = with_metadata(data.clone(), &metadata);
    intent_of["metadata"]["deletionTimestamp"] = json!(metadata.deletion_timestamp);
    let intent = fingerprint::of_desired(&intent_of, &ListKinds::default());
    if let (Some(status), Some(data)) = (held, data.as_object_mut()) {
        data.insert("status".to_owned(), status);
    }
    let mut whole = Map::new();
    whole.insert("apiVersion".to_owned(), json!(kind.resource.api_version));
    whole.insert("kind".to_owned(), json!(kind.resource.kind));
    whole.insert("metadata".to_owned(), serde_json::to_value(&metadata)?);
    if let Value::Object(data) = data {
        whole.extend(data);
    }
    Ok(ParentRecord {
        json: serde_json::to_vec(&whole)?.into(),
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        version: Version::parse(metadata.resource_version.as_deref()),
        deleting: metadata.deletion_timestamp.is_some(),
        intent,
        status,
        status_applied: applied_status
            .zip(status)
            .map(|(applied, projection)| Applied { desired: of_status(applied, kind), projection }),
    })
}

/// Hash of a status as it is applied.
pub fn of_status(status: &Value, kind: &Kind) -> Fingerprint {
    fingerprint::of_desired(&json!({ "status": status }), &kind.lists)
}

/// UID of the owner that is the controller.
pub fn controller_uid(metadata: &ObjectMeta) -> Option<&str> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}

fn is_own(entry: &ManagedFieldsEntry, subresource: Option<&str>) -> bool {
    entry.manager.as_deref() == Some(MANAGER)
        && entry.operation.as_deref() == Some("Apply")
        && entry.subresource.as_deref().filter(|subresource| !subresource.is_empty()) == subresource
}

fn own_fields<'a>(metadata: &'a ObjectMeta, subresource: Option<&str>) -> Option<&'a Value> {
    let entries = metadata.managed_fields.as_deref().unwrap_or_default();
    entries
        .iter()
        .find(|entry| is_own(entry, subresource))
        .and_then(|entry| entry.fields_v1.as_ref())
        .map(|fields| &fields.0)
}

/// The object with those parts of its metadata that an apply can own.
fn with_metadata(mut data: Value, metadata: &ObjectMeta) -> Value {
    let own = json!({
        "labels": metadata.labels, "annotations": metadata.annotations,
        "ownerReferences": metadata.owner_references, "finalizers": metadata.finalizers,
        "name": metadata.name, "namespace": metadata.namespace,
    });
    if !data.is_object() {
        data = Value::Object(Map::new());
    }
    data["metadata"] = own;
    data
}

/// Only the fields at `paths`; a path that ends inside a list keeps the whole list.
fn pick(object: &Value, paths: &[ReadPath]) -> Value {
    let mut picked = Value::Object(Map::new());
    for path in paths {
        copy_path(object, &mut picked, path);
    }
    picked
}

fn copy_path(from: &Value, to: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        *to = from.clone();
        return;
    };
    match (from.get(first), from.is_object()) {
        (Some(inner), true) => {
            if !to.is_object() {
                return; // An outer path has taken all of it already.
            }
            let slot = &mut to[first.as_str()];
            if slot.is_null() && !rest.is_empty() && inner.is_object() {
                *slot = Value::Object(Map::new());
            }
            copy_path(inner, slot, rest);
        }
        (_, false) => *to = from.clone(),
        (None, true) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<ReadPath> {
        paths.iter().map(|path| path.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect()).collect()
    }

    #[test]
    fn only_what_rules_read_is_kept_of_a_child() {
        let object =
            json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}], "type": "x"}, "status": {"a": 1}});
        assert_eq!(pick(&object, &paths(&["spec.clusterIP"])), json!({"spec": {"clusterIP": "10.0.0.1"}}));
        assert_eq!(
            pick(&object, &paths(&["spec.ports.port", "status.none"])),
            json!({"spec": {"ports": [{"port": 80}]}, "status": {}})
        );
        assert_eq!(pick(&object, &paths(&["spec", "spec.type"])), json!({"spec": object["spec"]}));
        assert_eq!(pick(&object, &paths(&[""])), object);
    }
}
