//! `check`: every fault at once, for people and for machines.

use std::process::Command;

use serde_json::{Value, json};

use crate::run_cli::{filter, operator, operator_in};

const RULES: &str = include_str!("fixtures/rules/network.yaml");

#[test]
fn good_rules_pass_in_silence_on_stdout() {
    let run = operator(&["check", "rules", "--network", "networks"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
    assert_eq!(run.stderr, "checked 1 rule file and 1 example file: no faults\n");
}

#[test]
fn the_shipped_rules_pass_without_a_warning() {
    let run = operator(&["check", "--deny-warnings", "../../../rules"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
}

#[test]
fn all_faults_of_all_files_are_said_at_once_in_file_order() {
    insta::assert_snapshot!(operator(&["check", "broken"]));
}

#[test]
fn json_has_the_same_faults_and_the_same_exit_code() {
    let run = operator(&["check", "--format", "json", "broken"]);
    assert_eq!(run.code, 1);
    let found: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let human = operator(&["check", "broken"]).stdout;
    let count = |level: &str| human.lines().filter(|line| line.starts_with(level)).count();
    assert_eq!(found["errors"], count("error"), "{human}");
    assert_eq!(found["warnings"], count("warning"), "{human}");
    let good: Value = serde_json::from_str(&operator(&["check", "--format", "json", "rules"]).ok()).expect("JSON");
    assert_eq!(good["diagnostics"], json!([]));
}

#[test]
fn sarif_is_what_the_standard_says() {
    let schema: Value = serde_json::from_str(include_str!("fixtures/schemas/sarif-2.1.0.json")).expect("JSON");
    for path in ["broken", "rules"] {
        let run = operator(&["check", "--format", "sarif", path]);
        let sarif: Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert_eq!(sarif["version"], "2.1.0");
        let program = "import json, sys, jsonschema
data = json.load(sys.stdin)
errors = jsonschema.Draft4Validator(data['schema']).iter_errors(data['sarif'])
print('\\n'.join('/'.join(map(str, error.path)) + ': ' + error.message for error in errors), end='')";
        let input = json!({"schema": schema, "sarif": sarif}).to_string();
        if let Some(errors) = filter(Command::new("python3").args(["-c", program]), &input) {
            assert_eq!(errors, "");
        }
        let results = sarif["runs"][0]["results"].as_array().expect("results");
        assert_eq!(results.is_empty(), path == "rules");
    }
}

#[test]
fn warnings_fail_only_where_they_are_denied() {
    let folder = tempfile::tempdir().expect("a folder");
    let warned = RULES.replace("gateway: ${self.spec.?gateway}", "gateway: ${self.spec.gateway}");
    std::fs::write(folder.path().join("warned.yaml"), warned).expect("written");
    let run = operator_in(folder.path(), &["check", "warned.yaml"], "");
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("warning"), "{run}");
    let denied = operator_in(folder.path(), &["check", "--deny-warnings", "warned.yaml"], "");
    assert_eq!(denied.code, 1, "{denied}");
}

#[test]
fn an_example_is_held_against_the_crd_and_the_rules() {
    let folder = tempfile::tempdir().expect("a folder");
    let examples = "apiVersion: samplecrd.k8s.io/v1\nkind: Network\nmetadata: {name: a}\nspec: {cidr: 10.0.0.0/8, gateway: 0.0.0.0}\n---\n\
        apiVersion: samplecrd.k8s.io/v1\nkind: Network\nmetadata: {name: b}\nspec: {cidr: 10.0.0.0/8, dnsServers: []}\n";
    std::fs::write(folder.path().join("examples.yaml"), examples).expect("written");
    std::fs::write(folder.path().join("typo.yaml"), examples.replace("cidr:", "cidrr:")).expect("written");
    std::fs::write(folder.path().join("rules.yaml"), RULES).expect("written");
    let run = operator_in(
        folder.path(),
        &["check", "rules.yaml", "--network", "examples.yaml", "--network", "typo.yaml"],
        "",
    );
    insta::assert_snapshot!(run);
}

#[test]
fn a_crd_of_ones_own_goes_before_the_shipped_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let crd = include_str!("../../crds/networks.yaml");
    let at = crd.find("cidr:").expect("the field is there");
    let indent = at - crd[..at].rfind('\n').map_or(0, |line| line + 1);
    let owner = format!("owner: {{type: string, description: Who to ask.}}\n{}", " ".repeat(indent));
    std::fs::write(folder.path().join("crd.yaml"), format!("{}{owner}{}", &crd[..at], &crd[at..])).expect("written");
    let rules = RULES.replace("switch: \"on\"", "owner: ${self.spec.?owner}");
    std::fs::write(folder.path().join("rules.yaml"), rules).expect("written");
    let shipped = operator_in(folder.path(), &["check", "rules.yaml"], "");
    assert_eq!(shipped.code, 1, "{shipped}");
    assert!(shipped.stdout.contains("owner"), "{shipped}");
    let own = operator_in(folder.path(), &["check", "--crd", "crd.yaml", "rules.yaml"], "");
    assert_eq!(own.code, 0, "{own}");
}

#[test]
fn what_cannot_be_read_is_exit_code_2_and_what_is_no_crd_is_a_fault() {
    assert_eq!(operator(&["check", "nowhere.yaml"]).code, 2);
    assert_eq!(operator(&["check"]).code, 2);
    let run = operator(&["check", "--crd", "networks/example.yaml", "rules"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("this CRD cannot be used"), "{run}");
}
