//! Rendering without a cluster: parents and, where given, observed children from files.

use serde_json::Value;

use super::input::{self, Object};
use crate::diagnostic::Location;
use crate::identity::Parent;
use crate::rules::{Child, ChildState, Gvk, Observed, Program, Rendered};

/// One parent and what every rule set for its kind makes of it.
#[derive(Debug)]
pub struct Outcome<'p> {
    /// Who it is.
    pub parent: Parent,
    /// One entry for each rule set, in the order of their names.
    pub sets: Vec<(&'p Program, Rendered)>,
}

/// Something that stands between a parent and its children.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// Where in the rules.
    pub at: Location,
    /// Which resource, with its item; empty for the whole parent.
    pub resource: String,
    /// One line.
    pub message: String,
}

/// Whether two are the same kind, whatever their version.
pub fn same_kind(a: &Gvk, b: &Gvk) -> bool {
    a.group == b.group && a.kind == b.kind
}

/// The rule sets that are for an object's kind.
pub fn for_kind<'p>(programs: &'p [Program], gvk: &Gvk) -> Vec<&'p Program> {
    let mut sets: Vec<&Program> = programs.iter().filter(|program| same_kind(program.parent(), gvk)).collect();
    sets.sort_by_key(|program| program.name());
    sets
}

/// Renders one parent. `observed` are objects that count as being in the cluster; a child is recognised by its kind,
/// namespace and name.
pub fn render<'p>(programs: &[&'p Program], object: &Value, observed: &[Object]) -> Outcome<'p> {
    let parent = Parent {
        gvk: input::gvk(object),
        namespace: input::metadata(object, "namespace").to_owned(),
        name: input::metadata(object, "name").to_owned(),
        uid: input::metadata(object, "uid").to_owned(),
    };
    let sets = programs.iter().map(|program| (*program, with_observed(program, object, &parent, observed))).collect();
    Outcome { parent, sets }
}

/// Which observed object is whose is known once names are rendered; names may in turn read observed objects. Each round
/// gets at least one resource further, or ends.
fn with_observed(program: &Program, object: &Value, parent: &Parent, observed: &[Object]) -> Rendered {
    let mut known = Observed::default();
    let mut count = 0;
    loop {
        let rendered = program.render(object, &known);
        for child in &rendered.children {
            let ChildState::Desired(manifest) = &child.state else { continue };
            let found = observed.iter().find(|candidate| is_child(&candidate.value, child, manifest, parent));
            if let Some(found) = found {
                let items = known.resources.entry(child.id.clone()).or_default();
                items.insert(child.item.clone(), found.value.clone());
            }
        }
        let found = known.resources.values().map(std::collections::BTreeMap::len).sum();
        if found <= count {
            return rendered;
        }
        count = found;
    }
}

fn is_child(candidate: &Value, child: &Child, manifest: &Value, parent: &Parent) -> bool {
    let namespace = input::metadata(candidate, "namespace");
    same_kind(&input::gvk(candidate), &child.gvk)
        && input::metadata(candidate, "name") == input::metadata(manifest, "name")
        && (namespace.is_empty() || namespace == parent.namespace)
}

/// `config`, or `subnet[a]`.
pub fn resource_name(child: &Child) -> String {
    if child.item.is_empty() { child.id.clone() } else { format!("{}[{}]", child.id, child.item) }
}

impl Outcome<'_> {
    /// All that stands in the way, in the order of the rules.
    pub fn troubles(&self) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        for (_, rendered) in &self.sets {
            let invalid = rendered.invalid.iter().map(|fault| Trouble {
                at: fault.at.clone(),
                resource: String::new(),
                message: format!("is invalid: {}", fault.message),
            });
            troubles.extend(invalid);
            for child in &rendered.children {
                let resource = resource_name(child);
                match &child.state {
                    ChildState::Desired(_) => {}
                    ChildState::Failed(fault) => {
                        troubles.push(Trouble { at: fault.at.clone(), resource, message: fault.message.clone() });
                    }
                    ChildState::Waiting(on) => {
                        let on: Vec<_> = on.iter().map(|id| format!("`{id}`")).collect();
                        let message = format!("waits for {}, which only a cluster has", on.join(" and "));
                        troubles.push(Trouble { at: child.at.clone(), resource, message });
                    }
                }
            }
        }
        troubles
    }

    /// `Network default/example-network`
    pub fn title(&self) -> String {
        title(&self.parent)
    }
}

/// `Network default/example-network`
pub fn title(parent: &Parent) -> String {
    let Parent { gvk, namespace, name, .. } = parent;
    if namespace.is_empty() { format!("{} {name}", gvk.kind) } else { format!("{} {namespace}/{name}", gvk.kind) }
}
