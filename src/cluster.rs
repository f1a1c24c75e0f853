//! The cluster: the one module that writes to the API server, and the few reads that are not watches.
//!
//! Every write is a server-side apply with field manager `network-operator`, or a delete, and every one carries a
//! precondition, so that a stale idea of the cluster can fail but never harm:
//!
//! * A *create* is an apply whose body says `resourceVersion: "1"`. No stored object can have it (etcd's first write is
//!   revision 2), so the server creates the object if there is none and answers 409 without touching it if there is one. That
//!   refuses what is not ours atomically and without a read, and unlike a POST leaves an Apply entry in `managedFields`,
//!   so that a field dropped from a rule later goes away.
//! * An *update* says the UID of the object that it is meant for. If that object is gone, or another has taken its name, the
//!   server refuses.
//! * A *delete* has UID and resourceVersion as preconditions.
//!
//! Every call has a deadline of ours; kube's own retry is off (it would try for minutes inside one call), since the work
//! queue retries whole reconciles.

#![expect(clippy::disallowed_methods, reason = "this is the one module that writes to the API server")]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::discovery::{ApiCapabilities, Scope};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::api_error::{ApiError, Call, Problem};
use crate::identity::MANAGER;
use crate::kinds::Kind;
use crate::lease::Leadership;
use crate::rules::Gvk;

/// No stored object has this resourceVersion.
const NEVER: &str = "1";

/// What servers up to 1.22 say to [`NEVER`] where they should create a Service.
const REFUSES_CREATE: &str = "resourceVersion should not be set on objects to be created";

/// What an apply must find.
#[derive(Debug, Clone, Copy)]
pub enum Expect<'a> {
    /// Nothing of that name.
    Nothing,
    /// The object with this UID.
    Object(&'a str),
}

/// A kind as discovery describes it.
#[derive(Debug, Clone)]
pub struct Served {
    /// For URLs.
    pub resource: ApiResource,
    /// Objects live in namespaces.
    pub namespaced: bool,
    /// It has the status subresource.
    pub has_status: bool,
}

/// A connection to the API server.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    deadline: Duration,
    leadership: Arc<Leadership>,
}

impl Cluster {
    /// Connects with `config`; `deadline` bounds every single call, and writes are sent only while `leadership` lasts.
    pub fn connect(mut config: Config, deadline: Duration, leadership: Arc<Leadership>) -> Result<Self, kube::Error> {
        config.default_retry = false;
        config.headers.push((
            http::header::USER_AGENT,
            http::HeaderValue::from_static(concat!("network-operator/", env!("CARGO_PKG_VERSION"))),
        ));
        Ok(Self { client: Client::try_from(config)?, deadline, leadership })
    }

    /// The client, for watches. Writes go through this module only.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Asks discovery for a kind. `Ok(None)`: the server does not know it (its CRD is not installed).
    pub async fn discover(&self, gvk: &Gvk) -> Result<Option<Served>, ApiError> {
        let call = Call {
            verb: "discover",
            resource: gvk.kind.clone(),
            group: gvk.group.clone(),
            namespace: String::new(),
            name: String::new(),
        };
        let kube_gvk = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
        let found = kube::discovery::pinned_kind(&self.client, &kube_gvk);
        match tokio::time::timeout(self.deadline, found).await {
            Err(_) => Err(ApiError::deadline(call, self.deadline)),
            Ok(Ok((resource, capabilities))) => Ok(Some(served(resource, &capabilities))),
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(None),
            Ok(Err(kube::Error::Discovery(_))) => Ok(None),
            Ok(Err(error)) => Err(ApiError::from_kube(call, &error)),
        }
    }

    /// The schema of a kind that a CRD defines, in the form of that CRD; `None` if the server does not tell.
    ///
    /// It comes from the server's `OpenAPI` v3 document, which every authenticated user may read; where there is none (before
    /// Kubernetes 1.24) or it does not have the kind yet, from the CRD itself, which takes a right of its own.
    pub async fn crd(&self, gvk: &Gvk, resource: &ApiResource) -> Result<Option<Value>, ApiError> {
        let path = format!("/openapi/v3/apis/{}/{}", gvk.group, gvk.version);
        let call = Call {
            verb: "get",
            resource: path.clone(),
            group: String::new(),
            namespace: String::new(),
            name: String::new(),
        };
        if let Ok(request) = http::Request::get(path).body(Vec::new())
            && let Ok(document) = self.bounded(call, self.client.request::<Value>(request)).await
            && let Some(crd) = crd_from_openapi(&document, gvk, &resource.plural)
        {
            return Ok(Some(crd));
        }
        let name = format!("{}.{}", resource.plural, resource.group);
        let crds = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &ApiResource::from_gvk(&crds));
        let call = Call {
            verb: "get",
            resource: "customresourcedefinitions".to_owned(),
            group: "apiextensions.k8s.io".to_owned(),
            namespace: String::new(),
            name: name.clone(),
        };
        let found = self.bounded(call, api.get_opt(&name)).await?;
        Ok(found.map(|crd| {
            let mut whole = crd.data;
            whole["apiVersion"] = json!("apiextensions.k8s.io/v1");
            whole["kind"] = json!("CustomResourceDefinition");
            whole
        }))
    }

    /// Applies a child. `force` takes fields that other managers own.
    pub async fn apply(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        body: &Value,
        expect: Expect<'_>,
        force: bool,
    ) -> Result<DynamicObject, ApiError> {
        let answer = self.apply_body(kind, namespace, name, &expecting(body, expect), force).await;
        match answer {
            // Up to Kubernetes 1.22 the storage of Services has a create-on-update of its own, which answers so where there is
            // no such Service. There we look and then apply without the precondition; the race that this leaves is as small
            // as it was for everyone before.
            Err(error) if matches!(expect, Expect::Nothing) && error.detail.contains(REFUSES_CREATE) => {
                if self.metadata(kind, namespace, name).await?.is_some() {
                    return Err(ApiError { problem: Problem::Changed, ..error });
                }
                self.apply_body(kind, namespace, name, body, force).await
            }
            answer => answer,
        }
    }

    async fn apply_body(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        body: &Value,
        force: bool,
    ) -> Result<DynamicObject, ApiError> {
        let mut params = PatchParams::apply(MANAGER);
        params.force = force;
        let api = self.api(kind, namespace);
        let patch = Patch::Apply(body);
        self.write(call("patch", kind, "", namespace, name), api.patch(name, &params, &patch)).await
    }

    /// What an apply would make of a child, without making it so. Not subject to leadership: nothing is written.
    pub async fn dry_run(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        body: &Value,
        expect: Expect<'_>,
        force: bool,
    ) -> Result<DynamicObject, ApiError> {
        let body = expecting(body, expect);
        let mut params = PatchParams::apply(MANAGER).dry_run();
        params.force = force;
        let api = self.api(kind, namespace);
        let patch = Patch::Apply(&body);
        self.bounded(call("patch", kind, "", namespace, name), api.patch(name, &params, &patch)).await
    }

    /// Applies a parent's status.
    pub async fn apply_status(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        uid: &str,
        status: &Value,
    ) -> Result<DynamicObject, ApiError> {
        let body = json!({
            "apiVersion": kind.resource.api_version, "kind": kind.resource.kind,
            "metadata": {"name": name, "namespace": namespace, "uid": uid}, "status": status,
        });
        let params = PatchParams::apply(MANAGER).force();
        let api = self.api(kind, namespace);
        let patch = Patch::Apply(&body);
        self.write(call("patch", kind, "/status", namespace, name), api.patch_status(name, &params, &patch)).await
    }

    /// Deletes a child if it is still the object that was planned for. That it is gone already is fine.
    pub async fn delete(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        uid: &str,
        resource_version: Option<&str>,
    ) -> Result<(), ApiError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: resource_version.map(str::to_owned),
            }),
            ..DeleteParams::background()
        };
        let api = self.api(kind, namespace);
        match self.write(call("delete", kind, "", namespace, name), api.delete(name, &params)).await {
            Ok(_) => Ok(()),
            Err(error) if error.problem == Problem::Gone => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The metadata of an object; `None` if there is none.
    pub async fn metadata(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<PartialObjectMeta<DynamicObject>>, ApiError> {
        let api = self.api(kind, namespace);
        self.bounded(call("get", kind, "", namespace, name), api.get_metadata_opt(name)).await
    }

    /// An object; `None` if there is none.
    pub async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<DynamicObject>, ApiError> {
        let api = self.api(kind, namespace);
        self.bounded(call("get", kind, "", namespace, name), api.get_opt(name)).await
    }

    /// The objects of a kind in a namespace, or in all, that match a label selector (empty: all of them), in pages.
    pub async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<DynamicObject>, ApiError> {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => self.api(kind, namespace),
            None => Api::all_with(self.client.clone(), &kind.resource),
        };
        let mut params = ListParams::default().labels(labels).limit(500);
        let mut objects = Vec::new();
        loop {
            let page =
                self.bounded(call("list", kind, "", namespace.unwrap_or_default(), ""), api.list(&params)).await?;
            objects.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(objects),
            }
        }
    }

    /// The Lease of that name; `None` if there is none.
    pub async fn lease(&self, namespace: &str, name: &str) -> Result<Option<Lease>, ApiError> {
        self.bounded(lease_call("get", namespace, name), self.leases(namespace).get_opt(name)).await
    }

    /// Creates a Lease. Not subject to leadership: this is how it is won.
    pub async fn create_lease(&self, lease: &Lease) -> Result<Lease, ApiError> {
        let (namespace, name) = lease_names(lease);
        let request = self.leases(namespace);
        self.bounded(lease_call("create", namespace, name), request.create(&PostParams::default(), lease)).await
    }

    /// Replaces a Lease, if it is still the version that `lease` was made from.
    pub async fn replace_lease(&self, lease: &Lease) -> Result<Lease, ApiError> {
        let (namespace, name) = lease_names(lease);
        let request = self.leases(namespace);
        self.bounded(lease_call("update", namespace, name), request.replace(name, &PostParams::default(), lease)).await
    }

    fn leases(&self, namespace: &str) -> Api<Lease> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn api(&self, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind.resource)
    }

    /// A write: sent only by the leader.
    async fn write<T>(&self, call: Call, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ApiError> {
        if !self.leadership.may_write() {
            return Err(ApiError { call, problem: Problem::NotLeading, detail: String::new() });
        }
        self.bounded(call, request).await
    }

    async fn bounded<T>(
        &self,
        call: Call,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ApiError> {
        match tokio::time::timeout(self.deadline, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(ApiError::from_kube(call, &error)),
            Err(_) => Err(ApiError::deadline(call, self.deadline)),
        }
    }
}

fn call(verb: &'static str, kind: &Kind, subresource: &str, namespace: &str, name: &str) -> Call {
    Call {
        verb,
        resource: format!("{}{subresource}", kind.resource.plural),
        group: kind.gvk.group.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// What a CRD would say of a kind, as far as the `OpenAPI` document of its group and version tells.
fn crd_from_openapi(document: &Value, gvk: &Gvk, plural: &str) -> Option<Value> {
    let names = json!([{"group": gvk.group, "version": gvk.version, "kind": gvk.kind}]);
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    let schema = schemas.values().find(|schema| schema.get("x-kubernetes-group-version-kind") == Some(&names))?;
    let prefix = format!("/apis/{}/{}", gvk.group, gvk.version);
    let has_path = |path: String| document.get("paths").is_some_and(|paths| paths.get(path).is_some());
    let namespaced = has_path(format!("{prefix}/namespaces/{{namespace}}/{plural}"));
    let status = has_path(format!("{prefix}/namespaces/{{namespace}}/{plural}/{{name}}/status"));
    Some(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": {
            "group": gvk.group, "names": {"kind": gvk.kind, "plural": plural},
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "versions": [{
                "name": gvk.version, "served": true, "schema": {"openAPIV3Schema": schema},
                "subresources": if status { json!({"status": {}}) } else { json!({}) },
            }],
        },
    }))
}

/// The body with what it must find.
fn expecting(body: &Value, expect: Expect<'_>) -> Value {
    let mut body = body.clone();
    match expect {
        Expect::Nothing => body["metadata"]["resourceVersion"] = json!(NEVER),
        Expect::Object(uid) => body["metadata"]["uid"] = json!(uid),
    }
    body
}

fn lease_call(verb: &'static str, namespace: &str, name: &str) -> Call {
    Call {
        verb,
        resource: "leases".to_owned(),
        group: "coordination.k8s.io".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn lease_names(lease: &Lease) -> (&str, &str) {
    (lease.metadata.namespace.as_deref().unwrap_or_default(), lease.metadata.name.as_deref().unwrap_or_default())
}

fn served(resource: ApiResource, capabilities: &ApiCapabilities) -> Served {
    Served {
        namespaced: capabilities.scope == Scope::Namespaced,
        has_status: capabilities
            .subresources
            .iter()
            .any(|(sub, _)| sub.plural.ends_with("/status") || sub.plural == "status"),
        resource,
    }
}
