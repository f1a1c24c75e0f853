//! What comes out of kustomize, without a cluster.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::control_plane::repository;
use crate::{components, identity, kustomization, objects, one, overlay, overlays, text, with_component};

fn pod(objects: &[Value]) -> &Value {
    &one(objects, "Deployment")["spec"]["template"]["spec"]
}

fn environment(objects: &[Value]) -> Vec<&str> {
    let list = pod(objects)["containers"][0]["env"].as_array().expect("variables");
    list.iter().filter_map(|variable| variable["name"].as_str()).collect()
}

/// Names that one object uses for another lead somewhere, whatever an overlay did to them.
fn assert_consistent(what: &str, objects: &[Value]) {
    let deployment = one(objects, "Deployment");
    let namespace = &deployment["metadata"]["namespace"];
    let account = one(objects, "ServiceAccount");
    assert_eq!(pod(objects)["serviceAccountName"], account["metadata"]["name"], "{what}: the account");
    assert_eq!(&one(objects, "Namespace")["metadata"]["name"], namespace, "{what}: the namespace");
    for object in objects {
        let identity = identity(object);
        let cluster_wide = ["Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"]
            .contains(&object["kind"].as_str().unwrap_or_default());
        assert_eq!(object["metadata"].get("namespace").is_none(), cluster_wide, "{what}: {identity}: the namespace");
        if !cluster_wide {
            assert_eq!(&object["metadata"]["namespace"], namespace, "{what}: {identity}: the namespace");
        }
        if let Some(subjects) = object["subjects"].as_array() {
            for subject in subjects {
                assert_eq!(subject["name"], account["metadata"]["name"], "{what}: {identity}: the subject");
                assert_eq!(subject["namespace"], account["metadata"]["namespace"], "{what}: {identity}: the subject");
            }
            let role = format!(
                "{} {}",
                object["roleRef"]["kind"].as_str().unwrap_or_default(),
                object["roleRef"]["name"].as_str().unwrap_or_default()
            );
            assert!(objects.iter().any(|other| crate::identity(other) == role), "{what}: {identity}: no {role}");
        }
    }
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    for (kind, selector) in [
        ("Deployment", "/spec/selector/matchLabels"),
        ("Service", "/spec/selector"),
        ("PodDisruptionBudget", "/spec/selector/matchLabels"),
        ("NetworkPolicy", "/spec/podSelector/matchLabels"),
    ] {
        assert_eq!(one(objects, kind).pointer(selector), Some(labels), "{what}: {kind}: the pods that it means");
    }
    let volume = pod(objects)["volumes"][0]["configMap"]["name"].as_str().expect("the rules' ConfigMap");
    let rules = objects.iter().find(|object| identity(object) == format!("ConfigMap {volume}"));
    let rules = rules.unwrap_or_else(|| panic!("{what}: no ConfigMap {volume}"));
    assert_rules_pass_check(what, rules);
    let container = &pod(objects)["containers"][0];
    for source in container["envFrom"].as_array().unwrap_or(&Vec::new()) {
        let name = source["configMapRef"]["name"].as_str().expect("a ConfigMap");
        assert!(objects.iter().any(|object| identity(object) == format!("ConfigMap {name}")), "{what}: no {name}");
    }
}

fn assert_rules_pass_check(what: &str, config_map: &Value) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in config_map["data"].as_object().expect("rule files") {
        std::fs::write(folder.path().join(name), text.as_str().expect("text")).expect("write a rule file");
    }
    let check = Command::new(env!("CARGO_BIN_EXE_network-operator")).arg("check").arg(folder.path()).output();
    let check = check.expect("start check");
    assert!(check.status.success(), "{what}: {}", String::from_utf8_lossy(&check.stderr));
}

#[test]
fn every_overlay_holds_together() {
    for folder in overlays() {
        let first = text(&folder);
        assert_eq!(first, text(&folder), "{}: two builds differ", folder.display());
        assert_consistent(&folder.display().to_string(), &objects(&first));
    }
}

#[test]
fn every_component_fits_the_default_overlay() {
    for folder in components() {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let built = objects(&text(with_component(&name).path()));
        assert_consistent(&name, &built);
        let default = objects(&text(&overlay("default")));
        assert_ne!(built, default, "{name} changes nothing");
    }
}

#[test]
fn names_and_images_can_be_changed() {
    let changed = kustomization(
        "resources: [BASE/overlays/default]\nnamespace: elsewhere\nnamePrefix: a-\nnameSuffix: -z\n\
         images: [{name: network-operator, newName: registry.example.com/op, newTag: v9}]\n",
    );
    let built = objects(&text(changed.path()));
    // A Namespace keeps its name under a prefix; the one in which everything else is must be there.
    assert_consistent("prefix, suffix, namespace, image", &built);
    assert_eq!(one(&built, "Deployment")["metadata"]["name"], "a-network-operator-z");
    assert_eq!(one(&built, "Deployment")["metadata"]["namespace"], "elsewhere");
    assert_eq!(pod(&built)["containers"][0]["image"], "registry.example.com/op:v9");
    assert_eq!(one(&built, "CustomResourceDefinition")["metadata"]["name"], "networks.samplecrd.k8s.io");
}

#[test]
fn an_edit_of_a_rule_touches_no_pod() {
    let plain = objects(&text(&overlay("default")));
    let patch = "resources: [BASE/overlays/default]\npatches:\n  - patch: |-\n      apiVersion: v1\n      kind: ConfigMap\n      \
                 metadata: {name: network-operator-rules}\n      data: {more.yaml: '# more'}\n";
    let edited = objects(&text(kustomization(patch).path()));
    let differ: BTreeSet<_> =
        plain.iter().zip(&edited).filter(|(a, b)| a != b).map(|(_, object)| identity(object)).collect();
    assert_eq!(plain.len(), edited.len());
    assert_eq!(differ, BTreeSet::from(["ConfigMap network-operator-rules".to_owned()]));
}

#[test]
fn a_single_namespace_gets_no_rights_beyond_it() {
    let built = objects(&text(&overlay("single-namespace")));
    assert!(!built.iter().any(|object| object["kind"].as_str().unwrap_or_default().starts_with("ClusterRole")));
    let only = pod(&built)["containers"][0]["env"].as_array().expect("variables");
    let only = only.iter().find(|variable| variable["name"] == "NETWORK_OPERATOR_NAMESPACES");
    assert_eq!(
        only.map(|variable| &variable["valueFrom"]["fieldRef"]["fieldPath"]),
        Some(&json!("metadata.namespace")),
        "the operator keeps to its own namespace"
    );
}

#[test]
fn the_default_overlay_is_what_a_careful_administrator_asks_for() {
    let built = objects(&text(&overlay("default")));
    let container = &pod(&built)["containers"][0];
    assert_eq!(one(&built, "Deployment")["spec"]["replicas"], 2);
    assert_eq!(pod(&built)["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod(&built)["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(container["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
    for resource in ["cpu", "memory"] {
        for part in ["requests", "limits"] {
            assert!(container["resources"][part][resource].is_string(), "no {part} of {resource}");
        }
    }
    assert_eq!(one(&built, "ServiceAccount")["automountServiceAccountToken"], false);
    assert_eq!(one(&built, "NetworkPolicy")["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    assert!(container["volumeMounts"][0].get("subPath").is_none(), "a subPath is never updated");
    assert!(!environment(&built).is_empty());
}

#[test]
fn the_shipped_files_name_no_registry() {
    for folder in overlays() {
        for line in text(&folder).lines().filter(|line| line.trim_start().starts_with("image:")) {
            assert!(
                line.contains(" network-operator:") || line.contains(" registry.example.com/"),
                "{}: {line}",
                folder.display()
            );
        }
    }
    let containerfile = std::fs::read_to_string(repository().join("Containerfile")).expect("the Containerfile");
    let from: Vec<_> = containerfile.lines().filter(|line| line.starts_with("FROM ")).collect();
    assert_eq!(from, ["FROM scratch"]);
}

/// What `rbac` prints.
fn rights(arguments: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_network-operator"));
    let output = command.arg("rbac").args(arguments).arg(repository().join("rules")).output().expect("start rbac");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    objects(&String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn the_shipped_rights_are_those_that_the_command_prints() {
    let shipped = |file: &str| {
        let path = repository().join("kustomize").join(file);
        objects(&std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    };
    assert_eq!(shipped("base/rbac.yaml"), rights(&[]), "run `make rbac`");
    let mut one_namespace = rights(&["--namespace", "network-operator", "--no-leader-election"]);
    one_namespace.retain(|object| object["kind"] != "ServiceAccount");
    assert_eq!(shipped("components/single-namespace/rbac.yaml"), one_namespace, "run `make rbac`");
}
