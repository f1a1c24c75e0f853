//! `network-operator rbac`: the smallest set of rights with which the operator can do what the given rules say.
//!
//! | right | on | why |
//! |---|---|---|
//! | `list`, `watch` | parents, children | the informers |
//! | `patch` | parents' `status` | the report |
//! | `get` | parents' CRDs, with a `ClusterRole` only | their schema, which the rules are checked against before they come into force |
//! | `update` | parents' `finalizers` | owner references that block deletion, where the server enforces permission for them |
//! | `create`, `patch` | children | server-side apply; the server asks for `create` too where there is no such object yet |
//! | `get` | children | whose object is it that has the name of a child |
//! | `delete` | children | children whose rule no longer gives them; left out where no rule deletes |
//! | `create`; `get`, `update` | leases; the one Lease | leader election |

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::output::{self, Outcome};
use super::{crd, input};
use crate::diagnostic::SourceFile;
use crate::rules::{Gvk, OnDelete, OnImmutable, OnRemove, Program};
use crate::yaml_text;

/// Arguments of `rbac`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: network-operator rbac rules/ | kubectl apply -f -")]
pub struct Args {
    /// Rule files, or folders with rule files.
    #[arg(value_name = "PATH", required = true)]
    rules: Vec<PathBuf>,
    /// CRDs of the kinds that take part, for their plural names; the shipped CRD is known.
    #[arg(long, value_name = "FILE")]
    crd: Vec<PathBuf>,
    /// Rights in this namespace only, by roles; may be given several times. Without it: in all, by a cluster role.
    #[arg(short, long, value_name = "NAMESPACE", value_delimiter = ',')]
    namespace: Vec<String>,
    /// The service account that the operator runs as.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "network-operator/network-operator")]
    service_account: String,
    /// Name of the Lease; it lives in the service account's namespace.
    #[arg(long, value_name = "NAME", default_value = "network-operator")]
    lease_name: String,
    /// No rights for leader election, for a `run --leader-elect=false`.
    #[arg(long)]
    no_leader_election: bool,
}

/// Prints service account, roles and bindings.
pub fn main(args: &Args) -> Outcome {
    let programs = input::programs(&args.rules)?;
    let (namespace, account) = args
        .service_account
        .split_once('/')
        .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
        .ok_or_else(|| format!("`{}` is not a service account; write `NAMESPACE/NAME`", args.service_account))?;
    let plurals = Plurals::read(&args.crd)?;
    for gvk in plurals.guessed(&programs) {
        output::note(&format!(
            "warning: the plural name of {} ({}) is a guess: `{}`; give its CRD with `--crd FILE`",
            gvk.kind,
            gvk.group,
            plurals.of(&gvk)
        ));
    }
    let rules: Vec<Value> = rights(&programs, &plurals).iter().map(Right::rule).collect();
    let subject = Subject { namespace, account };
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace},
    })];
    if args.namespace.is_empty() {
        // Objects of the whole cluster; a Role cannot give rights on them.
        let schemas = programs.iter().map(Program::parent).collect::<BTreeSet<_>>().into_iter().map(|parent| {
            let name = format!("{}.{}", plurals.of(parent), parent.group);
            json!({
                "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
                "resourceNames": [name], "verbs": ["get"],
            })
        });
        let rules: Vec<Value> = rules.iter().cloned().chain(schemas).collect();
        objects.extend(subject.roles("ClusterRole", None, "network-operator", &rules));
    }
    for namespace in args.namespace.iter().collect::<BTreeSet<_>>() {
        objects.extend(subject.roles("Role", Some(namespace), "network-operator", &rules));
    }
    if !args.no_leader_election {
        let rules = [
            json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]}),
            json!({
                "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                "resourceNames": [args.lease_name], "verbs": ["get", "update"],
            }),
        ];
        objects.extend(subject.roles("Role", Some(namespace), "network-operator-leader-election", &rules));
    }
    output::data(&format!(
        "# The rights that the rules need, printed by `network-operator rbac`.\n{}",
        yaml_text::documents(&objects)
    ))?;
    Ok(ExitCode::SUCCESS)
}

struct Subject<'a> {
    namespace: &'a str,
    account: &'a str,
}

impl Subject<'_> {
    /// A role and its binding.
    fn roles(&self, kind: &str, namespace: Option<&str>, name: &str, rules: &[Value]) -> [Value; 2] {
        let metadata = match namespace {
            Some(namespace) => json!({"name": name, "namespace": namespace}),
            None => json!({"name": name}),
        };
        let api_version = "rbac.authorization.k8s.io/v1";
        [
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules}),
            json!({
                "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": self.account, "namespace": self.namespace}],
            }),
        ]
    }
}

/// Verbs on some resources of one API group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    group: String,
    resources: Vec<String>,
    verbs: Vec<&'static str>,
}

impl Right {
    fn rule(&self) -> Value {
        json!({"apiGroups": [self.group], "resources": self.resources, "verbs": self.verbs})
    }
}

/// What the operator may do with a resource, in the order in which people list verbs.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// The rights that programs need: resources of one group that need the same verbs stand together.
fn rights(programs: &[Program], plurals: &Plurals) -> Vec<Right> {
    let mut needs: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    let mut need = |gvk: &Gvk, subresource: &str, verbs: &[&'static str]| {
        let resource = format!("{}{subresource}", plurals.of(gvk));
        needs.entry((gvk.group.clone(), resource)).or_default().extend(verbs);
    };
    for program in programs {
        need(program.parent(), "", &["list", "watch"]);
        need(program.parent(), "/status", &["patch"]);
        for (_, gvk, policy) in program.resources() {
            need(gvk, "", &["get", "list", "watch", "create", "patch"]);
            if policy.on_delete == OnDelete::Delete {
                need(program.parent(), "/finalizers", &["update"]);
            }
            if policy.on_remove == OnRemove::Prune || policy.on_immutable == OnImmutable::Recreate {
                need(gvk, "", &["delete"]);
            }
        }
    }
    let mut alike: BTreeMap<(String, Vec<&'static str>), Vec<String>> = BTreeMap::new();
    for ((group, resource), verbs) in needs {
        let verbs = VERBS.into_iter().filter(|verb| verbs.contains(verb)).collect();
        alike.entry((group, verbs)).or_default().push(resource);
    }
    let mut rights: Vec<Right> =
        alike.into_iter().map(|((group, verbs), resources)| Right { group, resources, verbs }).collect();
    rights.sort();
    rights
}

/// Plural names: from CRDs, else by the rule that the built-in kinds follow.
struct Plurals(BTreeMap<(String, String), String>);

impl Plurals {
    fn read(crds: &[PathBuf]) -> Result<Self, String> {
        let mut objects = input::parse(&SourceFile::new(crd::SHIPPED_PATH, crd::SHIPPED))?;
        objects.extend(input::objects(crds)?);
        let mut plurals = BTreeMap::new();
        for object in objects.iter().filter(|object| object.gvk().kind == "CustomResourceDefinition") {
            let text = |pointer: &str| object.value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            if let (Some(group), Some(kind), Some(plural)) =
                (text("/spec/group"), text("/spec/names/kind"), text("/spec/names/plural"))
            {
                plurals.insert((group, kind), plural);
            }
        }
        Ok(Self(plurals))
    }

    fn of(&self, gvk: &Gvk) -> String {
        if let Some(plural) = self.0.get(&(gvk.group.clone(), gvk.kind.clone())) {
            return plural.clone();
        }
        ApiResource::from_gvk(&GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind)).plural
    }

    /// Kinds whose plural name is only a guess: neither from a CRD nor one of Kubernetes' own groups.
    fn guessed(&self, programs: &[Program]) -> Vec<Gvk> {
        let kinds =
            programs.iter().flat_map(|program| program.child_kinds().into_iter().chain([program.parent().clone()]));
        let mut guessed: Vec<Gvk> = kinds
            .filter(|gvk| !self.0.contains_key(&(gvk.group.clone(), gvk.kind.clone())))
            .filter(|gvk| gvk.group.contains('.') && !gvk.group.ends_with(".k8s.io"))
            .collect();
        guessed.sort();
        guessed.dedup();
        guessed
    }
}
