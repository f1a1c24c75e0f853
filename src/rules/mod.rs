//! Rules: from YAML text to what a parent's children should be. Pure: no cluster, no clock, no async.
//!
//! In the order of the flow:
//!
//! | module | what happens there |
//! |---|---|
//! | `yaml` | text → a tree of nodes that know where they stand |
//! | `file` | tree → a [`RuleSet`](file::RuleSet), the rule file as written |
//! | `template` | strings with `${…}` → literal pieces and expressions |
//! | `expr`, `functions` | CEL: parsing, the library of functions, bounded evaluation |
//! | `types`, `schema` | what expressions and fields can be |
//! | `check` | is the rule set right? |
//! | `compile` | rule set → [`Program`], everything parsed once |
//! | `render` | program + parent (+ children as the cluster has them) → [`Rendered`] |

pub mod check;
pub mod compile;
mod evaluate;
pub mod expr;
pub mod fields;
pub mod file;
pub mod functions;
mod graph;
pub mod manifest;
pub mod names;
mod patch;
pub mod provenance;
pub mod record;
mod references;
mod render;
pub mod schema;
pub mod source;
pub mod suggest;
pub mod template;
pub mod types;
pub mod yaml;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

pub use compile::Program;

use crate::diagnostic::{Location, one_line};

/// API group, version and kind of an object; the group is empty for the core group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// API group, `""` for core.
    pub group: String,
    /// API version within the group.
    pub version: String,
    /// Kind.
    pub kind: String,
}

/// What is done where an object, the rule and the cluster disagree: the six `on…` words of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Policy {
    pub on_exists: OnExists,
    pub on_drift: OnDrift,
    pub on_remove: OnRemove,
    pub on_delete: OnDelete,
    pub on_immutable: OnImmutable,
    pub on_conflict: OnConflict,
}

/// An object of the child's name is there and is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExists {
    /// Leave it alone and say so.
    #[default]
    Refuse,
    /// Take it over.
    Adopt,
}

/// Someone changed a field that the rule renders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDrift {
    /// Write it back.
    #[default]
    Correct,
    /// Leave it and say so.
    Report,
}

/// The rules no longer produce the child: rule gone, `when` false, item gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnRemove {
    /// Delete it.
    #[default]
    Prune,
    /// Let it stay.
    Keep,
}

/// The parent is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDelete {
    /// The garbage collector deletes the child, through its owner reference.
    #[default]
    Delete,
    /// The child has no owner reference and stays.
    Keep,
}

/// The change touches a field that the API server does not let anyone change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnImmutable {
    /// Say so.
    #[default]
    Report,
    /// Delete the child and create it anew.
    Recreate,
}

/// Another field manager owns a field that the rule renders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Take the field.
    #[default]
    Force,
    /// Leave it to the other and say so.
    Yield,
}

/// A field path that some rule reads of a child; each step is a key, list items are `[]`-less: reading into a list keeps the whole list.
pub type ReadPath = Vec<String>;

/// The children of one parent as the cluster has them, for `resources.ID` and `readyWhen`. Only fields that some rule
/// reads need to be in the values (see [`Program::reads`]).
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// resource id → item key (`""` without `forEach`) → object.
    pub resources: BTreeMap<String, BTreeMap<String, Value>>,
}

/// What the rules make of one parent.
#[derive(Debug, Clone, Default)]
pub struct Rendered {
    /// Messages of the validations that failed. When there is any, `children` and `status` are empty and the children in
    /// the cluster stay as they are.
    pub invalid: Vec<Fault>,
    /// Every child that the rules speak of, in dependency order. A child whose `when` is false is not in it.
    pub children: Vec<Child>,
    /// The fields that the rule set's `status` mapping gives, as an object.
    pub status: serde_json::Map<String, Value>,
    /// Faults in the `status` mapping.
    pub status_faults: Vec<Fault>,
}

/// One child that the rules speak of.
#[derive(Debug, Clone)]
pub struct Child {
    /// The resource's id in the rule set.
    pub id: String,
    /// The `forEach` item's key; empty without `forEach`, and where the items or their keys could not be found out: then
    /// the child stands for every item of the resource.
    pub item: String,
    /// The kind. Known even when the manifest could not be rendered.
    pub gvk: Gvk,
    /// The six `on…` words.
    pub policy: Policy,
    /// Where the resource stands in the rule file.
    pub at: Location,
    /// What became of it.
    pub state: ChildState,
    /// `readyWhen` of the observed object: `None` while it is not observed, an error when the expression failed.
    pub ready: Option<Result<bool, Fault>>,
}

/// What rendering made of a child.
#[derive(Debug, Clone)]
pub enum ChildState {
    /// The manifest to apply: what the rule says plus nothing (the engine adds namespace, owner reference and labels).
    /// It has `apiVersion`, `kind` and `metadata.name`, and no null anywhere.
    Desired(Value),
    /// It cannot be rendered before these other resources are in the cluster.
    Waiting(Vec<String>),
    /// It cannot be rendered; the last good child stays.
    Failed(Fault),
}

/// An error while rendering one parent, and the place in the rule file that it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// One line, no full stop.
    pub message: String,
    /// Where in the rule file.
    pub at: Location,
}

impl Fault {
    /// A fault; the message is brought onto one line of bounded length, for what it quotes may be anything.
    pub fn new(message: String, at: Location) -> Self {
        Fault { message: one_line(message), at }
    }
}
