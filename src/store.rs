//! The local store: what the informers know of the cluster, kept small.
//!
//! Parents are kept as compact JSON text, since they are rendered from. Children are kept as fingerprints
//! (see [`crate::fingerprint`]): a few hundred bytes each, whatever the size of the object.
//!
//! Two writers feed it: the informers with watch events, and the reconciler with the answers to its own writes. An event
//! that is older than what is known is ignored, so an answer is never undone by the echo of an earlier state.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::api_error::FieldConflict;
use crate::fingerprint::Fingerprint;
use crate::identity::{parent_label_value, parse_source};
use crate::kinds::{KindId, Kinds};
use crate::plan::{Applied, Existing};
use crate::rules::Observed;

/// Names an object: kind, namespace, name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its kind.
    pub kind: KindId,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl Key {
    /// A key from its parts.
    pub fn new(kind: KindId, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }
}

/// A parent as the store keeps it.
#[derive(Debug, Clone)]
pub struct ParentRecord {
    /// The object as JSON text, without `managedFields`.
    pub json: Box<[u8]>,
    /// UID.
    pub uid: Arc<str>,
    /// Its `resourceVersion`.
    pub version: Version,
    /// Being deleted.
    pub deleting: bool,
    /// Hash of everything but status and bookkeeping: what a reconcile depends on.
    pub intent: Fingerprint,
    /// Projection of the status on the fields that we own.
    pub status: Option<Fingerprint>,
    /// What our last status apply sent and was answered with.
    pub status_applied: Option<Applied>,
}

/// A child as an informer or an answer shows it.
#[derive(Debug, Clone)]
pub struct ChildRecord {
    /// UID.
    pub uid: Box<str>,
    /// Its `resourceVersion`.
    pub version: Version,
    /// UID of the controller owner.
    pub owner: Option<Arc<str>>,
    /// Kind and label value of the parent, from its label.
    pub parent: (KindId, Arc<str>),
    /// See [`Existing::source`].
    pub source: Box<str>,
    /// See [`Existing::kept`].
    pub kept: bool,
    /// See [`Existing::deleting`].
    pub deleting: Option<Box<[String]>>,
    /// See [`Existing::intent`].
    pub intent: Option<Box<str>>,
    /// See [`Existing::yielded`].
    pub yielded: Option<Box<[FieldConflict]>>,
    /// See [`Existing::projection`].
    pub projection: Option<Fingerprint>,
    /// See [`Existing::applied`].
    pub applied: Option<Applied>,
    /// The fields that some rule reads, if any does.
    pub reads: Option<Box<Value>>,
}

/// A `resourceVersion`. Text to the API; comparable where it is a number (KEP-5504: it always is for built-in types and CRDs).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Version {
    /// None given.
    #[default]
    None,
    /// A number.
    Number(u64),
    /// Something else, from an aggregated API server.
    Text(Box<str>),
}

impl Version {
    /// From the field.
    pub fn parse(text: Option<&str>) -> Self {
        match text {
            None => Self::None,
            Some(text) => text.parse().map_or_else(|_| Self::Text(text.into()), Self::Number),
        }
    }

    /// Whether `self` is known to be older than, or the same as, `known`.
    pub fn is_not_newer_than(&self, known: &Self) -> bool {
        match (self, known) {
            (Self::Number(new), Self::Number(old)) => new <= old,
            (Self::Text(new), Self::Text(old)) => new == old,
            _ => false,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[derive(Default)]
struct State {
    parents: HashMap<Key, ParentRecord>,
    children: HashMap<Key, ChildRecord>,
    /// (parent kind, namespace, label value) → its children.
    by_parent: HashMap<Key, BTreeSet<Key>>,
    /// The same key → the parent's name, for names that do not fit a label.
    long_names: HashMap<Key, Arc<str>>,
}

/// See the module.
#[derive(Default)]
pub struct Store(Mutex<State>);

/// What the store knows before a list begins, to find what the list no longer has.
#[derive(Debug, Default)]
pub struct Sweep(HashMap<Key, Box<str>>);

impl Store {
    /// Takes in a parent. True if a reconcile is due.
    pub fn parent_seen(&self, key: &Key, record: ParentRecord, listed: bool) -> bool {
        let mut state = self.lock();
        let label = parent_label_value(&key.name);
        if *label != *key.name {
            state.long_names.insert(Key::new(key.kind, &key.namespace, &label), key.name.clone());
        }
        let Some(known) = state.parents.get_mut(key) else {
            state.parents.insert(key.clone(), record);
            return true;
        };
        if known.uid != record.uid {
            *known = record;
            return true;
        }
        if !listed && record.version.is_not_newer_than(&known.version) {
            return false;
        }
        let due = known.intent != record.intent || known.status != record.status || known.deleting != record.deleting;
        let status_applied = known.status_applied;
        *known = ParentRecord { status_applied, ..record };
        due
    }

    /// Takes in the answer to our own status apply. True if it shows an edit that no event has told of yet: that event will be
    /// older than this answer and ignored, so the reconcile that it asks for is due now.
    #[must_use]
    pub fn parent_answered(&self, key: &Key, record: ParentRecord) -> bool {
        let mut state = self.lock();
        let Some(known) = state.parents.get_mut(key).filter(|known| known.uid == record.uid) else { return false };
        if record.version.is_not_newer_than(&known.version) {
            // The watch was faster. If it has seen just this write, what it was answered with is worth knowing.
            if known.version == record.version {
                known.status_applied = record.status_applied;
            }
            return false;
        }
        let due = known.intent != record.intent || known.deleting != record.deleting;
        *known = record;
        due
    }

    /// A parent is gone. Returns what was known of it.
    pub fn parent_gone(&self, key: &Key) -> Option<ParentRecord> {
        let mut state = self.lock();
        let label = Key::new(key.kind, &key.namespace, &parent_label_value(&key.name));
        state.long_names.remove(&label);
        state.parents.remove(key)
    }

    /// A parent.
    pub fn parent(&self, key: &Key) -> Option<ParentRecord> {
        self.lock().parents.get(key).cloned()
    }

    /// The keys of all parents.
    pub fn all_parents(&self) -> Vec<Key> {
        self.lock().parents.keys().cloned().collect()
    }

    /// Takes in a child from a watch. Returns the parent to reconcile, if that is due.
    pub fn child_seen(&self, key: &Key, record: ChildRecord, listed: bool) -> Option<Key> {
        let mut state = self.lock();
        let parent = record.parent.clone();
        let due = match state.children.get_mut(key) {
            Some(known) if known.uid == record.uid => {
                if !listed && record.version.is_not_newer_than(&known.version) {
                    return None;
                }
                let due = known.projection != record.projection
                    || known.owner != record.owner
                    || known.deleting != record.deleting
                    || known.reads != record.reads
                    || known.source != record.source;
                let old_parent = known.parent.clone();
                let (yielded, applied) = (known.yielded.take(), known.applied);
                *known = ChildRecord { yielded, applied, ..record };
                if old_parent != parent {
                    state.unlink(&old_parent, key);
                }
                due
            }
            Some(known) => {
                let old_parent = known.parent.clone();
                *known = record;
                if old_parent != parent {
                    state.unlink(&old_parent, key);
                }
                true
            }
            None => {
                state.children.insert(key.clone(), record);
                true
            }
        };
        state.link(&parent, key);
        if due { state.parent_of(&parent, &key.namespace) } else { None }
    }

    /// Takes in the answer to our own apply of a child.
    pub fn child_answered(&self, key: &Key, record: ChildRecord) {
        let mut state = self.lock();
        let parent = record.parent.clone();
        match state.children.get_mut(key) {
            Some(known)
                if known.uid == record.uid
                    && known.version != record.version
                    && record.version.is_not_newer_than(&known.version) =>
            {
                // The watch was faster and has seen something newer still.
                known.applied = record.applied;
            }
            Some(known) => {
                let old_parent = known.parent.clone();
                *known = record;
                if old_parent != parent {
                    state.unlink(&old_parent, key);
                }
            }
            None => {
                state.children.insert(key.clone(), record);
            }
        }
        state.link(&parent, key);
    }

    /// A child is gone, or no longer carries our marks. Returns its parent.
    pub fn child_gone(&self, key: &Key, uid: Option<&str>) -> Option<Key> {
        let mut state = self.lock();
        if let Some(uid) = uid
            && state.children.get(key).is_some_and(|known| *known.uid != *uid)
        {
            return None;
        }
        let record = state.children.remove(key)?;
        state.unlink(&record.parent, key);
        state.parent_of(&record.parent, &key.namespace)
    }

    /// A delete was accepted for this child.
    pub fn child_deleting(&self, key: &Key, uid: &str) {
        if let Some(record) = self.lock().children.get_mut(key)
            && *record.uid == *uid
            && record.deleting.is_none()
        {
            record.deleting = Some(Box::default());
        }
    }

    /// The children that carry this parent's label, as the planner wants them.
    pub fn children_of(&self, parent: &Key, kinds: &Kinds) -> Vec<Existing> {
        let state = self.lock();
        let label = Key::new(parent.kind, &parent.namespace, &parent_label_value(&parent.name));
        let keys = state.by_parent.get(&label).into_iter().flatten();
        keys.filter_map(|key| {
            let record = state.children.get(key)?;
            Some(Existing {
                gvk: kinds.get(key.kind)?.gvk.clone(),
                name: key.name.to_string(),
                uid: record.uid.to_string(),
                resource_version: record.version.to_string(),
                owner: record.owner.as_deref().map(str::to_owned),
                source: record.source.to_string(),
                kept: record.kept,
                deleting: record.deleting.as_deref().map(<[String]>::to_vec),
                intent: record.intent.as_deref().map(str::to_owned),
                yielded: record.yielded.as_deref().map(<[FieldConflict]>::to_vec).unwrap_or_default(),
                projection: record.projection,
                applied: record.applied,
            })
        })
        .collect()
    }

    /// What the rules of `rule_set` may read of this parent's children.
    pub fn observed(&self, parent: &Key, parent_uid: &str, rule_set: &str) -> Observed {
        let state = self.lock();
        let label = Key::new(parent.kind, &parent.namespace, &parent_label_value(&parent.name));
        let mut observed = Observed::default();
        for key in state.by_parent.get(&label).into_iter().flatten() {
            let Some(record) = state.children.get(key) else { continue };
            if record.owner.as_deref().is_some_and(|owner| owner != parent_uid) || record.deleting.is_some() {
                continue;
            }
            let Some((set, id, item)) = parse_source(&record.source) else { continue };
            if set == rule_set {
                let value = record.reads.as_deref().cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
                observed.resources.entry(id.to_owned()).or_default().insert(item.to_owned(), value);
            }
        }
        observed
    }

    /// How many parents and children are known.
    pub fn len(&self) -> (usize, usize) {
        let state = self.lock();
        (state.parents.len(), state.children.len())
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    /// A list of a kind begins (in one namespace, or in all).
    pub fn sweep(&self, kind: KindId, namespace: Option<&str>) -> Sweep {
        let state = self.lock();
        let here = |key: &Key| key.kind == kind && namespace.is_none_or(|namespace| *key.namespace == *namespace);
        let parents =
            state.parents.iter().filter(|(key, _)| here(key)).map(|(key, record)| (key.clone(), (*record.uid).into()));
        let children =
            state.children.iter().filter(|(key, _)| here(key)).map(|(key, record)| (key.clone(), record.uid.clone()));
        Sweep(parents.chain(children).collect())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sweep {
    /// The list has this object.
    pub fn keep(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// The objects that were known when the list began and that it does not have, with their UIDs: an object of the same name
    /// that was created meanwhile is another one.
    pub fn gone(self) -> impl Iterator<Item = (Key, Box<str>)> {
        self.0.into_iter()
    }
}

impl State {
    fn link(&mut self, parent: &(KindId, Arc<str>), child: &Key) {
        let label = Key { kind: parent.0, namespace: child.namespace.clone(), name: parent.1.clone() };
        self.by_parent.entry(label).or_default().insert(child.clone());
    }

    fn unlink(&mut self, parent: &(KindId, Arc<str>), child: &Key) {
        let label = Key { kind: parent.0, namespace: child.namespace.clone(), name: parent.1.clone() };
        if let Some(children) = self.by_parent.get_mut(&label) {
            children.remove(child);
            if children.is_empty() {
                self.by_parent.remove(&label);
            }
        }
    }

    fn parent_of(&self, parent: &(KindId, Arc<str>), namespace: &Arc<str>) -> Option<Key> {
        let label = Key { kind: parent.0, namespace: namespace.clone(), name: parent.1.clone() };
        let name = self.long_names.get(&label).cloned().unwrap_or_else(|| label.name.clone());
        let key = Key { name, ..label };
        self.parents.contains_key(&key).then_some(key)
    }
}

/// Shares equal strings: ten thousand children of one namespace hold its name once.
#[derive(Debug, Default)]
pub struct Interner(Mutex<HashSet<Arc<str>>>);

impl Interner {
    /// The shared copy of `text`.
    pub fn get(&self, text: &str) -> Arc<str> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = known.get(text) {
            return shared.clone();
        }
        let shared: Arc<str> = text.into();
        known.insert(shared.clone());
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> (Kinds, KindId, KindId) {
        let kinds = Kinds::default();
        let add = |group: &str, kind: &str| {
            let gvk = crate::rules::Gvk { group: group.to_owned(), version: "v1".to_owned(), kind: kind.to_owned() };
            let resource = kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(group, "v1", kind));
            kinds.add(gvk, resource).id
        };
        let (parent, child) = (add("samplecrd.k8s.io", "Network"), add("", "ConfigMap"));
        (kinds, parent, child)
    }

    fn parent(version: u64, intent: &str) -> ParentRecord {
        let hash = |text: &str| {
            crate::fingerprint::of_desired(&serde_json::json!({ "v": text }), &crate::fingerprint::ListKinds::default())
        };
        ParentRecord {
            json: Box::default(),
            uid: "u".into(),
            version: Version::Number(version),
            deleting: false,
            intent: hash(intent),
            status: None,
            status_applied: None,
        }
    }

    fn child(parent: KindId, uid: &str, version: u64, projection: Option<Fingerprint>) -> ChildRecord {
        ChildRecord {
            uid: uid.into(),
            version: Version::Number(version),
            owner: Some("u".into()),
            parent: (parent, "n".into()),
            source: "network/config".into(),
            kept: false,
            deleting: None,
            intent: None,
            yielded: None,
            projection,
            applied: None,
            reads: None,
        }
    }

    #[test]
    fn an_edit_that_first_shows_in_the_answer_to_our_status_write_is_not_lost() {
        let (_, kind, _) = kinds();
        let store = Store::default();
        let key = Key::new(kind, "default", "n");
        assert!(store.parent_seen(&key, parent(1, "old"), false));
        assert!(store.parent_answered(&key, parent(3, "new")), "the edit was version 2, the answer is version 3");
        assert!(!store.parent_seen(&key, parent(2, "new"), false), "and its own event comes too late to be heard");
        assert!(!store.parent_answered(&key, parent(4, "new")));
        assert!(store.parent_seen(&key, parent(5, "newer"), false));
    }

    #[test]
    fn the_echo_of_an_older_state_never_undoes_an_answer_and_a_list_is_believed() {
        let (kinds, parent_kind, child_kind) = kinds();
        let store = Store::default();
        let (key, config) = (Key::new(parent_kind, "default", "n"), Key::new(child_kind, "default", "n-network"));
        store.parent_seen(&key, parent(1, "x"), false);
        let ours = Some(parent(0, "ours").intent);
        store.child_answered(
            &config,
            ChildRecord {
                applied: ours.map(|hash| Applied { desired: hash, projection: hash }),
                ..child(parent_kind, "a", 7, ours)
            },
        );
        assert_eq!(store.child_seen(&config, child(parent_kind, "a", 7, ours), false), None, "our own write");
        assert_eq!(store.child_seen(&config, child(parent_kind, "a", 6, None), false), None, "an older state");
        assert!(store.children_of(&key, &kinds)[0].applied.is_some());
        assert_eq!(
            store.child_seen(&config, child(parent_kind, "a", 8, None), false),
            Some(key.clone()),
            "someone's edit"
        );
        assert_eq!(
            store.child_seen(&config, child(parent_kind, "b", 9, None), false),
            Some(key.clone()),
            "another object"
        );
        assert_eq!(store.child_gone(&config, Some("a")), None, "the deletion of the one before");
        assert_eq!(store.child_gone(&config, Some("b")), Some(key.clone()));
        assert!(store.children_of(&key, &kinds).is_empty());
    }

    #[test]
    fn a_list_takes_away_what_it_does_not_have_and_nothing_else() {
        let (kinds, parent_kind, child_kind) = kinds();
        let store = Store::default();
        let key = Key::new(parent_kind, "default", "n");
        store.parent_seen(&key, parent(1, "x"), false);
        for name in ["kept", "gone", "replaced"] {
            store.child_seen(&Key::new(child_kind, "default", name), child(parent_kind, name, 1, None), false);
        }
        let mut sweep = store.sweep(child_kind, Some("default"));
        sweep.keep(&Key::new(child_kind, "default", "kept"));
        store.child_seen(&Key::new(child_kind, "default", "replaced"), child(parent_kind, "another", 5, None), false);
        for (key, uid) in sweep.gone() {
            store.child_gone(&key, Some(&uid));
        }
        let mut left: Vec<_> = store.children_of(&key, &kinds).into_iter().map(|child| child.name).collect();
        left.sort();
        assert_eq!(left, ["kept", "replaced"]);
    }

    #[test]
    fn a_child_finds_its_parent_also_when_the_name_does_not_fit_a_label() {
        let (_, parent_kind, child_kind) = kinds();
        let store = Store::default();
        let long = "n".repeat(253);
        let key = Key::new(parent_kind, "default", &long);
        store.parent_seen(&key, parent(1, "x"), false);
        let record =
            ChildRecord { parent: (parent_kind, parent_label_value(&long).into()), ..child(parent_kind, "a", 1, None) };
        assert_eq!(store.child_seen(&Key::new(child_kind, "default", "c"), record, false), Some(key));
    }
}
