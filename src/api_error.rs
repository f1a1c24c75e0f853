//! What went wrong with one call to the API server, told so that a person knows what to do. Pure.

use std::fmt;
use std::time::Duration;

use kube::core::Status;

/// The call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The RBAC verb.
    pub verb: &'static str,
    /// The resource as RBAC names it, with its subresource: `configmaps`, `networks/status`.
    pub resource: String,
    /// API group; empty for core.
    pub group: String,
    /// Namespace; empty for none.
    pub namespace: String,
    /// Object name; empty for a collection.
    pub name: String,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        match (self.namespace.as_str(), self.name.as_str()) {
            ("", "") => Ok(()),
            ("", name) => write!(f, " {name}"),
            (namespace, "") => write!(f, " in namespace {namespace}"),
            (namespace, name) => write!(f, " {namespace}/{name}"),
        }
    }
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// What was asked.
    pub call: Call,
    /// What came back.
    pub problem: Problem,
    /// The server's own words, or the transport's.
    pub detail: String,
}

/// The kinds of failure that are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// 409 to a create: an object of that name exists.
    Exists,
    /// 409 with field conflicts: these fields belong to these managers.
    FieldConflict(Vec<FieldConflict>),
    /// 409 or 422 to a guarded write: the object is not the one it was meant for any more.
    Changed,
    /// 422: the change touches a field that cannot be changed.
    Immutable(Vec<String>),
    /// 400 or 422: the server does not take the object; the fields it names.
    Invalid(Vec<String>),
    /// 401.
    Unauthorized,
    /// 403 by RBAC or an admission plugin.
    Forbidden,
    /// 403 because the namespace is being deleted.
    NamespaceTerminating,
    /// 404 to a write: the namespace, or the kind, is not there.
    Missing,
    /// 404 to a write on an existing object: it is gone.
    Gone,
    /// 413, or the server's own limit for one object.
    TooLarge,
    /// 429, with the server's `Retry-After`.
    Throttled(Option<Duration>),
    /// 5xx.
    Unavailable,
    /// No answer within the deadline.
    Deadline(Duration),
    /// No connection, or it broke.
    Transport,
    /// Not sent: another process is the leader.
    NotLeading,
}

/// A field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// Its path, as the server writes it (`.data.cidr`).
    pub field: String,
    /// The manager.
    pub manager: String,
}

impl ApiError {
    /// From a `Status` answer.
    pub fn from_status(call: Call, status: &Status) -> Self {
        Self { problem: classify(&call, status), call, detail: status.message.clone() }
    }

    /// From whatever kube returns.
    pub fn from_kube(call: Call, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from_status(call, status),
            other => Self { call, problem: Problem::Transport, detail: chain(other) },
        }
    }

    /// The deadline passed.
    pub fn deadline(call: Call, after: Duration) -> Self {
        Self { call, problem: Problem::Deadline(after), detail: String::new() }
    }

    /// The reason for a condition, in the usual form.
    pub fn reason(&self) -> &'static str {
        match &self.problem {
            Problem::Exists => "NameTaken",
            Problem::FieldConflict(_) => "FieldConflict",
            Problem::Changed | Problem::Gone => "ChangedMeanwhile",
            Problem::Immutable(_) => "ImmutableField",
            Problem::Invalid(_) => "RejectedByServer",
            Problem::Unauthorized => "Unauthorized",
            Problem::Forbidden => "Forbidden",
            Problem::NamespaceTerminating => "NamespaceTerminating",
            Problem::Missing => "KindOrNamespaceMissing",
            Problem::TooLarge => "TooLarge",
            Problem::Throttled(_) => "Throttled",
            Problem::Unavailable | Problem::Deadline(_) | Problem::Transport => "ApiServerUnavailable",
            Problem::NotLeading => "NotLeading",
        }
    }

    /// Whether it can pass without anyone doing anything.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.problem,
            Problem::Changed
                | Problem::Gone
                | Problem::Throttled(_)
                | Problem::Unavailable
                | Problem::Deadline(_)
                | Problem::Transport
                | Problem::NotLeading
        )
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.problem {
            Problem::Throttled(after) => after,
            _ => None,
        }
    }
}

impl std::error::Error for ApiError {}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, problem, detail } = self;
        match problem {
            Problem::Exists => write!(
                f,
                "an object of that name is there already and is not ours; delete it, rename the child in its rule, or say `onExists: adopt` there ({call})"
            ),
            Problem::FieldConflict(conflicts) => {
                write!(f, "fields belong to other managers (")?;
                for (index, conflict) in conflicts.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}`{}` to {}", conflict.field, conflict.manager)?;
                }
                write!(f, ")")
            }
            Problem::Changed => write!(f, "it changed meanwhile; trying again ({call}: {detail})"),
            Problem::Gone => write!(f, "it is gone meanwhile; trying again ({call})"),
            Problem::Immutable(fields) => write!(
                f,
                "{} cannot be changed on an existing object: delete it, or say `onImmutable: recreate` in its rule ({detail})",
                quoted(fields)
            ),
            Problem::Invalid(fields) if fields.is_empty() => write!(f, "the API server rejects it: {detail}"),
            Problem::Invalid(fields) => write!(f, "the API server rejects {}: {detail}", quoted(fields)),
            Problem::Unauthorized => {
                write!(
                    f,
                    "the API server does not accept our credentials ({call}: {detail}); check the kubeconfig or token"
                )
            }
            Problem::Forbidden => write!(
                f,
                "not allowed to {call}: {detail}; grant it (`network-operator rbac` prints the rights that the rules need)"
            ),
            Problem::NamespaceTerminating => write!(f, "namespace {} is being deleted", call.namespace),
            Problem::Missing => write!(f, "{call}: {detail}; the namespace or the kind is not there"),
            Problem::TooLarge => write!(f, "the object is too large for the API server: {detail}"),
            Problem::Throttled(_) => write!(f, "the API server asks to slow down ({call})"),
            Problem::Unavailable => write!(f, "the API server cannot answer now ({call}: {detail})"),
            Problem::Deadline(after) => write!(f, "no answer within {} s ({call})", after.as_secs_f32()),
            Problem::NotLeading => write!(f, "not sent, since another process is the leader ({call})"),
            Problem::Transport => write!(f, "cannot reach the API server ({call}: {detail})"),
        }
    }
}

fn quoted(fields: &[String]) -> String {
    fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
}

/// An error with its sources, since kube's own texts stop at the outermost.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    text
}

fn classify(call: &Call, status: &Status) -> Problem {
    let details = status.details.as_ref();
    let causes = details.map(|details| details.causes.as_slice()).unwrap_or_default();
    let fields =
        || causes.iter().map(|cause| cause.field.clone()).filter(|field| !field.is_empty()).collect::<Vec<_>>();
    match status.code {
        401 => Problem::Unauthorized,
        403 if causes.iter().any(|cause| cause.reason == "NamespaceTerminating") => Problem::NamespaceTerminating,
        403 => Problem::Forbidden,
        404 if details.is_some_and(|details| details.name == call.name) => Problem::Gone,
        404 => Problem::Missing,
        409 => {
            let conflicts: Vec<_> = causes
                .iter()
                .filter(|cause| cause.reason == "FieldManagerConflict")
                .map(|cause| FieldConflict { field: cause.field.clone(), manager: conflicting_manager(&cause.message) })
                .collect();
            if !conflicts.is_empty() {
                Problem::FieldConflict(conflicts)
            } else if status.reason == "AlreadyExists" {
                Problem::Exists
            } else {
                Problem::Changed
            }
        }
        413 => Problem::TooLarge,
        422 | 400 => {
            let immutable: Vec<_> = causes
                .iter()
                .filter(|cause| cause.message.contains("immutable") || cause.message.contains("may not change"))
                .map(|cause| cause.field.clone())
                .collect();
            if immutable.iter().any(|field| field == "metadata.uid") {
                Problem::Changed
            } else if !immutable.is_empty() {
                Problem::Immutable(immutable)
            } else if status.message.contains("etcd")
                || status.message.contains("Too long")
                || status.message.contains("too large")
            {
                Problem::TooLarge
            } else {
                Problem::Invalid(fields())
            }
        }
        429 => Problem::Throttled(
            details
                .map(|details| details.retry_after_seconds)
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(u64::from(seconds))),
        ),
        _ if status.message.contains("request is too large") => Problem::TooLarge,
        // Server-side apply answers 500 to a body that does not fit the schema.
        500 if !undeclared_fields(&status.message).is_empty() => Problem::Invalid(undeclared_fields(&status.message)),
        500 if status.message.contains("failed to create typed patch object") => Problem::Invalid(Vec::new()),
        _ => Problem::Unavailable,
    }
}

/// The paths before `: field not declared in schema` in an answer to an apply.
fn undeclared_fields(message: &str) -> Vec<String> {
    let before = message.split(": field not declared in schema");
    let mut paths: Vec<_> = before
        .filter_map(|part| part.rsplit(char::is_whitespace).next())
        .filter(|word| word.starts_with('.'))
        .map(str::to_owned)
        .collect();
    if !message.ends_with("field not declared in schema") {
        paths.pop();
    }
    paths
}

/// `conflict with "kubectl" using v1` → `kubectl`.
fn conflicting_manager(message: &str) -> String {
    message.split('"').nth(1).unwrap_or(message).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn error(status: Value) -> ApiError {
        let call = Call {
            verb: "patch",
            resource: "configmaps".to_owned(),
            group: String::new(),
            namespace: "default".to_owned(),
            name: "a".to_owned(),
        };
        ApiError::from_status(call, &serde_json::from_value(status).unwrap())
    }

    #[test]
    fn each_answer_of_the_server_has_its_own_reason_and_says_what_to_do() {
        let table = [
            (
                json!({"code": 403, "message": "configmaps \"a\" is forbidden: User \"u\" cannot patch"}),
                "Forbidden",
                "network-operator rbac",
            ),
            (
                json!({"code": 403, "message": "m", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}),
                "NamespaceTerminating",
                "default",
            ),
            (
                json!({"code": 409, "reason": "Conflict", "message": "m", "details": {"causes": [
                {"reason": "FieldManagerConflict", "message": "conflict with \"kubectl\" using v1", "field": ".data.k"}]}}),
                "FieldConflict",
                "`.data.k` to kubectl",
            ),
            (json!({"code": 409, "reason": "Conflict", "message": "modified"}), "ChangedMeanwhile", "modified"),
            (json!({"code": 409, "reason": "AlreadyExists", "message": "m"}), "NameTaken", "not ours"),
            (
                json!({"code": 422, "reason": "Invalid", "message": "m", "details": {"causes": [{"message": "Invalid value: field is immutable", "field": "spec.selector"}]}}),
                "ImmutableField",
                "onImmutable: recreate",
            ),
            (
                json!({"code": 422, "reason": "Invalid", "message": "m", "details": {"causes": [{"message": "Invalid value: field is immutable", "field": "metadata.uid"}]}}),
                "ChangedMeanwhile",
                "again",
            ),
            (
                json!({"code": 422, "reason": "Invalid", "message": "must be a port", "details": {"causes": [{"message": "must be", "field": "spec.ports[0].port"}]}}),
                "RejectedByServer",
                "`spec.ports[0].port`",
            ),
            (
                json!({"code": 404, "message": "namespaces \"x\" not found", "details": {"name": "x", "kind": "namespaces"}}),
                "KindOrNamespaceMissing",
                "namespace",
            ),
            (json!({"code": 429, "message": "m", "details": {"retryAfterSeconds": 7}}), "Throttled", "slow down"),
            (json!({"code": 500, "message": "etcdserver: request is too large"}), "TooLarge", "too large"),
            (
                json!({"code": 500, "message": "failed to create typed patch object (default/a; v1, Kind=Service): errors:\n  .spec.foo: field not declared in schema\n  .spec.bar.baz: field not declared in schema"}),
                "RejectedByServer",
                "`.spec.foo`, `.spec.bar.baz`",
            ),
            (json!({"code": 503, "message": "m"}), "ApiServerUnavailable", "patch configmaps default/a"),
        ];
        for (status, reason, says) in table {
            let error = error(status.clone());
            assert_eq!(error.reason(), reason, "{status}");
            assert!(error.to_string().contains(says), "{error} should say {says}");
        }
        assert_eq!(
            error(json!({"code": 429, "details": {"retryAfterSeconds": 7}})).retry_after(),
            Some(Duration::from_secs(7))
        );
    }
}
