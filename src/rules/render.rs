//! Program + parent + children as the cluster has them → what the children should be. A pure function: the same three
//! give the same answer, byte for byte.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use serde_json::{Map, Value};

use super::compile::{ForEach, Program, Resource};
use super::evaluate::{World, describe, fault};
use super::expr::{CelValue, Scope, from_json, to_json};
use super::manifest::owned;
use super::{Child, ChildState, Fault, Gvk, Observed, Rendered, names, patch};

/// Largest object that is sent, in bytes of JSON: etcd refuses more than this by default.
const MAX_OBJECT_BYTES: usize = 1024 * 1024;

impl Program {
    /// What the rules make of `parent` (the whole object, as the API server gives it).
    pub fn render(&self, parent: &Value, observed: &Observed) -> Rendered {
        let mut world = World::new(self, from_json(parent));
        let invalid = self.validate(&world);
        if !invalid.is_empty() {
            return Rendered { invalid, ..Rendered::default() };
        }
        let mut children = Vec::with_capacity(self.resources.len());
        // Ids that the rules speak of for this parent, and of those, the ones that are not all there.
        let mut missing: BTreeSet<&str> = BTreeSet::new();
        let mut unjudged = Vec::new();
        for resource in &self.resources {
            let there = observed.resources.get(&*resource.id);
            let first = children.len();
            make(&world, resource, there, &missing, &mut children, &mut unjudged);
            let Some(made) = children.get(first..).filter(|made| !made.is_empty() || resource.for_each.is_some())
            else {
                continue;
            };
            if made.iter().any(|child: &Child| there.is_none_or(|there| !there.contains_key(&child.item))) {
                missing.insert(&resource.id);
            }
            if self.reads().contains_key(&*resource.id)
                && let Some(value) = seen(resource, made, there)
            {
                world.resources.insert(resource.id.to_string(), value);
            }
        }
        for one in unjudged {
            if let Some(child) = children.get_mut(one.child) {
                child.ready = Some(ready(&world, &one, &missing));
            }
        }
        collisions(&mut children);
        let (status, status_faults) = self.status(&world, &missing);
        Rendered { invalid, children, status, status_faults }
    }

    fn validate(&self, world: &World<'_>) -> Vec<Fault> {
        let scope = world.scope();
        let mut invalid = Vec::new();
        for validation in &self.validations {
            match world.truth(&validation.rule, &scope, "rule") {
                Ok(true) => {}
                Err(fault) => invalid.push(fault),
                Ok(false) => {
                    let computed =
                        validation.message_expression.as_ref().and_then(|code| match world.eval(code, &scope) {
                            Ok(CelValue::String(message)) if !message.trim().is_empty() => {
                                Some(message.replace('\n', " "))
                            }
                            _ => None,
                        });
                    let message = computed.or_else(|| validation.message.clone()).unwrap_or_else(|| {
                        format!("the validation failed: `{}`", validation.rule.source.source().trim())
                    });
                    invalid.push(fault(&validation.rule, message));
                }
            }
        }
        invalid
    }

    fn status(&self, world: &World<'_>, missing: &BTreeSet<&str>) -> (Map<String, Value>, Vec<Fault>) {
        let mut status = Map::new();
        let mut faults = Vec::new();
        let scope = world.scope();
        for field in &self.status {
            if field.resources.iter().any(|id| missing.contains(&**id)) {
                // What it reads is on its way: neither a value nor a fault yet.
                continue;
            }
            match world.node(&field.value, &scope) {
                Ok(Some(value)) => {
                    status.insert(field.name.clone(), value);
                }
                Ok(None) => {}
                Err(fault) => faults.push(fault),
            }
        }
        (status, faults)
    }
}

/// A child that is there and whose `readyWhen` is still to be asked: it may read any other child, also one that is made
/// later, for readiness orders nothing.
pub(super) struct Unjudged<'p> {
    /// Its place among the children.
    child: usize,
    resource: &'p Resource,
    /// What `forEach` binds.
    names: Vec<(&'p str, CelValue)>,
    object: &'p Value,
}

/// Every child of one resource: none, one, or one for each item.
pub(super) fn make<'p>(
    world: &World<'_>,
    resource: &'p Resource,
    there: Option<&'p BTreeMap<String, Value>>,
    missing: &BTreeSet<&str>,
    children: &mut Vec<Child>,
    unjudged: &mut Vec<Unjudged<'p>>,
) {
    let scope = world.scope();
    let child = |item: &str, state: ChildState| Child {
        id: resource.id.to_string(),
        item: item.to_owned(),
        gvk: resource.gvk.clone(),
        policy: resource.policy,
        at: resource.at.clone(),
        state,
        ready: None,
    };
    let mut good = |children: &mut Vec<Child>, item: &str, state, names: Vec<(&'p str, CelValue)>| {
        let mut child = child(item, state);
        match there.and_then(|there| there.get(item)) {
            Some(_) if resource.ready_when.is_empty() => child.ready = Some(Ok(true)),
            Some(object) => unjudged.push(Unjudged { child: children.len(), resource, names, object }),
            None => {}
        }
        children.push(child);
    };
    // `when` that does not look at the item is asked first: it may be what guards the list.
    if let Some(when) = resource.when.as_ref().filter(|_| !resource.when_per_item) {
        match waiting(&when.resources, missing)
            .map_or_else(|| world.truth(when, &scope, "when").map_err(ChildState::Failed), Err)
        {
            Ok(true) => {}
            Ok(false) => return,
            Err(state) => return children.push(child("", state)),
        }
    }
    let Some(for_each) = &resource.for_each else {
        return good(children, "", manifest(world, resource, &scope, missing), Vec::new());
    };
    let items = match waiting(&for_each.over.resources, missing) {
        Some(wait) => Err(wait),
        None => items(world, for_each, &scope).map_err(ChildState::Failed),
    };
    let items = match items {
        Ok(items) => items,
        Err(state) => return children.push(child("", state)),
    };
    let mut keys: HashMap<String, usize> = HashMap::new();
    for item in items {
        let mut inner = scope.child();
        for (name, value) in &item.names {
            inner.set(*name, value.clone());
        }
        let wanted = match resource.when.as_ref().filter(|_| resource.when_per_item) {
            None => Ok(true),
            Some(when) => match waiting(&when.resources, missing) {
                Some(wait) => Err(wait),
                None => world.truth(when, &inner, "when").map_err(ChildState::Failed),
            },
        };
        if let Ok(false) = wanted {
            continue;
        }
        let key = match item_key(world, for_each, &inner, item.key, item.index) {
            Ok(key) => key,
            Err(fault) => {
                // Which child it would be is not known: it may be any, so none of them is given up.
                children.push(child("", ChildState::Failed(fault)));
                continue;
            }
        };
        if let Err(state) = wanted {
            children.push(child(&key, state));
            continue;
        }
        if let Some(twin) = keys.get(&key).and_then(|index| children.get_mut(*index)) {
            let code = for_each.item_key.as_ref().unwrap_or(&for_each.over);
            twin.state = ChildState::Failed(fault(
                code,
                format!("two items have the key `{key}`; give them different ones with `itemKey`"),
            ));
            continue;
        }
        keys.insert(key.clone(), children.len());
        let state = manifest(world, resource, &inner, missing);
        good(children, &key, state, item.names);
    }
}

/// A resource's child, or children by key, as expressions see them: only those that the rules still speak of.
pub(super) fn seen(resource: &Resource, made: &[Child], there: Option<&BTreeMap<String, Value>>) -> Option<CelValue> {
    if resource.for_each.is_none() {
        return there?.get("").map(from_json);
    }
    let objects = made.iter().filter_map(|child| Some((child.item.clone(), from_json(there?.get(&child.item)?))));
    Some(CelValue::from(objects.collect::<HashMap<_, _>>()))
}

/// Which of the resources that something reads are not there yet.
fn waiting(resources: &[std::sync::Arc<str>], missing: &BTreeSet<&str>) -> Option<ChildState> {
    let ids: Vec<String> = resources.iter().filter(|id| missing.contains(&***id)).map(ToString::to_string).collect();
    (!ids.is_empty()).then_some(ChildState::Waiting(ids))
}

/// The manifest of one child, patched and judged.
fn manifest(world: &World<'_>, resource: &Resource, scope: &Scope<'_>, missing: &BTreeSet<&str>) -> ChildState {
    if let Some(wait) = waiting(&resource.manifest_resources, missing) {
        return wait;
    }
    let rendered = world
        .node(&resource.manifest, scope)
        .and_then(|value| patch::apply(world, &resource.patches, scope, value.unwrap_or_default()))
        .and_then(|value| judge(world.program.parent(), resource, &value).map_or(Ok(value), Err));
    match rendered {
        Ok(value) => ChildState::Desired(value),
        Err(fault) => ChildState::Failed(fault),
    }
}

/// What is wrong with a rendered manifest that no API call needs to tell.
fn judge(parent: &Gvk, resource: &Resource, manifest: &Value) -> Option<Fault> {
    let at_name = |message: String| Some(Fault::new(message, resource.name_at.clone()));
    let at = |message: String| Some(Fault::new(message, resource.at.clone()));
    let kind = &resource.gvk.kind;
    match manifest.pointer("/metadata/name") {
        Some(Value::String(name)) if name.is_empty() => return at_name(format!("the name of the {kind} is empty")),
        Some(Value::String(name)) => {
            if let Some(reason) = names::of_object(&resource.gvk, name) {
                return at_name(format!("`{name}` cannot name a {kind}: {reason}"));
            }
        }
        Some(_) => return at_name(format!("the name of the {kind} is not text; write `string(…)`")),
        None => return at_name(format!("the {kind} has no name: its expression gave no value")),
    }
    for (field, value) in manifest.get("metadata").and_then(Value::as_object).into_iter().flatten() {
        if let Some(reason) = owned(parent, &["metadata", field]) {
            return at(format!("the rule gives `metadata.{field}`, which it may not: {reason}"));
        }
        for (key, _) in value.as_object().into_iter().flatten() {
            if let Some(reason) = owned(parent, &["metadata", field, key]) {
                return at(format!("the rule gives `metadata.{field}.{key}`, which it may not: {reason}"));
            }
        }
    }
    if manifest.get("status").is_some() {
        return at("the rule gives `status`, which it may not: the child's controller writes it".to_owned());
    }
    let size = json_size(manifest);
    if size <= MAX_OBJECT_BYTES {
        return None;
    }
    at(format!("the {kind} has {size} bytes of JSON, more than the {MAX_OBJECT_BYTES} that an object may have"))
}

/// Whether a child is ready, once it is known of every child whether it is there. What reads one that is not there yet is
/// not ready yet.
fn ready(world: &World<'_>, child: &Unjudged<'_>, missing: &BTreeSet<&str>) -> Result<bool, Fault> {
    let mut scope = world.scope();
    for (name, value) in &child.names {
        scope.set(*name, value.clone());
    }
    scope.set("resource", from_json(child.object));
    for code in &child.resource.ready_when {
        if waiting(&code.resources, missing).is_some() || !world.truth(code, &scope, "readyWhen")? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// One item of a `forEach`.
pub(super) struct Item<'p> {
    pub names: Vec<(&'p str, CelValue)>,
    /// The identity it has by itself.
    pub key: Option<String>,
    pub index: String,
}

pub(super) fn items<'p>(world: &World<'_>, for_each: &'p ForEach, scope: &Scope<'_>) -> Result<Vec<Item<'p>>, Fault> {
    let mut items = Vec::new();
    match world.eval(&for_each.over, scope)? {
        CelValue::List(list) => {
            for (index, value) in list.iter().enumerate() {
                let mut names = Vec::with_capacity(2);
                if let Some(key) = &for_each.key {
                    names.push((key.as_str(), CelValue::Int(i64::try_from(index).unwrap_or(i64::MAX))));
                }
                names.push((for_each.value.as_str(), value.clone()));
                items.push(Item { names, key: own_key(value), index: index.to_string() });
            }
        }
        CelValue::Map(map) => {
            for (key, value) in map.map.iter() {
                let text = key.to_string();
                let key = CelValue::from(key.clone());
                let mut names = Vec::with_capacity(2);
                if for_each.long {
                    names.extend(for_each.key.as_deref().map(|name| (name, key)));
                    names.push((for_each.value.as_str(), value.clone()));
                } else {
                    names.push((for_each.value.as_str(), key));
                }
                items.push(Item { names, key: Some(text.clone()), index: text });
            }
            // A map has no order of its own.
            items.sort_by(|a, b| a.index.cmp(&b.index));
        }
        other => {
            return Err(fault(
                &for_each.over,
                format!("`forEach` goes over a list or a map, this is {}", describe(&other)),
            ));
        }
    }
    Ok(items)
}

/// Text and integers are their own identity; an object's is its `name`.
fn own_key(value: &CelValue) -> Option<String> {
    match value {
        CelValue::String(text) => Some(text.to_string()),
        CelValue::Int(number) => Some(number.to_string()),
        CelValue::UInt(number) => Some(number.to_string()),
        CelValue::Map(_) => match to_json(value).ok()??.get("name")? {
            Value::String(name) => Some(name.clone()),
            Value::Number(name) => Some(name.to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// The identity of an item: what `itemKey` gives, else its own, else its index.
pub(super) fn item_key(
    world: &World<'_>,
    for_each: &ForEach,
    scope: &Scope<'_>,
    own: Option<String>,
    index: String,
) -> Result<String, Fault> {
    let Some(code) = &for_each.item_key else { return Ok(own.unwrap_or(index)) };
    match world.eval(code, scope)? {
        CelValue::String(key) if key.is_empty() => Err(fault(code, "`itemKey` gives empty text".to_owned())),
        CelValue::String(key) => Ok(key.to_string()),
        CelValue::Int(key) => Ok(key.to_string()),
        CelValue::UInt(key) => Ok(key.to_string()),
        other => Err(fault(code, format!("`itemKey` gives {}, and must give text or an integer", describe(&other)))),
    }
}

/// Children of one parent that are the same object would overwrite each other for ever: both fail.
fn collisions(children: &mut [Child]) {
    let mut seen: HashMap<(&str, &str, &str), Vec<usize>> = HashMap::new();
    for (index, child) in children.iter().enumerate() {
        if let ChildState::Desired(manifest) = &child.state
            && let Some(name) = manifest.pointer("/metadata/name").and_then(Value::as_str)
        {
            seen.entry((&child.gvk.group, &child.gvk.kind, name)).or_default().push(index);
        }
    }
    let mut faults = Vec::new();
    for ((_, kind, name), same) in seen.into_iter().filter(|(_, same)| same.len() > 1) {
        for index in &same {
            let others = same.iter().filter(|other| *other != index).filter_map(|other| children.get(*other));
            let others: Vec<String> = others.map(|other| format!("`{}`", title(other))).collect();
            faults.push((*index, format!("the {kind} `{name}` is also what {} gives", others.join(" and "))));
        }
    }
    for (index, message) in faults {
        if let Some(child) = children.get_mut(index) {
            child.state = ChildState::Failed(Fault::new(message, child.at.clone()));
        }
    }
}

fn title(child: &Child) -> String {
    if child.item.is_empty() { child.id.clone() } else { format!("{}[{}]", child.id, child.item) }
}

/// Bytes of a value's JSON, without writing it down.
fn json_size(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail.
    drop(serde_json::to_writer(&mut counter, value));
    counter.0
}
