//! Execute: do what one step of the plan says, and remember what the API server answered. Decides nothing that the plan or
//! the step's policy has not decided.

use kube::api::DynamicObject;
use serde_json::Value;

use crate::api_error::{ApiError, Call, FieldConflict, Problem};
use crate::cluster::Expect;
use crate::field_path;
use crate::identity::Parent;
use crate::informer::Shared;
use crate::kinds::{Kind, Kinds};
use crate::observe;
use crate::plan::{Action, Hold, Refusal, Step};
use crate::rules::{OnConflict, OnExists, OnImmutable};
use crate::status::{Done, Result as StepResult};
use crate::store::Key;

/// Does what `step` says to a child of the parent at `key`.
pub async fn step(shared: &Shared, kinds: &Kinds, parent: &Parent, key: &Key, mut step: Step) -> StepResult {
    let action = std::mem::replace(&mut step.action, Action::Unchanged);
    // Every kind of the rules in force was discovered before they came into force.
    let Some(kind) = kinds.find(&step.gvk) else { return StepResult { done: Done::Unchanged, step } };
    let child = Key { kind: kind.id, namespace: key.namespace.clone(), name: step.name.as_str().into() };
    let mut executor = Executor { shared, kind: &kind, child: &child, step: &mut step };
    let done = match action {
        Action::Create(body) => executor.create(parent, &body).await,
        Action::Change { body, uid } => executor.update(&body, &uid, Done::Changed).await,
        Action::Repair { body, uid } => executor.update(&body, &uid, Done::Repaired).await,
        Action::Prune { uid, resource_version } => executor.prune(&uid, &resource_version).await,
        Action::Unchanged => Ok(Done::Unchanged),
        Action::Held(hold) => Ok(Done::Held(hold)),
        Action::Refused(refusal) => Ok(Done::Refused(refusal)),
    };
    StepResult { done: done.unwrap_or_else(Done::Failed), step }
}

struct Executor<'a> {
    shared: &'a Shared,
    kind: &'a Kind,
    child: &'a Key,
    step: &'a mut Step,
}

impl Executor<'_> {
    async fn create(&mut self, parent: &Parent, body: &Value) -> Result<Done, ApiError> {
        match self.apply(body, Expect::Nothing).await {
            Ok(()) => return Ok(Done::Created),
            Err(error) if matches!(error.problem, Problem::Changed | Problem::Exists) => {}
            Err(error) => return Err(error),
        }
        // There is an object of that name after all. Whose?
        let Some(found) = self.shared.cluster.metadata(self.kind, &self.child.namespace, &self.child.name).await?
        else {
            return Err(self.error(Problem::Changed));
        };
        let uid = found.metadata.uid.clone().unwrap_or_default();
        match observe::controller_uid(&found.metadata) {
            _ if found.metadata.deletion_timestamp.is_some() => {
                Ok(Done::Held(Hold::Deleting(found.metadata.finalizers.unwrap_or_default())))
            }
            Some(owner) if owner == parent.uid => self.update(body, &uid, Done::Repaired).await,
            None if self.step.policy.on_exists == OnExists::Adopt => self.update(body, &uid, Done::Adopted).await,
            Some(owner) => Ok(Done::Refused(Refusal::Taken { owner: owner.to_owned() })),
            None => Err(self.error(Problem::Exists)),
        }
    }

    async fn update(&mut self, body: &Value, uid: &str, done: Done) -> Result<Done, ApiError> {
        match self.apply(body, Expect::Object(uid)).await {
            Ok(()) => Ok(done),
            Err(error)
                if matches!(error.problem, Problem::Immutable(_))
                    && self.step.policy.on_immutable == OnImmutable::Recreate =>
            {
                self.shared.cluster.delete(self.kind, &self.child.namespace, &self.child.name, uid, None).await?;
                self.shared.store.child_gone(self.child, Some(uid));
                self.apply(body, Expect::Nothing).await?;
                Ok(Done::Recreated)
            }
            Err(error) => Err(error),
        }
    }

    async fn prune(&self, uid: &str, resource_version: &str) -> Result<Done, ApiError> {
        let Key { namespace, name, .. } = self.child;
        self.shared.cluster.delete(self.kind, namespace, name, uid, Some(resource_version)).await?;
        self.shared.store.child_deleting(self.child, uid);
        Ok(Done::Pruned)
    }

    /// One apply; where the rule yields to other managers, what they own is taken out and applied without.
    async fn apply(&mut self, body: &Value, expect: Expect<'_>) -> Result<(), ApiError> {
        let force = self.step.policy.on_conflict == OnConflict::Force;
        let Key { namespace, name, .. } = self.child;
        let first = self.shared.cluster.apply(self.kind, namespace, name, body, expect, force).await;
        let (answer, yielded) = match first {
            Ok(answer) => (answer, Vec::new()),
            Err(ApiError { problem: Problem::FieldConflict(_), .. }) if matches!(expect, Expect::Nothing) => {
                return Err(self.error(Problem::Exists));
            }
            Err(ApiError { problem: Problem::FieldConflict(conflicts), call, detail }) => {
                let mut rest = body.clone();
                if !conflicts.iter().all(|conflict| field_path::remove(&mut rest, &conflict.field)) {
                    return Err(ApiError { problem: Problem::FieldConflict(conflicts), call, detail });
                }
                (self.shared.cluster.apply(self.kind, namespace, name, &rest, expect, force).await?, conflicts)
            }
            Err(error) => return Err(error),
        };
        self.remember(answer, body, yielded);
        Ok(())
    }

    fn remember(&mut self, answer: DynamicObject, body: &Value, yielded: Vec<FieldConflict>) {
        if let Some(mut record) = observe::child(answer, self.kind, &self.shared.interest(), Some(body)) {
            record.yielded = (!yielded.is_empty()).then(|| yielded.clone().into());
            self.shared.store.child_answered(self.child, record);
        }
        self.step.yielded = yielded;
    }

    fn error(&self, problem: Problem) -> ApiError {
        let call = Call {
            verb: "create",
            resource: self.kind.resource.plural.clone(),
            group: self.kind.gvk.group.clone(),
            namespace: self.child.namespace.to_string(),
            name: self.child.name.to_string(),
        };
        ApiError { call, problem, detail: String::new() }
    }
}
