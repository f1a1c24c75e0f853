//! Builds a [`Program`]: every expression with what it reads, every tree with its constant parts folded.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Code, ForEach, Key, Node, Part, Patch, Program, Resource, StatusField, Validation, Variable, revision};
use crate::diagnostic::{Diagnostic, Location};
use crate::rules::expr::{Scope, to_json};
use crate::rules::file::{self, RuleSet};
use crate::rules::manifest;
use crate::rules::references::{Names, References, Uses, locate, read_paths};
use crate::rules::template::{Expression, Piece, Template, Tree, TreeKind};

/// A part could not be compiled; why has been reported already.
pub(super) struct Reported;

pub(super) type Compiled<T> = Result<T, Reported>;

/// Compiles one rule set.
pub(super) struct Compiler<'a> {
    pub set: &'a Arc<RuleSet>,
    pub references: References<'a>,
    pub faults: &'a mut Vec<Diagnostic>,
}

impl Compiler<'_> {
    /// The program, unless some expression has no syntax tree or some manifest no kind; either has been reported.
    pub fn program(mut self) -> Compiled<Program> {
        let set = Arc::clone(self.set);
        let alone = Names::default();
        let variables: Compiled<Vec<Variable>> = set
            .variables
            .iter()
            .enumerate()
            .map(|(index, variable)| {
                let uses = self.references.variable(index);
                Ok(Variable { name: variable.name.text.clone(), code: self.code_using(&variable.expression, &uses)? })
            })
            .collect();
        let validations: Vec<Compiled<Validation>> = set
            .validations
            .iter()
            .map(|validation| {
                let rule = self.parent_only(&validation.rule, alone);
                let message_expression = validation.message_expression.as_ref().map(|e| self.parent_only(e, alone));
                Ok(Validation {
                    rule: rule?,
                    message: validation.message.clone(),
                    message_expression: message_expression.transpose()?,
                })
            })
            .collect();
        let mut reads = Vec::new();
        let resources: Vec<Compiled<Resource>> = set
            .resources
            .iter()
            .map(|resource| {
                let mut read = BTreeMap::new();
                let compiled = self.resource(resource, &mut read);
                reads.push(read);
                compiled
            })
            .collect();
        let order = self.references.order(&reads);
        let status = self.status(set.status.as_ref());
        self.faults.append(&mut self.references.faults);
        let mut resources: Vec<Option<Resource>> = resources.into_iter().map(Result::ok).collect();
        let ordered: Option<Vec<Resource>> =
            order.iter().map(|index| resources.get_mut(*index).and_then(Option::take)).collect();
        Ok(Program {
            revision: revision(set.text()),
            validations: validations.into_iter().collect::<Compiled<_>>()?,
            variables: variables?,
            resources: ordered.ok_or(Reported)?,
            status: status?,
            reads: read_paths(&set),
            set,
        })
    }

    fn status(&mut self, tree: Option<&Tree>) -> Compiled<Vec<StatusField>> {
        let Some(Tree { kind: TreeKind::Map(entries), .. }) = tree else { return Ok(Vec::new()) };
        let names = Names { resources: true, ..Names::default() };
        let mut fields = Vec::new();
        for entry in entries {
            let mut read = BTreeMap::new();
            let value = self.tree(&entry.value, names, &mut read);
            let Template::Literal(name) = &entry.key else {
                self.faults.push(
                    Diagnostic::error(
                        "computed-status-field",
                        "the fields of `status` have constant names",
                        self.set.at(entry.key_span),
                    )
                    .help("computed keys are possible one level deeper"),
                );
                continue;
            };
            fields.push(value.map(|value| StatusField { name: name.clone(), value, resources: self.ids(read.keys()) }));
        }
        fields.into_iter().collect()
    }

    /// Ids of resources by their index.
    fn ids<'i>(&self, indices: impl IntoIterator<Item = &'i usize>) -> Vec<Arc<str>> {
        let resources = indices.into_iter().filter_map(|index| self.set.resources.get(*index));
        resources.map(|resource| Arc::from(resource.id.text.as_str())).collect()
    }

    /// An expression of a validation: variables that read resources are no use to it either.
    fn parent_only(&mut self, expression: &Expression, names: Names<'_>) -> Compiled<Code> {
        let uses = self.references.uses(expression, names);
        if !self.references.resources(&uses).is_empty() {
            let name = uses.variables.iter().filter_map(|index| self.set.variables.get(*index)).find(|variable| {
                let uses = self.references.uses_of(&variable.name.text);
                !self.references.resources(&uses).is_empty()
            });
            let name = name.map_or("", |variable| variable.name.text.as_str());
            self.faults.push(
                Diagnostic::error(
                    "undeclared-name",
                    format!("the variable `{name}` reads other children, and validations look at the parent alone"),
                    locate(expression, &["variables", name]),
                )
                .help("write the condition in terms of `self`"),
            );
        }
        self.code_using(expression, &uses)
    }

    fn code(
        &mut self,
        expression: &Expression,
        names: Names<'_>,
        read: &mut BTreeMap<usize, Location>,
    ) -> Compiled<Code> {
        let uses = self.references.uses(expression, names);
        for index in self.references.resources(&uses) {
            let id = self.set.resources.get(index).map_or("", |resource| resource.id.text.as_str());
            read.entry(index).or_insert_with(|| locate(expression, &["resources", id]));
        }
        self.code_using(expression, &uses)
    }

    fn code_using(&mut self, expression: &Expression, uses: &Uses) -> Compiled<Code> {
        let resources = self.references.resources(uses);
        Ok(Code {
            expr: Arc::clone(expression.expr.as_ref().ok_or(Reported)?),
            source: expression.clone(),
            variables: uses.variables.iter().copied().collect(),
            resources: self.ids(&resources),
        })
    }

    fn resource(&mut self, resource: &file::Resource, read: &mut BTreeMap<usize, Location>) -> Compiled<Resource> {
        let gvk = manifest::check(self.set, resource, self.faults);
        let outer = Names { resources: true, ..Names::default() };
        let items: Vec<&str> =
            resource.for_each.iter().flat_map(file::ForEach::names).map(|name| name.text.as_str()).collect();
        let inner = Names { items: &items, ..outer };
        let over = resource.for_each.as_ref().map(|for_each| self.code(&for_each.over, outer, read));
        let item_key = resource.item_key.as_ref().map(|key| self.code(key, inner, read));
        let when = resource.when.as_ref().map(|when| self.code(when, inner, read));
        let mut read_by_manifest = BTreeMap::new();
        let manifest = self.tree(&resource.manifest, inner, &mut read_by_manifest);
        let patches: Vec<Compiled<Patch>> =
            resource.patches.iter().map(|patch| self.patch(patch, inner, &mut read_by_manifest)).collect();
        let manifest_resources = self.ids(read_by_manifest.keys());
        for (index, at) in read_by_manifest {
            read.entry(index).or_insert(at);
        }
        let ready = Names { resource: true, ..inner };
        // Readiness is judged after the children are made: what it reads orders nothing.
        let mut aside = BTreeMap::new();
        let ready_when: Vec<Compiled<Code>> =
            resource.ready_when.iter().map(|ready_when| self.code(ready_when, ready, &mut aside)).collect();
        let when = when.transpose()?;
        let for_each = match (&resource.for_each, over.transpose()?) {
            (Some(for_each), Some(over)) => Some(ForEach {
                key: for_each.key.as_ref().map(|name| name.text.clone()),
                value: for_each.value.text.clone(),
                long: for_each.long,
                over,
                item_key: item_key.transpose()?,
            }),
            _ => None,
        };
        let name = resource.manifest.get("metadata").and_then(|metadata| metadata.get("name"));
        Ok(Resource {
            id: Arc::from(resource.id.text.as_str()),
            at: self.set.at(resource.id.span),
            gvk: gvk.ok_or(Reported)?,
            policy: resource.policy,
            when_per_item: when.as_ref().is_some_and(|code| reads_any(code, &items)),
            when,
            for_each,
            manifest: manifest?,
            manifest_resources,
            name_at: self.set.at(name.map_or(resource.id.span, |name| name.span)),
            patches: patches.into_iter().collect::<Compiled<_>>()?,
            ready_when: ready_when.into_iter().collect::<Compiled<_>>()?,
        })
    }

    fn patch(
        &mut self,
        patch: &file::Patch,
        names: Names<'_>,
        read: &mut BTreeMap<usize, Location>,
    ) -> Compiled<Patch> {
        let when = patch.when.as_ref().map(|when| self.code(when, names, read));
        let value = patch.value.as_ref().map(|value| self.tree(value, names, read));
        Ok(Patch {
            at: self.set.at(patch.path.span),
            op: patch.op,
            path: patch.path.text.clone(),
            from: patch.from.as_ref().map(|from| from.text.clone()),
            value: value.transpose()?,
            when: when.transpose()?,
        })
    }

    fn tree(&mut self, tree: &Tree, names: Names<'_>, read: &mut BTreeMap<usize, Location>) -> Compiled<Node> {
        match &tree.kind {
            TreeKind::Constant(value) => Ok(Node::Constant(value.clone())),
            TreeKind::Template(template) => self.template(template, names, read),
            TreeKind::List(items) => {
                let items: Vec<Compiled<Node>> = items.iter().map(|item| self.tree(item, names, read)).collect();
                Ok(fold_list(items.into_iter().collect::<Compiled<_>>()?))
            }
            TreeKind::Map(entries) => {
                let entries: Vec<Compiled<(Key, Node)>> = entries
                    .iter()
                    .map(|entry| {
                        let at = self.set.at(entry.key_span);
                        let key = match &entry.key {
                            Template::Literal(key) => Key::Constant(key.clone()),
                            Template::Expression(expression) => {
                                Key::Mixed(vec![Part::Code(self.code(expression, names, read)?)], at)
                            }
                            Template::Mixed(pieces) => Key::Mixed(self.parts(pieces, names, read)?, at),
                        };
                        Ok((key, self.tree(&entry.value, names, read)?))
                    })
                    .collect();
                Ok(fold_map(entries.into_iter().collect::<Compiled<_>>()?))
            }
        }
    }

    fn template(
        &mut self,
        template: &Template,
        names: Names<'_>,
        read: &mut BTreeMap<usize, Location>,
    ) -> Compiled<Node> {
        match template {
            Template::Literal(text) => Ok(Node::Constant(Value::String(text.clone()))),
            Template::Expression(expression) => Ok(fold_code(self.code(expression, names, read)?)),
            Template::Mixed(pieces) => Ok(Node::Mixed(self.parts(pieces, names, read)?)),
        }
    }

    fn parts(
        &mut self,
        pieces: &[Piece],
        names: Names<'_>,
        read: &mut BTreeMap<usize, Location>,
    ) -> Compiled<Vec<Part>> {
        let parts: Vec<Compiled<Part>> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Literal(text) => Ok(Part::Literal(text.clone())),
                Piece::Expression(expression) => Ok(Part::Code(self.code(expression, names, read)?)),
            })
            .collect();
        parts.into_iter().collect()
    }
}

fn reads_any(code: &Code, names: &[&str]) -> bool {
    let free = code.expr.free_identifiers();
    names.iter().any(|name| free.contains(*name))
}

/// An expression that reads nothing has one value for ever. One that fails, or gives no value, is left to the
/// renderer, which knows how to say so.
fn fold_code(code: Code) -> Node {
    if code.expr.free_identifiers().is_empty()
        && let Ok(value) = code.expr.eval(&Scope::new())
        && let Ok(Some(value)) = to_json(&value)
        && !has_null(&value)
    {
        return Node::Constant(value);
    }
    Node::Code(code)
}

/// Whether there is a null anywhere in a value.
pub(in crate::rules) fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn fold_list(items: Vec<Node>) -> Node {
    if items.iter().all(|item| matches!(item, Node::Constant(_))) {
        return Node::Constant(items.into_iter().filter_map(constant).collect());
    }
    Node::List(items)
}

fn fold_map(entries: Vec<(Key, Node)>) -> Node {
    if !entries.iter().all(|(key, value)| matches!((key, value), (Key::Constant(_), Node::Constant(_)))) {
        return Node::Map(entries);
    }
    let entries = entries.into_iter().filter_map(|(key, value)| match key {
        Key::Constant(key) => Some((key, constant(value)?)),
        Key::Mixed(..) => None,
    });
    Node::Constant(Value::Object(entries.collect()))
}

fn constant(node: Node) -> Option<Value> {
    match node {
        Node::Constant(value) => Some(value),
        Node::Code(_) | Node::Mixed(_) | Node::List(_) | Node::Map(_) => None,
    }
}
