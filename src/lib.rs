//! network-operator: Kubernetes objects for your own custom resource, by editing YAML rules.

pub mod api_error;
pub mod cli;
pub mod cluster;
pub mod controller;
pub mod diagnostic;
pub mod execute;
pub mod field_path;
pub mod fingerprint;
pub mod identity;
pub mod informer;
pub mod kinds;
pub mod observe;
pub mod plan;
pub mod queue;
pub mod reconcile;
pub mod rules;
pub mod status;
pub mod store;
pub mod telemetry;
