//! `render`: Networks in, children out.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::run_cli::{Run, filter, operator, operator_with};

fn network(name: &str, spec: &str) -> String {
    format!("apiVersion: samplecrd.k8s.io/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

fn documents(yaml: &str) -> Vec<Value> {
    yaml.split("---\n").map(|document| serde_saphyr::from_str(document).expect("YAML")).collect()
}

#[test]
fn children_come_out_as_the_operator_would_apply_them() {
    insta::assert_snapshot!(operator(&["render", "networks"]));
}

#[test]
fn files_folders_and_stdin_give_the_same_bytes_every_time() {
    let folder = operator(&["render", "networks"]).ok();
    let text = include_str!("fixtures/networks/example.yaml");
    for _ in 0..3 {
        assert_eq!(operator(&["render", "networks/example.yaml"]).ok(), folder);
        assert_eq!(operator_with(&["render"], text).ok(), folder);
        assert_eq!(operator_with(&["render", "--rules", "rules/network.yaml", "-"], text).ok(), folder);
    }
}

#[test]
fn json_is_one_list_with_the_same_objects() {
    let json: Value = serde_json::from_str(&operator(&["render", "networks", "-o", "json"]).ok()).expect("JSON");
    assert_eq!(json["kind"], "List");
    assert_eq!(json["items"], Value::Array(documents(&operator(&["render", "networks"]).ok())));
}

#[test]
fn lists_and_json_are_read_and_other_objects_passed_over() {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "metadata": {"name": "a"}, "spec": {"cidr": "10.0.0.0/8"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}},
    ]});
    let out = operator_with(&["render", "-n", "team-b"], &list.to_string()).ok();
    let documents = documents(&out);
    assert_eq!(documents.len(), 1);
    assert_eq!(documents[0]["metadata"]["namespace"], "team-b");
}

#[test]
fn a_child_that_cannot_be_rendered_is_said_and_the_others_are_printed() {
    let run = operator_with(&["render"], &network("a", "{cidr: 10.0.0.0/8, dnsServers: []}"));
    insta::assert_snapshot!(run);
}

#[test]
fn an_invalid_network_is_said_with_its_message() {
    let input = network("a", "{cidr: 10.0.0.0/8, gateway: 0.0.0.0}") + "---\n" + &network("b", "{cidr: 10.0.0.0/8}");
    insta::assert_snapshot!(operator_with(&["render"], &input));
}

#[test]
fn what_cannot_be_read_is_a_usage_error() {
    for (arguments, stdin, says) in [
        (&["render", "nowhere.yaml"][..], "", "nowhere.yaml"),
        (&["render", "--rules", "nowhere", "networks"], "", "nowhere"),
        (&["render"], "a: b\n", "<stdin>:1:1: this is not an object"),
        (&["render"], "{\"a\"", "<stdin>: not JSON"),
        (&["render"], "apiVersion: v1\nkind: [\n", "<stdin>"),
        (&["render"], "apiVersion: samplecrd.k8s.io/v1\nkind: Network\nspec: {}\n", "has no `metadata.name`"),
        (&["render"], &network("a", "{cidr: on}"), "quote it: \"on\""),
        (&["render"], &network("a", "{cidr: 0123}"), "quote it: \"0123\""),
        (&["render", "--owner-references"], &network("a", "{cidr: 10.0.0.0/8}"), "metadata.uid"),
    ] {
        let run = operator_with(arguments, stdin);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(says), "{says}: {run}");
        assert!(run.stdout.is_empty(), "{run}");
    }
}

#[test]
fn no_network_at_all_is_fine_and_said() {
    let run = operator_with(&["render"], "");
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
    assert!(run.stderr.contains("there is no Network in the input"), "{run}");
}

#[test]
fn owner_references_are_written_on_request_only() {
    let with_uid = "apiVersion: samplecrd.k8s.io/v1\nkind: Network\nmetadata: {name: a, namespace: b, uid: 11-22}\nspec: {cidr: 10.0.0.0/8}\n";
    let plain = documents(&operator_with(&["render"], with_uid).ok());
    assert_eq!(plain[0]["metadata"].get("ownerReferences"), None);
    let owned = documents(&operator_with(&["render", "--owner-references"], with_uid).ok());
    assert_eq!(owned[0]["metadata"]["ownerReferences"][0]["uid"], "11-22");
}

#[test]
fn a_reader_that_stops_early_is_not_an_error() {
    let many: String = (0..400).map(|i| network(&format!("n{i}"), "{cidr: 10.0.0.0/8}") + "---\n").collect();
    let mut child = Command::new(env!("CARGO_BIN_EXE_network-operator"))
        .args(["render", "--rules", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/fixtures/rules")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    child.stdin.take().expect("stdin is piped").write_all(many.as_bytes()).expect("it reads all");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What YAML likes to bend, and what breaks naive printers.
const WORDS: [&str; 28] = [
    "on",
    "off",
    "yes",
    "no",
    "y",
    "n",
    "~",
    "null",
    "0123",
    "1e3",
    "0x10",
    "1_000",
    ".5",
    "1:20",
    "2001-01-01",
    "true",
    "=",
    "<<",
    "\"",
    "'",
    "a\nb",
    "a\n\n b\n",
    "\u{1F980}",
    "\ttab",
    " # no comment",
    "- a",
    "a: b",
    "\u{85}",
];

#[test]
fn words_that_yaml_bends_stay_text_for_every_reader() {
    let items: Vec<Value> = WORDS
        .iter()
        .enumerate()
        .map(|(i, word)| {
            json!({
                "apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "spec": {"cidr": "10.0.0.0/8"},
                "metadata": {"name": format!("n{i}"), "annotations": {"words": word}},
            })
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let yaml = operator_with(&["render"], &list).ok();
    let read = |objects: Vec<Value>| objects.iter().map(|object| object["data"]["words"].clone()).collect::<Vec<_>>();
    assert_eq!(read(documents(&yaml)), WORDS, "a reader of YAML 1.2");
    let python =
        "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin.buffer.read().decode())), sys.stdout)";
    if let Some(text) = filter(Command::new("python3").args(["-c", python]), &yaml) {
        let objects: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read(objects), WORDS, "Python, YAML 1.1");
    }
    let home = tempfile::tempdir().expect("a folder");
    // Without a server kubectl cannot map kinds; a label edit works on files alone.
    let local = ["label", "--local", "-o", "json", "-f", "-", "a=b"];
    if let Some(text) =
        filter(Command::new("kubectl").args(local).env("HOME", home.path()).env_remove("KUBECONFIG"), &yaml)
    {
        let objects: Vec<Value> =
            serde_json::Deserializer::from_str(&text).into_iter().collect::<Result<_, _>>().expect("JSON");
        let objects = match &objects[..] {
            [list] if list["kind"] == "List" => list["items"].as_array().expect("items").clone(),
            _ => objects,
        };
        assert_eq!(read(objects), WORDS, "kubectl");
    }
}

fn resource_list(items: &Value, config: &Value) -> String {
    json!({"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items, "functionConfig": config})
        .to_string()
}

fn krm(arguments: &[&str], items: &Value, config: &Value) -> (Run, Value) {
    let run = operator_with(arguments, &resource_list(items, config));
    let list = serde_saphyr::from_str(&run.stdout).expect("the answer is YAML");
    (run, list)
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_resource_list_comes_back_with_the_children_in_it() {
    let items = json!([
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}},
        {"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "metadata": {"name": "a"}, "spec": {"cidr": "10.0.0.0/8", "gateway": "10.0.0.1"}},
    ]);
    let (run, list) = krm(&["render"], &items, &Value::Null);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(names(&list), ["other", "a", "a-network", "a-gateway"]);
    assert_eq!(list.get("results"), None);

    // Again with its own output and an edit: replaced in place, dropped where the rules drop it, the orchestrator's notes kept.
    let mut items = list["items"].clone();
    items[1]["spec"] = json!({"cidr": "10.0.0.0/9"});
    items[2]["metadata"]["annotations"]["config.kubernetes.io/path"] = json!("a.yaml");
    let (run, list) = krm(&["render"], &items, &Value::Null);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(names(&list), ["other", "a", "a-network"]);
    assert_eq!(list["items"][2]["data"]["cidr"], "10.0.0.0/9");
    assert_eq!(list["items"][2]["metadata"]["annotations"]["config.kubernetes.io/path"], "a.yaml");
    assert_eq!(list["results"][0]["severity"], "info");
}

#[test]
fn a_resource_list_says_in_its_results_what_could_not_be_rendered_and_keeps_what_was_there() {
    let network = json!({"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "metadata": {"name": "a"}, "spec": {"cidr": "10.0.0.0/8"}});
    let (_, list) = krm(&["render"], &json!([network]), &Value::Null);
    let mut items = list["items"].clone();
    items[0]["spec"]["gateway"] = json!("0.0.0.0");
    let (run, list) = krm(&["render"], &items, &Value::Null);
    assert_eq!(run.code, 1, "{run}");
    assert_eq!(names(&list), ["a", "a-network"]);
    assert_eq!(list["results"][0]["severity"], "error");
    assert!(list["results"][0]["message"].as_str().expect("text").contains("gateway 0.0.0.0 is no address"), "{run}");
    assert_eq!(list["results"][0]["resourceRef"]["name"], "a");
}

#[test]
fn a_resource_list_may_bring_its_rules_as_function_config() {
    let config: Value = serde_saphyr::from_str(include_str!("fixtures/rules/network.yaml")).expect("YAML");
    let network = json!({"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "metadata": {"name": "a"}, "spec": {"cidr": "10.0.0.0/8"}});
    let (run, list) = krm(&["render", "--rules", "nowhere"], &json!([network]), &config);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(names(&list), ["a", "a-network"]);
}
