//! `render` as a KRM function: a `ResourceList` in, the same list with the children put in, and results.
//!
//! <https://github.com/kubernetes-sigs/kustomize/blob/master/cmd/config/docs/api-conventions/functions-spec.md>. The rules come
//! from `--rules`, or are the `functionConfig` itself.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use super::input::{self, Object};
use super::offline;
use super::output::{self, Outcome};
use super::render::{self, Options};
use crate::diagnostic::SourceFile;
use crate::identity;
use crate::rules::{Program, fields};
use crate::yaml_text;

/// What a KRM function reads.
#[derive(Debug)]
pub struct ResourceList {
    whole: Value,
    items: Vec<Object>,
}

impl ResourceList {
    /// The list in a text; `None` if the text is something else.
    pub fn read(file: &Arc<SourceFile>) -> Result<Option<Self>, String> {
        if !file.text.contains("ResourceList") {
            return Ok(None);
        }
        let Some(mut whole) = input::raw(file)?.into_iter().next().map(|object| object.value) else { return Ok(None) };
        let gvk = input::gvk(&whole);
        if gvk.kind != "ResourceList" || gvk.group != "config.kubernetes.io" {
            return Ok(None);
        }
        let at = file.at(crate::diagnostic::Span::new(0, 0));
        let items = whole.as_object_mut().and_then(|list| list.shift_remove("items")).unwrap_or_else(|| json!([]));
        let Value::Array(items) = items else { return Err("`items` of the ResourceList is not a list".to_owned()) };
        let items = items.into_iter().map(|value| Object { value, at: at.clone() }).collect();
        Ok(Some(Self { whole, items }))
    }
}

/// Renders the children of every parent in the list, and prints the list.
pub fn run(list: ResourceList, rules: &[PathBuf], options: &Options<'_>) -> Outcome {
    let ResourceList { mut whole, mut items } = list;
    let programs = programs(&whole, rules)?;
    let observed = options.observed.iter().chain(&items).cloned().collect();
    let made = render::children(&programs, &items, &Options { observed, ..*options })?;
    let failed: Vec<usize> = made.problems.iter().map(|problem| problem.parent).collect();
    let mut results: Vec<Value> =
        made.problems.iter().map(|problem| result(problem, items.get(problem.parent))).collect();
    // A child of an earlier run that the rules no longer give goes; an error is not «gone».
    let keep: Vec<bool> = items
        .iter()
        .map(|item| {
            let owner = parent_of(&item.value, &items, &programs, options.namespace);
            owner.is_none_or(|owner| failed.contains(&owner))
                || made.children.iter().any(|child| same(child, &item.value, options.namespace))
        })
        .collect();
    let mut keep = keep.into_iter();
    items.retain(|item| {
        let keep = keep.next().unwrap_or(true);
        if !keep {
            results.push(json!({
                "message": "removed: the rules no longer give this object", "severity": "info",
                "resourceRef": reference(&item.value),
            }));
        }
        keep
    });
    let mut items: Vec<Value> = items.into_iter().map(|item| item.value).collect();
    for mut child in made.children {
        match items.iter_mut().find(|item| same(&child, item, options.namespace)) {
            Some(item) => {
                keep_annotations(item, &mut child);
                *item = child;
            }
            None => items.push(child),
        }
    }
    whole["items"] = Value::Array(items);
    let fine = made.problems.is_empty();
    if !results.is_empty() {
        whole["results"] = Value::Array(results);
    }
    for problem in &made.problems {
        output::note(&problem.line());
    }
    output::data(&yaml_text::document(&whole))?;
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn programs(list: &Value, rules: &[PathBuf]) -> Result<Vec<Program>, String> {
    match list.get("functionConfig") {
        Some(config) if input::gvk(config).kind == fields::KIND => {
            // Where an orchestrator keeps the object is no part of the rule set.
            let mut config = config.clone();
            if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|key, _| key == "name");
            }
            let file = SourceFile::new("functionConfig", yaml_text::document(&config));
            input::compiled(&[file], &[PathBuf::from("functionConfig")])
        }
        _ => input::programs(rules),
    }
}

fn result(problem: &render::Problem, parent: Option<&Object>) -> Value {
    let offline::Trouble { at, resource, message } = &problem.trouble;
    let subject = if resource.is_empty() { problem.title.clone() } else { format!("{}: `{resource}`:", problem.title) };
    json!({
        "message": format!("{subject} {message} ({at})"), "severity": "error",
        "resourceRef": parent.map(|parent| reference(&parent.value)),
    })
}

fn reference(object: &Value) -> Value {
    json!({
        "apiVersion": object.get("apiVersion"), "kind": object.get("kind"),
        "name": input::metadata(object, "name"), "namespace": input::metadata(object, "namespace"),
    })
}

/// Whether two are the same object to the API server.
fn same(a: &Value, b: &Value, default_namespace: &str) -> bool {
    let namespace = |object| match input::metadata(object, "namespace") {
        "" => default_namespace.to_owned(),
        namespace => namespace.to_owned(),
    };
    offline::same_kind(&input::gvk(a), &input::gvk(b))
        && input::metadata(a, "name") == input::metadata(b, "name")
        && namespace(a) == namespace(b)
}

/// The index of the parent in the list that an item says it was made for; `None` for what is not ours or should stay.
fn parent_of(item: &Value, items: &[Object], programs: &[Program], default_namespace: &str) -> Option<usize> {
    let text = |map: &str, key: &str| item.get("metadata")?.get(map)?.get(key)?.as_str();
    if text("labels", identity::MANAGED_BY) != Some(identity::MANAGER)
        || text("annotations", identity::ON_REMOVE) == Some("keep")
    {
        return None;
    }
    text("annotations", identity::SOURCE)?;
    let namespace = |object| match input::metadata(object, "namespace") {
        "" => default_namespace.to_owned(),
        namespace => namespace.to_owned(),
    };
    items.iter().position(|parent| {
        let gvk = parent.gvk();
        !offline::for_kind(programs, &gvk).is_empty()
            && namespace(&parent.value) == namespace(item)
            && text("labels", &identity::parent_label_key(&gvk))
                == Some(identity::parent_label_value(input::metadata(&parent.value, "name")).as_str())
    })
}

/// Orchestrators keep their own notes in annotations (path and index of the item's file); they stay.
fn keep_annotations(old: &Value, new: &mut Value) {
    let Some(Value::Object(annotations)) = old.get("metadata").and_then(|metadata| metadata.get("annotations")) else {
        return;
    };
    for (key, value) in annotations {
        if key.starts_with("config.kubernetes.io/") || key.starts_with("internal.config.kubernetes.io/") {
            new["metadata"]["annotations"][key.as_str()] = value.clone();
        }
    }
}
