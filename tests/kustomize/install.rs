//! What a real API server says to the installation.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::control_plane::Body;
use crate::support::{ControlPlane, ensure, eventually};
use crate::{components, identity, kustomization, objects, one, overlay, overlays, text, with_component};

/// `kubectl apply` of this text must succeed, without a warning (such as of Pod Security, or of an unknown field).
fn apply(plane: &ControlPlane, what: &str, arguments: &[&str], text: &str) -> String {
    let (taken, said) = plane.kubectl(&[&["apply", "-f", "-"], arguments].concat(), text);
    assert!(taken, "{what}: {said}");
    let warnings: Vec<_> = said.lines().filter(|line| line.starts_with("Warning")).collect();
    assert!(warnings.is_empty(), "{what}: {warnings:?}");
    said
}

/// Whether this server is older than the minor version.
fn older_than(plane: &ControlPlane, minor: u32) -> bool {
    let version = plane.call("GET", "/version", Body::None).expect("the version");
    version["minor"].as_str().and_then(|text| text.parse::<u32>().ok()).expect("a number") < minor
}

/// Asks the server what it would do, with everything in it checked: fields, formats, admission.
fn dry_run(plane: &ControlPlane, what: &str, folder: &Path) {
    let built = text(folder);
    // Objects in a namespace are refused where there is none, dry run or not. The kustomization's own is not left behind as
    // something that a later one would find.
    let namespace = one(&objects(&built), "Namespace").to_string();
    apply(plane, what, &["--server-side", "--force-conflicts"], &namespace);
    apply(plane, what, &["--server-side", "--force-conflicts", "--dry-run=server"], &built);
}

#[test]
fn the_server_takes_every_overlay_and_component() {
    let plane = ControlPlane::shared();
    // What a server does not know, the overlays for it leave out.
    let old = older_than(plane, 26);
    for folder in overlays().iter().filter(|folder| !old || folder.ends_with("legacy")) {
        dry_run(plane, &folder.display().to_string(), folder);
    }
    for folder in components() {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        // Objects of other operators' kinds need their CRDs.
        if old || name == "monitoring" {
            continue;
        }
        dry_run(plane, &name, with_component(&name).path());
    }
}

#[test]
fn the_pods_pass_the_strictest_pod_security_standard() {
    let plane = ControlPlane::shared();
    if older_than(plane, 25) {
        return; // There is no Pod Security admission yet.
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict",
        "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    plane.call("POST", "/api/v1/namespaces", Body::Object(&namespace)).expect("a namespace");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "network-operator"}});
    plane.call("POST", "/api/v1/namespaces/strict/serviceaccounts", Body::Object(&account)).expect("an account");
    let pod = |spec: &Value| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "operator-"}, "spec": spec});
        plane.call("POST", "/api/v1/namespaces/strict/pods?dryRun=All", Body::Object(&pod))
    };
    let built = objects(&text(&overlay("default")));
    let mut spec = one(&built, "Deployment")["spec"]["template"]["spec"].clone();
    pod(&spec).expect("the pod is allowed");
    // And it is looked at: without one of the fields the pod is refused.
    spec["containers"][0]["securityContext"]["capabilities"] = Value::Null;
    let refused = pod(&spec).expect_err("a pod with capabilities");
    assert!(refused.message.contains("unrestricted capabilities"), "{refused}");
}

#[test]
fn applying_it_again_changes_nothing_and_a_rule_edit_only_the_rules() {
    let plane = ControlPlane::start(&[]);
    let name = if older_than(&plane, 26) { "legacy" } else { "default" };
    let first = text(&overlay(name));
    // The test bed's own CRD was not made by `kubectl apply`, which would say so.
    let (gone, said) = plane.kubectl(&["delete", "crd", "networks.samplecrd.k8s.io"], "");
    assert!(gone, "{said}");
    // The words of `kubectl apply` are no proof: it says «configured» of a patch that changed nothing, too.
    let versions = || -> BTreeMap<String, Value> {
        let (found, said) = plane.kubectl(&["get", "-f", "-", "--output=json"], &first);
        assert!(found, "{said}");
        let list: Value = serde_json::from_str(&said).expect("a list");
        let items = list["items"].as_array().expect("objects");
        items.iter().map(|item| (identity(item), item["metadata"]["resourceVersion"].clone())).collect()
    };
    apply(&plane, "the first time", &[], &first);
    eventually("the controllers have written what they write", || {
        let before = versions();
        std::thread::sleep(std::time::Duration::from_secs(1));
        ensure(before == versions(), "still changing")
    });
    let before = versions();
    apply(&plane, "the second time", &[], &first);
    assert_eq!(before, versions());
    let edited = kustomization(&format!(
        "resources: [BASE/overlays/{name}]\npatches:\n  - patch: |-\n      apiVersion: v1\n      kind: ConfigMap\n      \
         metadata: {{name: network-operator-rules, namespace: network-operator}}\n      data: {{more.yaml: '# more'}}\n"
    ));
    apply(&plane, "an edit", &[], &text(edited.path()));
    let after = versions();
    let changed: Vec<_> = after.iter().filter(|(name, version)| before.get(*name) != Some(version)).collect();
    assert_eq!(changed.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["ConfigMap network-operator-rules"]);
}
