//! `test`: rule tests that hold, that fail, and that are updated.

use std::path::Path;

use serde_json::Value;

use crate::run_cli::{Run, operator, operator_in};

const RULES: &str = include_str!("fixtures/rules/network.yaml");
const TESTS: &str = include_str!("fixtures/rules/tests/network.yaml");
const NETWORK: &str = include_str!("fixtures/one.json");

/// A folder with rules and tests.
fn folder(rules: &str, tests: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).expect("made");
        std::fs::write(path, text).expect("written");
    };
    write("rules/network.yaml", rules);
    write("rules/tests/network.yaml", tests);
    write("one.json", NETWORK);
    folder
}

fn tests_of(folder: &tempfile::TempDir) -> String {
    std::fs::read_to_string(folder.path().join("rules/tests/network.yaml")).expect("read")
}

fn test_in(folder: &tempfile::TempDir, arguments: &[&str]) -> Run {
    operator_in(folder.path(), &[&["test"], arguments].concat(), "")
}

#[test]
fn tests_that_hold_are_listed() {
    let run = operator(&["test"]);
    insta::assert_snapshot!(run);
}

#[test]
fn the_shipped_rules_hold_what_their_tests_say() {
    let run = operator(&["test", "../../../rules"]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn a_failure_shows_what_was_expected_and_what_is() {
    let changed = RULES
        .replace("The network ${", "Our network ${")
        .replace("clusterIP: None", "clusterIP: 10.1.1.1")
        .replace("is no address", "is wrong")
        .replace("self.spec.dnsServers[0]", "'none'");
    insta::assert_snapshot!(test_in(&folder(&changed, TESTS), &[]));
}

#[test]
fn update_makes_failing_tests_hold_and_touches_nothing_else() {
    let changed = RULES.replace("The network ${", "Our network ${").replace("clusterIP: None", "clusterIP: 10.1.1.1");
    let folder = folder(&changed, TESTS);
    let run = test_in(&folder, &["--update"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("4 tests: 2 updated"), "{run}");
    insta::assert_snapshot!(tests_of(&folder));
    assert_eq!(test_in(&folder, &[]).code, 0);
    let before = tests_of(&folder);
    test_in(&folder, &["--update"]).ok();
    assert_eq!(tests_of(&folder), before, "a second update changes nothing");
}

#[test]
fn update_fills_in_what_a_new_test_expects() {
    let head = TESTS.split("    - name").next().expect("a head");
    let test = "    - name: new\n      network: {metadata: {name: a}, spec: {cidr: 10.0.0.0/8}}\n";
    for tests in [format!("{head}{test}"), format!("{head}{test}      expect: {{}}\n\n    # The end.\n")] {
        let folder = folder(RULES, &tests);
        assert_eq!(test_in(&folder, &["--update"]).code, 0);
        let written = tests_of(&folder);
        assert!(
            written.contains("        children:\n        - apiVersion: v1\n          kind: ConfigMap\n"),
            "{written}"
        );
        assert_eq!(written.contains("# The end."), tests.contains("# The end."));
        let run = test_in(&folder, &[]);
        assert_eq!(run.code, 0, "{run}{written}");
    }
}

#[test]
fn results_for_machines_and_a_filter() {
    let run = operator(&["test", "-o", "json", "--filter", "invalid", "rules/tests/network.yaml"]);
    let results: Value = serde_json::from_str(&run.ok()).expect("JSON");
    assert_eq!(results.as_array().map(Vec::len), Some(1));
    assert_eq!(results[0]["outcome"], "ok");
    assert_eq!(results[0]["name"], "an invalid Network");
}

#[test]
fn a_child_that_reads_another_is_tested_with_what_the_cluster_would_have() {
    let reads = RULES.replace("    - id: subnet", "    - id: reader\n      when: has(self.spec.gateway)\n      manifest:\n        apiVersion: v1\n        kind: ConfigMap\n        metadata: {name: reader}\n        data: {ip: \"${resources.gateway.spec.clusterIP}\"}\n    - id: subnet");
    let head = TESTS.split("    - name").next().expect("a head");
    let network = "network: {metadata: {name: a}, spec: {cidr: 10.0.0.0/8, gateway: 10.0.0.1}}";
    let service = "{apiVersion: v1, kind: Service, metadata: {name: a-gateway}, spec: {clusterIP: 10.9.9.9}}";
    let tests = format!(
        "{head}    - name: waits\n      {network}\n      expect: {{waiting: {{reader: [gateway]}}}}\n    - name: reads\n      {network}\n      observed: [{service}]\n      expect: {{contains: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: reader}}, data: {{ip: 10.9.9.9}}}}]}}\n"
    );
    let run = test_in(&folder(&reads, &tests), &[]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn what_is_wrong_with_a_test_file_is_said_with_its_place() {
    for (from, to, says) in [
        (
            "  rules: [../network.yaml]",
            "  rulez: [..]",
            "rules/tests/network.yaml:6:3: the `spec` of a rule test has no field `rulez`",
        ),
        ("      networkFile: ../../one.json\n", "", "a test needs either `network` or `networkFile`"),
        ("      expect:\n        invalid:", "      expect:\n        invalidd:", "`expect` has no field `invalidd`"),
        ("[../network.yaml]", "[../nowhere.yaml]", "nowhere.yaml"),
        ("kind: RuleTest", "kind: RuleTestt", "holds no rule tests"),
    ] {
        let run = test_in(&folder(RULES, &TESTS.replace(from, to)), &["rules"]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(says), "{says}: {run}");
    }
}
