//! Tests of the whole pipeline, text to children.

#![expect(clippy::format_collect, reason = "texts for tests are built to be read, not to be fast")]

mod faults;
mod hostile;
mod patching;
mod properties;
mod reading;
mod rendering;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ChildState, Observed, Program, Rendered};
use crate::diagnostic::{Diagnostic, SourceFile};

/// A rule set for Networks with this `spec` (indented by two spaces below `for`).
pub(super) fn rule_file(spec: &str) -> Arc<SourceFile> {
    SourceFile::new(
        "rules/network.yaml",
        format!(
            "apiVersion: rules.samplecrd.k8s.io/v1alpha1\nkind: RuleSet\nmetadata: {{name: network}}\nspec:\n  for: {{apiVersion: samplecrd.k8s.io/v1, kind: Network}}\n{spec}"
        ),
    )
}

/// The program of a rule set that must be right.
pub(super) fn program(spec: &str) -> Program {
    let (mut programs, faults) = Program::load(&[rule_file(spec)]);
    assert_eq!(faults, Vec::<Diagnostic>::new());
    programs.pop().expect("a program")
}

pub(super) fn network() -> Value {
    json!({
        "apiVersion": "samplecrd.k8s.io/v1",
        "kind": "Network",
        "metadata": {"name": "example", "namespace": "default", "uid": "1"},
        "spec": {
            "cidr": "192.168.0.0/16",
            "gateway": "192.168.0.1",
            "subnets": [{"name": "a", "size": 1}, {"name": "b", "size": 2}],
            "labels": {"team": "net", "zone": "x"},
        },
    })
}

pub(super) fn render(spec: &str) -> Rendered {
    program(spec).render(&network(), &Observed::default())
}

/// What became of each child: its manifest, or what it waits for, or its fault with its place.
pub(super) fn outcome(rendered: &Rendered) -> Vec<(String, Value)> {
    rendered
        .children
        .iter()
        .map(|child| {
            let name = if child.item.is_empty() { child.id.clone() } else { format!("{}[{}]", child.id, child.item) };
            let state = match &child.state {
                ChildState::Desired(value) => value.clone(),
                ChildState::Waiting(ids) => json!({"waiting": ids}),
                ChildState::Failed(fault) => json!({"failed": fault.message, "at": fault.at.to_string()}),
            };
            (name, state)
        })
        .collect()
}
