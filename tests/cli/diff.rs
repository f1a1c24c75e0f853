//! `diff` against a real API server: what it shows is what the operator then does, and it writes nothing.

use serde_json::{Value, json};

use crate::run_cli::{Run, operator_in};
use crate::support::{CONFIG_MAPS, NETWORKS, SERVICES, Space, network};

const RULES: &str = include_str!("fixtures/rules/network.yaml");

fn write_rules(space: &Space<'_>, text: &str) {
    std::fs::write(space.folder.path().join("rules.yaml"), text).expect("written");
}

fn diff(space: &Space<'_>, arguments: &[&str]) -> Run {
    space.kubeconfig("diff.kubeconfig");
    let all =
        [&["diff", "--kubeconfig", "diff.kubeconfig", "--rules", "rules.yaml", "-n", &space.name], arguments].concat();
    let mut run = operator_in(space.folder.path(), &all, "");
    // Namespaces are named after tests and numbered; a snapshot must not depend on the number.
    for text in [&mut run.line, &mut run.stdout, &mut run.stderr] {
        *text = text.replace(&space.name, "NAMESPACE");
    }
    run
}

/// Snapshots must not depend on what the server makes up.
fn steady(run: &Run) -> String {
    let uid = regex::Regex::new("\"?[0-9a-f]{8}-[0-9a-f-]{27}\"?").expect("a regular expression");
    uid.replace_all(&run.to_string(), "UID").into_owned()
}

#[test]
fn what_is_missing_is_shown_and_not_created_and_once_it_is_there_nothing_differs() {
    let space = Space::new();
    write_rules(&space, RULES);
    space.create(network("a", json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1"})));
    let run = diff(&space, &[]);
    insta::assert_snapshot!(steady(&run));
    assert!(space.list(SERVICES).is_empty(), "a diff creates nothing");

    let operator = space.operator().rule_text(RULES).start();
    space.until_ready("a");
    operator.terminate();
    let run = diff(&space, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
    assert_eq!(run.stderr, "2 unchanged\n");
}

#[test]
fn edits_of_rules_and_of_children_are_shown_field_by_field() {
    let space = Space::new();
    space.create(network("a", json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1"})));
    let operator = space.operator().rule_text(RULES).start();
    space.until_ready("a");
    operator.terminate();
    let before = space.get(CONFIG_MAPS, "a-network");

    space.change(SERVICES, "a-gateway", json!({"spec": {"ports": [{"name": "web", "port": 80, "protocol": "TCP"}]}}));
    let edited = RULES.replace("The network ${", "Our network ${").replace("          switch: \"on\"\n", "");
    write_rules(&space, &edited);
    insta::assert_snapshot!("an_edited_rule_and_an_edited_child", steady(&diff(&space, &[])));

    let dropped =
        RULES.replace("when: has(self.spec.gateway)", "when: has(self.spec.gateway) && has(self.spec.subnets)");
    write_rules(&space, &dropped);
    insta::assert_snapshot!("a_rule_that_no_longer_holds", steady(&diff(&space, &[])));
    assert_eq!(space.get(CONFIG_MAPS, "a-network"), before, "a diff writes nothing");
}

#[test]
fn what_is_not_done_is_shown_with_its_reason() {
    let space = Space::new();
    write_rules(&space, RULES);
    space.create(network("taken", json!({"cidr": "10.0.0.0/8"})));
    space.create(network("wrong", json!({"cidr": "10.0.0.0/8", "gateway": "0.0.0.0"})));
    space.create(network("failing", json!({"cidr": "10.0.0.0/8", "dnsServers": []})));
    space.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken-network"}, "data": {"mine": "yes"}}));
    insta::assert_snapshot!(steady(&diff(&space, &[])));

    let json: Value = serde_json::from_str(&diff(&space, &["-o", "json", "taken"]).stdout).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(1));
    assert_eq!(json[0]["action"], "refused");

    write_rules(&space, &RULES.replace("    - id: config\n", "    - id: config\n      onExists: adopt\n"));
    let run = diff(&space, &["taken"]);
    assert!(run.stdout.starts_with("adopt ConfigMap NAMESPACE/taken-network"), "{run}");
    assert!(run.stdout.contains("\n   mine: \"yes\"\n"), "what others wrote stays: {run}");
    assert_eq!(space.list(NETWORKS).len(), 3);
}

#[test]
fn no_cluster_is_an_error_and_not_a_difference() {
    let space = Space::new();
    write_rules(&space, RULES);
    let run = operator_in(space.folder.path(), &["diff", "--kubeconfig", "nowhere", "--rules", "rules.yaml"], "");
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("nowhere"), "{run}");
    let lonely = Space::without_rights(space.plane);
    write_rules(&lonely, RULES);
    let run = diff(&lonely, &[]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("list") && run.stderr.contains("networks"), "it names the missing right: {run}");
}
