//! The life of a Network: created, changed, deleted, and what becomes of its children.

use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, ENDPOINT_SLICES, NETWORKS, SERVICES, Space, ensure, eventually, network};

fn example() -> Value {
    network("example-network", json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"}))
}

/// The data of the `ConfigMap` once `check` has nothing against it.
fn until_data(space: &Space<'_>, name: &str, check: impl Fn(&Value) -> bool) -> Value {
    space.until(CONFIG_MAPS, name, |object| {
        ensure(check(&object["data"]), "not yet")?;
        Ok(object["data"].clone())
    })
}

#[test]
fn a_network_becomes_a_config_map_and_a_name_for_its_gateway() {
    let space = Space::new();
    let operator = space.operator().start();
    let created = space.create(example());
    space.until_ready("example-network");

    let config = space.get(CONFIG_MAPS, "example-network-network");
    let data = [
        ("cidr", "192.168.0.0/16"),
        ("gateway", "192.168.0.1"),
        ("prefix", "16"),
        ("netmask", "255.255.0.0"),
        ("firstAddress", "192.168.0.1"),
        ("lastAddress", "192.168.255.254"),
    ];
    for (key, value) in data {
        assert_eq!(config["data"][key], value, "{key} in {config:#}");
    }
    let service = space.get(SERVICES, "example-network-gateway");
    assert_eq!(service["spec"]["clusterIP"], "None");
    assert_eq!(service["spec"].get("selector"), None);
    assert_eq!(service["spec"]["ports"][0]["port"], 80);
    let slice = space.get(ENDPOINT_SLICES, "example-network-gateway");
    assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "example-network-gateway");
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["endpoints"][0]["addresses"], json!(["192.168.0.1"]));
    assert_eq!(slice["ports"][0]["port"], 80);

    for child in [&config, &service, &slice] {
        let metadata = &child["metadata"];
        assert_eq!(metadata["labels"]["samplecrd.k8s.io/network"], "example-network", "{metadata:#}");
        assert_eq!(metadata["labels"]["app.kubernetes.io/managed-by"], "network-operator", "{metadata:#}");
        let owner = &metadata["ownerReferences"][0];
        assert_eq!(owner["kind"], "Network");
        assert_eq!(owner["uid"], created["metadata"]["uid"]);
        assert_eq!(owner["controller"], true);
        let managers = metadata["managedFields"].as_array().expect("managed fields");
        let ours = |entry: &&Value| entry["manager"] == "network-operator";
        let operations: Vec<_> = managers.iter().filter(ours).map(|entry| &entry["operation"]).collect();
        assert_eq!(operations, ["Apply"], "{metadata:#}");
    }
    let line = operator.until_log(": created ");
    for part in ["network ", "example-network", "ConfigMap example-network-network", "Service example-network-gateway"]
    {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn the_status_says_that_it_is_ready_and_names_every_child() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(example());
    let ready = space.until_ready("example-network");
    assert!(ready["message"].as_str().is_some_and(|message| !message.is_empty()), "{ready:#}");
    let status = space.get(NETWORKS, "example-network")["status"].clone();
    assert_eq!(status["childrenReady"], "3/3", "{status:#}");
    assert_eq!(status["gatewayName"], "example-network-gateway");
    assert_eq!(status["prefixLength"], 16);
    assert!(status["rulesRevision"].as_str().is_some_and(|text| text.starts_with("network@")), "{status:#}");
    let children: Vec<_> = status["children"]
        .as_array()
        .expect("children")
        .iter()
        .map(|child| format!("{} {} {} {}", child["rule"], child["apiVersion"], child["kind"], child["ready"]))
        .collect();
    assert_eq!(
        children,
        [
            r#""network/config" "v1" "ConfigMap" true"#,
            r#""network/gateway" "v1" "Service" true"#,
            r#""network/endpoints" "discovery.k8s.io/v1" "EndpointSlice" true"#,
        ]
    );
    let (waited, output) =
        space.kubectl(&["wait", "--for=condition=Ready", "network/example-network", "--timeout=10s"], "");
    assert!(waited, "{output}");
}

#[test]
fn a_changed_cidr_arrives_in_the_config_map() {
    let space = Space::new();
    let operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    let uids = space.children();
    space.change(NETWORKS, "example-network", json!({"spec": {"cidr": "192.168.0.0/24"}}));
    let data = until_data(&space, "example-network-network", |data| data["cidr"] == "192.168.0.0/24");
    assert_eq!(data["netmask"], "255.255.255.0");
    assert_eq!(data["lastAddress"], "192.168.0.254");
    space.until_ready("example-network");
    assert_eq!(space.get(NETWORKS, "example-network")["status"]["prefixLength"], 24);
    assert_eq!(space.children(), uids, "the objects are the same ones, changed");
    let line = operator.until_log(": changed ");
    assert!(line.contains("ConfigMap example-network-network"), "{line}");
    assert!(!line.contains("Service"), "the Service is as it was: {line}");
}

#[test]
fn a_changed_gateway_arrives_in_the_config_map_and_behind_the_name() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    let uids = space.children();
    space.change(NETWORKS, "example-network", json!({"spec": {"gateway": "192.168.7.7"}}));
    until_data(&space, "example-network-network", |data| data["gateway"] == "192.168.7.7");
    space.until(ENDPOINT_SLICES, "example-network-gateway", |slice| {
        ensure(slice["endpoints"][0]["addresses"] == json!(["192.168.7.7"]), "not yet")
    });
    space.until_ready("example-network");
    assert_eq!(space.children(), uids);
}

#[test]
fn a_removed_gateway_takes_the_service_and_the_key_with_it() {
    let space = Space::new();
    let operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    space.change(NETWORKS, "example-network", json!({"spec": {"gateway": null}}));
    space.until_gone(SERVICES, "example-network-gateway");
    space.until_gone(ENDPOINT_SLICES, "example-network-gateway");
    until_data(&space, "example-network-network", |data| data.get("gateway").is_none());
    space.until_ready("example-network");
    let status = space.get(NETWORKS, "example-network")["status"].clone();
    assert_eq!((&status["childrenReady"], status.get("gatewayName")), (&json!("1/1"), None), "{status:#}");
    let line = operator.until_log("pruned ");
    assert!(line.contains("Service example-network-gateway"), "{line}");

    space.change(NETWORKS, "example-network", json!({"spec": {"gateway": "192.168.0.9"}}));
    space.until(SERVICES, "example-network-gateway", |_| Ok(()));
    space.until_ready("example-network");
    until_data(&space, "example-network-network", |data| data["gateway"] == "192.168.0.9");
}

#[test]
fn a_gateway_that_goes_and_comes_back_at_once_is_there_in_the_end() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    for _ in 0..10 {
        space.change(NETWORKS, "example-network", json!({"spec": {"gateway": null}}));
        space.change(NETWORKS, "example-network", json!({"spec": {"gateway": "192.168.0.1"}}));
    }
    space.until_ready("example-network");
    eventually("three children that stay", || {
        let before = space.children();
        ensure(before.len() == 3, format!("{before:?}"))?;
        std::thread::sleep(std::time::Duration::from_secs(1));
        ensure(space.children() == before, "they changed")
    });
}

#[test]
fn a_deleted_network_takes_its_children_with_it() {
    let space = Space::new();
    let operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    space.delete(NETWORKS, "example-network");
    space.until_gone(NETWORKS, "example-network");
    eventually("no children", || ensure(space.children().is_empty(), format!("{:?}", space.children())));
    let line = operator.until_log(": deleted");
    assert!(line.contains("network ") && line.contains("/example-network"), "{line}");
}

#[test]
fn a_network_that_is_made_again_at_once_gets_children_of_its_own() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    let before = space.children();
    space.delete(NETWORKS, "example-network");
    let again = space.create(network("example-network", json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1"})));
    eventually("children of the second Network", || {
        let config = space.find(CONFIG_MAPS, "example-network-network").ok_or("no ConfigMap")?;
        ensure(config["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"], "still of the first")?;
        let now = space.children();
        ensure(now.len() == 3 && now.iter().all(|(name, uid)| before.get(name) != Some(uid)), format!("{now:?}"))
    });
    space.until_ready("example-network");
}

#[test]
fn two_networks_of_one_name_in_two_namespaces_do_not_meet() {
    let (one, other) = (Space::new(), Space::new());
    let both = one.operator().arguments(&["--namespace", &other.name]);
    // One operator for both namespaces: its account needs rights in the second one as well.
    other.grant_to(&one, &Space::shipped_rights());
    let _operator = both.start();
    one.create(network("twin", json!({"cidr": "10.1.0.0/16", "gateway": "10.1.0.1"})));
    other.create(network("twin", json!({"cidr": "10.2.0.0/16"})));
    one.until_ready("twin");
    other.until_ready("twin");
    assert_eq!(one.get(CONFIG_MAPS, "twin-network")["data"]["cidr"], "10.1.0.0/16");
    assert_eq!(other.get(CONFIG_MAPS, "twin-network")["data"]["cidr"], "10.2.0.0/16");
    assert_eq!((one.children().len(), other.children().len()), (3, 1));

    other.delete(NETWORKS, "twin");
    eventually("the other's children gone", || ensure(other.children().is_empty(), "still there"));
    assert_eq!(one.children().len(), 3);
}

#[test]
fn an_ipv6_network_works_the_same() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(network("six", json!({"cidr": "fd00:10::/64", "gateway": "fd00:10::1"})));
    space.until_ready("six");
    let data = space.get(CONFIG_MAPS, "six-network")["data"].clone();
    assert_eq!(data["netmask"], "ffff:ffff:ffff:ffff::");
    assert_eq!(data["firstAddress"], "fd00:10::1");
    assert_eq!(data["prefix"], "64");
    let slice = space.get(ENDPOINT_SLICES, "six-gateway");
    assert_eq!((&slice["addressType"], &slice["endpoints"][0]["addresses"]), (&json!("IPv6"), &json!(["fd00:10::1"])));
}

#[test]
fn a_network_that_moves_from_ipv4_to_ipv6_gets_another_endpoint_slice() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    space.change(NETWORKS, "example-network", json!({"spec": {"cidr": "fd00:10::/64", "gateway": "fd00:10::1"}}));
    space.until(ENDPOINT_SLICES, "example-network-gateway", |slice| {
        ensure(slice["addressType"] == "IPv6" && slice["endpoints"][0]["addresses"] == json!(["fd00:10::1"]), "not yet")
    });
    space.until_ready("example-network");
}

#[test]
fn ports_of_a_network_arrive_in_service_and_slice_whatever_their_order() {
    let space = Space::new();
    let _operator = space.operator().start();
    let ports = json!([{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}]);
    space.create(network("ports", json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1", "ports": ports})));
    space.until_ready("ports");
    let names = |object: &Value| -> Vec<String> {
        let ports = object.as_array().into_iter().flatten();
        ports.map(|port| format!("{} {} {}", port["name"], port["port"], port["protocol"])).collect()
    };
    let expected = [r#""dns" 53 "UDP""#, r#""dns-tcp" 53 "TCP""#];
    assert_eq!(names(&space.get(SERVICES, "ports-gateway")["spec"]["ports"]), expected);
    assert_eq!(names(&space.get(ENDPOINT_SLICES, "ports-gateway")["ports"]), expected);
}
