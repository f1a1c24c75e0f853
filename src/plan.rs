//! Plan: what is to be done for one parent, as a value. Pure.
//!
//! [`plan`] compares what the rules want with what the store knows of the cluster and returns one [`Step`] a child. The
//! executor does what the steps say and decides nothing; `diff`, the log and the status print the same steps.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api_error::FieldConflict;
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
    /// The [`identity::INTENT`] annotation.
    pub intent: Option<String>,
    /// The fields that our last apply left to other managers (`onConflict: yield`).
    pub yielded: Vec<FieldConflict>,
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
    /// Another rule set makes the same object ([`identity::source`] of its rule).
    Collides(String),
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
    /// What is to be done.
    pub action: Action,
    /// The fields that the last apply left to other managers.
    pub yielded: Vec<FieldConflict>,
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
    // Two rules of one set that make the same object are told apart when they are rendered; rules of two sets only meet here.
    let mut claimed: BTreeMap<(&Gvk, &str), String> = BTreeMap::new();
    for (rule_set, rendered) in rendered {
        for child in &rendered.children {
            steps.push(match &child.state {
                ChildState::Desired(manifest) => {
                    let name = manifest.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                    if let Some(first) = claimed.get(&(&child.gvk, name)) {
                        steps.push(step(rule_set, child, name, Action::Refused(Refusal::Collides(first.clone()))));
                        continue;
                    }
                    claimed.insert((&child.gvk, name), identity::source(rule_set, &child.id, &child.item));
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
        action,
        yielded: Vec::new(),
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
                    None if object.projection == Some(desired) => Action::Unchanged,
                    _ if child.policy.on_drift == OnDrift::Report && object.intent.as_deref() == intent_of(&body) => {
                        Action::Refused(Refusal::Drifted)
                    }
                    Some(last) if last.desired == desired => Action::Repair { body, uid },
                    _ => Action::Change { body, uid },
                }
            }
        },
    };
    let yielded = object.map(|object| object.yielded.clone()).unwrap_or_default();
    Step { yielded, ..step(rule_set, child, name, action) }
}

/// The intent that the body carries, where its rule says `onDrift: report`.
fn intent_of(body: &Value) -> Option<&str> {
    body.get("metadata")?.get("annotations")?.get(identity::INTENT)?.as_str()
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
        action,
        yielded: Vec::new(),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::diagnostic::{SourceFile, Span};

    const SET: &str = "network";

    fn at() -> Location {
        Location { file: SourceFile::new("rules/network.yaml", "x"), span: Span::new(0, 1) }
    }

    fn config_map() -> Gvk {
        Gvk { group: String::new(), version: "v1".to_owned(), kind: "ConfigMap".to_owned() }
    }

    fn parent() -> Parent {
        let gvk = Gvk { group: "samplecrd.k8s.io".to_owned(), version: "v1".to_owned(), kind: "Network".to_owned() };
        Parent { gvk, namespace: "default".to_owned(), name: "n".to_owned(), uid: "parent".to_owned() }
    }

    fn manifest(name: &str, cidr: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"cidr": cidr}})
    }

    fn child(id: &str, item: &str, state: ChildState) -> Child {
        let policy = Policy::default();
        Child { id: id.to_owned(), item: item.to_owned(), gvk: config_map(), policy, at: at(), state, ready: None }
    }

    fn desired(id: &str, name: &str, cidr: &str) -> Child {
        child(id, "", ChildState::Desired(manifest(name, cidr)))
    }

    fn rendered(children: Vec<Child>) -> Rendered {
        Rendered { children, ..Rendered::default() }
    }

    /// The object that the cluster has after `child` was applied, as a fresh process sees it.
    fn existing(child: &Child, name: &str) -> Existing {
        let ChildState::Desired(manifest) = &child.state else { panic!("only of desired children") };
        let body = identity::mark(manifest, &parent(), SET, child);
        Existing {
            gvk: config_map(),
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            resource_version: "7".to_owned(),
            owner: Some("parent".to_owned()),
            source: identity::source(SET, &child.id, &child.item),
            kept: false,
            deleting: None,
            intent: intent_of(&body).map(str::to_owned),
            yielded: Vec::new(),
            projection: Some(fingerprint::of_desired(&body, &ListKinds::default())),
            applied: None,
        }
    }

    fn run(rendered: &Rendered, existing: &[Existing]) -> Vec<Action> {
        run_with(rendered, existing, &|_| false)
    }

    fn run_with(rendered: &Rendered, existing: &[Existing], frozen: &dyn Fn(&str) -> bool) -> Vec<Action> {
        let lists = Arc::new(ListKinds::default());
        let context = Context { lists: &|_| lists.clone(), frozen };
        plan(&parent(), &[(SET, rendered)], existing, &context).into_iter().map(|step| step.action).collect()
    }

    fn fault() -> Fault {
        Fault { message: "no such field".to_owned(), at: at() }
    }

    #[test]
    fn a_child_that_is_not_there_is_created_and_one_that_is_as_stored_is_left_alone() {
        let child = desired("config", "a", "10.0.0.0/8");
        assert!(matches!(run(&rendered(vec![child.clone()]), &[])[..], [Action::Create(_)]));
        let there = existing(&child, "a");
        assert_eq!(run(&rendered(vec![child]), &[there]), [Action::Unchanged]);
    }

    #[test]
    fn a_rule_or_parent_edit_is_a_change_and_someone_elses_edit_is_a_repair() {
        let old = desired("config", "a", "10.0.0.0/8");
        let mut there = existing(&old, "a");
        let new = desired("config", "a", "10.0.0.0/16");
        assert!(matches!(run(&rendered(vec![new.clone()]), &[there.clone()])[..], [Action::Change { .. }]));

        there.applied = there.projection.map(|hash| Applied { desired: hash, projection: hash });
        assert!(matches!(run(&rendered(vec![new]), &[there.clone()])[..], [Action::Change { .. }]));
        there.projection = None;
        assert!(matches!(run(&rendered(vec![old.clone()]), &[there.clone()])[..], [Action::Repair { .. }]));
    }

    #[test]
    fn with_on_drift_report_an_edit_is_said_and_kept_also_after_a_restart_and_a_rule_edit_is_applied() {
        let mut reporting = desired("config", "a", "10.0.0.0/8");
        reporting.policy.on_drift = OnDrift::Report;
        let mut there = existing(&reporting, "a");
        assert_eq!(run(&rendered(vec![reporting.clone()]), std::slice::from_ref(&there)), [Action::Unchanged]);
        there.projection = Some(Fingerprint::default());
        let drifted = [Action::Refused(Refusal::Drifted)];
        assert_eq!(run(&rendered(vec![reporting.clone()]), std::slice::from_ref(&there)), drifted);
        reporting.state = ChildState::Desired(manifest("a", "10.0.0.0/16"));
        assert!(matches!(run(&rendered(vec![reporting]), &[there])[..], [Action::Change { .. }]));
    }

    #[test]
    fn a_value_that_the_server_normalises_does_not_loop() {
        let child = desired("config", "a", "10.0.0.0/8");
        let mut there = existing(&child, "a");
        let sent = there.projection.unwrap_or_default();
        let stored = fingerprint::of_desired(&json!({"data": {"cidr": "normalised"}}), &ListKinds::default());
        there.projection = Some(stored);
        assert!(
            matches!(run(&rendered(vec![child.clone()]), &[there.clone()])[..], [Action::Change { .. }]),
            "not known yet"
        );
        there.applied = Some(Applied { desired: sent, projection: stored });
        assert_eq!(run(&rendered(vec![child]), &[there]), [Action::Unchanged], "learned from the answer");
    }

    #[test]
    fn what_no_rule_speaks_of_is_pruned_with_the_objects_own_preconditions() {
        let gone = existing(&desired("old", "b", "x"), "b");
        let actions = run(&rendered(vec![]), &[gone]);
        assert_eq!(actions, [Action::Prune { uid: "uid-b".to_owned(), resource_version: "7".to_owned() }]);
    }

    #[test]
    fn an_error_is_not_absent() {
        let item = child("subnet", "a", ChildState::Desired(manifest("s-a", "x")));
        let there = existing(&item, "s-a");
        let all = |state: ChildState, item: &str| rendered(vec![child("subnet", item, state)]);
        for state in [ChildState::Failed(fault()), ChildState::Waiting(vec!["config".to_owned()])] {
            for failed_item in ["a", ""] {
                let actions = run(&all(state.clone(), failed_item), std::slice::from_ref(&there));
                assert_eq!(actions[1], Action::Held(Hold::Frozen), "{state:?} {failed_item}");
            }
            let actions = run(&all(state, "b"), std::slice::from_ref(&there));
            assert!(matches!(actions[1], Action::Prune { .. }), "another item's error keeps nobody else");
        }
        let invalid = Rendered { invalid: vec![fault()], ..Rendered::default() };
        assert_eq!(run(&invalid, std::slice::from_ref(&there)), [Action::Held(Hold::Frozen)]);
        let actions = run_with(&rendered(vec![]), &[there], &|set| set == SET);
        assert_eq!(actions, [Action::Held(Hold::Frozen)], "a broken rule set prunes nothing");
    }

    #[test]
    fn a_rename_of_a_rule_that_yields_the_same_object_keeps_the_object() {
        let there = existing(&desired("old", "a", "x"), "a");
        let actions = run(&rendered(vec![desired("new", "a", "x")]), &[there]);
        assert!(matches!(&actions[..], [Action::Change { uid, .. }] if uid == "uid-a"));
    }

    #[test]
    fn the_second_rule_set_that_makes_the_same_object_is_refused_and_the_first_goes_on() {
        let lists = Arc::new(ListKinds::default());
        let context = Context { lists: &|_| lists.clone(), frozen: &|_| false };
        let (one, two) = (rendered(vec![desired("config", "a", "x")]), rendered(vec![desired("other", "a", "y")]));
        let steps = plan(&parent(), &[("first", &one), ("second", &two)], &[], &context);
        assert!(matches!(steps[0].action, Action::Create(_)));
        assert_eq!(steps[1].action, Action::Refused(Refusal::Collides("first/config".to_owned())));
    }

    #[test]
    fn other_peoples_objects_are_never_touched() {
        let child = desired("config", "a", "x");
        let mut foreign = existing(&child, "a");
        foreign.owner = Some("somebody".to_owned());
        foreign.projection = None;
        let refused = Action::Refused(Refusal::Taken { owner: "somebody".to_owned() });
        assert_eq!(run(&rendered(vec![child.clone()]), std::slice::from_ref(&foreign)), [refused]);
        assert_eq!(run(&rendered(vec![]), &[foreign]), [], "and never pruned");

        let mut orphan = existing(&child, "a");
        orphan.owner = Some("the same name, deleted before".to_owned());
        assert_eq!(run(&rendered(vec![child]), std::slice::from_ref(&orphan)), [Action::Held(Hold::Orphan)]);
        assert_eq!(run(&rendered(vec![]), &[orphan]), []);
    }

    #[test]
    fn a_stripped_owner_reference_is_a_repair_and_a_child_without_one_is_still_pruned() {
        let child = desired("config", "a", "x");
        let mut stripped = existing(&child, "a");
        stripped.applied = stripped.projection.map(|hash| Applied { desired: hash, projection: hash });
        stripped.owner = None;
        stripped.projection = Some(Fingerprint::default());
        assert!(matches!(run(&rendered(vec![child]), std::slice::from_ref(&stripped))[..], [Action::Repair { .. }]));
        assert!(matches!(run(&rendered(vec![]), &[stripped])[..], [Action::Prune { .. }]));
    }

    #[test]
    fn a_child_in_deletion_is_waited_for_and_a_kept_one_stays() {
        let child = desired("config", "a", "x");
        let mut dying = existing(&child, "a");
        dying.deleting = Some(vec!["example.com/hold".to_owned()]);
        let held = Action::Held(Hold::Deleting(vec!["example.com/hold".to_owned()]));
        assert_eq!(run(&rendered(vec![child.clone()]), std::slice::from_ref(&dying)), std::slice::from_ref(&held));
        assert_eq!(run(&rendered(vec![]), &[dying]), [held]);
        let mut kept = existing(&child, "a");
        kept.kept = true;
        assert_eq!(run(&rendered(vec![]), &[kept]), []);
    }
}
