//! Trees → [`RuleSet`]s: the rule file as written, every part with its place and every expression parsed.
//!
//! Reading never stops at a fault. A part that cannot be used is left out and the rule set marked as broken, so that
//! what remains can still be checked and one run shows every fault.

mod read;

use std::sync::Arc;

pub use read::read;

use super::template::{Expression, Tree};
use super::{Gvk, Policy};
use crate::diagnostic::{Location, SourceFile, Span};

/// A name and where it stands.
#[derive(Debug, Clone)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// One document of a rule file.
#[derive(Debug, Clone)]
pub struct RuleSet {
    /// The file.
    pub file: Arc<SourceFile>,
    /// The document's bytes in the file.
    pub span: Span,
    /// `metadata.name`.
    pub name: Name,
    /// `spec.for`.
    pub parent: Gvk,
    /// Where `spec.for` stands.
    pub parent_span: Span,
    /// `spec.validations`.
    pub validations: Vec<Validation>,
    /// `spec.variables`, in the order of the file.
    pub variables: Vec<Variable>,
    /// `spec.resources`, in the order of the file.
    pub resources: Vec<Resource>,
    /// `spec.status`.
    pub status: Option<Tree>,
    /// Whether reading it found an error: such a rule set is checked further but never run.
    pub broken: bool,
}

/// One entry of `spec.validations`.
#[derive(Debug, Clone)]
pub struct Validation {
    /// Must be true.
    pub rule: Expression,
    /// Said where it is not.
    pub message: Option<String>,
    /// Gives what is said where it is not.
    pub message_expression: Option<Expression>,
}

/// One entry of `spec.variables`.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Its name.
    pub name: Name,
    /// Its value.
    pub expression: Expression,
}

/// One entry of `spec.resources`.
#[derive(Debug, Clone)]
pub struct Resource {
    /// `id`.
    pub id: Name,
    /// `when`.
    pub when: Option<Expression>,
    /// `forEach`.
    pub for_each: Option<ForEach>,
    /// `itemKey`.
    pub item_key: Option<Expression>,
    /// `manifest`.
    pub manifest: Tree,
    /// `patches`.
    pub patches: Vec<Patch>,
    /// `readyWhen`; all must be true.
    pub ready_when: Vec<Expression>,
    /// The six `on…` words.
    pub policy: Policy,
}

/// `forEach` of a resource.
#[derive(Debug, Clone)]
pub struct ForEach {
    /// Name of the key (index), of the long form.
    pub key: Option<Name>,
    /// Name of the item: of a list its element; of a map the key in the short form, the value in the long form.
    pub value: Name,
    /// Whether it is the long form.
    pub long: bool,
    /// The list or map.
    pub over: Expression,
}

/// The operations of RFC 6902.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

impl Op {
    /// The word in the file.
    pub fn word(self) -> &'static str {
        match self {
            Op::Add => "add",
            Op::Remove => "remove",
            Op::Replace => "replace",
            Op::Move => "move",
            Op::Copy => "copy",
            Op::Test => "test",
        }
    }
}

/// One entry of a resource's `patches`.
#[derive(Debug, Clone)]
pub struct Patch {
    /// Where the operation stands.
    pub span: Span,
    /// `op`.
    pub op: Op,
    /// `path`, a valid JSON Pointer.
    pub path: Name,
    /// `from`, a valid JSON Pointer; there exactly for `move` and `copy`.
    pub from: Option<Name>,
    /// `value`; there exactly for `add`, `replace` and `test`.
    pub value: Option<Tree>,
    /// `when`.
    pub when: Option<Expression>,
}

impl RuleSet {
    /// Where a part of this rule set stands.
    pub fn at(&self, span: Span) -> Location {
        self.file.at(span)
    }

    /// The rule set's own text.
    pub fn text(&self) -> &str {
        self.file.text.get(self.span.start..self.span.end).unwrap_or_default()
    }
}

impl ForEach {
    /// The names that it binds.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.key.iter().chain([&self.value])
    }
}

/// Every expression of a rule set, in the order of the flow.
pub fn each_expression<'a>(set: &'a RuleSet, visit: &mut dyn FnMut(&'a Expression)) {
    for validation in &set.validations {
        visit(&validation.rule);
        validation.message_expression.iter().for_each(&mut *visit);
    }
    set.variables.iter().for_each(|variable| visit(&variable.expression));
    for resource in &set.resources {
        resource.when.iter().for_each(&mut *visit);
        resource.for_each.iter().for_each(|for_each| visit(&for_each.over));
        resource.item_key.iter().for_each(&mut *visit);
        resource.manifest.each_expression(visit);
        for patch in &resource.patches {
            patch.when.iter().for_each(&mut *visit);
            patch.value.iter().for_each(|value| value.each_expression(visit));
        }
        resource.ready_when.iter().for_each(&mut *visit);
    }
    set.status.iter().for_each(|status| status.each_expression(visit));
}
