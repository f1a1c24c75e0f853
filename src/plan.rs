//! Plan: what is to be done for one parent, as a value. Pure.
//!
//! [`plan`] compares what the rules want with what the store knows of the cluster and returns one [`Step`] a child. The
//! executor does what the steps say and decides nothing; `diff`, the log and the status print the same steps.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::diagnostic::Location;
use crate::fingerprint::{self, Fingerprint, ListKinds};
use crate::identity::{self, Parent};
use crate::rules::{Child, ChildState, Fault, Gvk, OnDrift, Policy, Rendered};

/// A child in the cluster, as the store remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Existing {
    /// Its kind.
    pub gvk: Gvk,
    /// Its name.
    pub name: String,
    /// Its UID, the precondition of every later write.
    pub uid: String,
    /// Its `metadata.resourceVersion` when last seen.
    pub resource_version: String,
    /// UID of its controller owner.
    pub owner: Option<String>,
    /// The [`identity::SOURCE`] annotation; empty if it is missing.
    pub source: String,
    /// It says that it stays when its rule goes ([`identity::ON_REMOVE`]).
    pub kept: bool,
    /// It is being deleted and waits for these finalizers.
    pub deleting: Option<Vec<String>>,
    /// Projection on the fields that we own; `None` where we own nothing on it.
    pub projection: Option<Fingerprint>,
    /// What our last apply in this process sent and was answered with.
    pub applied: Option<Applied>,
}

/// The memory of an apply: this desired hash was answered with that projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// Hash of what was sent.
    pub desired: Fingerprint,
    /// Projection of the answer.
    pub projection: Fingerprint,
}

/// What is to be done with one child.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// It is not there.
    Create(Value),
    /// It is there and the rules want something else than before.
    Change {
        /// What to apply.
        body: Value,
        /// The object it is meant for.
        uid: String,
    },
    /// It is there and someone changed what we own.
    Repair {
        /// What to apply.
        body: Value,
        /// The object it is meant for.
        uid: String,
    },
    /// The rules no longer want it.
    Prune {
        /// The object it is meant for.
        uid: String,
        /// Only if nobody changed it since.
        resource_version: String,
    },
    /// It is as it should be.
    Unchanged,
    /// Nothing is done now, for a reason that passes.
    Held(Hold),
    /// Nothing is done, for a reason that a person must mend.
    Refused(Refusal),
}

/// Why a step is held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// It reads children that are not in the cluster yet.
    Waiting(Vec<String>),
    /// The object is being deleted and these finalizers keep it.
    Deleting(Vec<String>),
    /// The object belongs to a deleted parent of the same name; the garbage collector will take it.
    Orphan,
    /// Its rule could not be rendered, or its rule set is not usable now; it stays as it is.
    Frozen,
}

/// Why a step is refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// Its rule could not be rendered.
    Render(Fault),
    /// Someone edited it and the rule says `onDrift: report`.
    Drifted,
    /// The object is controlled by someone else.
    Taken {
        /// UID of the controller.
        owner: String,
    },
}

/// One child and what is to be done with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Name of the rule set.
    pub rule_set: String,
    /// Resource id.
    pub id: String,
    /// `forEach` item; empty without.
    pub item: String,
    /// Kind of the child.
    pub gvk: Gvk,
    /// Name of the child; empty where rendering did not get that far.
    pub name: String,
    /// The six words of its rule.
    pub policy: Policy,
    /// Where its rule stands; `None` for a child whose rule is gone.
    pub at: Option<Location>,
    /// Hash of the body, for the memory of the apply.
    pub desired: Fingerprint,
    /// What is to be done.
    pub action: Action,
    /// `readyWhen`, where the child is observed.
    pub ready: Option<Result<bool, Fault>>,
}

impl Step {
    /// Whether the rules want this child (and it therefore counts in the status).
    pub fn wanted(&self) -> bool {
        self.at.is_some()
    }
}

/// What the planner needs to know besides the parent.
pub struct Context<'a> {
    /// Associative lists by kind.
    pub lists: &'a dyn Fn(&Gvk) -> std::sync::Arc<ListKinds>,
    /// Whether nothing may be pruned that comes from this rule set: it exists, but has no usable version.
    pub frozen: &'a dyn Fn(&str) -> bool,
}

/// Compares desired with observed. `rendered` has one entry a rule set of this parent kind; `existing` are the objects that
/// carry this parent's label.
pub fn plan(
    parent: &Parent,
    rendered: &[(&str, &Rendered)],
    existing: &[Existing],
    context: &Context<'_>,
) -> Vec<Step> {
    let mut unclaimed: BTreeMap<(&Gvk, &str), &Existing> =
        existing.iter().map(|object| ((&object.gvk, object.name.as_str()), object)).collect();
    let mut steps = Vec::new();
    for (rule_set, rendered) in rendered {
        for child in &rendered.children {
            steps.push(match &child.state {
                ChildState::Desired(manifest) => {
                    let name = manifest.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                    let object = unclaimed.remove(&(&child.gvk, name));
                    step_for_desired(parent, rule_set, child, name, manifest, object, context)
                }
                ChildState::Waiting(on) => step(rule_set, child, "", Action::Held(Hold::Waiting(on.clone()))),
                ChildState::Failed(fault) => step(rule_set, child, "", Action::Refused(Refusal::Render(fault.clone()))),
            });
        }
    }
    for object in unclaimed.into_values() {
        if let Some(step) = step_for_unwanted(parent, object, rendered, context) {
            steps.push(step);
        }
    }
    steps
}

fn step(rule_set: &str, child: &Child, name: &str, action: Action) -> Step {
    Step {
        rule_set: rule_set.to_owned(),
        id: child.id.clone(),
        item: child.item.clone(),
        gvk: child.gvk.clone(),
        name: name.to_owned(),
        policy: child.policy,
        at: Some(child.at.clone()),
        desired: Fingerprint::default(),
        action,
        ready: child.ready.clone(),
    }
}

fn step_for_desired(
    parent: &Parent,
    rule_set: &str,
    child: &Child,
    name: &str,
    manifest: &Value,
    object: Option<&Existing>,
    context: &Context<'_>,
) -> Step {
    let body = identity::mark(manifest, parent, rule_set, child);
    let desired = fingerprint::of_desired(&body, &(context.lists)(&child.gvk));
    let action = match object {
        None => Action::Create(body),
        Some(object) if object.deleting.is_some() => {
            Action::Held(Hold::Deleting(object.deleting.clone().unwrap_or_default()))
        }
        Some(object) => match belongs(object, parent) {
            Owner::Predecessor => Action::Held(Hold::Orphan),
            Owner::Other(owner) => Action::Refused(Refusal::Taken { owner }),
            Owner::Nobody => Action::Create(body),
            Owner::Parent => {
                let uid = object.uid.clone();
                match object.applied {
                    Some(last) if last.desired == desired && Some(last.projection) == object.projection => {
                        Action::Unchanged
                    }
                    Some(last) if last.desired == desired => match child.policy.on_drift {
                        OnDrift::Correct => Action::Repair { body, uid },
                        OnDrift::Report => Action::Refused(Refusal::Drifted),
                    },
                    None if object.projection == Some(desired) => Action::Unchanged,
                    _ => Action::Change { body, uid },
                }
            }
        },
    };
    Step { desired, ..step(rule_set, child, name, action) }
}

enum Owner {
    /// The parent controls it, or it is one of its children that has no owner reference (kept ones, stripped ones).
    Parent,
    /// It carries our marks and its controller has another UID.
    Predecessor,
    /// Another object's.
    Other(String),
    /// It carries the label, but nothing on it is ours.
    Nobody,
}

fn belongs(object: &Existing, parent: &Parent) -> Owner {
    match &object.owner {
        Some(owner) if *owner == parent.uid => Owner::Parent,
        Some(_) if object.projection.is_some() => Owner::Predecessor,
        Some(owner) => Owner::Other(owner.clone()),
        None if object.projection.is_some() => Owner::Parent,
        None => Owner::Nobody,
    }
}

/// An object of this parent that no rule speaks of (any more).
fn step_for_unwanted(
    parent: &Parent,
    object: &Existing,
    rendered: &[(&str, &Rendered)],
    context: &Context<'_>,
) -> Option<Step> {
    if !matches!(belongs(object, parent), Owner::Parent) || object.kept {
        return None;
    }
    let (rule_set, id, item) = identity::parse_source(&object.source)?;
    let action = if let Some(finalizers) = &object.deleting {
        Action::Held(Hold::Deleting(finalizers.clone()))
    } else if (context.frozen)(rule_set)
        || rendered.iter().any(|(name, rendered)| *name == rule_set && keeps(rendered, id, item))
    {
        Action::Held(Hold::Frozen)
    } else {
        Action::Prune { uid: object.uid.clone(), resource_version: object.resource_version.clone() }
    };
    Some(Step {
        rule_set: rule_set.to_owned(),
        id: id.to_owned(),
        item: item.to_owned(),
        gvk: object.gvk.clone(),
        name: object.name.clone(),
        policy: Policy::default(),
        at: None,
        desired: Fingerprint::default(),
        action,
        ready: None,
    })
}

/// An error is not «absent»: while a rule cannot be rendered, its last good child stays.
fn keeps(rendered: &Rendered, id: &str, item: &str) -> bool {
    !rendered.invalid.is_empty()
        || rendered.children.iter().any(|child| {
            child.id == id
                && (child.item == item || child.item.is_empty())
                && !matches!(child.state, ChildState::Desired(_))
        })
}
