//! The cluster as it is now, read once, for `diff` and `explain`: the store that the operator would have after its first
//! list, and the whole objects besides.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::run::kube_config;
use crate::cluster::Cluster;
use crate::identity::{MANAGED_BY, MANAGER, Parent};
use crate::kinds::{Kind, Kinds};
use crate::lease::Leadership;
use crate::observe::{self, Interest};
use crate::plan::{self, Step};
use crate::rules::{Gvk, Program, Rendered};
use crate::store::{Key, Store};

/// Longest that one call to the API server may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// How the cluster is reached.
#[derive(Debug, clap::Args)]
pub struct Connection {
    /// Kubeconfig file; without it KUBECONFIG, ~/.kube/config, or the pod's service account is used.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Connection {
    /// Connects; also says the kubeconfig's namespace.
    pub async fn open(&self) -> Result<(Cluster, String), String> {
        let config = kube_config(self.kubeconfig.as_deref(), self.context.as_deref()).await?;
        let (server, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
        // Nothing is written here, so nobody needs to be the leader.
        let cluster = Cluster::connect(config, DEADLINE, Arc::new(Leadership::unlimited()))
            .map_err(|error| format!("cannot set up the connection to {server}: {error}"))?;
        Ok((cluster, namespace))
    }
}

/// Runs a future on a runtime of its own.
pub fn block_on<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    runtime.block_on(future)
}

/// What the cluster has of some rules' parents and children.
pub struct Live {
    /// The connection.
    pub cluster: Cluster,
    kinds: Kinds,
    store: Store,
    /// Every parent and child that was listed.
    objects: BTreeMap<(Gvk, String, String), Value>,
    /// Parents, by namespace and name, with the object.
    parents: Vec<(Arc<Kind>, Key, Value)>,
}

/// A parent of the cluster.
pub struct LiveParent<'a> {
    /// Who it is.
    pub parent: Parent,
    /// The whole object.
    pub object: &'a Value,
    key: &'a Key,
}

impl Live {
    /// Lists the parents and children of these rules, in some namespaces or in all.
    pub async fn read(cluster: Cluster, programs: &[Program], namespaces: &[String]) -> Result<Self, String> {
        let mut live = Self {
            cluster,
            kinds: Kinds::default(),
            store: Store::default(),
            objects: BTreeMap::new(),
            parents: Vec::new(),
        };
        let mut interest = Interest::default();
        let mut children = BTreeMap::new();
        let mut parents = BTreeMap::new();
        for program in programs {
            let parent = live.discover(program.parent()).await?;
            interest.add(program, parent.id);
            parents.insert(parent.id, parent);
            for gvk in program.child_kinds() {
                let child = live.discover(&gvk).await?;
                children.insert(child.id, child);
            }
        }
        let everywhere = namespaces.is_empty().then_some(None).into_iter();
        for namespace in everywhere.chain(namespaces.iter().map(|namespace| Some(namespace.as_str()))) {
            for kind in parents.values() {
                for object in live.list(kind, namespace, "").await? {
                    live.add_parent(kind, object)?;
                }
            }
            for kind in children.values() {
                for object in live.list(kind, namespace, &format!("{MANAGED_BY}={MANAGER}")).await? {
                    live.add_child(kind, object, &interest);
                }
            }
        }
        live.parents.sort_by(|(_, a, _), (_, b, _)| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        Ok(live)
    }

    async fn discover(&self, gvk: &Gvk) -> Result<Arc<Kind>, String> {
        if let Some(kind) = self.kinds.find(gvk) {
            return Ok(kind);
        }
        match self.cluster.discover(gvk).await.map_err(|error| error.to_string())? {
            Some(served) => Ok(self.kinds.add(gvk.clone(), served.resource)),
            None => Err(format!(
                "the API server does not know {} ({}/{}); is its CRD installed?",
                gvk.kind, gvk.group, gvk.version
            )),
        }
    }

    async fn list(&self, kind: &Kind, namespace: Option<&str>, labels: &str) -> Result<Vec<DynamicObject>, String> {
        self.cluster.list(kind, namespace, labels).await.map_err(|error| error.to_string())
    }

    fn add_parent(&mut self, kind: &Arc<Kind>, object: DynamicObject) -> Result<(), String> {
        let key = key(kind, &object);
        let record = observe::parent(object, kind, None).map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_slice(&record.json).map_err(|error| error.to_string())?;
        if !record.deleting {
            self.parents.push((kind.clone(), key.clone(), value));
        }
        self.store.parent_seen(&key, record, true);
        Ok(())
    }

    fn add_child(&mut self, kind: &Kind, object: DynamicObject, interest: &Interest) {
        let key = key(kind, &object);
        let place = (kind.gvk.clone(), key.namespace.to_string(), key.name.to_string());
        self.objects.insert(place, whole(kind, &object));
        if let Some(record) = observe::child(object, kind, interest, None) {
            self.store.child_seen(&key, record, true);
        }
    }

    /// The parents, in order of namespace and name.
    pub fn parents(&self) -> impl Iterator<Item = LiveParent<'_>> {
        self.parents.iter().map(|(kind, key, object)| LiveParent {
            parent: Parent {
                gvk: kind.gvk.clone(),
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                uid: super::input::metadata(object, "uid").to_owned(),
            },
            object,
            key,
        })
    }

    /// What the rules make of a parent, with its children as they are.
    pub fn render<'p>(&self, parent: &LiveParent<'_>, programs: &[&'p Program]) -> Vec<(&'p Program, Rendered)> {
        let observed = |program: &Program| self.store.observed(parent.key, &parent.parent.uid, program.name());
        programs.iter().map(|program| (*program, program.render(parent.object, &observed(program)))).collect()
    }

    /// What a program may read of a parent's children.
    pub fn observed(&self, parent: &LiveParent<'_>, program: &Program) -> crate::rules::Observed {
        self.store.observed(parent.key, &parent.parent.uid, program.name())
    }

    /// What the operator would do.
    pub fn plan(&self, parent: &LiveParent<'_>, rendered: &[(&Program, Rendered)]) -> Vec<Step> {
        let existing = self.store.children_of(parent.key, &self.kinds);
        let named: Vec<_> = rendered.iter().map(|(program, rendered)| (program.name(), rendered)).collect();
        let context = plan::Context {
            lists: &|gvk: &Gvk| self.kinds.find(gvk).map(|kind| kind.lists.clone()).unwrap_or_default(),
            frozen: &|_| false,
        };
        plan::plan(&parent.parent, &named, &existing, &context)
    }

    /// A kind that takes part.
    pub fn kind(&self, gvk: &Gvk) -> Option<Arc<Kind>> {
        self.kinds.find(gvk)
    }

    /// A listed child, whole.
    pub fn child(&self, gvk: &Gvk, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(gvk.clone(), namespace.to_owned(), name.to_owned()))
    }
}

fn key(kind: &Kind, object: &DynamicObject) -> Key {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Key::new(kind.id, &text(&object.metadata.namespace), &text(&object.metadata.name))
}

/// An object as one value; lists leave its kind out.
pub fn whole(kind: &Kind, object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    value["apiVersion"] = json!(kind.resource.api_version);
    value["kind"] = json!(kind.resource.kind);
    value
}
