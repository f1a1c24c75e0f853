//! The rights that `network-operator rbac` prints: enough, and not one of them to spare.

use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::control_plane::repository;
use crate::support::{CONFIG_MAPS, ControlPlane, NETWORKS, Space, condition, ensure, network, within};

/// What the command prints for the shipped rules and one namespace.
fn printed(namespace: &str) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_network-operator"))
        .args(["rbac", "--namespace", namespace, "rules"])
        .current_dir(repository())
        .output()
        .expect("run rbac");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&String::from_utf8_lossy(&output.stdout)).expect("YAML documents");
    let role = documents.into_iter().find(|document| document["kind"] == "Role").expect("a Role");
    role["rules"].as_array().expect("rules").clone()
}

/// One right: a verb on a resource.
#[derive(Debug, Clone)]
struct Right {
    group: String,
    resource: String,
    verb: String,
}

fn rights(rules: &[Value]) -> Vec<Right> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut rights = Vec::new();
    for rule in rules {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    rights.push(Right { group: group.clone(), resource: resource.clone(), verb });
                }
            }
        }
    }
    rights
}

fn rules(rights: &[Right]) -> Value {
    rights
        .iter()
        .map(|right| json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}))
        .collect()
}

/// A life that needs every right: create, lose the marks of a child (whose is it?), change, drop children. Returns everything
/// that the operator said until `enough` of it was heard or the life was over.
fn live(granted: &[Right], enough: &dyn Fn(&str) -> bool) -> String {
    let space = Space::without_rights(ControlPlane::shared());
    space.grant(&rules(granted));
    let operator = space.operator().start_unready();
    space.create(network("n", json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"})));
    let said = || {
        let ready = space.find(NETWORKS, "n").and_then(|object| condition(&object, "Ready").cloned());
        format!("{}\n{}", operator.log(), ready.unwrap_or_default())
    };
    let step = |what: &str, done: &dyn Fn() -> bool| {
        // What cannot be done for lack of the right is not waited for much longer than it takes.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            within(Duration::from_secs(6), what, || ensure(done() || enough(&said()), "not yet"));
        }));
    };
    let ready = |generation: u64| {
        space.find(NETWORKS, "n").is_some_and(|object| {
            condition(&object, "Ready").is_some_and(|ready| ready["status"] == "True")
                && object["status"]["observedGeneration"] == generation
        })
    };
    step("ready", &|| ready(1));
    for resource in [CONFIG_MAPS, crate::support::SERVICES, crate::support::ENDPOINT_SLICES] {
        for child in space.list(resource) {
            let name = child["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let ours = child["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "network-operator";
            if ours && !enough(&said()) {
                let marks = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}});
                space.change(resource, &name, marks);
                step("the marks are back", &|| {
                    let labels = space.get(resource, &name)["metadata"]["labels"].clone();
                    labels["app.kubernetes.io/managed-by"] == "network-operator"
                });
            }
        }
    }
    if !enough(&said()) {
        space.change(NETWORKS, "n", json!({"spec": {"gateway": null}}));
        step("without a gateway", &|| ready(2));
        // The endpoint slice goes with its owner's rule; a config map is only deleted when the rules drop it, which these never do.
    }
    said()
}

#[test]
fn the_printed_rights_are_enough_and_each_that_is_taken_away_is_named() {
    let all = rights(&printed("any"));
    let cases: Vec<Right> = all
        .iter()
        // Leases: the tests run without an election. Deleting a ConfigMap: the shipped rules never drop theirs.
        .filter(|right| right.resource != "leases" && !(right.resource == "configmaps" && right.verb == "delete"))
        .cloned()
        .collect();
    assert!(cases.len() > 15, "{cases:?}");

    let whole = live(&all, &|said| said.contains("forbidden"));
    assert!(!whole.contains("forbidden") && !whole.contains("not allowed"), "{whole}");
    assert!(whole.contains("pruned"), "the life was lived to its end: {whole}");

    let (queue, silent) = (Mutex::new(cases), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (queue, silent, all) = (&queue, &silent, &all);
            let name = format!("rights-{worker}");
            let work = move || {
                loop {
                    let Some(missing) = queue.lock().expect("cases").pop() else { return };
                    let granted: Vec<Right> = all
                        .iter()
                        .filter(|right| {
                            (&right.group, &right.resource, &right.verb)
                                != (&missing.group, &missing.resource, &missing.verb)
                        })
                        .cloned()
                        .collect();
                    let named = |said: &str| {
                        if missing.resource.ends_with("/finalizers") {
                            return said.contains("can't set finalizers on");
                        }
                        let resource = &missing.resource;
                        said.contains(&format!("cannot {} resource \\\"{resource}\\\"", missing.verb))
                            || said.contains(&format!("cannot {} resource \"{resource}\"", missing.verb))
                    };
                    if !named(&live(&granted, &named)) {
                        silent.lock().expect("findings").push(missing);
                    }
                }
            };
            std::thread::Builder::new().name(name).spawn_scoped(scope, work).expect("a thread");
        }
    });
    let silent = silent.into_inner().expect("findings");
    assert!(silent.is_empty(), "nothing misses these, or nobody says so: {silent:#?}");
}
