//! One resource of a rule set: its kind, `when`, `forEach`, the manifest, its patches, `readyWhen`.

use std::sync::Arc;

use cel::common::ast::{CallExpr, Expr as Tree, IdedExpr, operators};

use super::context::{Context, Place};
use super::names::kind_of;
use super::scope::{Member, Path, Scope, Value};
use super::select::HAS_WHEN;
use super::{patches, set};
use crate::diagnostic::Diagnostic;
use crate::rules::Gvk;
use crate::rules::expr::Expr;
use crate::rules::file::{ForEach, Resource};
use crate::rules::schema::{KindSchema, Schema, Scope as Where, Shape};
use crate::rules::suggest::{did_you_mean, with_article};
use crate::rules::template::{self, Expression, Template, TreeKind};
use crate::rules::types::Type;

/// A resource and what is known of the kind of its children.
pub(super) struct Child<'a> {
    pub resource: &'a Resource,
    kind: Option<Gvk>,
    schema: Option<Arc<Schema>>,
}

/// The resources of a rule set; says which kinds are not known or cannot be children.
pub(super) fn children<'a>(context: &mut Context<'a>) -> Vec<Child<'a>> {
    let set = context.set;
    let mut children = Vec::new();
    for resource in &set.resources {
        let kind = kind_of(resource);
        let known = kind.as_ref().and_then(|kind| known(context, resource, kind));
        children.push(Child { resource, kind, schema: known.and_then(|known| known.schema) });
    }
    children
}

/// Looks a kind up, and says when it is not known or may not be a child.
fn known(context: &mut Context<'_>, resource: &Resource, kind: &Gvk) -> Option<KindSchema> {
    let span = resource.manifest.get("kind")?.span;
    let api =
        |gvk: &Gvk| if gvk.group.is_empty() { gvk.version.clone() } else { format!("{}/{}", gvk.group, gvk.version) };
    let Some(known) = context.kinds.kind(kind) else {
        let message =
            format!("the kind `{}` of `{}` is not known here: its fields are not checked", kind.kind, api(kind));
        let fault = Diagnostic::warning("unknown-kind", message, context.at(span));
        let all = context.kinds.known();
        let elsewhere = all.iter().filter(|other| other.kind == kind.kind).map(|other| format!("`{}`", api(other)));
        let elsewhere = elsewhere.collect::<Vec<_>>().join(" or ");
        let beside = all.iter().filter(|other| other.group == kind.group && other.version == kind.version);
        let similar = did_you_mean(&kind.kind, beside.map(|other| other.kind.as_str()));
        context.found.push(match similar {
            Some(similar) => fault.help(format!("did you mean `{similar}`?")),
            None if !elsewhere.is_empty() => fault.help(format!("`{}` is known in {elsewhere}", kind.kind)),
            None => fault.help("give its CRD with `--crd FILE` to have them checked"),
        });
        return None;
    };
    if known.scope == Where::Cluster {
        let parent = &context.set.parent.kind;
        let message =
            format!("{} cannot belong to {}: it is not in a namespace", with_article(&kind.kind), with_article(parent));
        let fault = Diagnostic::error("cluster-scoped", message, context.at(span));
        context.found.push(
            fault
                .label("an owner in a namespace may not own it; the garbage collector would delete it")
                .help("make it outside of the rules, or choose a kind that lives in a namespace"),
        );
    }
    Some(known)
}

/// The paths of the fields that a manifest gives whatever the parent is.
fn gather(context: &Context<'_>, scope: &Scope, tree: &template::Tree, path: &Path, given: &mut Vec<Path>) {
    let TreeKind::Map(entries) = &tree.kind else { return };
    for entry in entries {
        let Template::Literal(key) = &entry.key else { continue };
        let path = path.child(key);
        let may_be_absent = match &entry.value.kind {
            TreeKind::Template(Template::Expression(expression)) => {
                let checked = context.apart(expression, |checker| checker.any(scope));
                checked.is_none_or(|checked| matches!(checked.value.ty, Type::Optional(_)))
            }
            _ => false,
        };
        if !may_be_absent {
            given.push(path.clone());
        }
        gather(context, scope, &entry.value, &path, given);
    }
}

impl Child<'_> {
    /// What `resources.ID` is.
    pub fn member(&self) -> Member {
        let path = Path::root("resources").child(&self.resource.id.text);
        let stored = set::stored(self.schema.as_ref());
        let one = stored.as_ref().map_or(Type::Dyn, Schema::value_type);
        let only_when = self.resource.when.as_ref().map(|when| {
            let source = when.source().split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{HAS_WHEN}{source}`")
        });
        let value = match &self.resource.for_each {
            None => Value { path: Some(path), schema: stored, ..Value::of(one) },
            Some(_) => Value { path: Some(path), ..Value::of(Type::string_map(one)) },
        };
        // With `forEach` the map is there even if it is empty.
        let only_when = only_when.filter(|_| self.resource.for_each.is_none());
        Member { value, only_when, needs: std::collections::BTreeSet::new() }
    }

    /// The fields that the manifest gives in any case: the child in the cluster has them.
    pub fn given(&self, context: &Context<'_>, scope: &Scope) -> Vec<Path> {
        let mut given = Vec::new();
        // The items of a `forEach` have keys that are not known.
        if self.resource.for_each.is_none() {
            let root = Path::root("resources").child(&self.resource.id.text);
            gather(context, scope, &self.resource.manifest, &root, &mut given);
        }
        given
    }

    fn owner(&self) -> Arc<str> {
        self.kind.as_ref().map_or("child", |kind| kind.kind.as_str()).into()
    }
}

/// Checks one resource.
pub(super) fn check(context: &mut Context<'_>, child: &Child<'_>, scope: &Scope, all: &[Child<'_>]) {
    let resource = child.resource;
    let items: Vec<&str> = resource.for_each.iter().flat_map(ForEach::names).map(|name| name.text.as_str()).collect();
    // A `when` that does not look at the item is asked before the list is made.
    let per_item = resource.when.as_ref().is_some_and(|when| reads_any(when, &items));
    let mut scope = scope.clone();
    if !per_item {
        scope = when(context, resource, &scope, all);
    }
    if let Some(for_each) = &resource.for_each {
        scope = items_of(context, for_each, &scope);
        if let Some(key) = &resource.item_key {
            item_key(context, key, &scope);
        } else {
            identity(context, for_each, &scope);
        }
    }
    if per_item {
        scope = when(context, resource, &scope, all);
    }
    let schema = child.schema.clone().unwrap_or_default();
    let place = Place { owner: child.owner(), path: String::new(), schema: Arc::clone(&schema) };
    context.tree(&resource.manifest, &place, &scope, &patches::added(resource));
    patches::check(context, resource, &place, &scope);
    ready_when(context, child, &scope);
}

fn when(context: &mut Context<'_>, resource: &Resource, scope: &Scope, all: &[Child<'_>]) -> Scope {
    let Some(when) = &resource.when else { return scope.clone() };
    let value = context.expression(when, |checker| checker.condition(scope, "`when`"));
    let mut scope = match value.and_then(|value| value.implies) {
        Some(implied) => scope.knowing(&implied.0),
        None => scope.clone(),
    };
    // Where the condition of another resource is a part of this one's, that resource is there too.
    for other in all {
        let condition = other.resource.when.as_ref().and_then(|when| when.expr.as_deref());
        if condition.is_some_and(|condition| conjuncts(condition).iter().all(|part| scope.facts.holds(part))) {
            scope.facts.insert_alone(Path::root("resources").child(&other.resource.id.text));
        }
    }
    scope
}

/// The texts of the parts of `a && b && c`.
fn conjuncts(expr: &Expr) -> Vec<&str> {
    fn walk<'n>(node: &'n IdedExpr, out: &mut Vec<&'n IdedExpr>) {
        match &node.expr {
            Tree::Call(CallExpr { func_name, args, .. }) if func_name == operators::LOGICAL_AND => {
                for part in args {
                    walk(part, out);
                }
            }
            _ => out.push(node),
        }
    }
    let mut parts = Vec::new();
    walk(expr.ast(), &mut parts);
    let text = |node: &&IdedExpr| expr.range_of(node.id).and_then(|range| expr.source().get(range));
    parts.iter().map(|node| text(node).unwrap_or_default()).collect()
}

fn reads_any(expression: &Expression, names: &[&str]) -> bool {
    let free = expression.expr.as_ref().map(|expr| expr.free_identifiers()).unwrap_or_default();
    names.iter().any(|name| free.contains(*name))
}

/// The scope of one item of a `forEach`.
fn items_of(context: &mut Context<'_>, for_each: &ForEach, scope: &Scope) -> Scope {
    let value = context.expression(&for_each.over, |checker| checker.any(scope));
    let over = value.unwrap_or_else(|| Value::of(Type::Error));
    let items = over.schema.as_ref().and_then(|schema| match &schema.shape {
        Shape::List(items) | Shape::Map(items) => Some(items.get()),
        _ => None,
    });
    let (key, item) = match &over.ty {
        Type::List(element) => (Type::Int, (**element).clone()),
        Type::Map(key, value) => ((**key).clone(), (**value).clone()),
        Type::Object(_) => (Type::String, Type::Dyn),
        unknown if unknown.is_unknown() => (Type::Dyn, Type::Dyn),
        other => {
            not_a_list(context, for_each, other);
            (Type::Error, Type::Error)
        }
    };
    let is_map = matches!(over.ty, Type::Map(..) | Type::Object(_));
    let name = &for_each.value.text;
    let path = Path::root(&format!("{name}#item"));
    let mut scope = scope.clone();
    for known in &over.elements {
        scope.facts.insert(&known.on(&path));
    }
    let item = Value { path: Some(path), schema: items, ..Value::of(item) };
    if is_map && !for_each.long {
        return scope.with(name, Value::of(key));
    }
    let scope = scope.with(name, item);
    match &for_each.key {
        Some(name) => scope.with(&name.text, Value::of(key)),
        None => scope,
    }
}

fn not_a_list(context: &mut Context<'_>, for_each: &ForEach, ty: &Type) {
    let message = format!("`forEach` goes over a list or a map, this is `{ty}`");
    let fault = Diagnostic::error("not-a-list", message, for_each.over.at()).label(format!("`{ty}`"));
    let source = for_each.over.source().trim();
    context.found.push(match ty {
        Type::Optional(inner) if matches!(**inner, Type::Map(..)) => {
            fault.help(format!("say what an absent map means: `{source}.orValue({{}})`"))
        }
        Type::Optional(_) => fault.help(format!("say what an absent list means: `{source}.orValue([])`")),
        _ => fault.help(format!("a list of one: `[{source}]`")),
    });
}

fn item_key(context: &mut Context<'_>, key: &Expression, scope: &Scope) {
    let Some(value) = context.expression(key, |checker| checker.any(scope)) else { return };
    if value.ty.is_unknown() || matches!(value.ty, Type::String | Type::Int | Type::Uint | Type::IntOrString) {
        return;
    }
    let message = format!("`itemKey` must be `string` or `int`, this is `{}`", value.ty);
    let fault = Diagnostic::error("wrong-type", message, key.at()).label(format!("`{}`", value.ty));
    let source = key.source().trim();
    context.found.push(match &value.ty {
        Type::Object(_) => fault.help(format!("take the field that tells items apart: `{source}.name`")),
        Type::Optional(_) => fault.help("an item without a key has no identity; take a field that is always there"),
        Type::Opaque(_) => fault.help(format!("convert it: `string({source})`")),
        _ => fault,
    });
}

/// Without `itemKey`, an item is known by itself, by the map's key, by its `name`; else by its place in the list, which
/// changes when an item before it goes.
fn identity(context: &mut Context<'_>, for_each: &ForEach, scope: &Scope) {
    let Some(item) = scope.names.get(&for_each.value.text) else { return };
    let Type::Object(schema) = &item.ty else { return };
    // A map's values are known by their keys.
    if for_each.long
        && for_each
            .key
            .as_ref()
            .and_then(|key| scope.names.get(&key.text))
            .is_some_and(|key| matches!(key.ty, Type::String))
    {
        return;
    }
    let Some(fields) = schema.fields() else { return };
    let always = |name: &str| {
        fields.is_sure(name) || item.path.as_ref().is_some_and(|path| scope.facts.contains(&path.child(name)))
    };
    let fits = |name: &str| {
        schema.field(name).is_some_and(|field| matches!(field.shape, Shape::String | Shape::Int | Shape::IntOrString))
    };
    if fields.known.contains_key("name") && always("name") && fits("name") {
        return;
    }
    let item_name = &for_each.value.text;
    let (message, label) = if fields.known.contains_key("name") {
        ("items without a `name` are told apart by their place in the list".to_owned(), "`name` is optional")
    } else {
        ("these items are told apart by their place in the list".to_owned(), "they have no `name`")
    };
    let fault = Diagnostic::warning("index-identity", message, for_each.over.at())
        .label(label)
        .help("when one goes, those after it become other children: they are written anew, and the last is deleted");
    let key = fields.known.keys().find(|name| always(name) && fits(name));
    context.found.push(match key {
        Some(key) => fault.help(format!("name the field that tells them apart: `itemKey: {item_name}.{key}`")),
        None => fault.help(format!("name what tells them apart: `itemKey: {item_name}.…`")),
    });
}

fn ready_when(context: &mut Context<'_>, child: &Child<'_>, scope: &Scope) {
    let resource = child.resource;
    if resource.ready_when.is_empty() {
        return;
    }
    let root = Path::root("resource");
    let observed = match set::stored(child.schema.as_ref()) {
        Some(schema) => Value::root("resource", &schema),
        None => Value { path: Some(root.clone()), ..Value::of(Type::Dyn) },
    };
    let mut scope = scope.with("resource", observed);
    let mut given = Vec::new();
    gather(context, &scope, &resource.manifest, &root, &mut given);
    for path in given {
        scope.facts.insert_alone(path);
    }
    for ready in &resource.ready_when {
        let value = context.expression(ready, |checker| checker.condition(&scope, "`readyWhen`"));
        // All must be true: each may count on those before it.
        if let Some(implied) = value.and_then(|value| value.implies) {
            scope = scope.knowing(&implied.0);
        }
    }
}
