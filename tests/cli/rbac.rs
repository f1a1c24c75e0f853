//! `rbac`: the rights that rules need.

use serde_json::Value;

use crate::run_cli::{operator, operator_in};

fn documents(yaml: &str) -> Vec<Value> {
    yaml.split("---\n").map(|document| serde_saphyr::from_str(document).expect("YAML")).collect()
}

#[test]
fn the_rights_of_the_test_rules() {
    insta::assert_snapshot!(operator(&["rbac", "rules"]));
}

#[test]
fn rights_can_be_limited_to_namespaces() {
    let objects =
        documents(&operator(&["rbac", "-n", "team-b,team-a", "rules", "--service-account", "ops/operator"]).ok());
    let kinds: Vec<String> = objects
        .iter()
        .map(|object| {
            format!(
                "{} {}",
                object["kind"].as_str().expect("a kind"),
                object["metadata"]["namespace"].as_str().unwrap_or("-")
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "ServiceAccount ops",
            "Role team-a",
            "RoleBinding team-a",
            "Role team-b",
            "RoleBinding team-b",
            "Role ops",
            "RoleBinding ops"
        ]
    );
    for binding in objects.iter().filter(|object| object["kind"] == "RoleBinding") {
        assert_eq!(binding["subjects"][0]["namespace"], "ops");
        assert_eq!(binding["subjects"][0]["name"], "operator");
    }
}

#[test]
fn rules_that_never_delete_need_no_right_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let keep = include_str!("fixtures/rules/network.yaml")
        .replace("    - id:", "    - onRemove: keep\n      onDelete: keep\n      id:");
    std::fs::write(folder.path().join("keep.yaml"), keep).expect("written");
    let text = operator_in(folder.path(), &["rbac", "keep.yaml"], "").ok();
    assert!(!text.contains("delete") && !text.contains("finalizers"), "{text}");
}

#[test]
fn a_plural_that_is_only_guessed_is_said_unless_its_crd_is_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let foreign = include_str!("fixtures/rules/network.yaml")
        .replace("apiVersion: v1\n        kind: Service", "apiVersion: example.com/v1\n        kind: Cactus");
    std::fs::write(folder.path().join("foreign.yaml"), foreign).expect("written");
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: cacti.example.com}\nspec: {group: example.com, names: {kind: Cactus, plural: cacti}}\n";
    std::fs::write(folder.path().join("crd.yaml"), crd).expect("written");
    let guessed = operator_in(folder.path(), &["rbac", "foreign.yaml"], "");
    assert!(guessed.stderr.contains("the plural name of Cactus (example.com) is a guess: `cactuses`"), "{guessed}");
    let known = operator_in(folder.path(), &["rbac", "--crd", "crd.yaml", "foreign.yaml"], "");
    assert!(known.stderr.is_empty() && known.stdout.contains("- cacti\n"), "{known}");
}
