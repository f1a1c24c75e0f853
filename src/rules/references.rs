//! What expressions refer to: names that are declared, variables and resources, and the order that follows from it.
//!
//! `resources.ID` is read off the expressions themselves, so nobody writes dependencies down; variables pass on what
//! they read. A cycle has no order and is refused with its path.

use std::collections::{BTreeMap, BTreeSet};

use super::ReadPath;
use super::file::{RuleSet, Variable};
use super::graph::{cycles, depth_first_order, depth_of};
use super::record::listed;
use super::suggest::did_you_mean;
use super::template::Expression;
use super::yaml::MAX_FAULTS;
use crate::diagnostic::{Diagnostic, Location};

/// Which names an expression may use besides `self`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Names<'a> {
    /// `resources` may be read.
    pub resources: bool,
    /// `resource`, the observed child, may be read.
    pub resource: bool,
    /// The names that `forEach` binds.
    pub items: &'a [&'a str],
}

/// What one expression reads of variables and resources, by index into the rule set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Uses {
    pub variables: BTreeSet<usize>,
    /// Those read directly; [`References::resources`] adds what variables pass on.
    pub resources: BTreeSet<usize>,
}

/// Resolves the references of a rule set and collects what is wrong with them.
pub(super) struct References<'a> {
    set: &'a RuleSet,
    variables: BTreeMap<&'a str, usize>,
    resources: BTreeMap<&'a str, usize>,
    /// Per variable, what it uses.
    variable_uses: Vec<Uses>,
    /// Per variable, the resources that whoever reads it reads.
    passed_on: Vec<BTreeSet<usize>>,
    pub faults: Vec<Diagnostic>,
}

impl<'a> References<'a> {
    pub fn new(set: &'a RuleSet) -> Self {
        let mut faults = Vec::new();
        let mut resources: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, resource) in set.resources.iter().enumerate() {
            if let Some(first) = resources.get(resource.id.text.as_str()).and_then(|first| set.resources.get(*first)) {
                faults.push(
                    Diagnostic::error(
                        "duplicate-id",
                        format!("the id `{}` is there twice", resource.id.text),
                        set.at(resource.id.span),
                    )
                    .related(set.at(first.id.span), "first here")
                    .help("give each resource an id of its own"),
                );
            } else {
                resources.insert(&resource.id.text, index);
            }
        }
        let variables =
            set.variables.iter().enumerate().map(|(index, variable)| (variable.name.text.as_str(), index)).collect();
        let mut references =
            References { set, variables, resources, variable_uses: Vec::new(), passed_on: Vec::new(), faults };
        let names = Names { resources: true, ..Names::default() };
        references.variable_uses =
            set.variables.iter().map(|variable| references.uses(&variable.expression, names)).collect();
        references.variable_cycles();
        references
    }

    /// What an expression uses; reports what is not declared.
    pub fn uses(&mut self, expression: &Expression, names: Names<'_>) -> Uses {
        let Some(expr) = expression.expr.as_ref().filter(|_| self.faults.len() < MAX_FAULTS) else {
            return Uses::default();
        };
        let mut uses = Uses::default();
        for name in expr.free_identifiers() {
            self.declared(expression, &name, names);
        }
        let mut told = BTreeSet::new();
        for chain in expr.reads() {
            match chain.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["variables"] => self.whole(expression, "variables", "variables.NAME"),
                ["variables", name, ..] => match self.variables.get(name) {
                    Some(index) => {
                        uses.variables.insert(*index);
                    }
                    None if told.insert(chain.clone()) => self.undeclared(expression, "variables", name),
                    None => {}
                },
                ["resources"] if names.resources => self.whole(expression, "resources", "resources.ID"),
                ["resources", id, ..] if names.resources => match self.resources.get(id) {
                    Some(index) => {
                        uses.resources.insert(*index);
                    }
                    None if told.insert(chain.clone()) => self.undeclared(expression, "resources", id),
                    None => {}
                },
                _ => {}
            }
        }
        uses
    }

    /// Every resource that has to be observed first: read directly, or by a variable that is used.
    pub fn resources(&self, uses: &Uses) -> BTreeSet<usize> {
        let passed_on = uses.variables.iter().filter_map(|index| self.passed_on.get(*index)).flatten();
        uses.resources.iter().chain(passed_on).copied().collect()
    }

    /// What each variable reads of resources, itself or through other variables. In a circle, which is refused, some of it.
    fn pass_on(&mut self, edges: &[Vec<usize>]) {
        self.passed_on = vec![BTreeSet::new(); edges.len()];
        for index in depth_first_order(edges) {
            let all = self.resources(&self.variable(index));
            if let Some(passed_on) = self.passed_on.get_mut(index) {
                *passed_on = all;
            }
        }
    }

    /// What a variable uses.
    pub fn variable(&self, index: usize) -> Uses {
        self.variable_uses.get(index).cloned().unwrap_or_default()
    }

    /// What the variable of this name uses.
    pub fn uses_of(&self, name: &str) -> Uses {
        self.variables.get(name).map(|index| self.variable(*index)).unwrap_or_default()
    }

    fn declared(&mut self, expression: &Expression, name: &str, names: Names<'_>) {
        let known = matches!(name, "self" | "variables")
            || (names.resources && name == "resources")
            || (names.resource && name == "resource")
            || names.items.contains(&name);
        if known {
            return;
        }
        let at = locate(expression, &[name]);
        let fault = match name {
            "resources" => Diagnostic::error("undeclared-name", "`resources` cannot be read here", at)
                .help("validations look at the parent alone"),
            "resource" => Diagnostic::error("undeclared-name", "`resource` exists only in `readyWhen`", at)
                .help("read another child as `resources.ID`"),
            _ => {
                let fault = Diagnostic::error("undeclared-name", format!("there is no `{name}` here"), at);
                let mut declared = vec!["self", "variables"];
                declared.extend(names.resources.then_some("resources"));
                declared.extend(names.resource.then_some("resource"));
                declared.extend(names.items);
                if matches!(name, "spec" | "metadata" | "status") {
                    fault.help(format!("did you mean `self.{name}`?"))
                } else if self.variables.contains_key(name) {
                    fault.help(format!("did you mean `variables.{name}`?"))
                } else if self.resources.contains_key(name) {
                    fault.help(format!("did you mean `resources.{name}`?"))
                } else if let Some(near) = did_you_mean(name, declared.iter().copied()) {
                    fault.help(format!("did you mean `{near}`?"))
                } else {
                    fault.help(format!("the names here are {}", listed(&declared)))
                }
            }
        };
        self.faults.push(fault);
    }

    fn whole(&mut self, expression: &Expression, name: &str, form: &str) {
        let fault = Diagnostic::error(
            "dynamic-reference",
            format!("`{name}` is used as a whole, or with a computed name"),
            locate(expression, &[name]),
        )
        .help(format!("write `{form}`: the order of the children follows from the names in it"));
        self.faults.push(fault);
    }

    fn undeclared(&mut self, expression: &Expression, root: &str, name: &str) {
        let (what, candidates): (_, Vec<&str>) = if root == "variables" {
            ("variable", self.variables.keys().copied().collect())
        } else {
            ("resource with the id", self.resources.keys().copied().collect())
        };
        let fault = Diagnostic::error(
            if root == "variables" { "undeclared-variable" } else { "undeclared-resource" },
            format!("there is no {what} `{name}`"),
            locate(expression, &[root, name]),
        );
        self.faults.push(if let Some(near) = did_you_mean(name, candidates.iter().copied()) {
            fault.help(format!("did you mean `{root}.{near}`?"))
        } else if candidates.is_empty() {
            fault.help(format!("this rule set has none; add it under `spec.{root}`"))
        } else {
            fault.help(format!("there is {}", listed(&candidates)))
        });
    }

    fn variable_cycles(&mut self) {
        let edges: Vec<Vec<usize>> =
            self.variable_uses.iter().map(|uses| uses.variables.iter().copied().collect()).collect();
        let set = self.set;
        self.pass_on(&edges);
        self.nesting(&edges);
        for cycle in cycles(&edges) {
            let name =
                |index: &usize| set.variables.get(*index).map_or("", |variable: &Variable| variable.name.text.as_str());
            let steps: Vec<(String, Location)> = cycle
                .iter()
                .zip(cycle.iter().cycle().skip(1))
                .filter_map(|(from, to)| {
                    let expression = &set.variables.get(*from)?.expression;
                    Some((name(from).to_owned(), locate(expression, &["variables", name(to)])))
                })
                .collect();
            self.faults.extend(cycle_fault("variable-cycle", "variables", &steps));
        }
    }

    /// Variables are evaluated inside the expression that reads them: together they may nest as deep as one expression.
    fn nesting(&mut self, edges: &[Vec<usize>]) {
        let mut depths = vec![0_usize; edges.len()];
        for index in depth_first_order(edges) {
            let Some(variable) = self.set.variables.get(index) else { continue };
            let below = edges.get(index).into_iter().flatten().filter_map(|below| depths.get(*below)).max();
            let own = variable.expression.expr.as_ref().map_or(0, |expr| depth_of(expr.ast()));
            let depth = own + below.copied().unwrap_or_default();
            if depth <= MAX_NESTING {
                if let Some(slot) = depths.get_mut(index) {
                    *slot = depth;
                }
                continue;
            }
            // Counted anew from here, so that each step too far is told once.
            self.faults.push(
                Diagnostic::error(
                    "variables-too-deep",
                    format!("`{}` builds on variables that build on variables, too deep", variable.name.text),
                    self.set.at(variable.name.span),
                )
                .label(format!("their expressions together nest more than {MAX_NESTING} levels"))
                .help("compute it from `self` in fewer steps"),
            );
        }
    }

    /// The order in which resources are rendered: each after those that it reads, else as in the file. `reads` gives,
    /// per resource, what it reads and where.
    pub fn order(&mut self, reads: &[BTreeMap<usize, Location>]) -> Vec<usize> {
        let edges: Vec<Vec<usize>> = reads.iter().map(|reads| reads.keys().copied().collect()).collect();
        let set = self.set;
        for cycle in cycles(&edges) {
            let steps: Vec<(String, Location)> = cycle
                .iter()
                .zip(cycle.iter().cycle().skip(1))
                .filter_map(|(from, to)| {
                    Some((set.resources.get(*from)?.id.text.clone(), reads.get(*from)?.get(to)?.clone()))
                })
                .collect();
            self.faults.extend(cycle_fault("resource-cycle", "resources", &steps));
        }
        depth_first_order(&edges)
    }
}

/// Most levels that an expression and the variables it reads may nest together: what one expression may.
const MAX_NESTING: usize = super::expr::budget::MAX_DEPTH;

/// Most steps of a cycle that are told; a longer one is not understood better by all of it.
const MAX_STEPS: usize = 8;

fn cycle_fault(code: &'static str, what: &str, steps: &[(String, Location)]) -> Option<Diagnostic> {
    let ((first, at), rest) = steps.split_first()?;
    let mut path: Vec<&str> = steps.iter().take(MAX_STEPS).map(|(name, _)| name.as_str()).collect();
    let more = format!("({} more)", steps.len().saturating_sub(MAX_STEPS));
    path.extend((steps.len() > MAX_STEPS).then_some(more.as_str()));
    path.push(first);
    let message = format!("{what} read each other in a circle: {}", path.join(" → "));
    let mut fault = Diagnostic::error(code, message, at.clone());
    if rest.is_empty() {
        fault = fault.label("it reads itself");
    }
    for (name, at) in rest.iter().take(MAX_STEPS - 1) {
        fault = fault.related(at.clone(), format!("`{name}` reads on here"));
    }
    Some(fault.help("break the circle: one of them has to get its value from somewhere else, `self` for example"))
}

/// Where an expression names `root.name`; the whole expression where the words are not found together.
pub(super) fn locate(expression: &Expression, path: &[&str]) -> Location {
    let source = expression.source();
    let Some((root, rest)) = path.split_first() else { return expression.at() };
    let word = |c: char| c.is_alphanumeric() || c == '_';
    for (start, _) in source.match_indices(root) {
        if source.get(..start).is_some_and(|before| before.ends_with(word) || before.trim_end().ends_with('.')) {
            continue;
        }
        let mut end = start + root.len();
        let found = rest.iter().all(|name| {
            let Some(after) = source.get(end..) else { return false };
            let lead = after.len() - after.trim_start_matches(['.', '?', ' ', '[', '"', '\'', '\n']).len();
            let here = lead > 0 && after.get(lead..).is_some_and(|after| after.starts_with(name));
            end += lead + name.len();
            here
        });
        if found && !source.get(end..).is_some_and(|after| after.starts_with(word)) {
            return expression.at_range(start..end);
        }
    }
    expression.at()
}

/// Which fields of which resource some expression reads. `paths` of a resource with `forEach` begin with an item's
/// key, which is no field.
pub(super) fn read_paths(set: &RuleSet) -> BTreeMap<String, Vec<ReadPath>> {
    let mut reads: BTreeMap<String, BTreeSet<ReadPath>> = BTreeMap::new();
    super::file::each_expression(set, &mut |expression| {
        for chain in expression.expr.iter().flat_map(|expr| expr.reads()) {
            let [root, id, path @ ..] = chain.as_slice() else { continue };
            let Some(resource) = set.resources.iter().find(|resource| root == "resources" && resource.id.text == *id)
            else {
                continue;
            };
            let path = if resource.for_each.is_some() { path.get(1..).unwrap_or_default() } else { path };
            reads.entry(id.clone()).or_default().insert(path.to_vec());
        }
    });
    for resource in &set.resources {
        for expr in resource.ready_when.iter().filter_map(|expression| expression.expr.as_ref()) {
            for chain in expr.reads() {
                if let Some((root, path)) = chain.split_first()
                    && root == "resource"
                {
                    reads.entry(resource.id.text.clone()).or_default().insert(path.to_vec());
                }
            }
        }
    }
    reads
        .into_iter()
        .map(|(id, paths)| {
            // A path makes the longer ones that begin with it needless.
            let shortest = paths.iter().filter(|path| !(0..path.len()).any(|n| paths.contains(&path[..n])));
            let shortest = shortest.cloned().collect();
            (id, shortest)
        })
        .collect()
}
