//! `explain`: offline, and against a real API server.

use serde_json::{Value, json};

use crate::run_cli::{operator, operator_in};
use crate::support::{CONFIG_MAPS, Space, network};

#[test]
fn all_fields_of_a_child_and_where_they_come_from() {
    insta::assert_snapshot!(operator(&["explain", "configmap/example-network-network", "--network", "networks"]));
}

#[test]
fn a_field_with_all_that_made_it() {
    insta::assert_snapshot!(
        "field",
        operator(&["explain", "configmap/example-network-network", "data.cidr", "--network", "networks"])
    );
    insta::assert_snapshot!(
        "variable",
        operator(&["explain", "configmap/example-network-network", "data.title", "--network", "networks"])
    );
    insta::assert_snapshot!(
        "patch",
        operator(&["explain", "configmap/office-network", "data.dns", "--network", "networks"])
    );
    insta::assert_snapshot!(
        "item",
        operator(&["explain", "configmaps/office-b", "/data/cidr", "--network", "networks"])
    );
    insta::assert_snapshot!(
        "constant",
        operator(&["explain", "Service/example-network-gateway", "spec.ports[0]", "--network", "networks"])
    );
}

#[test]
fn what_the_operator_adds_is_told_from_what_nobody_gives() {
    let child = "configmap/example-network-network";
    let own = operator(&["explain", child, "metadata.labels['samplecrd.k8s.io/network']", "--network", "networks"]);
    assert!(own.stdout.contains("the operator adds it to every child"), "{own}");
    let none = operator(&["explain", child, "data.nothing", "--network", "networks"]);
    assert_eq!(
        (none.code, none.stderr.as_str()),
        (1, "ConfigMap default/example-network-network has no field `data.nothing`\n")
    );
    let no_child = operator(&["explain", "configmap/nothing", "--network", "networks"]);
    assert_eq!((no_child.code, no_child.stderr.as_str()), (1, "no rule gives a child `configmap/nothing` now\n"));
    assert_eq!(operator(&["explain", "nothing", "--network", "networks"]).code, 2);
    assert_eq!(operator(&["explain", child, "data..x", "--network", "networks"]).code, 2);
}

#[test]
fn machines_get_the_same() {
    let run = operator(&[
        "explain",
        "configmap/example-network-network",
        "data.title",
        "--network",
        "networks",
        "-o",
        "json",
    ]);
    let json: Value = serde_json::from_str(&run.ok()).expect("JSON");
    assert_eq!(json["fields"][0]["value"], "The network example-network 192.168.0.0/16");
    assert_eq!(json["fields"][0]["reads"][0]["name"], "variables.title");
    assert_eq!(json["inCluster"], false);
}

#[test]
fn operations_move_the_fields_that_they_move() {
    let rules = include_str!("fixtures/rules/network.yaml").replace(
        "      patches:\n",
        "      patches:\n        - {op: move, from: /data/title, path: /data/heading}\n        - {op: copy, from: /data/cidr, path: /data/range}\n        - {op: remove, path: /data/switch}\n        - {op: test, path: /data/range, value: \"${self.spec.cidr}\"}\n",
    );
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("rules.yaml"), rules).expect("written");
    std::fs::write(folder.path().join("networks.yaml"), include_str!("fixtures/networks/example.yaml"))
        .expect("written");
    let explain = |field: &str| {
        operator_in(
            folder.path(),
            &[
                "explain",
                "configmap/example-network-network",
                field,
                "--rules",
                "rules.yaml",
                "--network",
                "networks.yaml",
            ],
            "",
        )
    };
    assert!(explain("data.heading").stdout.contains("The network ${variables.title}"), "{}", explain("data.heading"));
    assert!(explain("data.range").stdout.contains("${self.spec.cidr}"), "{}", explain("data.range"));
    assert!(explain("data.range").stdout.contains("copy data.range"), "{}", explain("data.range"));
    assert_eq!(explain("data.switch").code, 1);
    assert_eq!(explain("data.title").code, 1);
}

#[test]
fn in_a_cluster_it_says_who_owns_the_field_and_what_it_is_now() {
    let space = Space::new();
    let rules = include_str!("fixtures/rules/network.yaml");
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    let running = space.operator().rule_text(rules).start();
    space.until_ready("a");
    running.terminate();
    space.change(CONFIG_MAPS, "a-network", json!({"data": {"cidr": "11.0.0.0/8", "extra": "mine"}}));
    space.kubeconfig("explain.kubeconfig");
    let explain = |field: &str| {
        let arguments =
            ["explain", "configmap/a-network", field, "--kubeconfig", "explain.kubeconfig", "--rules", "rules.yaml"];
        let run = operator_in(space.folder.path(), &arguments, "");
        run.ok().replace(&space.name, "NAMESPACE")
    };
    insta::assert_snapshot!("own_field", explain("data.title"));
    insta::assert_snapshot!("edited_field", explain("data.cidr"));
    insta::assert_snapshot!("foreign_field", explain("data.extra"));
}
