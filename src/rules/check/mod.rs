//! The checker: is a rule set right, before anything runs and without a cluster?
//!
//! Types come from the parent's CRD, from the schemas of the children's kinds and from the signatures of functions. Every
//! fault has its place, one message, and what to write instead; what is not known is never a fault. In the order of the
//! flow:
//!
//! | module | what happens there |
//! |---|---|
//! | `set`, `resource` | a rule set from top to bottom: which names each expression may use, what is known where |
//! | `manifest`, `patches`, `names` | what is written into a child, against its schema |
//! | `expression`, `select`, `call`, `operators`, `macros` | the type of an expression |
//! | `place` | whether its value may stand where it is put |
//! | `scope`, `facts` | what can be named; which optional fields are known to be there |
//! | `library`, `extent` | the functions; which characters a message is about |
//! | `example` | whole objects, against the CRD |

mod call;
mod context;
mod example;
mod expression;
mod extent;
mod facts;
mod library;
mod macros;
mod manifest;
mod names;
mod operators;
mod patches;
mod place;
mod resource;
mod scope;
mod select;
mod set;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

pub use example::objects;

use super::Program;
use super::file::RuleSet;
use super::functions::functions;
use super::schema::KindSchemas;
use super::schema::crd::CrdSchema;
use crate::diagnostic::{Diagnostic, Severity, SourceFile};
use context::Context;
use expression::Uses;
use library::Library;

static LIBRARY: LazyLock<Library> =
    LazyLock::new(|| Library::new(functions().iter().flat_map(|doc| doc.signatures.iter().copied())));

/// Reads, compiles and checks rule files: the programs that may run, and every fault, file by file, in the order of the
/// file. The one call that `check` and a reload need.
pub fn files(
    files: &[Arc<SourceFile>],
    parents: &[CrdSchema],
    kinds: &dyn KindSchemas,
) -> (Vec<Program>, Vec<Diagnostic>) {
    with_all(files, &|set| rule_set(set, parents, kinds))
}

/// As [`files`], but rule sets whose parent's CRD is not (yet) known are taken as they are: for the operator, which may
/// start before the CRD is installed.
pub fn files_of_known_parents(
    files: &[Arc<SourceFile>],
    parents: &[CrdSchema],
    kinds: &dyn KindSchemas,
) -> (Vec<Program>, Vec<Diagnostic>) {
    let known = |set: &RuleSet| parents.iter().any(|crd| crd.gvk == set.parent);
    with_all(files, &|set| if known(set) { rule_set(set, parents, kinds) } else { Vec::new() })
}

fn with_all(files: &[Arc<SourceFile>], check: &dyn Fn(&RuleSet) -> Vec<Diagnostic>) -> (Vec<Program>, Vec<Diagnostic>) {
    let (mut programs, mut found) = Program::load_checked(files, check);
    let (sets, _) = super::compile::read(files);
    let between = rule_sets(&sets.iter().collect::<Vec<_>>());
    programs.retain(|program| {
        !between.iter().any(|fault| {
            fault.severity == Severity::Error
                && fault.at.file == program.rule_set().file
                && program.rule_set().span.start <= fault.at.span.start
                && fault.at.span.start < program.rule_set().span.end
        })
    });
    found.extend(between);
    let place = |fault: &Diagnostic| files.iter().position(|file| *file == fault.at.file);
    found.sort_by_key(|fault| (place(fault), fault.at.span.start, fault.severity));
    (programs, found)
}

/// Everything that is wrong with one rule set as far as types can tell, in the order of the file. `parents` are the CRDs
/// among which its parent is, `kinds` what is known of the children's kinds.
///
/// What needs no types (unknown keys, syntax, names that are not declared) is found when the rule set is read and
/// compiled.
pub fn rule_set(set: &RuleSet, parents: &[CrdSchema], kinds: &dyn KindSchemas) -> Vec<Diagnostic> {
    let mut context =
        Context { set, kinds, library: &LIBRARY, found: Vec::new(), uses: Uses::default(), unmet: BTreeSet::new() };
    context.run(parents);
    let mut found = context.found;
    found.sort_by_key(|fault| (fault.at.span, fault.severity));
    found.dedup();
    found
}

/// What is wrong between rule sets, or between the resources of one: children that would want the same name.
pub fn rule_sets(sets: &[&RuleSet]) -> Vec<Diagnostic> {
    names::collisions(sets)
}

#[cfg(test)]
mod expression_tests;

#[cfg(test)]
mod robustness_tests;
