//! Kinds: every kind that takes part, parent or child, with what the API server said of it.
//!
//! Keys of the store and the queue name a kind by a small number; this registry turns it back into a kind. Entries are
//! only ever added: a kind that is dropped from the rules and comes back is the same kind.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use kube::api::ApiResource;

use crate::fingerprint::ListKinds;
use crate::rules::Gvk;
use crate::rules::schema::Schema;

/// Index of a kind in [`Kinds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId(u16);

/// A kind as the API server serves it.
#[derive(Debug)]
pub struct Kind {
    /// Its number.
    pub id: KindId,
    /// Group, version, kind.
    pub gvk: Gvk,
    /// With the plural name that its URLs use.
    pub resource: ApiResource,
    /// Its associative lists, as far as seen.
    pub lists: Arc<ListKinds>,
    /// Fields of `status` that its schema does not have, as far as the API server has told.
    pub undeclared: RwLock<BTreeSet<String>>,
}

impl Kind {
    /// Takes in the schema: of the fields that an operator fills (`wanted`), those that it lacks are known from now on.
    pub fn learn_status(&self, schema: &Schema, wanted: &[&str]) {
        let Some(status) = schema.field("status") else { return };
        let lacking = wanted.iter().filter(|field| status.field(field).is_none()).map(|field| (*field).to_owned());
        *self.undeclared.write().unwrap_or_else(PoisonError::into_inner) = lacking.collect();
    }

    /// Takes the status fields out that the schema does not have.
    pub fn trim_status(&self, status: &mut serde_json::Value) {
        let undeclared = self.undeclared.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(status) = status.as_object_mut().filter(|_| !undeclared.is_empty()) {
            status.retain(|field, _| !undeclared.contains(field));
        }
    }

    /// Remembers that the schema has no such status field. True if that is news.
    pub fn lacks_status_field(&self, field: &str) -> bool {
        self.undeclared.write().unwrap_or_else(PoisonError::into_inner).insert(field.to_owned())
    }
}

/// The registry.
#[derive(Debug, Default)]
pub struct Kinds(RwLock<Vec<Arc<Kind>>>);

impl Kinds {
    /// The kind, if it is known already.
    pub fn find(&self, gvk: &Gvk) -> Option<Arc<Kind>> {
        self.read().iter().find(|kind| kind.gvk == *gvk).cloned()
    }

    /// The kind of a number.
    pub fn get(&self, id: KindId) -> Option<Arc<Kind>> {
        self.read().get(usize::from(id.0)).cloned()
    }

    /// Adds a kind; a kind that is there already is returned as it is.
    pub fn add(&self, gvk: Gvk, resource: ApiResource) -> Arc<Kind> {
        let mut kinds = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind) = kinds.iter().find(|kind| kind.gvk == gvk) {
            return kind.clone();
        }
        // A rule set has a handful of kinds; 65,536 of them would not fit a rules folder.
        let id = KindId(u16::try_from(kinds.len()).unwrap_or(u16::MAX));
        let kind = Arc::new(Kind { id, gvk, resource, lists: Arc::default(), undeclared: RwLock::default() });
        kinds.push(kind.clone());
        kind
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<Arc<Kind>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}
