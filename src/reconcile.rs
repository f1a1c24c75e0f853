//! Reconcile: bring one parent's children to what the rules say, and report.
//!
//! render → plan → execute → report. Rendering and planning are pure and happen in microseconds; executing goes through
//! [`crate::cluster`]. Where a child reads another one that was only just created, the three are repeated with what the
//! API server answered, so that a chain of children needs no second trip through the queue.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use tracing::{debug, info, warn};

use crate::api_error::{ApiError, Problem};
use crate::execute;
use crate::identity::Parent;
use crate::informer::Shared;
use crate::kinds::{Kind, KindId, Kinds};
use crate::observe;
use crate::plan::{self, Action, Step};
use crate::queue::Lane;
use crate::rules::{Gvk, Program, Rendered};
use crate::status::{self, Report};
use crate::store::{Key, ParentRecord};

/// The rules in force: swapped as a whole.
#[derive(Debug, Default)]
pub struct ActiveRules {
    /// Programs by parent kind, in order of their names.
    pub by_parent: BTreeMap<KindId, Vec<Arc<Program>>>,
    /// Some rule set has no usable version: nothing is pruned whose rule set is not in force.
    pub frozen: bool,
    /// Nothing is pruned at all, since too much would be and nobody has confirmed it.
    pub prunes_held: bool,
}

impl ActiveRules {
    fn is_frozen(&self, rule_set: &str) -> bool {
        self.prunes_held || self.frozen && !self.by_parent.values().flatten().any(|program| program.name() == rule_set)
    }
}

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as the rules say, or waits for an event that will come by itself.
    Settled,
    /// Something failed; try again after the key's backoff, or after this.
    Retry(Option<Duration>),
}

/// Reconciles parents. Holds no state of its own.
pub struct Reconciler {
    /// The connection, the store and the queue.
    pub shared: Arc<Shared>,
    /// All kinds that take part.
    pub kinds: Arc<Kinds>,
    /// The rules in force.
    pub rules: RwLock<Arc<ActiveRules>>,
}

impl Reconciler {
    /// Brings the children of one parent to what the rules say.
    pub async fn reconcile(&self, key: &Key) -> Outcome {
        let Some(kind) = self.kinds.get(key.kind) else { return Outcome::Settled };
        let Some(record) = self.shared.store.parent(key) else {
            self.say_deleted(&kind, key);
            return Outcome::Settled;
        };
        if record.deleting {
            debug!("{} is being deleted; its children are the garbage collector's", describe(&kind, key));
            return Outcome::Settled;
        }
        let object: Value = match serde_json::from_slice(&record.json) {
            Ok(object) => object,
            Err(error) => {
                warn!("{}: cannot read what the store kept of it: {error}", describe(&kind, key));
                return Outcome::Settled;
            }
        };
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner).clone();
        let programs = rules.by_parent.get(&key.kind).map(Vec::as_slice).unwrap_or_default();
        let parent = parent_of(&kind, key, &record);

        let mut report = Report::default();
        // A chain of children that read each other is at most as long as there are resources.
        for _ in 0..=programs.iter().map(|program| program.resource_count()).sum::<usize>() {
            let rendered = self.render(key, &record, programs, &object);
            let steps = self.plan(&parent, key, &rules, programs, &rendered);
            let results =
                join_all(steps.into_iter().map(|step| execute::step(&self.shared, &self.kinds, &parent, key, step)))
                    .await;
            let wrote = results.iter().any(|result| result.done.wrote());
            report.add(results, programs.iter().map(|program| program.name()).zip(rendered));
            if !wrote || !report.wants_another_look(programs) {
                break;
            }
        }
        self.report(&kind, key, &record, &object, programs, report).await
    }

    /// What these rules would delete if they came into force now.
    pub async fn doomed(&self, rules: &ActiveRules) -> Vec<String> {
        let mut doomed = Vec::new();
        for (index, key) in self.shared.store.all_parents().iter().enumerate() {
            if index % 64 == 63 {
                tokio::task::yield_now().await;
            }
            let (Some(kind), Some(record)) = (self.kinds.get(key.kind), self.shared.store.parent(key)) else {
                continue;
            };
            let Ok(object) = serde_json::from_slice(&record.json) else { continue };
            let programs = rules.by_parent.get(&key.kind).map(Vec::as_slice).unwrap_or_default();
            let rendered = self.render(key, &record, programs, &object);
            let steps = self.plan(&parent_of(&kind, key, &record), key, rules, programs, &rendered);
            let prunes = steps.iter().filter(|step| matches!(step.action, Action::Prune { .. }));
            doomed.extend(prunes.map(|step| format!("{} {}/{}", step.gvk.kind, key.namespace, step.name)));
        }
        doomed
    }

    fn render(&self, key: &Key, record: &ParentRecord, programs: &[Arc<Program>], object: &Value) -> Vec<Rendered> {
        let observed = |program: &Program| self.shared.store.observed(key, &record.uid, program.name());
        programs.iter().map(|program| program.render(object, &observed(program))).collect()
    }

    fn plan(
        &self,
        parent: &Parent,
        key: &Key,
        rules: &ActiveRules,
        programs: &[Arc<Program>],
        rendered: &[Rendered],
    ) -> Vec<Step> {
        let existing = self.shared.store.children_of(key, &self.kinds);
        let named: Vec<_> = programs.iter().map(|program| program.name()).zip(rendered).collect();
        let context = plan::Context {
            lists: &|gvk: &Gvk| self.kinds.find(gvk).map(|kind| kind.lists.clone()).unwrap_or_default(),
            frozen: &|rule_set: &str| rules.is_frozen(rule_set),
        };
        plan::plan(parent, &named, &existing, &context)
    }

    /// Says what was done: in the log, and in the parent's status.
    async fn report(
        &self,
        kind: &Kind,
        key: &Key,
        record: &ParentRecord,
        object: &Value,
        programs: &[Arc<Program>],
        report: Report,
    ) -> Outcome {
        let who = describe(kind, key);
        if let Some(line) = report.summary() {
            info!("{who}: {line}");
        }
        if programs.is_empty() {
            return report.outcome();
        }
        let revisions: Vec<String> =
            programs.iter().map(|program| format!("{}@{}", program.name(), program.revision())).collect();
        let revision = revisions.join(",");
        let now = status::now();
        let verdict = status::verdict(&report);
        let mut status = status::build(object, &report, &verdict, &revision, &now);
        if verdict.ready != status::Ready::True && status::differs(object, &verdict) {
            warn!("{who}: {}: {}", verdict.reason, verdict.message);
        }
        kind.trim_status(&mut status);
        // A rule edit that changes nothing for this parent is no reason to write to it: the revision in its status is the one
        // that last did.
        if let (Some(before), Some(current)) =
            (object.pointer("/status/rulesRevision"), status.get_mut("rulesRevision"))
        {
            *current = before.clone();
        }
        let desired = observe::of_status(&status, kind);
        let settled = match record.status_applied {
            Some(last) => last.desired == desired && Some(last.projection) == record.status,
            None => record.status == Some(desired),
        };
        if settled {
            return report.outcome();
        }
        if let Some(current) = status.get_mut("rulesRevision") {
            *current = revision.into();
        }
        match self.write_status(kind, key, record, status).await {
            Ok(()) => report.outcome(),
            Err(error) => {
                warn!("{who}: cannot write its status: {error}");
                Outcome::Retry(error.retry_after())
            }
        }
    }

    async fn write_status(
        &self,
        kind: &Kind,
        key: &Key,
        record: &ParentRecord,
        mut status: Value,
    ) -> Result<(), ApiError> {
        loop {
            let answer = self.shared.cluster.apply_status(kind, &key.namespace, &key.name, &record.uid, &status).await;
            match answer {
                Ok(answer) => {
                    match observe::parent(answer, kind, Some(&status)) {
                        Ok(answered) => {
                            if self.shared.store.parent_answered(key, answered) {
                                self.shared.queue.add(key.clone(), Lane::Fast);
                            }
                        }
                        Err(error) => warn!("{}: cannot keep the answer to its status: {error}", describe(kind, key)),
                    }
                    return Ok(());
                }
                // Deleted, or deleted and made again, meanwhile: its own event follows.
                Err(ApiError { problem: Problem::Gone | Problem::Changed, .. }) => return Ok(()),
                Err(error) => {
                    // Any CRD can be a parent, and not every one has every field that we would like to fill.
                    let Problem::Invalid(fields) = &error.problem else { return Err(error) };
                    let had = status.as_object().map_or(0, serde_json::Map::len);
                    for field in
                        fields.iter().filter_map(|path| path.strip_prefix(".status.")?.split(['.', '[']).next())
                    {
                        if kind.lacks_status_field(field) {
                            warn!("the CRD of {} has no `status.{field}`; it is left out of the status", kind.gvk.kind);
                        }
                    }
                    kind.trim_status(&mut status);
                    if status.as_object().map_or(0, serde_json::Map::len) == had {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn say_deleted(&self, kind: &Kind, key: &Key) {
        let left = self.shared.store.children_of(key, &self.kinds);
        if left.is_empty() {
            info!("{}: deleted", describe(kind, key));
        } else {
            let names: Vec<_> = left.iter().map(|child| format!("{} {}", child.gvk.kind, child.name)).collect();
            info!("{}: deleted; left to the garbage collector: {}", describe(kind, key), names.join(", "));
        }
    }
}

fn parent_of(kind: &Kind, key: &Key, record: &ParentRecord) -> Parent {
    Parent {
        gvk: kind.gvk.clone(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        uid: record.uid.to_string(),
    }
}

/// `network default/example-network`
pub fn describe(kind: &Kind, key: &Key) -> String {
    format!("{} {}/{}", kind.gvk.kind.to_lowercase(), key.namespace, key.name)
}
