//! Where the API server keeps the kinds of objects that tests look at.

/// A kind of objects in namespaces.
#[derive(Debug, Clone, Copy)]
pub struct Resource {
    /// The path up to the version.
    pub api: &'static str,
    /// The plural name.
    pub plural: &'static str,
}

/// `networks.samplecrd.k8s.io/v1`
pub const NETWORKS: Resource = Resource { api: "/apis/samplecrd.k8s.io/v1", plural: "networks" };
/// Core `configmaps`
pub const CONFIG_MAPS: Resource = Resource { api: "/api/v1", plural: "configmaps" };
/// Core `services`
pub const SERVICES: Resource = Resource { api: "/api/v1", plural: "services" };
/// `endpointslices.discovery.k8s.io/v1`
pub const ENDPOINT_SLICES: Resource = Resource { api: "/apis/discovery.k8s.io/v1", plural: "endpointslices" };
/// Core `serviceaccounts`
pub const SERVICE_ACCOUNTS: Resource = Resource { api: "/api/v1", plural: "serviceaccounts" };
/// `roles.rbac.authorization.k8s.io/v1`
pub const ROLES: Resource = Resource { api: "/apis/rbac.authorization.k8s.io/v1", plural: "roles" };
/// `rolebindings.rbac.authorization.k8s.io/v1`
pub const ROLE_BINDINGS: Resource = Resource { api: "/apis/rbac.authorization.k8s.io/v1", plural: "rolebindings" };

impl Resource {
    /// The path of all objects of this kind in a namespace.
    pub fn all(self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.api, self.plural)
    }

    /// The path of one of them.
    pub fn one(self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.all(namespace))
    }

    /// The kind of an object by its `kind`, for those that tests create.
    pub fn of_kind(kind: &str) -> Self {
        match kind {
            "Network" => NETWORKS,
            "ConfigMap" => CONFIG_MAPS,
            "Service" => SERVICES,
            "EndpointSlice" => ENDPOINT_SLICES,
            "ServiceAccount" => SERVICE_ACCOUNTS,
            "Role" => ROLES,
            "RoleBinding" => ROLE_BINDINGS,
            "Pod" => Self { api: "/api/v1", plural: "pods" },
            "Deployment" => Self { api: "/apis/apps/v1", plural: "deployments" },
            "Lease" => Self { api: "/apis/coordination.k8s.io/v1", plural: "leases" },
            other => panic!("tests do not know where objects of kind {other} are"),
        }
    }
}
