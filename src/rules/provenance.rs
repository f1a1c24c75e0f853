//! Where the fields of one child come from: which place in the rule file, which expressions, which patches.
//!
//! Rendering does not record this: it happens for every change of every parent, and people ask about one field now and
//! then. Here the manifest is walked once more, its compiled form side by side with the file's, with the same values.

use std::collections::BTreeSet;

use serde_json::Value;

use super::compile::{Key, Node, Patch, Program, Resource};
use super::evaluate::World;
use super::expr::{Scope, from_json, to_json};
use super::file::Op;
use super::render::{item_key, items, make, seen};
use super::template::{Expression, Piece, Template, Tree, TreeKind};
use super::{Child, Fault, Observed, patch};
use crate::diagnostic::{Location, SourceFile, Span};

/// A field's path: keys, and indices of lists as text.
pub type Path = Vec<String>;

/// Where a field, and everything in it, comes from.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The place in the rule file.
    pub at: Location,
    /// What stands there.
    pub source: String,
    /// The expressions in it; none where it is a constant.
    pub expressions: Vec<Expression>,
}

/// A field of the child.
#[derive(Debug, Clone)]
pub struct Field {
    /// Where it is in the child.
    pub path: Path,
    /// Where it comes from.
    pub origin: Origin,
}

/// An operation that was applied.
#[derive(Debug, Clone)]
pub struct Touch {
    /// Where it stands.
    pub at: Location,
    /// Its word.
    pub op: &'static str,
    /// What it works on.
    pub path: Path,
}

/// Where all fields of a child come from.
#[derive(Debug, Default)]
pub struct Trace {
    /// Every field, in the order of the manifest.
    pub fields: Vec<Field>,
    /// The operations that were applied, in order.
    pub patches: Vec<Touch>,
    /// The names that `forEach` gives, with their values.
    pub items: Vec<(String, Value)>,
}

impl Trace {
    /// The field that a path is, or is in; else the fields below it.
    pub fn of(&self, path: &[String]) -> Vec<&Field> {
        let around =
            self.fields.iter().filter(|field| path.starts_with(&field.path)).max_by_key(|field| field.path.len());
        match around {
            Some(field) => vec![field],
            None => self.fields.iter().filter(|field| field.path.starts_with(path)).collect(),
        }
    }
}

impl Program {
    /// Where the fields of one child come from; `None` if the rules give no such child now.
    pub fn trace(&self, parent: &Value, observed: &Observed, id: &str, item: &str) -> Option<Result<Trace, Fault>> {
        let mut world = World::new(self, from_json(parent));
        let mut missing: BTreeSet<&str> = BTreeSet::new();
        for resource in &self.resources {
            if &*resource.id == id {
                return self.resource_trace(&world, resource, item);
            }
            let there = observed.resources.get(&*resource.id);
            let mut made: Vec<Child> = Vec::new();
            make(&world, resource, there, &missing, &mut made, &mut Vec::new());
            if made.iter().any(|child| there.is_none_or(|there| !there.contains_key(&child.item))) {
                missing.insert(&resource.id);
            }
            if let Some(value) =
                seen(resource, &made, there).filter(|_| !made.is_empty() || resource.for_each.is_some())
            {
                world.resources.insert(resource.id.to_string(), value);
            }
        }
        None
    }

    fn resource_trace(&self, world: &World<'_>, resource: &Resource, item: &str) -> Option<Result<Trace, Fault>> {
        let written = self.set.resources.iter().find(|written| written.id.text == *resource.id)?;
        let outer = world.scope();
        let Some(for_each) = &resource.for_each else {
            return Some(trace(world, resource, &written.manifest, &written.patches, &outer, &self.set.file));
        };
        for candidate in items(world, for_each, &outer).ok()? {
            let mut scope = outer.child();
            let mut names = Vec::new();
            for (name, value) in candidate.names {
                names.push((name.to_owned(), to_json(&value).ok().flatten().unwrap_or_default()));
                scope.set(name, value);
            }
            if item_key(world, for_each, &scope, candidate.key, candidate.index).is_ok_and(|key| key == item) {
                let found = trace(world, resource, &written.manifest, &written.patches, &scope, &self.set.file);
                return Some(found.map(|found| Trace { items: names, ..found }));
            }
        }
        None
    }
}

fn trace(
    world: &World<'_>,
    resource: &Resource,
    tree: &Tree,
    written: &[super::file::Patch],
    scope: &Scope<'_>,
    file: &std::sync::Arc<SourceFile>,
) -> Result<Trace, Fault> {
    let mut walk = Walk { world, scope, file, fields: Vec::new() };
    walk.node(&resource.manifest, tree, &mut Vec::new())?;
    let mut trace = Trace { fields: walk.fields, ..Trace::default() };
    let mut manifest = world.node(&resource.manifest, scope)?.unwrap_or_default();
    for (compiled, written) in resource.patches.iter().zip(written) {
        if let Some(when) = &compiled.when
            && !world.truth(when, scope, "when")?
        {
            continue;
        }
        let mut added = Vec::new();
        if let (Some(node), Some(tree)) = (&compiled.value, &written.value) {
            let mut walk = Walk { world, scope, file, fields: Vec::new() };
            if !walk.node(node, tree, &mut Vec::new())? {
                continue;
            }
            added = walk.fields;
        }
        apply(&mut trace.fields, compiled, added, &manifest);
        let path = steps(&compiled.path, &manifest);
        manifest = patch::apply(world, std::slice::from_ref(compiled), scope, manifest)?;
        trace.patches.push(Touch { at: compiled.at.clone(), op: compiled.op.word(), path });
    }
    Ok(trace)
}

/// What one operation does to the fields, as RFC 6902 does it to the manifest.
fn apply(fields: &mut Vec<Field>, operation: &Patch, added: Vec<Field>, manifest: &Value) {
    let path = steps(&operation.path, manifest);
    match operation.op {
        Op::Test => {}
        Op::Remove => drop(take(fields, &path, manifest)),
        Op::Replace => {
            fields.retain(|field| !field.path.starts_with(&path));
            put(fields, &path, added);
        }
        Op::Add => {
            make_room(fields, &path, manifest);
            put(fields, &path, added);
        }
        Op::Move | Op::Copy => {
            let from = steps(operation.from.as_deref().unwrap_or_default(), manifest);
            let found = if operation.op == Op::Move { take(fields, &from, manifest) } else { below(fields, &from) };
            make_room(fields, &path, manifest);
            put(fields, &path, found);
        }
    }
}

/// The fields below a path, seen from there.
fn below(fields: &[Field], path: &[String]) -> Vec<Field> {
    let inside = fields.iter().filter(|field| field.path.starts_with(path));
    let mut found: Vec<Field> =
        inside.map(|field| Field { path: field.path[path.len()..].to_vec(), origin: field.origin.clone() }).collect();
    if found.is_empty()
        && let Some(around) = fields.iter().find(|field| path.starts_with(&field.path))
    {
        found.push(Field { path: Vec::new(), origin: around.origin.clone() });
    }
    found
}

/// Takes the fields below a path out; later items of its list move up.
fn take(fields: &mut Vec<Field>, path: &[String], manifest: &Value) -> Vec<Field> {
    let found = below(fields, path);
    fields.retain(|field| !field.path.starts_with(path));
    shift(fields, path, manifest, |index| index.saturating_sub(1));
    found
}

/// Makes room for a new value: a key's old value goes, items of a list from there on move down.
fn make_room(fields: &mut Vec<Field>, path: &[String], manifest: &Value) {
    if !shift(fields, path, manifest, |index| index + 1) {
        fields.retain(|field| !field.path.starts_with(path));
    }
}

fn put(fields: &mut Vec<Field>, path: &[String], added: Vec<Field>) {
    fields.extend(added.into_iter().map(|field| Field { path: [path, &field.path].concat(), ..field }));
}

/// Renumbers the items of the list that a path leads into, from the path's index on. False if it is no list.
fn shift(fields: &mut [Field], path: &[String], manifest: &Value, to: impl Fn(usize) -> usize) -> bool {
    let Some((item, list)) = path.split_last() else { return false };
    let escaped = list.iter().map(|step| step.replace('~', "~0").replace('/', "~1"));
    let pointer: String = escaped.flat_map(|step| ["/".to_owned(), step]).collect();
    let (Some(Value::Array(_)), Ok(first)) = (manifest.pointer(&pointer), item.parse::<usize>()) else { return false };
    for field in fields.iter_mut().filter(|field| field.path.starts_with(list)) {
        if let Some(step) = field.path.get_mut(list.len())
            && let Ok(index) = step.parse::<usize>()
            && index >= first
        {
            *step = to(index).to_string();
        }
    }
    true
}

/// The steps of a JSON Pointer; `-` is the number of the item that it would add.
fn steps(pointer: &str, manifest: &Value) -> Path {
    let mut steps: Path = pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    if let Some((list, "-")) = pointer.rsplit_once('/')
        && let (Some(Value::Array(items)), Some(last)) = (manifest.pointer(list), steps.last_mut())
    {
        *last = items.len().to_string();
    }
    steps
}

struct Walk<'a> {
    world: &'a World<'a>,
    scope: &'a Scope<'a>,
    file: &'a std::sync::Arc<SourceFile>,
    fields: Vec<Field>,
}

impl Walk<'_> {
    /// Notes the fields of a subtree. False where it gives no value.
    fn node(&mut self, node: &Node, tree: &Tree, path: &mut Path) -> Result<bool, Fault> {
        match (node, &tree.kind) {
            (Node::Map(nodes), TreeKind::Map(entries)) => {
                for ((key, node), entry) in nodes.iter().zip(entries) {
                    let key = match key {
                        Key::Constant(key) => key.clone(),
                        Key::Mixed(parts, _) => self.world.text(parts, self.scope)?,
                    };
                    path.push(key);
                    let walked = self.node(node, &entry.value, path);
                    path.pop();
                    walked?;
                }
            }
            (Node::List(nodes), TreeKind::List(trees)) => {
                let mut index = 0;
                for (node, tree) in nodes.iter().zip(trees) {
                    path.push(index.to_string());
                    let walked = self.node(node, tree, path);
                    path.pop();
                    // What gives no value is no item.
                    index += usize::from(walked?);
                }
            }
            (Node::Constant(value), _) => self.constant(value, tree, path),
            _ => {
                let there = self.world.node(node, self.scope)?.is_some();
                if there {
                    self.note(tree, path);
                }
                return Ok(there);
            }
        }
        Ok(true)
    }

    fn constant(&mut self, value: &Value, tree: &Tree, path: &mut Path) {
        match (value, &tree.kind) {
            (Value::Object(map), TreeKind::Map(entries)) if !map.is_empty() => {
                for ((key, value), entry) in map.iter().zip(entries) {
                    path.push(key.clone());
                    self.constant(value, &entry.value, path);
                    path.pop();
                }
            }
            (Value::Array(items), TreeKind::List(trees)) if !items.is_empty() => {
                for (index, (value, tree)) in items.iter().zip(trees).enumerate() {
                    path.push(index.to_string());
                    self.constant(value, tree, path);
                    path.pop();
                }
            }
            _ => self.note(tree, path),
        }
    }

    fn note(&mut self, tree: &Tree, path: &Path) {
        let expressions = match &tree.kind {
            TreeKind::Template(Template::Expression(expression)) => vec![expression.clone()],
            TreeKind::Template(Template::Mixed(pieces)) => {
                let expressions = pieces.iter().filter_map(|piece| match piece {
                    Piece::Expression(expression) => Some(expression.clone()),
                    Piece::Literal(_) => None,
                });
                expressions.collect()
            }
            TreeKind::Template(Template::Literal(_)) | TreeKind::Constant(_) | TreeKind::List(_) | TreeKind::Map(_) => {
                Vec::new()
            }
        };
        let Span { start, end } = tree.span;
        let source = self.file.text.get(start..end).unwrap_or_default().trim().to_owned();
        self.fields
            .push(Field { path: path.clone(), origin: Origin { at: self.file.at(tree.span), source, expressions } });
    }
}
