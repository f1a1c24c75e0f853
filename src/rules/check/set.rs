//! One rule set, from top to bottom: the parent, variables, validations, resources, status.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::context::{Context, Place};
use super::expression::Goes;
use super::resource;
use super::scope::{Member, Path, Scope, Value};
use crate::diagnostic::Diagnostic;
use crate::rules::file::{RuleSet, Variable};
use crate::rules::schema::crd::{self, CrdSchema};
use crate::rules::schema::{Schema, Scope as Where};
use crate::rules::suggest::{did_you_mean, with_article};
use crate::rules::types::Type;

/// Fields of a status that the engine writes.
const OWN_STATUS: [&str; 5] = ["observedGeneration", "conditions", "children", "childrenReady", "rulesRevision"];

impl Context<'_> {
    /// All checks of the rule set.
    pub fn run(&mut self, parents: &[CrdSchema]) {
        let parent = self.parent(parents);
        let schema = parent.map(|parent| crd::as_stored(&parent.schema));
        let own = match &schema {
            Some(schema) => Value::root("self", schema),
            None => Value { path: Some(Path::root("self")), ..Value::of(Type::Dyn) },
        };
        let mut scope = Scope::default().with("self", own);
        let children = resource::children(self);
        let resources: BTreeMap<String, Member> =
            children.iter().map(|child| (child.resource.id.text.clone(), child.member())).collect();
        scope.spaces.insert("resources", Rc::new(resources));
        // What the manifests give depends on what the variables are, and the variables may read the children.
        let before = self.found.len();
        self.variables(&mut scope);
        self.found.truncate(before);
        let given: Vec<Path> = children.iter().flat_map(|child| child.given(self, &scope)).collect();
        for path in given {
            scope.facts.insert_alone(path);
        }
        let warnings = self.variables(&mut scope);
        let mut valid = scope.clone();
        valid.spaces.remove("resources");
        self.validations(&valid, &mut scope);
        for child in &children {
            resource::check(self, child, &scope, &children);
        }
        self.status(parent, &scope);
        self.unguarded_in_variables(warnings);
        self.unused();
    }

    /// The CRD of the parent, and what is wrong with it as one.
    fn parent<'p>(&mut self, parents: &'p [CrdSchema]) -> Option<&'p CrdSchema> {
        let wanted = &self.set.parent;
        let at = self.at(self.set.parent_span);
        if wanted.kind.is_empty() {
            return None;
        }
        let Some(parent) = parents.iter().find(|crd| crd.gvk == *wanted) else {
            let api = |crd: &CrdSchema| format!("{}/{}", crd.gvk.group, crd.gvk.version);
            let name = format!("{}/{}", wanted.group, wanted.version);
            let message = format!("no CRD defines the kind `{}` of `{name}`", wanted.kind);
            let fault = Diagnostic::error("unknown-parent", message, at);
            let same = parents.iter().find(|crd| crd.gvk.kind == wanted.kind);
            let kinds = || parents.iter().map(|crd| crd.gvk.kind.as_str());
            self.found.push(if let Some(same) = same {
                fault.help(format!("`{}` is of `{}`", same.gvk.kind, api(same)))
            } else if let Some(similar) = did_you_mean(&wanted.kind, kinds()) {
                fault.help(format!("did you mean `{similar}`?"))
            } else {
                fault.help("give its CRD with `--crd FILE`")
            });
            return None;
        };
        if parent.scope == Where::Cluster {
            let message = format!("{} is not in a namespace, and its children have to be", with_article(&wanted.kind));
            self.found.push(
                Diagnostic::error("cluster-scoped", message, at.clone()).help("make the CRD `scope: Namespaced`"),
            );
        }
        if !parent.status_subresource {
            let message = format!("the CRD of {} has no status subresource", wanted.kind);
            let fault = Diagnostic::error("no-status-subresource", message, at);
            self.found.push(
                fault
                    .label(
                        "each status that is written would count as a change of the spec, and be answered by another",
                    )
                    .help("add `subresources: {status: {}}` to the version in the CRD"),
            );
        }
        Some(parent)
    }

    /// The types of all variables, each after those that it uses; gives the warnings about optional fields that are due
    /// only if nobody guards them.
    fn variables(&mut self, scope: &mut Scope) -> BTreeMap<String, Vec<(Path, Diagnostic)>> {
        let set = self.set;
        let mut members: BTreeMap<String, Member> = BTreeMap::new();
        let mut warnings = BTreeMap::new();
        for variable in in_order(set) {
            scope.spaces.insert("variables", Rc::new(members.clone()));
            let checked = self.apart(&variable.expression, |checker| checker.variable(scope));
            let mut member = Member { value: Value::of(Type::Error), only_when: None, needs: BTreeSet::new() };
            if let Some(mut checked) = checked {
                self.found.append(&mut checked.found);
                member.needs = checked.unguarded.iter().map(|(path, _)| path.clone()).collect();
                member.needs.extend(checked.unmet.iter().map(|(_, path)| path.clone()));
                warnings.insert(variable.name.text.clone(), checked.unguarded);
                member.value = checked.value;
                self.uses.resources.append(&mut checked.uses.resources);
            }
            members.insert(variable.name.text.clone(), member);
        }
        scope.spaces.insert("variables", Rc::new(members));
        warnings
    }

    /// A variable's optional field read unguarded is a fault only where the variable is used unguarded.
    fn unguarded_in_variables(&mut self, warnings: BTreeMap<String, Vec<(Path, Diagnostic)>>) {
        for (_, list) in warnings {
            for (path, warning) in list {
                if self.unmet.iter().any(|(_, unmet)| *unmet == path) {
                    self.found.push(warning);
                }
            }
        }
    }

    fn validations(&mut self, valid: &Scope, scope: &mut Scope) {
        let set = self.set;
        for validation in &set.validations {
            let value = self.expression(&validation.rule, |checker| {
                checker.goes(Goes::Validation).condition(valid, "a validation's `rule`")
            });
            let implied = value.and_then(|value| value.implies);
            if let Some(message) = &validation.message_expression {
                // The message is only wanted where the rule is false.
                let failed = implied.as_ref().map_or_else(|| valid.clone(), |implied| valid.knowing(&implied.1));
                let value = self.expression(message, |checker| checker.any(&failed));
                if let Some(value) = value.filter(|value| !value.ty.is_unknown() && !matches!(value.ty, Type::String)) {
                    let message_text = format!("`messageExpression` must be `string`, this is `{}`", value.ty);
                    let fault = Diagnostic::error("wrong-type", message_text, message.at());
                    self.found
                        .push(fault.help("text and values are joined with `+`: `'mtu is ' + string(self.spec.mtu)`"));
                }
            }
            // What follows is only reached by parents that are valid.
            if let Some(implied) = implied {
                *scope = scope.knowing(&implied.0);
            }
        }
    }

    fn status(&mut self, parent: Option<&CrdSchema>, scope: &Scope) {
        let set = self.set;
        let Some(tree) = &set.status else { return };
        let owner: Arc<str> = set.parent.kind.as_str().into();
        let anything = Place { owner: Arc::clone(&owner), path: "status".to_owned(), schema: Arc::default() };
        for name in OWN_STATUS {
            if let Some(entry) = tree.entry(name) {
                let fault = Diagnostic::error(
                    "engine-owned",
                    format!("a rule may not give `status.{name}`"),
                    self.at(entry.key_span),
                );
                self.found.push(fault.label("the operator writes it").help("choose another name for the field"));
            }
        }
        let listed = parent.map(|parent| parent.schema.fields().and_then(|fields| fields.known.get("status")));
        if let Some(None) = listed {
            let message = format!("the CRD of {owner} has no `status`, so the API server drops what is written there");
            let fault = Diagnostic::error("unknown-field", message, self.at(tree.span));
            self.found.push(fault.help("add `status` to the CRD's schema"));
        }
        let place = match listed.flatten() {
            Some(status) => Place { schema: status.get(), ..anything },
            None => anything,
        };
        self.tree(tree, &place, scope, &BTreeSet::new());
        // What may not be given need not be known.
        let refused: Vec<_> =
            self.found.iter().filter(|fault| fault.code == "engine-owned").map(|fault| fault.at.clone()).collect();
        self.found.retain(|fault| fault.code != "unknown-field" || !refused.contains(&fault.at));
    }

    fn unused(&mut self) {
        let set = self.set;
        let mut in_use = self.uses.variables.clone();
        // What a used variable uses is used.
        let mut open: Vec<String> = in_use.iter().cloned().collect();
        while let Some(name) = open.pop() {
            let variable = set.variables.iter().find(|variable| variable.name.text == name);
            for next in variable.into_iter().flat_map(reads_variables) {
                if in_use.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        // A variable that a message proposes is not unused, but misspelt.
        let proposed = |name: &str| {
            let text = format!("`variables.{name}`");
            self.found.iter().any(|fault| fault.help.iter().any(|help| help.contains(&text)))
        };
        let unused: Vec<&Variable> = set
            .variables
            .iter()
            .filter(|variable| !in_use.contains(&variable.name.text) && !proposed(&variable.name.text))
            .collect();
        for variable in unused {
            let message = format!("the variable `{}` is never used", variable.name.text);
            let fault = Diagnostic::warning("unused-variable", message, self.at(variable.name.span));
            self.found.push(fault.help(format!("remove it, or use it as `variables.{}`", variable.name.text)));
        }
    }
}

/// The variables that a variable reads.
fn reads_variables(variable: &Variable) -> Vec<String> {
    let reads = variable.expression.expr.as_ref().map(|expr| expr.reads()).unwrap_or_default();
    let named = |chain: Vec<String>| match chain.as_slice() {
        [space, name, ..] if space == "variables" => Some(name.clone()),
        _ => None,
    };
    reads.into_iter().filter_map(named).collect()
}

/// The variables, each after those that it uses; those that use each other in a circle as in the file.
fn in_order(set: &RuleSet) -> Vec<&Variable> {
    let mut order: Vec<&Variable> = Vec::new();
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    let names: BTreeSet<&str> = set.variables.iter().map(|variable| variable.name.text.as_str()).collect();
    let mut left: Vec<(&Variable, Vec<String>)> =
        set.variables.iter().map(|variable| (variable, reads_variables(variable))).collect();
    while !left.is_empty() {
        let ready = |(_, reads): &(&Variable, Vec<String>)| {
            reads.iter().all(|name| placed.contains(name.as_str()) || !names.contains(name.as_str()))
        };
        let next = left.iter().position(ready).unwrap_or(0);
        let (variable, _) = left.remove(next);
        placed.insert(&variable.name.text);
        order.push(variable);
    }
    order
}

/// A kind's schema as a child of it is seen in the cluster, or a free-form one.
pub(super) fn stored(schema: Option<&Arc<Schema>>) -> Option<Arc<Schema>> {
    schema.map(crd::as_stored)
}
