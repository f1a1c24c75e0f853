//! A namespace of its own for a test, with the operator's account in it.

use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::audit::Audit;
use super::control_plane::{Body, ControlPlane, Refused, repository};
use super::operator::{ACCOUNT, Starter};
use super::resource::{CONFIG_MAPS, ENDPOINT_SLICES, NETWORKS, Resource, SERVICE_ACCOUNTS, SERVICES};
use super::{ensure, eventually};

/// The rules of every role that is shipped: of the `ClusterRole`, and of the `Role` in the operator's own namespace.
static SHIPPED_RIGHTS: LazyLock<Value> = LazyLock::new(|| {
    let text = std::fs::read_to_string(repository().join("kustomize/base/rbac.yaml")).expect("rbac.yaml");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("rbac.yaml is YAML");
    let roles = documents.iter().filter_map(|document| document["rules"].as_array());
    let rules: Vec<Value> = roles.flatten().cloned().collect();
    assert!(!rules.is_empty(), "no role in rbac.yaml");
    Value::Array(rules)
});

/// A namespace on a control plane, and files of its own.
pub struct Space<'a> {
    /// The control plane.
    pub plane: &'a ControlPlane,
    /// The namespace.
    pub name: String,
    /// Gone at the end of the test.
    pub folder: TempDir,
}

impl Space<'static> {
    /// A new namespace on the control plane that all tests share.
    pub fn new() -> Self {
        Self::on(ControlPlane::shared())
    }
}

impl<'a> Space<'a> {
    /// A new namespace on this control plane. The operator's account there has the rights that are shipped, those on objects
    /// in namespaces for this one only.
    pub fn on(plane: &'a ControlPlane) -> Self {
        let space = Self::without_rights(plane);
        space.grant(&SHIPPED_RIGHTS);
        space
    }

    /// A new namespace in which the operator's account may not do anything.
    pub fn without_rights(plane: &'a ControlPlane) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // The runner names threads after tests; in a log, that says whose objects these are.
        let thread = std::thread::current().name().unwrap_or("main").to_owned();
        let words: String = thread.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(48).collect();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", words.to_lowercase().trim_matches('-'));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let space = Self { plane, name, folder };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space.name}});
        plane.call("POST", "/api/v1/namespaces", Body::Object(&namespace)).expect("create a namespace");
        space.create(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}));
        space
    }

    /// The rules of the roles that are shipped.
    pub fn shipped_rights() -> Value {
        SHIPPED_RIGHTS.clone()
    }

    /// Gives the operator's account these rights in this namespace, instead of those that it had.
    pub fn grant(&self, rules: &Value) {
        self.grant_to(self, rules);
    }

    /// Gives the account of another namespace these rights in this one.
    pub fn grant_to(&self, other: &Space<'_>, rules: &Value) {
        let (cluster_wide, namespaced): (Vec<_>, Vec<_>) = rules
            .as_array()
            .expect("a list of rules")
            .iter()
            .cloned()
            .partition(|rule| rule["apiGroups"] == json!(["apiextensions.k8s.io"]));
        let account = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": other.name});
        self.apply(&role("Role", ACCOUNT, &namespaced), "test");
        self.apply(&binding("Role", ACCOUNT, &account), "test");
        if !cluster_wide.is_empty() {
            // Objects of the whole cluster, so their names tell the namespaces apart.
            let name = format!("{}-in-{}", other.name, self.name);
            self.plane.apply_cluster_wide("clusterroles", &role("ClusterRole", &name, &cluster_wide));
            self.plane.apply_cluster_wide("clusterrolebindings", &binding("ClusterRole", &name, &account));
        }
    }

    /// Prepares an operator for this namespace.
    pub fn operator(&self) -> Starter<'_> {
        Starter::new(self)
    }

    /// What the operator's account asks from now on.
    pub fn audit(&self) -> Audit {
        Audit::from_now(self.plane.said("audit").into(), format!("system:serviceaccount:{}:{ACCOUNT}", self.name))
    }

    /// A kubeconfig with a fresh token of the operator's account.
    pub fn kubeconfig(&self, file: &str) -> std::path::PathBuf {
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600}});
        let path = format!("{}/token", SERVICE_ACCOUNTS.one(&self.name, ACCOUNT));
        let answer = self.plane.call("POST", &path, Body::Object(&request)).expect("a token");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.plane.said("server"), "certificate-authority": self.plane.said("ca")}}],
            "users": [{"name": "test", "user": {"token": answer["status"]["token"]}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": self.name}}],
        });
        let path = self.folder.path().join(file);
        std::fs::write(&path, config.to_string()).expect("write a kubeconfig");
        path
    }

    /// The folder with the shipped rules.
    pub fn shipped_rules() -> std::path::PathBuf {
        Path::new(repository()).join("rules")
    }

    /// Creates an object in this namespace.
    pub fn create(&self, object: Value) -> Value {
        self.try_create(object).unwrap_or_else(|refused| panic!("create: {refused}"))
    }

    /// Creates an object in this namespace, if the API server wants to.
    #[expect(clippy::needless_pass_by_value, reason = "tests write the object where they create it")]
    pub fn try_create(&self, object: Value) -> Result<Value, Refused> {
        let resource = Resource::of_kind(object["kind"].as_str().unwrap_or_default());
        self.plane.call("POST", &resource.all(&self.name), Body::Object(&object))
    }

    /// Applies an object as this field manager, with force.
    pub fn apply(&self, object: &Value, manager: &str) -> Value {
        let resource = Resource::of_kind(object["kind"].as_str().unwrap_or_default());
        let name = object["metadata"]["name"].as_str().expect("a name");
        let path = format!("{}?fieldManager={manager}&force=true", resource.one(&self.name, name));
        self.plane.call("PATCH", &path, Body::Apply(object)).unwrap_or_else(|refused| panic!("apply {name}: {refused}"))
    }

    /// Reads an object; `None` if there is none.
    pub fn find(&self, resource: Resource, name: &str) -> Option<Value> {
        match self.plane.call("GET", &resource.one(&self.name, name), Body::None) {
            Ok(object) => Some(object),
            Err(refused) if refused.code == 404 => None,
            Err(refused) => panic!("get {} {name}: {refused}", resource.plural),
        }
    }

    /// Reads an object that must be there.
    pub fn get(&self, resource: Resource, name: &str) -> Value {
        self.find(resource, name).unwrap_or_else(|| panic!("there is no {} {name}", resource.plural))
    }

    /// All objects of a kind.
    pub fn list(&self, resource: Resource) -> Vec<Value> {
        let list = self.plane.call("GET", &resource.all(&self.name), Body::None).expect("a list");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Changes an object by a merge patch, as a person would.
    #[expect(clippy::needless_pass_by_value, reason = "tests write the patch where they use it")]
    pub fn change(&self, resource: Resource, name: &str, patch: Value) -> Value {
        let url = format!("{}?fieldManager=a-person", resource.one(&self.name, name));
        self.plane
            .call("PATCH", &url, Body::MergePatch(&patch))
            .unwrap_or_else(|refused| panic!("change {} {name}: {refused}", resource.plural))
    }

    /// Deletes an object; its dependents follow in the background.
    pub fn delete(&self, resource: Resource, name: &str) {
        let path = format!("{}?propagationPolicy=Background", resource.one(&self.name, name));
        self.plane
            .call("DELETE", &path, Body::None)
            .unwrap_or_else(|refused| panic!("delete {} {name}: {refused}", resource.plural));
    }

    /// kubectl as the administrator, in this namespace.
    pub fn kubectl(&self, arguments: &[&str], stdin: &str) -> (bool, String) {
        self.plane.kubectl(&[&["--namespace", &self.name], arguments].concat(), stdin)
    }

    /// Waits until an object is there and `check` has nothing against it.
    pub fn until<T>(&self, resource: Resource, name: &str, mut check: impl FnMut(&Value) -> Result<T, String>) -> T {
        eventually(&format!("{} {}/{name}", resource.plural, self.name), || match self.find(resource, name) {
            Some(object) => check(&object).map_err(|refusal| format!("{refusal}: {object:#}")),
            None => Err("it is not there".to_owned()),
        })
    }

    /// Waits until an object is gone.
    pub fn until_gone(&self, resource: Resource, name: &str) {
        eventually(&format!("{} {}/{name} gone", resource.plural, self.name), || {
            ensure(self.find(resource, name).is_none(), "it is still there")
        });
    }

    /// Waits until the operator has seen a Network as it is and says that it is ready, or is not; gives its `Ready` condition.
    pub fn until_condition(&self, name: &str, status: &str, reason: &str) -> Value {
        self.until(NETWORKS, name, |object| {
            let ready = condition(object, "Ready").ok_or("it has no condition Ready")?;
            ensure(object["status"]["observedGeneration"] == object["metadata"]["generation"], "not seen yet")?;
            ensure(ready["status"] == status && ready["reason"] == reason, format!("not {status} {reason}"))?;
            Ok(ready.clone())
        })
    }

    /// Waits until a Network is ready.
    pub fn until_ready(&self, name: &str) -> Value {
        self.until_condition(name, "True", "Reconciled")
    }

    /// Every child of the shipped kinds in this namespace, as `Kind name` → UID.
    pub fn children(&self) -> std::collections::BTreeMap<String, String> {
        let kinds = [("ConfigMap", CONFIG_MAPS), ("Service", SERVICES), ("EndpointSlice", ENDPOINT_SLICES)];
        let mut found = std::collections::BTreeMap::new();
        for (kind, resource) in kinds {
            for object in self.list(resource) {
                if object["metadata"]["labels"]["samplecrd.k8s.io/network"].is_string() {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
                    found.insert(format!("{kind} {name}"), uid.to_owned());
                }
            }
        }
        found
    }
}

fn role(kind: &str, name: &str, rules: &[Value]) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rules})
}

fn binding(kind: &str, role: &str, account: &Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}, "subjects": [account]})
}

/// A Network.
#[expect(clippy::needless_pass_by_value, reason = "tests write the spec where they use it")]
pub fn network(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "metadata": {"name": name}, "spec": spec})
}

/// A condition of an object.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}
