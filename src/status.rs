//! Status: what a reconcile found and did, as the parent's status and as a line of the log. Pure.
//!
//! The conditions follow the API conventions and kstatus: `Ready` is there from the first reconcile on, `Stalled` only while
//! there is something that a person must mend, and `lastTransitionTime` moves only when a condition's status does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::api_error::{ApiError, Problem};
use crate::identity;
use crate::plan::{Hold, Refusal, Step};
use crate::reconcile::Outcome;
use crate::rules::{Fault, Program, Rendered};

/// Longest condition message; the API allows 32 KiB, people do not read that.
const MESSAGE_MAX: usize = 1_000;

/// The fields that the engine fills, besides those of the rules' `status` mapping.
pub const FIELDS: [&str; 5] = ["observedGeneration", "rulesRevision", "childrenReady", "children", "conditions"];

/// What became of a step.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Done {
    Created,
    Changed,
    Repaired,
    Adopted,
    Recreated,
    Pruned,
    Unchanged,
    Held(Hold),
    Refused(Refusal),
    Failed(ApiError),
}

impl Done {
    /// Whether the API server took a write.
    pub fn wrote(&self) -> bool {
        self.verb().is_some()
    }

    /// The word for the log, for what changed something.
    pub fn verb(&self) -> Option<&'static str> {
        Some(match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Repaired => "repaired",
            Self::Adopted => "adopted",
            Self::Recreated => "recreated",
            Self::Pruned => "pruned",
            Self::Unchanged | Self::Held(_) | Self::Refused(_) | Self::Failed(_) => return None,
        })
    }
}

/// A step and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Result {
    /// The step.
    pub step: Step,
    /// What became of it.
    pub done: Done,
}

/// Everything that one reconcile found and did.
#[derive(Debug, Default)]
pub struct Report {
    results: Vec<Result>,
    invalid: Vec<Fault>,
    faults: Vec<Fault>,
    fields: Map<String, Value>,
    written: BTreeMap<&'static str, Vec<String>>,
}

impl Report {
    /// Adds a round: its results take the place of the round's before, what was written adds up.
    pub fn add<'a>(&mut self, results: Vec<Result>, rendered: impl Iterator<Item = (&'a str, Rendered)>) {
        for result in &results {
            if let Some(verb) = result.done.verb() {
                self.written.entry(verb).or_default().push(format!("{} {}", result.step.gvk.kind, result.step.name));
            }
        }
        self.results = results;
        self.invalid.clear();
        self.faults.clear();
        self.fields.clear();
        for (_, rendered) in rendered {
            self.invalid.extend(rendered.invalid);
            self.faults.extend(rendered.status_faults);
            self.fields.extend(rendered.status);
        }
    }

    /// Whether what was just written can change what the rules say: some rule reads children.
    pub fn wants_another_look(&self, programs: &[Arc<Program>]) -> bool {
        programs.iter().any(|program| !program.reads().is_empty())
    }

    /// What was done, for the log; `None` if nothing was.
    pub fn summary(&self) -> Option<String> {
        let order = ["created", "adopted", "changed", "repaired", "recreated", "pruned"];
        let parts = order.iter().filter_map(|verb| Some(format!("{verb} {}", self.written.get(verb)?.join(", "))));
        let text = parts.collect::<Vec<_>>().join("; ");
        (!text.is_empty()).then_some(text)
    }

    /// Whether to come back.
    pub fn outcome(&self) -> Outcome {
        let mut retry = None::<Duration>;
        let mut again = false;
        for result in &self.results {
            match &result.done {
                Done::Failed(error) => {
                    again = true;
                    retry = retry.max(error.retry_after());
                }
                Done::Refused(Refusal::Taken { .. }) => again = true,
                _ => {}
            }
        }
        if again { Outcome::Retry(retry) } else { Outcome::Settled }
    }
}

/// Status of the `Ready` condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Ready {
    True,
    False,
}

/// The `Ready` condition without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Its status.
    pub ready: Ready,
    /// Its reason.
    pub reason: &'static str,
    /// Its message.
    pub message: String,
    /// Whether only a person can mend it.
    pub stalled: bool,
}

/// What stands in the way of one child.
struct Trouble {
    reason: &'static str,
    message: String,
    stalled: bool,
    /// It is only early: nothing is wrong.
    waiting: bool,
}

/// Judges a report.
pub fn verdict(report: &Report) -> Verdict {
    if !report.invalid.is_empty() {
        let messages: Vec<_> = report.invalid.iter().map(|fault| fault.message.clone()).collect();
        return Verdict { ready: Ready::False, reason: "InvalidSpec", message: shorten(&messages), stalled: true };
    }
    let mut troubles: Vec<_> = report.results.iter().filter_map(trouble).collect();
    troubles.extend(report.faults.iter().map(|fault| Trouble {
        reason: "StatusFailed",
        message: format!("status: {} ({})", fault.message, fault.at),
        stalled: true,
        waiting: false,
    }));
    // What is wrong before what is only early; within that, in the order of the rules.
    troubles.sort_by_key(|trouble| (trouble.waiting, !trouble.stalled));
    if let Some(first) = troubles.first() {
        let messages: Vec<_> = troubles.iter().map(|trouble| trouble.message.clone()).collect();
        return Verdict {
            ready: Ready::False,
            reason: first.reason,
            message: shorten(&messages),
            stalled: troubles.iter().any(|trouble| trouble.stalled),
        };
    }
    let count = report.results.iter().filter(|result| result.step.wanted()).count();
    let children = if count == 1 { "child is" } else { "children are" };
    let mut messages = vec![format!("{count} {children} as the rules say")];
    messages.extend(report.results.iter().filter(|result| !result.step.yielded.is_empty()).map(|result| {
        let fields =
            result.step.yielded.iter().map(|conflict| format!("`{}` left to {}", conflict.field, conflict.manager));
        format!("{} {}: {}", result.step.gvk.kind, result.step.name, fields.collect::<Vec<_>>().join(", "))
    }));
    Verdict { ready: Ready::True, reason: "Reconciled", message: shorten(&messages), stalled: false }
}

fn trouble(result: &Result) -> Option<Trouble> {
    let step = &result.step;
    let at = step.at.as_ref().map(|at| format!(" ({at})")).unwrap_or_default();
    let child = if step.name.is_empty() {
        format!("{} of rule {}", step.gvk.kind, identity::source(&step.rule_set, &step.id, &step.item))
    } else {
        format!("{} {}", step.gvk.kind, step.name)
    };
    let say = |reason, stalled, waiting, text: String| {
        Some(Trouble { reason, message: format!("{child}: {text}{at}"), stalled, waiting })
    };
    match &result.done {
        Done::Failed(error) => {
            let stalled = !error.is_transient() && error.problem != Problem::NamespaceTerminating;
            say(error.reason(), stalled, false, error.to_string())
        }
        Done::Refused(Refusal::Render(fault)) => Some(Trouble {
            reason: "RenderFailed",
            message: format!("{child}: {} ({})", fault.message, fault.at),
            stalled: true,
            waiting: false,
        }),
        Done::Refused(Refusal::Drifted) => say(
            "Drifted",
            false,
            false,
            "someone changed it and its rule says `onDrift: report`; change it back, or say `onDrift: correct`"
                .to_owned(),
        ),
        Done::Refused(Refusal::Collides(first)) => say(
            "NameTaken",
            true,
            false,
            format!("rule `{first}` makes an object of this name already; give one of them another name"),
        ),
        Done::Refused(Refusal::Taken { owner }) => say(
            "NameTaken",
            true,
            false,
            format!(
                "an object of that name is there already and is controlled by another object (uid {owner}); rename the child in its rule"
            ),
        ),
        Done::Held(Hold::Waiting(on)) => say("Waiting", false, true, format!("waits for {}", on.join(", "))),
        Done::Held(Hold::Deleting(finalizers)) if finalizers.is_empty() => step
            .wanted()
            .then_some(())
            .and_then(|()| say("Waiting", false, true, "is being deleted and will be created again".to_owned())),
        Done::Held(Hold::Deleting(finalizers)) => {
            say("ChildDeleting", false, false, format!("its deletion waits for finalizer {}", finalizers.join(", ")))
        }
        Done::Held(Hold::Orphan) => say(
            "Waiting",
            false,
            true,
            "still belongs to a deleted object of the same name; the garbage collector will take it".to_owned(),
        ),
        Done::Held(Hold::Frozen) => None,
        _ if !step.wanted() => None,
        _ => match &step.ready {
            Some(Ok(true)) | None => None,
            Some(Ok(false)) => say("ChildNotReady", false, true, "is not ready yet".to_owned()),
            Some(Err(fault)) => Some(Trouble {
                reason: "ReadyWhenFailed",
                message: format!("{child}: readyWhen: {} ({})", fault.message, fault.at),
                stalled: true,
                waiting: false,
            }),
        },
    }
}

/// The whole status of a parent; `verdict` is that of the report.
pub fn build(parent: &Value, report: &Report, verdict: &Verdict, revision: &str, now: &str) -> Value {
    let generation = parent.pointer("/metadata/generation").cloned().unwrap_or(Value::Null);
    let mut status = report.fields.clone();
    if !generation.is_null() {
        status.insert("observedGeneration".to_owned(), generation.clone());
    }
    status.insert("rulesRevision".to_owned(), json!(revision));
    let wanted: Vec<_> = report.results.iter().filter(|result| result.step.wanted()).collect();
    if report.invalid.is_empty() {
        let ready = wanted.iter().filter(|result| trouble(result).is_none()).count();
        status.insert("childrenReady".to_owned(), json!(format!("{ready}/{}", wanted.len())));
        status.insert("children".to_owned(), wanted.iter().map(|result| child(result)).collect());
    } else {
        // The children stay as they are; so does what was said of them.
        for field in ["childrenReady", "children"] {
            if let Some(last) = parent.pointer(&format!("/status/{field}")) {
                status.insert(field.to_owned(), last.clone());
            }
        }
    }
    let mut conditions = vec![condition(
        parent,
        "Ready",
        verdict.ready == Ready::True,
        verdict.reason,
        &verdict.message,
        &generation,
        now,
    )];
    if verdict.stalled {
        conditions.push(condition(parent, "Stalled", true, verdict.reason, &verdict.message, &generation, now));
    }
    status.insert("conditions".to_owned(), Value::Array(conditions));
    Value::Object(status)
}

fn child(result: &Result) -> Value {
    let step = &result.step;
    let api_version = if step.gvk.group.is_empty() {
        step.gvk.version.clone()
    } else {
        format!("{}/{}", step.gvk.group, step.gvk.version)
    };
    let mut child = json!({
        "rule": identity::source(&step.rule_set, &step.id, &step.item),
        "apiVersion": api_version, "kind": step.gvk.kind, "ready": trouble(result).is_none(),
    });
    if !step.name.is_empty() {
        child["name"] = json!(step.name);
    }
    child
}

fn condition(
    parent: &Value,
    kind: &str,
    status: bool,
    reason: &str,
    message: &str,
    generation: &Value,
    now: &str,
) -> Value {
    let status = if status { "True" } else { "False" };
    let before = previous(parent, kind).filter(|before| before.get("status").and_then(Value::as_str) == Some(status));
    let since = before.and_then(|before| before.get("lastTransitionTime")).cloned().unwrap_or_else(|| json!(now));
    let mut condition =
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since});
    if !generation.is_null() {
        condition["observedGeneration"] = generation.clone();
    }
    condition
}

fn previous<'a>(parent: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = parent.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// Whether the verdict says something that the parent's `Ready` condition does not say already.
pub fn differs(parent: &Value, verdict: &Verdict) -> bool {
    let text = |field: &str| {
        previous(parent, "Ready").and_then(|before| before.get(field)).and_then(Value::as_str).unwrap_or_default()
    };
    text("reason") != verdict.reason || text("message") != verdict.message
}

/// Now, as Kubernetes writes times.
pub fn now() -> String {
    chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn shorten(messages: &[String]) -> String {
    let mut text = String::new();
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            if text.len() + message.len() > MESSAGE_MAX {
                let _ = write!(text, "; and {} more", messages.len() - index);
                break;
            }
            text.push_str("; ");
        }
        text.extend(message.chars().take(MESSAGE_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_error::{Call, FieldConflict};
    use crate::diagnostic::{Location, SourceFile, Span};
    use crate::plan::Action;
    use crate::rules::{Gvk, Policy};

    fn at() -> Location {
        Location { file: SourceFile::new("rules/network.yaml", "a\n  b"), span: Span::new(4, 5) }
    }

    fn fault(message: &str) -> Fault {
        Fault::new(message.to_owned(), at())
    }

    fn result(name: &str, done: Done) -> Result {
        let step = Step {
            rule_set: "network".to_owned(),
            id: "config".to_owned(),
            item: String::new(),
            gvk: Gvk { group: String::new(), version: "v1".to_owned(), kind: "ConfigMap".to_owned() },
            name: name.to_owned(),
            policy: Policy::default(),
            at: Some(at()),
            action: Action::Unchanged,
            yielded: Vec::new(),
            ready: None,
        };
        Result { step, done }
    }

    fn report(results: Vec<Result>) -> Report {
        let mut report = Report::default();
        report.add(results, std::iter::once(("network", Rendered::default())));
        report
    }

    fn failed(problem: Problem, detail: &str) -> Done {
        let call = Call {
            verb: "patch",
            resource: "configmaps".to_owned(),
            group: String::new(),
            namespace: "default".to_owned(),
            name: "a".to_owned(),
        };
        Done::Failed(ApiError { call, problem, detail: detail.to_owned() })
    }

    #[test]
    fn every_trouble_has_its_reason_and_says_which_child_why_and_where() {
        let troubles = [
            Done::Refused(Refusal::Render(fault("`self.spec` has no field `mtu`"))),
            Done::Refused(Refusal::Drifted),
            Done::Refused(Refusal::Collides("other/config".to_owned())),
            Done::Refused(Refusal::Taken { owner: "1234".to_owned() }),
            Done::Held(Hold::Waiting(vec!["gateway".to_owned()])),
            Done::Held(Hold::Deleting(vec!["example.com/hold".to_owned()])),
            Done::Held(Hold::Deleting(Vec::new())),
            Done::Held(Hold::Orphan),
            failed(Problem::Exists, ""),
            failed(Problem::Forbidden, "configmaps is forbidden"),
            failed(Problem::Immutable(vec!["spec.type".to_owned()]), "field is immutable"),
            failed(Problem::Unavailable, "etcdserver: leader changed"),
        ];
        let said: Vec<_> = troubles
            .into_iter()
            .map(|done| {
                let verdict = verdict(&report(vec![result("a", done)]));
                assert_eq!(verdict.ready, Ready::False);
                let stalled = if verdict.stalled { ", stalled" } else { "" };
                format!("{}{stalled}\n  {}", verdict.reason, verdict.message)
            })
            .collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn what_is_wrong_is_said_before_what_is_only_early_and_long_lists_are_cut() {
        let mut results = vec![result("waits", Done::Held(Hold::Waiting(vec!["x".to_owned()])))];
        results.extend((0..60).map(|number| result(&format!("taken-{number}"), failed(Problem::Exists, ""))));
        let verdict = verdict(&report(results));
        assert_eq!(verdict.reason, "NameTaken");
        assert!(verdict.message.len() < MESSAGE_MAX + 50, "{}", verdict.message.len());
        assert!(verdict.message.ends_with(" more"), "{}", verdict.message);
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let good = report(vec![result("a", Done::Created)]);
        let mut parent = json!({"metadata": {"generation": 3}});
        parent["status"] = build(&parent, &good, &verdict(&good), "network@1", "first");
        assert_eq!(parent["status"]["conditions"][0]["lastTransitionTime"], "first");
        assert_eq!(parent["status"]["childrenReady"], "1/1");
        assert_eq!(parent["status"], build(&parent, &good, &verdict(&good), "network@1", "second"), "nothing to write");
        let bad = report(vec![result("a", failed(Problem::Exists, ""))]);
        let status = build(&parent, &bad, &verdict(&bad), "network@1", "third");
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "third");
        assert_eq!(status["conditions"][1]["type"], "Stalled");
    }

    #[test]
    fn an_invalid_parent_keeps_what_was_said_of_its_children() {
        let mut parent = json!({"metadata": {"generation": 1}});
        let good = report(vec![result("a", Done::Created)]);
        parent["status"] = build(&parent, &good, &verdict(&good), "network@1", "first");
        let mut invalid = Report::default();
        let rendered =
            Rendered { invalid: vec![fault("gateway 10.0.0.1 is outside 192.168.0.0/16")], ..Rendered::default() };
        invalid.add(Vec::new(), std::iter::once(("network", rendered)));
        let status = build(&parent, &invalid, &verdict(&invalid), "network@1", "second");
        assert_eq!(status["children"], parent["status"]["children"]);
        assert_eq!(status["conditions"][0]["reason"], "InvalidSpec");
        assert_eq!(status["conditions"][0]["message"], "gateway 10.0.0.1 is outside 192.168.0.0/16");
    }

    #[test]
    fn a_field_left_to_another_manager_is_said_and_does_not_make_the_parent_unready() {
        let mut yielded = result("a", Done::Unchanged);
        yielded.step.yielded = vec![FieldConflict { field: ".data.cidr".to_owned(), manager: "kubectl".to_owned() }];
        let verdict = verdict(&report(vec![yielded]));
        assert_eq!(verdict.ready, Ready::True);
        assert_eq!(verdict.message, "1 child is as the rules say; ConfigMap a: `.data.cidr` left to kubectl");
    }

    #[test]
    fn the_log_line_names_what_was_done_in_a_fixed_order() {
        let results = vec![result("b", Done::Pruned), result("a", Done::Created), result("c", Done::Unchanged)];
        assert_eq!(report(results).summary().as_deref(), Some("created ConfigMap a; pruned ConfigMap b"));
        assert_eq!(report(vec![result("c", Done::Unchanged)]).summary(), None);
    }
}
