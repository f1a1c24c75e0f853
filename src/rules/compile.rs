//! [`RuleSet`]s → [`Program`]s: everything that can be decided before there is a parent is decided here, once.
//!
//! Expressions are parsed, references resolved to indices, the order of the children fixed, constant parts of
//! manifests folded into plain values. Past this step nobody sees YAML.

mod build;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hasher;
use std::sync::Arc;

use serde_json::Value;
use siphasher::sip::SipHasher13;

use build::Compiler;
pub(super) use build::has_null;

use super::expr::Expr;
use super::file::{self, Op, RuleSet};
use super::references::References;
use super::template::Expression;
use super::{Gvk, Policy, ReadPath};
use crate::diagnostic::{Diagnostic, Location, Severity, SourceFile};

/// A compiled, checked rule set. Immutable; shared by all reconciles.
#[derive(Debug)]
pub struct Program {
    pub(super) set: Arc<RuleSet>,
    revision: String,
    pub(super) validations: Vec<Validation>,
    pub(super) variables: Vec<Variable>,
    /// In dependency order.
    pub(super) resources: Vec<Resource>,
    pub(super) status: Vec<StatusField>,
    reads: BTreeMap<String, Vec<ReadPath>>,
}

/// An expression ready to run.
#[derive(Debug, Clone)]
pub(super) struct Code {
    pub expr: Arc<Expr>,
    pub source: Expression,
    /// Variables that it reads, by index.
    pub variables: Vec<usize>,
    /// Resources that must be there before it can run: ids, those that its variables read included.
    pub resources: Vec<Arc<str>>,
}

#[derive(Debug)]
pub(super) struct Validation {
    pub rule: Code,
    pub message: Option<String>,
    pub message_expression: Option<Code>,
}

#[derive(Debug)]
pub(super) struct Variable {
    pub name: String,
    pub code: Code,
}

#[derive(Debug)]
pub(super) struct Resource {
    pub id: Arc<str>,
    pub at: Location,
    pub gvk: Gvk,
    pub policy: Policy,
    pub when: Option<Code>,
    /// Whether `when` reads the item and so is asked of each.
    pub when_per_item: bool,
    pub for_each: Option<ForEach>,
    pub manifest: Node,
    /// What the manifest and its patches wait for.
    pub manifest_resources: Vec<Arc<str>>,
    pub name_at: Location,
    pub patches: Vec<Patch>,
    pub ready_when: Vec<Code>,
}

#[derive(Debug)]
pub(super) struct ForEach {
    pub key: Option<String>,
    pub value: String,
    pub long: bool,
    pub over: Code,
    pub item_key: Option<Code>,
}

#[derive(Debug)]
pub(super) struct Patch {
    pub at: Location,
    pub op: Op,
    pub path: String,
    pub from: Option<String>,
    pub value: Option<Node>,
    pub when: Option<Code>,
}

/// One field of `spec.status`.
#[derive(Debug)]
pub(super) struct StatusField {
    pub name: String,
    pub value: Node,
    /// What it waits for.
    pub resources: Vec<Arc<str>>,
}

/// A tree of templates with its constant parts folded.
#[derive(Debug)]
pub(super) enum Node {
    Constant(Value),
    Code(Code),
    Mixed(Vec<Part>),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug)]
pub(super) enum Key {
    Constant(String),
    Mixed(Vec<Part>, Location),
}

#[derive(Debug)]
pub(super) enum Part {
    Literal(String),
    Code(Code),
}

impl Program {
    /// Programs of the rule sets in these files, and every fault. A rule set with an error gives no program; the
    /// others do. Two rule sets of one name give none, for nobody can say which one is meant.
    pub fn load(files: &[Arc<SourceFile>]) -> (Vec<Program>, Vec<Diagnostic>) {
        Self::load_checked(files, &|_| Vec::new())
    }

    /// As [`Program::load`], with a further check of each rule set, broken ones included, whose errors refuse it too.
    pub fn load_checked(
        files: &[Arc<SourceFile>],
        check: &dyn Fn(&RuleSet) -> Vec<Diagnostic>,
    ) -> (Vec<Program>, Vec<Diagnostic>) {
        let (sets, mut faults) = read(files);
        let mut programs = Vec::new();
        for set in sets {
            let (program, mut found) = Self::compile(&Arc::new(set), check);
            faults.append(&mut found);
            programs.extend(program);
        }
        (programs, faults)
    }

    /// The program of one rule set, if it and the further check find no error.
    pub fn compile(
        set: &Arc<RuleSet>,
        check: &dyn Fn(&RuleSet) -> Vec<Diagnostic>,
    ) -> (Option<Program>, Vec<Diagnostic>) {
        let mut faults = Vec::new();
        let program = Compiler { set, references: References::new(set), faults: &mut faults }.program();
        let further = check(set);
        // Both look at names; the further check knows the schemas and says more.
        faults.retain(|fault| {
            let undeclared = fault.code == "undeclared-name";
            // In a macro that is written wrongly, the names that it would have declared are not the fault.
            let same = |other: &Diagnostic| other.code == fault.code || (undeclared && other.code == "macro-form");
            !further.iter().any(|other| same(other) && overlap(&other.at, &fault.at))
        });
        faults.extend(further);
        let refused = set.broken || faults.iter().any(|fault| fault.severity == Severity::Error);
        (program.ok().filter(|_| !refused), faults)
    }

    /// `metadata.name` of the rule set.
    pub fn name(&self) -> &str {
        &self.set.name.text
    }

    /// A short hash of the rule set's text; equal text, equal revision. It is not a secret and not a signature.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The parent kind (`spec.for`).
    pub fn parent(&self) -> &Gvk {
        &self.set.parent
    }

    /// The rule set as written, with the places of all its parts.
    pub fn rule_set(&self) -> &RuleSet {
        &self.set
    }

    /// The kinds of children that the rules can produce.
    pub fn child_kinds(&self) -> BTreeSet<Gvk> {
        self.resources.iter().map(|resource| resource.gvk.clone()).collect()
    }

    /// Id, kind and policy of each resource, in dependency order.
    pub fn resources(&self) -> impl Iterator<Item = (&str, &Gvk, Policy)> {
        self.resources.iter().map(|resource| (&*resource.id, &resource.gvk, resource.policy))
    }

    /// How many entries `spec.resources` has.
    pub fn resource_count(&self) -> usize {
        self.resources.len()
    }

    /// Resource id → the fields of that child which `readyWhen` or `resources.ID` read; an empty path means all of it.
    pub fn reads(&self) -> &BTreeMap<String, Vec<ReadPath>> {
        &self.reads
    }
}

/// The rule sets of several files, each name at most once without being marked as broken, and every fault of reading.
pub fn read(files: &[Arc<SourceFile>]) -> (Vec<RuleSet>, Vec<Diagnostic>) {
    let mut sets: Vec<RuleSet> = Vec::new();
    let mut faults = Vec::new();
    for file in files {
        let (mut found, mut reported) = file::read(file);
        sets.append(&mut found);
        faults.append(&mut reported);
    }
    let mut first: HashMap<String, usize> = HashMap::new();
    for index in 0..sets.len() {
        let Some(set) = sets.get(index) else { continue };
        let name = set.name.text.clone();
        let Some(other) = first.get(&name).copied().filter(|_| !name.is_empty()) else {
            first.insert(name, index);
            continue;
        };
        let related = sets.get(other).map(|other| other.at(other.name.span));
        let mut fault = Diagnostic::error(
            "duplicate-rule-set",
            format!("there are two rule sets named `{name}`"),
            set.at(set.name.span),
        )
        .help("give each a name of its own; children belong to the rule set's name");
        fault.related.extend(related.map(|at| (at, "the other one".to_owned())));
        faults.push(fault);
        for index in [index, other] {
            if let Some(set) = sets.get_mut(index) {
                set.broken = true;
            }
        }
    }
    (sets, faults)
}

fn overlap(a: &Location, b: &Location) -> bool {
    a.file == b.file && a.span.start < b.span.end && b.span.start < a.span.end
}

/// Twelve hex digits of a hash: the same text gives the same on every machine, in every version of this program.
fn revision(text: &str) -> String {
    let mut hasher = SipHasher13::new();
    // Line ends are no part of what a rule says.
    for line in text.trim_end().lines() {
        hasher.write(line.as_bytes());
        hasher.write_u8(b'\n');
    }
    let hash = format!("{:016x}", hasher.finish());
    hash.get(..12).unwrap_or(&hash).to_owned()
}
