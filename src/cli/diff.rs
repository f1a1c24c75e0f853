//! `network-operator diff`: what `run` would do to this cluster now.
//!
//! The same rendering and planning as the operator's, on one list of the cluster; what an apply would make of a child, the
//! API server is asked by a dry run. Nothing is written.

use std::path::PathBuf;
use std::process::ExitCode;

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::live::{self, Connection, Live, LiveParent};
use super::output::{self, Format, Outcome, Stream, Style, paint};
use super::{difference, input, offline};
use crate::api_error::{ApiError, Problem};
use crate::cluster::Expect;
use crate::field_path;
use crate::identity;
use crate::kinds::Kind;
use crate::observe;
use crate::plan::{Action, Hold, Refusal, Step};
use crate::rules::{OnConflict, OnExists, OnImmutable};

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes, as those of `kubectl diff`: 0 the cluster is as the rules say; 1 it is not (something would be done, or is refused, or waits); 2 error.

What it needs: the rights of `network-operator rbac`; a dry run of an apply asks for `patch` and `create`, and writes nothing."
)]
pub struct Args {
    /// Only these Networks: `NAME` or `NAMESPACE/NAME`.
    #[arg(value_name = "NETWORK")]
    networks: Vec<String>,
    /// A rule file, or a folder with rule files; may be given several times.
    #[arg(long, value_name = "PATH", env = "NETWORK_OPERATOR_RULES", value_delimiter = ',', default_value = "rules")]
    rules: Vec<PathBuf>,
    /// Only this namespace; may be given several times. Without it: all.
    #[arg(short, long, value_name = "NAMESPACE", value_delimiter = ',')]
    namespace: Vec<String>,
    #[command(flatten)]
    connection: Connection,
    /// Print the steps for machines.
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    output: Option<Format>,
}

/// Prints the differences.
pub fn main(args: &Args) -> Outcome {
    let programs = input::programs(&args.rules)?;
    let changes = live::block_on(async {
        let (cluster, _) = args.connection.open().await?;
        let live = Live::read(cluster, &programs, &args.namespace).await?;
        let mut changes = Vec::new();
        for parent in live.parents().filter(|parent| args.names(parent)) {
            let sets = offline::for_kind(&programs, &parent.parent.gvk);
            let rendered = live.render(&parent, &sets);
            let title = offline::title(&parent.parent);
            for fault in rendered.iter().flat_map(|(_, rendered)| &rendered.invalid) {
                changes.push(Change::of_parent(&title, format!("{} ({})", fault.message, fault.at)));
            }
            for step in live.plan(&parent, &rendered) {
                changes.push(change(&live, &parent, step).await?);
            }
        }
        Ok(changes)
    })?;
    match args.output {
        None => output::data(&changes.iter().map(Change::text).collect::<String>())?,
        Some(format) => output::value(&changes.iter().map(Change::json).collect::<Vec<_>>(), format)?,
    }
    output::note(&summary(&changes));
    let same = changes.iter().all(|change| change.verb == UNCHANGED);
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

impl Args {
    fn names(&self, parent: &LiveParent<'_>) -> bool {
        let identity::Parent { namespace, name, .. } = &parent.parent;
        self.networks.is_empty()
            || self.networks.iter().any(|wanted| wanted == name || *wanted == format!("{namespace}/{name}"))
    }
}

const UNCHANGED: &str = "unchanged";
/// In the order of the summary.
const VERBS: [&str; 10] =
    ["create", "adopt", "change", "repair", "recreate", "prune", "waits", "refused", "invalid", UNCHANGED];

/// What would be done with one child.
struct Change {
    verb: &'static str,
    /// `ConfigMap default/a`
    what: String,
    /// `Network default/a`
    parent: String,
    /// `network/config`, and where its rule stands.
    rule: String,
    at: String,
    reason: String,
    difference: String,
}

impl Change {
    fn of_parent(title: &str, reason: String) -> Self {
        let what = title.to_owned();
        Self {
            verb: "invalid",
            parent: what.clone(),
            what,
            rule: String::new(),
            at: String::new(),
            reason,
            difference: String::new(),
        }
    }

    fn text(&self) -> String {
        if self.verb == UNCHANGED {
            return String::new();
        }
        let style = match self.verb {
            "create" | "adopt" => Style::Good,
            "prune" | "refused" | "invalid" => Style::Error,
            _ => Style::Warning,
        };
        let mut line = format!("{} {}", paint(Stream::Stdout, style, self.verb), self.what);
        if !self.rule.is_empty() {
            let at = if self.at.is_empty() { "no rule gives it any more" } else { &self.at };
            line = format!("{line} ({}, {at})", self.rule);
        }
        if !self.reason.is_empty() {
            line = format!("{line}: {}", self.reason);
        }
        format!("{line}\n{}", self.difference)
    }

    fn json(&self) -> Value {
        json!({
            "action": self.verb, "object": self.what, "parent": self.parent, "rule": self.rule, "at": self.at,
            "reason": self.reason, "difference": self.difference,
        })
    }
}

fn summary(changes: &[Change]) -> String {
    let counts = VERBS.iter().filter_map(|verb| {
        let count = changes.iter().filter(|change| change.verb == *verb).count();
        (count > 0).then(|| format!("{count} {verb}"))
    });
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() { "no children".to_owned() } else { counts.join(", ") }
}

async fn change(live: &Live, parent: &LiveParent<'_>, step: Step) -> Result<Change, String> {
    let namespace = &parent.parent.namespace;
    let name = if step.name.is_empty() { "?" } else { &step.name };
    let mut change = Change {
        verb: UNCHANGED,
        what: format!("{} {namespace}/{name}", step.gvk.kind),
        parent: offline::title(&parent.parent),
        rule: identity::source(&step.rule_set, &step.id, &step.item),
        at: step.at.as_ref().map(ToString::to_string).unwrap_or_default(),
        reason: String::new(),
        difference: String::new(),
    };
    let Some(kind) = live.kind(&step.gvk) else { return Ok(change) };
    let there = live.child(&step.gvk, namespace, &step.name);
    let attempt = Attempt { live, kind: &kind, parent, step: &step };
    let attempted = match &step.action {
        Action::Create(body) => attempt.create(body).await,
        Action::Change { body, uid } => attempt.update("change", body, uid, there.cloned()).await,
        Action::Repair { body, uid } => attempt.update("repair", body, uid, there.cloned()).await,
        Action::Prune { .. } => Ok(Attempted { verb: "prune", old: there.cloned(), ..Attempted::default() }),
        Action::Unchanged => Ok(Attempted::said(UNCHANGED, String::new())),
        Action::Held(hold) => Ok(Attempted::said("waits", held(hold))),
        Action::Refused(refusal) => Ok(Attempted::said("refused", refused(refusal))),
    };
    let Attempted { verb, reason, old, new } = match attempted {
        Ok(attempted) => attempted,
        // What the server refuses of this child is an answer; what keeps us from asking is not.
        Err(error) if says_no(&error.problem) => Attempted::said("refused", error.to_string()),
        Err(error) => return Err(error.to_string()),
    };
    change.verb = verb;
    change.reason = reason;
    let text = |object: &Option<Value>| {
        object.as_ref().map(|object| difference::sorted_yaml(&plain(object))).unwrap_or_default()
    };
    change.difference = difference::unified(&text(&old), &text(&new), None, Stream::Stdout);
    if matches!(verb, "change" | "repair") && change.difference.is_empty() {
        change.verb = UNCHANGED;
    }
    Ok(change)
}

fn says_no(problem: &Problem) -> bool {
    matches!(
        problem,
        Problem::Exists
            | Problem::FieldConflict(_)
            | Problem::Immutable(_)
            | Problem::Invalid(_)
            | Problem::TooLarge
            | Problem::NamespaceTerminating
    )
}

/// What a step comes to: the object before and after.
#[derive(Default)]
struct Attempted {
    verb: &'static str,
    reason: String,
    old: Option<Value>,
    new: Option<Value>,
}

impl Attempted {
    fn said(verb: &'static str, reason: String) -> Self {
        Self { verb, reason, ..Self::default() }
    }
}

/// The steps of [`crate::execute`], as dry runs.
struct Attempt<'a> {
    live: &'a Live,
    kind: &'a Kind,
    parent: &'a LiveParent<'a>,
    step: &'a Step,
}

impl Attempt<'_> {
    async fn create(&self, body: &Value) -> Result<Attempted, ApiError> {
        match self.dry_run(body, Expect::Nothing).await {
            Ok(answer) => {
                return Ok(Attempted {
                    verb: "create",
                    new: Some(live::whole(self.kind, &answer)),
                    ..Attempted::default()
                });
            }
            Err(error) if matches!(error.problem, Problem::Changed | Problem::Exists | Problem::FieldConflict(_)) => {}
            Err(error) => return Err(error),
        }
        let cluster = &self.live.cluster;
        let Some(found) = cluster.get(self.kind, &self.parent.parent.namespace, &self.step.name).await? else {
            return Ok(Attempted::said("waits", "it appeared and went while this was looked at".to_owned()));
        };
        let uid = found.metadata.uid.clone().unwrap_or_default();
        let old = Some(live::whole(self.kind, &found));
        match observe::controller_uid(&found.metadata) {
            _ if found.metadata.deletion_timestamp.is_some() => {
                Ok(Attempted::said("waits", held(&Hold::Deleting(found.metadata.finalizers.unwrap_or_default()))))
            }
            Some(owner) if owner == self.parent.parent.uid => self.update("repair", body, &uid, old).await,
            None if self.step.policy.on_exists == OnExists::Adopt => self.update("adopt", body, &uid, old).await,
            Some(owner) => Ok(Attempted::said("refused", refused(&Refusal::Taken { owner: owner.to_owned() }))),
            None => Ok(Attempted::said(
                "refused",
                "an object of that name is there and is not ours; rename one of the two, or say `onExists: adopt`"
                    .to_owned(),
            )),
        }
    }

    async fn update(
        &self,
        verb: &'static str,
        body: &Value,
        uid: &str,
        old: Option<Value>,
    ) -> Result<Attempted, ApiError> {
        match self.dry_run(body, Expect::Object(uid)).await {
            Ok(answer) => {
                Ok(Attempted { verb, old, new: Some(live::whole(self.kind, &answer)), ..Attempted::default() })
            }
            Err(error)
                if matches!(error.problem, Problem::Immutable(_))
                    && self.step.policy.on_immutable == OnImmutable::Recreate =>
            {
                let reason = "a field changes that cannot be changed".to_owned();
                Ok(Attempted { verb: "recreate", reason, old, new: Some(body.clone()) })
            }
            Err(error) => Err(error),
        }
    }

    /// One dry run; where the rule yields to other managers, what they own is left to them.
    async fn dry_run(&self, body: &Value, expect: Expect<'_>) -> Result<DynamicObject, ApiError> {
        let force = self.step.policy.on_conflict == OnConflict::Force;
        let (cluster, namespace, name) = (&self.live.cluster, &self.parent.parent.namespace, &self.step.name);
        match cluster.dry_run(self.kind, namespace, name, body, expect, force).await {
            Err(ApiError { problem: Problem::FieldConflict(conflicts), call, detail })
                if matches!(expect, Expect::Object(_)) =>
            {
                let mut body = body.clone();
                if !conflicts.iter().all(|conflict| field_path::remove(&mut body, &conflict.field)) {
                    return Err(ApiError { problem: Problem::FieldConflict(conflicts), call, detail });
                }
                cluster.dry_run(self.kind, namespace, name, &body, expect, force).await
            }
            answer => answer,
        }
    }
}

fn held(hold: &Hold) -> String {
    match hold {
        Hold::Waiting(on) => format!("it reads {}, which the cluster does not have yet", on.join(", ")),
        Hold::Deleting(finalizers) if finalizers.is_empty() => "it is being deleted".to_owned(),
        Hold::Deleting(finalizers) => {
            format!("it is being deleted and waits for the finalizers {}", finalizers.join(", "))
        }
        Hold::Orphan => "it belongs to a deleted object of the same name, and goes with it".to_owned(),
        Hold::Frozen => "its rule cannot be used now, so it stays as it is".to_owned(),
    }
}

fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Render(fault) => format!("{} ({})", fault.message, fault.at),
        Refusal::Drifted => "someone changed it, and its rule says `onDrift: report`".to_owned(),
        Refusal::Collides(source) => format!("the rule {source} makes the same object"),
        Refusal::Taken { owner } => format!("it belongs to another controller, the object with UID {owner}"),
    }
}

/// An object without what every write changes and nobody wrote.
fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"] {
            metadata.shift_remove(key);
        }
    }
    object
}
