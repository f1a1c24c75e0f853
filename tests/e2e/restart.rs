//! Crashes and restarts: it converges whatever happened, and then there is silence.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, NETWORKS, SERVICES, Space, ensure, eventually, network};

fn example(name: &str) -> Value {
    network(name, json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"}))
}

/// The shipped rights without those on Services.
fn without_services() -> Value {
    let mut rights = Space::shipped_rights();
    for rule in rights.as_array_mut().expect("rules") {
        let resources = rule["resources"].as_array().cloned().unwrap_or_default();
        if resources.contains(&json!("services")) {
            rule["resources"] = json!(["configmaps"]);
        }
    }
    // It may still look at them.
    let rules = rights.as_array_mut().expect("rules");
    rules.push(json!({"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch"]}));
    rights
}

#[test]
fn killed_between_the_writes_of_two_children_it_finishes_after_a_restart() {
    let space = Space::without_rights(crate::support::ControlPlane::shared());
    space.grant(&without_services());
    let operator = space.operator().start();
    space.create(example("example-network"));
    space.until(CONFIG_MAPS, "example-network-network", |_| Ok(()));
    let ready = space.until(NETWORKS, "example-network", |object| {
        let ready = crate::support::condition(object, "Ready").ok_or("no condition")?;
        Ok(ready.clone())
    });
    let message = ready["message"].as_str().unwrap_or_default();
    assert!(ready["status"] == "False" && message.contains("services"), "the message names the right: {ready:#}");
    let config = space.get(CONFIG_MAPS, "example-network-network")["metadata"]["uid"].clone();
    assert!(space.find(SERVICES, "example-network-gateway").is_none());
    operator.kill();

    space.grant(&Space::shipped_rights());
    let _operator = space.operator().start();
    space.until_ready("example-network");
    assert_eq!(space.children().len(), 3);
    assert_eq!(space.get(CONFIG_MAPS, "example-network-network")["metadata"]["uid"], config, "kept, not made anew");
}

#[test]
fn killed_at_any_moment_it_finishes_after_a_restart() {
    let space = Space::new();
    let mut operator = space.operator().start();
    let mut names = Vec::new();
    for round in 0..12_u64 {
        let name = format!("network-{round}");
        space.create(example(&name));
        // From before the first write to after the last one.
        std::thread::sleep(Duration::from_millis(round * 4));
        operator.kill();
        operator = space.operator().start();
        names.push(name);
    }
    for name in &names {
        space.until_ready(name);
    }
    assert_eq!(space.children().len(), 3 * names.len());
    operator.assert_healthy();
}

#[test]
fn what_changed_while_it_was_down_is_done_after_the_restart() {
    let space = Space::new();
    let operator = space.operator().start();
    for name in ["changed", "cut", "deleted", "tampered"] {
        space.create(example(name));
        space.until_ready(name);
    }
    operator.kill();
    space.change(NETWORKS, "changed", json!({"spec": {"cidr": "192.168.0.0/24"}}));
    space.change(NETWORKS, "cut", json!({"spec": {"gateway": null}}));
    space.delete(NETWORKS, "deleted");
    space.change(CONFIG_MAPS, "tampered-network", json!({"data": {"cidr": "edited"}}));
    space.delete(SERVICES, "tampered-gateway");

    let _operator = space.operator().start();
    eventually("everything as it should be", || {
        let data = |name: &str| space.find(CONFIG_MAPS, name).map(|object| object["data"].clone()).unwrap_or_default();
        ensure(data("changed-network")["cidr"] == "192.168.0.0/24", "changed")?;
        ensure(data("cut-network").get("gateway").is_none(), "cut")?;
        ensure(space.find(SERVICES, "cut-gateway").is_none(), "the Service of cut")?;
        ensure(data("tampered-network")["cidr"] == "192.168.0.0/16", "tampered")?;
        ensure(space.find(SERVICES, "tampered-gateway").is_some(), "the Service of tampered")?;
        // changed 3, cut 1, deleted 0, tampered 3
        ensure(space.children().len() == 7, format!("{:?}", space.children()))
    });
}

#[test]
fn restarted_with_nothing_changed_it_writes_nothing() {
    let space = Space::new();
    let operator = space.operator().start();
    let specs = [
        json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"}),
        json!({"cidr": "192.168.0.0/16"}),
        json!({"cidr": "fd00:10::/64", "gateway": "fd00:10::1", "dnsServers": ["fd00:10::53"], "mtu": 9000, "domain": "lab.example",
            "ports": [{"name": "b", "port": 81}, {"name": "a", "port": 80}], "subnets": [{"name": "s", "cidr": "fd00:10::/80"}]}),
    ];
    for (index, spec) in specs.into_iter().enumerate() {
        let name = format!("network-{index}");
        space.create(network(&name, spec));
        space.until_ready(&name);
    }
    space.create(network("wrong", json!({"cidr": "10.0.0.0/8", "gateway": "192.168.0.1"})));
    space.until_condition("wrong", "False", "InvalidSpec");
    assert!(operator.terminate().success());
    let before = space.children();

    for end in ["TERM", "KILL", "TERM"] {
        let audit = space.audit();
        let operator = space.operator().start();
        // Long enough for everything that it would do without being asked.
        std::thread::sleep(Duration::from_secs(5));
        assert_eq!(audit.writes(), [], "{}", operator.log());
        // One list and one watch for each kind, discovery, and the schema of Networks.
        let reads = audit.requests().into_iter().filter(|asked| {
            asked.verb == "get" && !asked.resource.is_empty() && asked.resource != "customresourcedefinitions"
        });
        assert_eq!(reads.collect::<Vec<_>>(), []);
        if end == "TERM" {
            assert!(operator.terminate().success());
        } else {
            operator.kill();
        }
    }
    assert_eq!(space.children(), before);
}

#[test]
fn at_rest_it_asks_for_nothing() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(example("example-network"));
    space.until_ready("example-network");
    std::thread::sleep(Duration::from_secs(1));
    let audit = space.audit();
    std::thread::sleep(Duration::from_secs(15));
    let asked = audit.requests();
    assert!(asked.iter().all(|asked| asked.verb == "watch"), "{asked:?}");
}

#[test]
fn it_ends_with_success_when_it_is_asked_to() {
    let space = Space::new();
    for signal in ["TERM", "INT"] {
        let mut operator = space.operator().start();
        operator.signal(signal);
        let status = operator.exit(Duration::from_secs(5));
        assert!(status.success(), "{signal}: {status}");
        assert!(operator.log().trim_end().ends_with("stopped"), "{}", operator.log());
    }
}

#[test]
fn with_leader_election_one_of_two_works_and_the_other_takes_over() {
    let space = Space::new();
    let fast = [
        "--leader-elect=true",
        "--lease-duration=3",
        "--lease-renew-deadline=2",
        "--lease-retry=0.2",
        "--call-timeout=0.9",
    ];
    let first = space.operator().arguments(&fast).start();
    space.create(example("one"));
    space.until_ready("one");
    let second = space.operator().arguments(&fast).start();
    first.kill();
    space.create(example("two"));
    space.until_ready("two");
    assert!(second.terminate().success());
}
