//! The test bed itself: it is what it says, and it leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::control_plane::Body;
use crate::support::{ControlPlane, Space, ensure, eventually};

/// Starts a control plane and an operator, says their process ids, and ends as `end` says.
fn end_badly(end: &str) {
    let plane = ControlPlane::start(&[]);
    let space = Space::on(&plane);
    let operator = space.operator().start_unready();
    let mut said = plane.announcement["pids"].clone();
    said["operator"] = json!(operator.pid);
    said["dir"] = json!(plane.said("dir"));
    println!("PIDS {said}");
    assert_ne!(end, "panic", "as asked");
    std::thread::sleep(std::time::Duration::from_mins(10));
}

#[test]
fn nothing_outlives_a_test_that_panics_or_is_killed() {
    // This test runs itself in a process of its own, which ends as the variable says.
    if let Ok(end) = std::env::var("BED_END") {
        return end_badly(&end);
    }
    for end in ["panic", "INT", "KILL"] {
        let mut test = Command::new(std::env::current_exe().expect("this test binary"))
            .args(["--exact", "bed::nothing_outlives_a_test_that_panics_or_is_killed", "--nocapture"])
            .env("BED_END", end)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("start this test binary");
        let lines = BufReader::new(test.stdout.take().expect("piped")).lines();
        let said = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("PIDS ").map(|(_, pids)| pids.to_owned()))
            .expect("the process ids");
        let said: Value = serde_json::from_str(&said).expect("process ids as JSON");
        if end != "panic" {
            let pid = test.id().to_string();
            assert!(
                Command::new("kill").args([&format!("-{end}"), &pid]).status().is_ok_and(|status| status.success())
            );
        }
        test.wait().expect("wait for the test");
        eventually(&format!("everything gone after {end}"), || {
            for (name, pid) in said.as_object().expect("process ids by name").iter().filter(|(name, _)| *name != "dir")
            {
                let gone = !std::path::Path::new(&format!("/proc/{pid}")).exists();
                ensure(gone, format!("{name} still runs as process {pid}"))?;
            }
            let folder = said["dir"].as_str().unwrap_or_default();
            ensure(!std::path::Path::new(folder).exists(), format!("{folder} is still there"))
        });
    }
}

#[test]
fn rbac_is_on_and_owner_references_need_a_right_of_their_own() {
    let space = Space::without_rights(ControlPlane::shared());
    let owner = space.create(crate::support::network("owner", json!({"cidr": "10.0.0.0/8"})));
    let kubeconfig = space.kubeconfig("operator.kubeconfig");
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "ownerReferences": [{
        "apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "name": "owner", "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true}]}});
    let create = || {
        let output = Command::new("sh")
            .args(["-c", r#"printf %s "$1" | kubectl --kubeconfig "$2" create -f - 2>&1"#, "sh"])
            .arg(config_map.to_string())
            .arg(&kubeconfig)
            .output()
            .expect("kubectl");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(create().contains("forbidden"), "nothing is allowed without a role: {}", create());

    let rights = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]);
    space.grant(&rights);
    eventually("a refusal for the owner reference alone", || {
        let text = create();
        ensure(text.contains("blockOwnerDeletion"), text)
    });

    space.grant(&Space::shipped_rights());
    eventually("the shipped rights are enough", || {
        let text = create();
        ensure(text.contains("created"), text)
    });
}

#[test]
fn each_test_has_an_account_that_only_sees_its_own_namespace() {
    let (mine, other) = (Space::new(), Space::new());
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": format!("system:serviceaccount:{}:network-operator", mine.name),
        "resourceAttributes": {"namespace": other.name, "verb": "list", "resource": "configmaps"}}});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let answer = mine.plane.call("POST", path, Body::Object(&review)).expect("a review");
    assert_eq!(answer["status"]["allowed"], false, "{answer:#}");
}
