//! Patches: whether each operation finds what it works on, in the manifest as the earlier ones left it, and whether what
//! it puts there may stand there. Nothing is evaluated: the outline of the manifest is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::context::{Context, Place};
use super::scope::Scope;
use crate::diagnostic::{Diagnostic, Span};
use crate::rules::file::{Op, Patch, Resource};
use crate::rules::schema::{Schema, Shape};
use crate::rules::suggest::{did_you_mean, with_article};
use crate::rules::template::{Template, Tree, TreeKind};

/// What is known of a manifest's shape.
#[derive(Debug, Clone)]
enum Outline {
    /// An expression's value, or something in it: anything may be there.
    Unknown,
    /// A text, a number, a bool.
    Scalar,
    /// A list; when it is not `open`, of exactly these elements.
    List { items: Vec<Outline>, open: bool },
    /// A map; when it is not `open`, with exactly these keys.
    Map { entries: BTreeMap<String, Outline>, open: bool },
}

/// Why a pointer leads nowhere: how many of its keys could be followed, and what to do.
struct Lost {
    followed: usize,
    why: String,
    help: Option<String>,
}

/// The fields that patches add, as paths in a manifest: what they add, the manifest need not have.
pub(super) fn added(resource: &Resource) -> BTreeSet<String> {
    let adds = resource.patches.iter().filter(|patch| matches!(patch.op, Op::Add | Op::Copy | Op::Move));
    adds.map(|patch| written(&keys(&patch.path.text))).collect()
}

/// The keys of a pointer as a path in a manifest is written: `spec.ports[0]`.
fn written(keys: &[String]) -> String {
    let mut path = String::new();
    for key in keys {
        match key.as_str() {
            key if key == "-" || key.parse::<usize>().is_ok() => path.extend(["[", key, "]"]),
            key if path.is_empty() => path.push_str(key),
            key if key.contains(['.', '/']) => path.extend(["['", key, "']"]),
            key => path.extend([".", key]),
        }
    }
    path
}

/// Checks the patches of a resource, in order.
pub(super) fn check(context: &mut Context<'_>, resource: &Resource, place: &Place, scope: &Scope) {
    let mut outline = outline_of(&resource.manifest);
    for patch in &resource.patches {
        let scope = match &patch.when {
            None => scope.clone(),
            Some(when) => {
                let value = context.expression(when, |checker| checker.condition(scope, "`when`"));
                match value.and_then(|value| value.implies) {
                    Some(implied) => scope.knowing(&implied.0),
                    None => scope.clone(),
                }
            }
        };
        operation(context, patch, place, &scope, &mut outline);
    }
}

fn operation(context: &mut Context<'_>, patch: &Patch, place: &Place, scope: &Scope, outline: &mut Outline) {
    let steps = keys(&patch.path.text);
    let target = schema_at(&place.schema, &steps);
    if let Err(lost) = &target {
        lost_in_schema(context, &patch.path.text, patch.path.span, &steps, lost, &place.owner);
    }
    if let (Some(value), Ok(schema)) = (&patch.value, &target) {
        let there = Place { path: written(&steps), schema: Arc::clone(schema), ..place.clone() };
        context.tree(value, &there, scope, &BTreeSet::new());
    } else if let Some(value) = &patch.value {
        let anywhere = Place { path: written(&steps), schema: Arc::default(), ..place.clone() };
        context.tree(value, &anywhere, scope, &BTreeSet::new());
    }
    let sometimes = patch.when.is_some() || patch.value.as_ref().is_some_and(is_expression);
    let moved = match (&patch.from, patch.op) {
        (Some(from), Op::Move | Op::Copy) => {
            let keys = keys(&from.text);
            let found = get(outline, &keys).cloned();
            match found {
                Err(lost) => {
                    missing(context, patch.op, &from.text, from.span, &lost);
                    Outline::Unknown
                }
                Ok(found) => {
                    if patch.op == Op::Move && !sometimes {
                        let _ = remove(outline, &keys);
                    }
                    found
                }
            }
        }
        _ => patch.value.as_ref().map_or(Outline::Unknown, outline_of),
    };
    let outcome = match patch.op {
        Op::Add | Op::Move | Op::Copy => add(outline, &steps, moved),
        Op::Remove if sometimes => get(outline, &steps).map(|_| ()),
        Op::Remove => remove(outline, &steps),
        Op::Replace => get(outline, &steps).map(|_| ()).and_then(|()| add_over(outline, &steps, moved)),
        Op::Test => get(outline, &steps).map(|_| ()),
    };
    // One message is enough for a path that cannot exist at all.
    if let (Err(lost), Ok(_)) = (outcome, &target) {
        missing(context, patch.op, &patch.path.text, patch.path.span, &lost);
    }
}

fn missing(context: &mut Context<'_>, op: Op, pointer: &str, span: Span, lost: &Lost) {
    let word = op.word();
    let message = format!("`{word}` of `{pointer}` cannot work: {}", lost.why);
    let place = context.at(tail(context, span, pointer, lost.followed));
    let fault = Diagnostic::error("patch-target", message, place);
    let fault = match &lost.help {
        Some(help) => fault.help(help.clone()),
        None => fault,
    };
    let steps = keys(pointer);
    let at_end = steps.len() == lost.followed + 1;
    context.found.push(match op {
        Op::Replace if at_end && lost.help.is_none() => {
            fault.help("`add` puts it there whether or not it is there already")
        }
        Op::Add if !at_end => {
            let upto: String = steps[..=lost.followed].iter().flat_map(|key| ["/".to_owned(), escaped(key)]).collect();
            fault.help(format!("add what is above it first: `{{op: add, path: {upto}, value: {{}}}}`"))
        }
        _ => fault,
    });
}

fn lost_in_schema(context: &mut Context<'_>, pointer: &str, span: Span, path: &[String], lost: &Lost, owner: &str) {
    let at = context.at(tail(context, span, pointer, lost.followed));
    let above = written(&path[..lost.followed]);
    let owner = with_article(&format!("`{owner}`"));
    let whose = if above.is_empty() { owner } else { format!("`{above}` of {owner}") };
    let fault = Diagnostic::error("bad-pointer", format!("{whose} {}", lost.why), at);
    context.found.push(match &lost.help {
        Some(help) => fault.help(help.clone()),
        None => fault,
    });
}

/// The bytes of a pointer from one of its keys on, when it was written without escapes; else all of it.
fn tail(context: &Context<'_>, span: Span, pointer: &str, followed: usize) -> Span {
    let written = context.set.file.text.get(span.start..span.end).unwrap_or_default();
    let Some(start) = written.find(pointer) else { return span };
    let offset = pointer.match_indices('/').nth(followed).map_or(0, |(index, _)| index + 1);
    let key = pointer[offset..].find('/').map_or(pointer.len(), |end| offset + end);
    let (from, to) = (span.start + start + offset, span.start + start + key);
    if from < to { Span::new(from, to) } else { span }
}

/// The keys of a JSON Pointer, escapes undone.
fn keys(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect()
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The schema of the place that a pointer names.
fn schema_at(root: &Arc<Schema>, path: &[String]) -> Result<Arc<Schema>, Lost> {
    let mut schema = Arc::clone(root);
    for (followed, key) in path.iter().enumerate() {
        let lost = |why: String, help: Option<String>| Lost { followed, why, help };
        schema = match &schema.shape {
            Shape::List(items) => {
                if key != "-" && key.parse::<usize>().is_err() {
                    let help = "elements are numbered from 0; `-` is the end of the list";
                    return Err(lost(
                        format!("is a list, `{key}` is not the number of an element"),
                        Some(help.to_owned()),
                    ));
                }
                items.get()
            }
            Shape::Any | Shape::Map(_) | Shape::Object(_) => {
                let known = schema.fields().into_iter().flat_map(|fields| fields.known.keys().map(String::as_str));
                let similar = did_you_mean(key, known).map(|name| format!("did you mean `{name}`?"));
                schema.field(key).ok_or_else(|| lost(format!("has no field `{key}`"), similar))?
            }
            _ => return Err(lost(format!("is `{}`, there is nothing inside it", schema.describe()), None)),
        };
    }
    Ok(schema)
}

fn is_expression(tree: &Tree) -> bool {
    matches!(tree.kind, TreeKind::Template(Template::Expression(_)))
}

/// The outline of a manifest.
fn outline_of(tree: &Tree) -> Outline {
    match &tree.kind {
        TreeKind::Constant(_) | TreeKind::Template(Template::Literal(_) | Template::Mixed(_)) => Outline::Scalar,
        TreeKind::Template(Template::Expression(_)) => Outline::Unknown,
        TreeKind::List(items) => {
            Outline::List { items: items.iter().map(outline_of).collect(), open: items.iter().any(is_expression) }
        }
        TreeKind::Map(entries) => {
            let constant = entries.iter().filter_map(|entry| match &entry.key {
                Template::Literal(key) => Some((key.clone(), outline_of(&entry.value))),
                _ => None,
            });
            let entries_known: BTreeMap<_, _> = constant.collect();
            Outline::Map { open: entries_known.len() < entries.len(), entries: entries_known }
        }
    }
}

/// What a pointer leads to.
fn get<'o>(outline: &'o Outline, path: &[String]) -> Result<&'o Outline, Lost> {
    let mut at = outline;
    for (followed, key) in path.iter().enumerate() {
        at = match at {
            Outline::Unknown => return Ok(&Outline::Unknown),
            Outline::Scalar => return Err(nothing_inside(followed, path)),
            Outline::List { items, open } => match key.parse::<usize>() {
                Ok(index) => match items.get(index) {
                    Some(item) => item,
                    None if *open => return Ok(&Outline::Unknown),
                    None => return Err(short(followed, items.len())),
                },
                Err(_) => return Err(no_element(followed, key)),
            },
            Outline::Map { entries, open } => match entries.get(key) {
                Some(entry) => entry,
                None if *open => return Ok(&Outline::Unknown),
                None => return Err(no_key(followed, key, path, entries)),
            },
        };
    }
    Ok(at)
}

/// Follows all keys but the last, and does something there. `Ok` without doing it where nothing is known.
fn at_parent(
    outline: &mut Outline,
    path: &[String],
    act: impl FnOnce(&mut Outline, &str, usize) -> Result<(), Lost>,
) -> Result<(), Lost> {
    let Some((last, above)) = path.split_last() else { return Ok(()) };
    let mut at = outline;
    for (followed, key) in above.iter().enumerate() {
        at = match at {
            Outline::Unknown => return Ok(()),
            Outline::Scalar => return Err(nothing_inside(followed, path)),
            Outline::List { items, open } => {
                let length = items.len();
                match key.parse::<usize>().ok() {
                    Some(index) if index < length => &mut items[index],
                    _ if *open => return Ok(()),
                    Some(_) => return Err(short(followed, length)),
                    None => return Err(no_element(followed, key)),
                }
            }
            Outline::Map { entries, open } => {
                if !entries.contains_key(key) {
                    return if *open { Ok(()) } else { Err(no_key(followed, key, path, entries)) };
                }
                match entries.get_mut(key) {
                    Some(entry) => entry,
                    None => return Ok(()),
                }
            }
        };
    }
    act(at, last, above.len())
}

/// `add`: a key of a map is set, an element goes before the one of its number.
fn add(outline: &mut Outline, path: &[String], value: Outline) -> Result<(), Lost> {
    at_parent(outline, path, |parent, key, followed| match parent {
        Outline::Unknown => Ok(()),
        Outline::Scalar => Err(nothing_inside(followed, path)),
        Outline::Map { entries, .. } => {
            entries.insert(key.to_owned(), value);
            Ok(())
        }
        Outline::List { items, open } => match key.parse::<usize>() {
            Ok(index) if index <= items.len() => {
                items.insert(index, value);
                Ok(())
            }
            Ok(_) if *open => Ok(()),
            Ok(_) => Err(short(followed, items.len())),
            Err(_) if key == "-" => {
                items.push(value);
                Ok(())
            }
            Err(_) => Err(no_element(followed, key)),
        },
    })
}

/// The second half of `replace`: what is there becomes something else.
fn add_over(outline: &mut Outline, path: &[String], value: Outline) -> Result<(), Lost> {
    at_parent(outline, path, |parent, key, _| {
        match parent {
            Outline::Map { entries, .. } => {
                entries.insert(key.to_owned(), value);
            }
            Outline::List { items, .. } => {
                if let Some(item) = key.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                    *item = value;
                }
            }
            Outline::Unknown | Outline::Scalar => {}
        }
        Ok(())
    })
}

fn remove(outline: &mut Outline, path: &[String]) -> Result<(), Lost> {
    get(outline, path)?;
    at_parent(outline, path, |parent, key, _| {
        match parent {
            Outline::Map { entries, .. } => {
                entries.remove(key);
            }
            Outline::List { items, .. } => {
                if let Some(index) = key.parse::<usize>().ok().filter(|index| *index < items.len()) {
                    items.remove(index);
                }
            }
            Outline::Unknown | Outline::Scalar => {}
        }
        Ok(())
    })
}

fn above(followed: usize, path: &[String]) -> String {
    if followed == 0 { "the manifest".to_owned() } else { format!("`{}`", written(&path[..followed])) }
}

fn nothing_inside(followed: usize, path: &[String]) -> Lost {
    Lost { followed, why: format!("there is nothing inside {}", above(followed, path)), help: None }
}

fn no_key(followed: usize, key: &str, path: &[String], entries: &BTreeMap<String, Outline>) -> Lost {
    let similar = did_you_mean(key, entries.keys().map(String::as_str));
    let why = format!("{} has no `{key}` at this point", above(followed, path));
    Lost { followed, why, help: similar.map(|name| format!("did you mean `{name}`?")) }
}

fn no_element(followed: usize, key: &str) -> Lost {
    let why = if key == "-" {
        "`-` is the end of a list, where nothing is yet".to_owned()
    } else {
        format!("`{key}` is not the number of an element")
    };
    Lost { followed, why, help: Some("elements are numbered from 0".to_owned()) }
}

fn short(followed: usize, length: usize) -> Lost {
    let why = match length {
        0 => "the list is empty at this point".to_owned(),
        1 => "the list has one element at this point".to_owned(),
        _ => format!("the list has {length} elements at this point"),
    };
    Lost { followed, why, help: Some("elements are numbered from 0; `add` to `-` puts one at the end".to_owned()) }
}
