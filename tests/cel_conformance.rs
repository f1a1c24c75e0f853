//! Our expression engine answers as Kubernetes does: every expression in `cel_conformance/expressions.txt`, and every example
//! in the functions' documentation, is evaluated by our engine and by a real API server, and the answers are compared.
//!
//! A CRD makes the server evaluate: each expression is the rule `dyn(EXPRESSION) == dyn(OUR ANSWER)` of a property of its own.
//! What does not compile there is refused with the CRD, with the property's path; what fails or answers differently comes
//! back the same way when an object is created (`dryRun`).

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::format_collect,
    clippy::doc_markdown,
    reason = "a test that cannot be set up has failed, and it writes to a server of its own"
)]

#[path = "support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use cel::objects::{Key, OptionalValue};
use kube::api::{Api, DynamicObject, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use network_operator::rules::expr::{CelValue, Expr, Scope};
use network_operator::rules::functions::{functions, known_differences};
use serde_json::{Value as Json, json};
use support::ControlPlane;

/// What an expression is worth.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    /// A value, as a CEL expression that has it.
    Value(String),
    /// It does not compile, or fails; with the reason.
    Error(String),
    /// Only the server says this: something other than the value that was asked about.
    Other,
}

fn our_answer(source: &str) -> Answer {
    match Expr::parse(source) {
        Err(faults) => Answer::Error(faults[0].message.clone()),
        Ok(expr) => match expr.eval(&Scope::new()) {
            Err(fault) => Answer::Error(fault.message),
            Ok(value) => Answer::Value(literal(&value)),
        },
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            ' '..='~' => quoted.push(c),
            c => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
        }
    }
    quoted + "'"
}

/// A value as a CEL expression; elements are `dyn`, since Kubernetes wants those of a literal to be of one type.
fn literal(value: &CelValue) -> String {
    match value {
        CelValue::Int(i64::MIN) => "(-9223372036854775807 - 1)".to_owned(),
        CelValue::Int(i) => i.to_string(),
        CelValue::UInt(u) => format!("{u}u"),
        CelValue::Float(f) if f.is_nan() => "double('NaN')".to_owned(),
        CelValue::Float(f) if f.is_infinite() => format!("double('{}Inf')", if *f < 0.0 { "-" } else { "" }),
        CelValue::Float(f) => format!("double('{f:e}')"),
        CelValue::Bool(b) => b.to_string(),
        CelValue::Null => "null".to_owned(),
        CelValue::String(s) => quoted(s),
        CelValue::Bytes(bytes) => {
            format!("b'{}'", bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>())
        }
        CelValue::Timestamp(at) => format!("timestamp('{}')", at.to_rfc3339_opts(chrono::SecondsFormat::Nanos, true)),
        CelValue::Duration(by) => format!("duration('{}ns')", by.num_nanoseconds().unwrap()),
        CelValue::List(items) => {
            format!("[{}]", items.iter().map(|item| format!("dyn({})", literal(item))).collect::<Vec<_>>().join(", "))
        }
        CelValue::Map(map) => {
            let key = |key: &Key| match key {
                Key::Int(i) => i.to_string(),
                Key::Uint(u) => format!("{u}u"),
                Key::Bool(b) => b.to_string(),
                Key::String(s) => quoted(s),
            };
            let mut entries: Vec<String> =
                map.map.iter().map(|(k, v)| format!("dyn({}): dyn({})", key(k), literal(v))).collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        CelValue::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>().map(OptionalValue::value) {
            Some(Some(inner)) => format!("optional.of(dyn({}))", literal(inner)),
            Some(None) => "optional.none()".to_owned(),
            None => format!("a {}", opaque.runtime_type_name()),
        },
        other => format!("{other:?}"),
    }
}

/// The API server that is asked, and what the objects of one test are called there.
struct Server {
    client: Client,
    name: &'static str,
}

impl Server {
    async fn new(kubeconfig: &Path, name: &'static str) -> Self {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Self { client: Client::try_from(config).unwrap(), name }
    }

    /// The group of the test's CRDs.
    fn group(&self) -> String {
        format!("{}.example.com", self.name)
    }

    /// The faults that the server finds in an object, by the number of the property that they are about.
    async fn create(&self, resource: &ApiResource, object: Json, dry_run: bool) -> BTreeMap<usize, String> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let mut tries = 0;
        loop {
            match api.create(&PostParams { dry_run, ..PostParams::default() }, &object).await {
                Ok(_) => return BTreeMap::new(),
                Err(kube::Error::Api(status)) if status.code == 422 => {
                    let causes = status.details.map(|details| details.causes).unwrap_or_default();
                    return causes
                        .into_iter()
                        .filter_map(|cause| {
                            Some((cause.field.split(['.', '[', ']']).find_map(property)?, cause.message))
                        })
                        .collect();
                }
                // A CRD is served a moment after it was created.
                Err(kube::Error::Api(status)) if status.code == 404 && tries < 100 => {
                    tries += 1;
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// Asks about rules that should all hold: which of them do not, and what the server says of each.
    async fn broken_rules(&self, rules: &[String]) -> BTreeMap<usize, Answer> {
        let mut broken = self.broken_in_crds(rules).await;
        let too_expensive = |answer: &Answer| matches!(answer, Answer::Error(message) if message.contains("cost"));
        let again: Vec<usize> = broken.iter().filter(|(_, answer)| too_expensive(answer)).map(|(at, _)| *at).collect();
        broken.retain(|_, answer| !too_expensive(answer));
        for part in again.chunks(20) {
            let rules: Vec<&str> = part.iter().map(|at| rules[*at].as_str()).collect();
            for (at, answer) in self.broken_in_policy(&rules).await {
                broken.insert(part[at], answer);
            }
        }
        broken
    }

    /// Asks about rules that a CRD cannot hold, because their cost cannot be estimated from their types alone: a policy for
    /// ConfigMaps has no such limit. It tells only the first rule that does not hold, which is left out then.
    async fn broken_in_policy(&self, rules: &[&str]) -> BTreeMap<usize, Answer> {
        let policies =
            resource("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies");
        let bindings = resource(
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
        );
        let maps = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
        let maps: Api<DynamicObject> = Api::default_namespaced_with(self.client.clone(), &maps);
        let mut broken = BTreeMap::new();
        loop {
            static ROUND: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
            let round = ROUND.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let name = format!("{}{round}", self.name);
            let label = json!({"matchLabels": {"probe": name}});
            let left = (0..rules.len()).filter(|at| !broken.contains_key(at));
            let mut validations: Vec<Json> =
                left.map(|at| json!({"expression": rules[at], "message": format!("DIFFERENT e{at} ")})).collect();
            // Shows that the policy is in force, when all other rules hold.
            validations.push(json!({"expression": "false", "message": "ALL HOLD"}));
            let policy = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
                "spec": {
                    "matchConstraints": {
                        "objectSelector": label,
                        "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
                    },
                    "validations": validations,
                },
            });
            let refused = self.create(&policies, policy, false).await;
            assert!(refused.is_empty(), "{refused:?}");
            let binding = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
                "spec": {"policyName": name, "validationActions": ["Deny"]},
            });
            self.create(&bindings, binding, false).await;
            let map =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"probe": name}}});
            let map: DynamicObject = serde_json::from_value(map).unwrap();
            let mut message = None;
            for _ in 0..200 {
                match maps.create(&PostParams { dry_run: true, ..PostParams::default() }, &map).await {
                    Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
                    Err(kube::Error::Api(status)) => {
                        message = Some(status.message);
                        break;
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            let message = message.expect("the policy is never enforced");
            if message.contains("ALL HOLD") {
                return broken;
            }
            let failed = message.split_once("DIFFERENT e").and_then(|(_, rest)| rest.split_once(' ')?.0.parse().ok());
            // An expression that fails is quoted in the message.
            let failed = failed.or_else(|| (0..rules.len()).find(|at| message.contains(rules[*at])));
            let failed: usize = failed.unwrap_or_else(|| panic!("{message}"));
            let answer = if message.contains("DIFFERENT") { Answer::Other } else { Answer::Error(message) };
            assert!(broken.insert(failed, answer).is_none());
        }
    }

    async fn broken_in_crds(&self, rules: &[String]) -> BTreeMap<usize, Answer> {
        let batches = rules.chunks(BATCH).enumerate().map(|(batch, part)| self.broken_in_crd(batch, part));
        let answers = futures::future::join_all(batches).await;
        answers
            .into_iter()
            .enumerate()
            .flat_map(|(batch, broken)| broken.into_iter().map(move |(at, answer)| (batch * BATCH + at, answer)))
            .collect()
    }

    /// One CRD with a property per rule, without those that the server refuses; then one object of it.
    async fn broken_in_crd(&self, batch: usize, rules: &[String]) -> BTreeMap<usize, Answer> {
        let mut broken = BTreeMap::new();
        let (kind, plural) = (format!("Probe{batch}"), format!("probe{batch}s"));
        let crds = resource("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions");
        let left = loop {
            let left: Vec<usize> = (0..rules.len()).filter(|at| !broken.contains_key(at)).collect();
            let property = |at: &usize| {
                let rule = json!([{"rule": rules[*at], "message": "DIFFERENT"}]);
                (format!("e{at}"), json!({"type": "string", "x-kubernetes-validations": rule}))
            };
            let properties: serde_json::Map<String, Json> = left.iter().map(property).collect();
            let spec = json!({"type": "object", "properties": properties});
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
            let singular = plural.trim_end_matches('s');
            let crd = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.{}", self.group())},
                "spec": {
                    "group": self.group(), "scope": "Cluster", "versions": [version],
                    "names": {"kind": kind, "plural": plural, "singular": singular},
                },
            });
            let refused = self.create(&crds, crd, false).await;
            if refused.is_empty() {
                break left;
            }
            broken.extend(refused.into_iter().map(|(at, message)| (at, Answer::Error(message))));
        };
        let spec: serde_json::Map<String, Json> = left.iter().map(|at| (format!("e{at}"), json!(""))).collect();
        let object = json!({
            "apiVersion": format!("{}/v1", self.group()), "kind": kind, "metadata": {"name": "probe"}, "spec": spec,
        });
        for (at, message) in self.create(&resource(&self.group(), &kind, &plural), object, true).await {
            let answer = if message.contains("DIFFERENT") { Answer::Other } else { Answer::Error(message) };
            broken.insert(at, answer);
        }
        broken
    }
}

/// How many rules one CRD holds.
const BATCH: usize = 60;

/// The number of the rule's property, when part of a field's path is one.
fn property(part: &str) -> Option<usize> {
    part.strip_prefix('e')?.parse().ok()
}

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
}

fn expressions() -> Vec<&'static str> {
    include_str!("cel_conformance/expressions.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// The rule that holds on the server exactly when it answers as we do, if we answer at all. An expression of ours that fails
/// is compared with itself: the server must fail too.
fn rule(source: &str, ours: &Answer) -> String {
    match ours {
        // NaN is equal to nothing, itself included.
        Answer::Value(literal) if literal == "double('NaN')" => format!("string({source}) == 'NaN'"),
        Answer::Value(literal) => format!("dyn({source}) == dyn({literal})"),
        _ => format!("dyn({source}) == dyn({source})"),
    }
}

/// Asks the server about rules that should all hold.
fn broken_rules(name: &'static str, rules: &[String]) -> BTreeMap<usize, Answer> {
    let kubeconfig = ControlPlane::shared().kubeconfig();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { Server::new(kubeconfig, name).await.broken_rules(rules).await })
}

#[test]
fn answers_are_those_of_a_kubernetes_api_server() {
    let expressions = expressions();
    assert!(expressions.len() >= 150, "only {} expressions", expressions.len());
    let ours: Vec<Answer> = expressions.iter().map(|source| our_answer(source)).collect();
    let rules: Vec<String> = expressions.iter().zip(&ours).map(|(source, ours)| rule(source, ours)).collect();
    let broken = broken_rules("answers", &rules);
    let listed: BTreeSet<&str> = known_differences().iter().flat_map(|known| known.examples).copied().collect();
    let mut wrong = Vec::new();
    for (at, (source, ours)) in expressions.iter().zip(&ours).enumerate() {
        let theirs = broken.get(&at);
        let same = match ours {
            // Nothing but an error differs from itself; NaN is asked about in another way.
            Answer::Error(_) => theirs.is_some(),
            _ => theirs.is_none(),
        };
        if same == listed.contains(source) {
            let what = if same { "listed as a difference, and is none" } else { "different" };
            wrong.push(format!("{source}: {what}\n    ours: {ours:?}\n    Kubernetes: {theirs:?}"));
        }
    }
    let unknown: Vec<&&str> = listed.iter().filter(|listed| !expressions.contains(listed)).collect();
    assert!(unknown.is_empty(), "listed as different, but not asked: {unknown:?}");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), expressions.len(), wrong.join("\n"));
    println!("{} expressions, {} of them known to differ", expressions.len(), listed.len());
}

#[test]
fn documented_examples_hold_in_kubernetes_exactly_where_the_documentation_says_so() {
    let examples: Vec<(String, bool)> = functions()
        .iter()
        .flat_map(|doc| {
            doc.examples.iter().map(|(source, result)| (format!("dyn({source}) == dyn({result})"), doc.kubernetes))
        })
        .collect();
    let rules: Vec<String> = examples.iter().map(|(rule, _)| rule.clone()).collect();
    let broken = broken_rules("examples", &rules);
    let mut wrong = Vec::new();
    for (at, (rule, in_kubernetes)) in examples.iter().enumerate() {
        let theirs = broken.get(&at);
        let as_documented = if *in_kubernetes { theirs.is_none() } else { matches!(theirs, Some(Answer::Error(_))) };
        if !as_documented {
            wrong.push(format!("{rule}: in Kubernetes: {in_kubernetes}, and there: {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
