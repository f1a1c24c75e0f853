//! What the checks of one rule set share: the rule set, the schemas, and what was found so far.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::expression::{Checked, Checker, Source, Uses};
use super::library::Library;
use super::scope::{Path, Value};
use crate::diagnostic::{Diagnostic, Location, Span};
use crate::rules::file::RuleSet;
use crate::rules::schema::{KindSchemas, Schema};
use crate::rules::suggest::with_article;
use crate::rules::template::Expression;

/// The checks of one rule set.
pub(super) struct Context<'a> {
    pub set: &'a RuleSet,
    pub kinds: &'a dyn KindSchemas,
    pub library: &'a Library,
    pub found: Vec<Diagnostic>,
    /// Names that expressions outside `variables` use.
    pub uses: Uses,
    /// Variables that are used without guarding what they read.
    pub unmet: BTreeSet<(String, Path)>,
}

impl Context<'_> {
    /// Where a part of the rule set stands.
    pub fn at(&self, span: Span) -> Location {
        self.set.at(span)
    }

    /// Runs a check of an expression and keeps what it found. `None` for one that has no syntax tree, which was reported.
    pub fn expression(&mut self, expression: &Expression, run: impl FnOnce(Checker<'_>) -> Checked) -> Option<Value> {
        let mut checked = self.apart(expression, run)?;
        self.found.append(&mut checked.found);
        self.found.extend(checked.unguarded.into_iter().map(|(_, warning)| warning));
        self.unmet.append(&mut checked.unmet);
        self.uses.variables.append(&mut checked.uses.variables);
        self.uses.resources.append(&mut checked.uses.resources);
        Some(checked.value)
    }

    /// Runs a check of an expression and leaves to the caller what becomes of it.
    pub fn apart(&self, expression: &Expression, run: impl FnOnce(Checker<'_>) -> Checked) -> Option<Checked> {
        let expr = expression.expr.as_deref()?;
        let locate = |range: Range<usize>| expression.at_range(range);
        Some(run(Checker::new(self.library, Source { expr, locate: &locate })))
    }
}

/// A place in a manifest or in a status: whose, and where in it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// `Service`, or `Network status`.
    pub owner: Arc<str>,
    /// `spec.ports[0]`; empty for the whole.
    pub path: String,
    /// What may stand there.
    pub schema: Arc<Schema>,
}

impl Place {
    /// The place of a field.
    pub fn field(&self, name: &str, schema: Arc<Schema>) -> Self {
        let path = match (self.path.is_empty(), name.contains(['.', '/'])) {
            (true, _) => name.to_owned(),
            (false, true) => format!("{}['{name}']", self.path),
            (false, false) => format!("{}.{name}", self.path),
        };
        Self { owner: Arc::clone(&self.owner), path, schema }
    }

    /// The place of an element.
    pub fn element(&self, index: usize, schema: Arc<Schema>) -> Self {
        Self { owner: Arc::clone(&self.owner), path: format!("{}[{index}]", self.path), schema }
    }

    /// Said in messages: `` `spec.ports[0]` of a `Service` ``.
    pub fn said(&self) -> String {
        let owner = with_article(&format!("`{}`", self.owner));
        if self.path.is_empty() { owner } else { format!("`{}` of {owner}", self.path) }
    }
}
