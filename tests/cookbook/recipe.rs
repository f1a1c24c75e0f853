//! A recipe: a folder of `rules/cookbook` with `rules.yaml`, one Network or several (`network.yaml`, `network-CASE.yaml`) and
//! for each of them what the rules make of it (`expected.yaml`, `expected-CASE.yaml`).
//!
//! A recipe for a kind that the checker does not know has that kind's `crd.yaml`. One whose rules read what only a cluster
//! fills in has `observed.yaml`: objects that are laid over the children.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use network_operator::diagnostic::SourceFile;
use network_operator::rules::schema::crd::CrdSchema;
use network_operator::rules::{ChildState, Observed, Program, Rendered};
use network_operator::yaml_text;
use serde_json::Value;

/// See the module.
pub struct Recipe {
    /// Its folder.
    pub folder: PathBuf,
}

/// Every recipe, in the order of their numbers.
pub fn all() -> Vec<Recipe> {
    let cookbook = super::repository().join("rules/cookbook");
    let mut folders: Vec<_> = fs::read_dir(cookbook).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders.into_iter().map(|folder| Recipe { folder }).collect()
}

impl Recipe {
    /// The name of its folder, such as `01-conditional-child`.
    pub fn name(&self) -> String {
        self.folder.file_name().unwrap().to_string_lossy().into_owned()
    }

    /// Its rule file.
    pub fn rules(&self) -> Arc<SourceFile> {
        let path = self.folder.join("rules.yaml");
        SourceFile::new(format!("{}/rules.yaml", self.name()), fs::read_to_string(path).unwrap())
    }

    /// Its Networks, each with the file in which the outcome is written.
    pub fn cases(&self) -> Vec<(Value, PathBuf)> {
        let mut files: Vec<_> = fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let networks = files.iter().filter(|path| name(path).starts_with("network"));
        networks.map(|path| (one(path), path.with_file_name(name(path).replacen("network", "expected", 1)))).collect()
    }

    /// The CRDs that it brings along.
    pub fn crds(&self) -> Vec<CrdSchema> {
        documents(&self.folder.join("crd.yaml")).iter().flat_map(|crd| CrdSchema::read(crd).unwrap()).collect()
    }

    /// What the rules make of a Network once everything that they wait for has come, as text.
    pub fn outcome(&self, program: &Program, network: &Value) -> String {
        let laid_over = documents(&self.folder.join("observed.yaml"));
        let first = program.render(network, &Observed::default());
        let mut last = first.clone();
        for _ in 0..program.resource_count() {
            last = program.render(network, &observed(&last, &laid_over));
        }
        let mut text = said_of(&first, &last);
        let manifests: Vec<&Value> = last.children.iter().filter_map(manifest).collect();
        if manifests.is_empty() && last.invalid.is_empty() {
            text.push_str("# no child\n");
        }
        text.push_str(&yaml_text::documents(manifests));
        text
    }
}

/// What is there besides children, as comments.
fn said_of(first: &Rendered, last: &Rendered) -> String {
    let mut text = String::new();
    for fault in &last.invalid {
        writeln!(text, "# InvalidSpec: {}", fault.message).unwrap();
    }
    for child in &first.children {
        if let ChildState::Waiting(on) = &child.state {
            writeln!(text, "# `{}` waits for `{}` at first", child.id, on.join("`, `")).unwrap();
        }
    }
    for child in &last.children {
        match (&child.state, &child.ready) {
            (ChildState::Failed(fault), _) => writeln!(text, "# `{}` fails: {}", child.id, fault.message).unwrap(),
            (ChildState::Waiting(on), _) => panic!("{} waits for {} for ever", child.id, on.join(", ")),
            (_, Some(Ok(true))) => {}
            (_, other) => panic!("{} is not ready in the end: {other:?}", child.id),
        }
    }
    for (field, value) in &last.status {
        writeln!(text, "# status.{field}: {value}").unwrap();
    }
    assert_eq!(last.status_faults, []);
    text
}

fn manifest(child: &network_operator::rules::Child) -> Option<&Value> {
    match &child.state {
        ChildState::Desired(manifest) => Some(manifest),
        ChildState::Waiting(_) | ChildState::Failed(_) => None,
    }
}

/// The children as a cluster would have them.
fn observed(rendered: &Rendered, laid_over: &[Value]) -> Observed {
    let mut resources: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for child in &rendered.children {
        let Some(mut object) = manifest(child).cloned() else { continue };
        for layer in laid_over {
            if layer["kind"] == object["kind"] && layer["metadata"]["name"] == object["metadata"]["name"] {
                json_patch::merge(&mut object, layer);
            }
        }
        resources.entry(child.id.clone()).or_default().insert(child.item.clone(), object);
    }
    Observed { resources }
}

/// What an outcome means: its comments and its documents.
pub fn meant(text: &str) -> (Vec<String>, Vec<Value>) {
    let comments = text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect();
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    (comments, documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// What the file with an outcome means.
pub fn said(path: &Path) -> (Vec<String>, Vec<Value>) {
    meant(&fs::read_to_string(path).unwrap_or_default())
}

/// The documents of a YAML file; none if there is no such file.
pub fn documents(path: &Path) -> Vec<Value> {
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn one(path: &Path) -> Value {
    documents(path).into_iter().next().unwrap()
}
