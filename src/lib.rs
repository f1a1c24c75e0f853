//! network-operator: Kubernetes objects for your own custom resource, by editing YAML rules.

pub mod diagnostic;
pub mod rules;
