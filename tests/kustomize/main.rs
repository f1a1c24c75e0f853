//! The installation: what kustomize makes of `kustomize/`, and what a real API server says to it.
//!
//! * [`build`]: the objects that come out, without a cluster.
//! * [`install`]: the API server takes every one of them; `apply -k` again changes nothing.

#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;

#[cfg(test)]
mod build;
#[cfg(test)]
mod install;

#[cfg(test)]
use std::path::{Path, PathBuf};

#[cfg(test)]
use serde_json::Value;

/// The folders of `kustomize/overlays`, in order.
#[cfg(test)]
fn overlays() -> Vec<PathBuf> {
    folders("overlays")
}

/// The folders of `kustomize/components`, in order.
#[cfg(test)]
fn components() -> Vec<PathBuf> {
    folders("components")
}

#[cfg(test)]
fn folders(of: &str) -> Vec<PathBuf> {
    let folder = support::control_plane::repository().join("kustomize").join(of);
    let entries = std::fs::read_dir(&folder).expect("a folder of kustomizations");
    let mut folders: Vec<_> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    assert!(folders.len() >= 4, "too few in {}", folder.display());
    folders
}

/// The folder of an overlay that is shipped.
#[cfg(test)]
fn overlay(name: &str) -> PathBuf {
    support::control_plane::repository().join("kustomize/overlays").join(name)
}

/// What `kubectl kustomize` prints for this folder.
#[cfg(test)]
fn text(folder: &Path) -> String {
    let output = std::process::Command::new("kubectl")
        .arg("kustomize")
        .arg(folder)
        .output()
        .expect("start kubectl: is it installed?");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "kubectl kustomize {}: {said}", folder.display());
    String::from_utf8(output.stdout).expect("text")
}

/// The objects in what `kubectl kustomize` printed.
#[cfg(test)]
fn objects(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("kustomize prints YAML")
}

/// A kustomization in a folder of its own, which says `text` with `BASE` as the way to `kustomize/`.
#[cfg(test)]
fn kustomization(text: &str) -> tempfile::TempDir {
    let target = support::control_plane::repository().join("target");
    std::fs::create_dir_all(&target).expect("the target folder");
    // Inside the repository: kustomize takes relative ways only.
    let folder = tempfile::tempdir_in(&target).expect("a temporary folder");
    let text = text.replace("BASE", "../../kustomize");
    std::fs::write(folder.path().join("kustomization.yaml"), text).expect("write a kustomization");
    folder
}

/// The default overlay with one component more.
#[cfg(test)]
fn with_component(name: &str) -> tempfile::TempDir {
    kustomization(&format!("resources: [BASE/overlays/default]\ncomponents: [BASE/components/{name}]\n"))
}

/// The one object of this kind.
#[cfg(test)]
fn one<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    let first = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "two objects of kind {kind}");
    first
}

/// Kind and name.
#[cfg(test)]
fn identity(object: &Value) -> String {
    format!(
        "{} {}",
        object["kind"].as_str().unwrap_or_default(),
        object["metadata"]["name"].as_str().unwrap_or_default()
    )
}
