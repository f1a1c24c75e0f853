//! Other people's objects and other people's fields.

use serde_json::json;

use crate::support::{CONFIG_MAPS, ENDPOINT_SLICES, NETWORKS, SERVICES, Space, ensure, eventually, network};

fn example() -> serde_json::Value {
    network("example-network", json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"}))
}

#[test]
fn a_config_map_that_someone_else_made_is_left_alone_and_the_condition_says_whose_name_is_taken() {
    let space = Space::new();
    let mut operator = space.operator().start();
    let theirs = space.create(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "example-network-network"}, "data": {"cidr": "theirs"}}));
    space.create(example());
    let ready = space.until_condition("example-network", "False", "NameTaken");
    let message = ready["message"].as_str().unwrap_or_default();
    assert!(message.contains("ConfigMap example-network-network"), "{message}");
    space.until(SERVICES, "example-network-gateway", |_| Ok(()));
    assert_eq!(space.get(CONFIG_MAPS, "example-network-network"), theirs, "untouched");
    operator.assert_healthy();

    space.delete(CONFIG_MAPS, "example-network-network");
    space.until_ready("example-network");
    assert_eq!(space.get(CONFIG_MAPS, "example-network-network")["data"]["cidr"], "192.168.0.0/16");
}

#[test]
fn an_object_that_another_network_controls_is_left_alone() {
    let space = Space::new();
    let _operator = space.operator().start();
    let other = space.create(network("other", json!({"cidr": "10.0.0.0/8"})));
    let theirs = space.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "example-network-network", "ownerReferences": [{"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network",
        "name": "other", "uid": other["metadata"]["uid"], "controller": true}]}}));
    space.create(example());
    let ready = space.until_condition("example-network", "False", "NameTaken");
    assert!(ready["message"].as_str().is_some_and(|text| text.contains("example-network-network")), "{ready:#}");
    assert_eq!(space.get(CONFIG_MAPS, "example-network-network"), theirs, "untouched");
}

#[test]
fn what_others_add_to_a_child_survives_every_reconcile() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    let added = json!({"metadata": {"annotations": {"example.org/note": "mine"}, "labels": {"team": "a"}},
        "data": {"extra": "mine"}});
    space.change(CONFIG_MAPS, "example-network-network", added);
    space.apply(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "example-network-network"},
            "data": {"applied": "mine too"}}),
        "another-manager",
    );
    space.change(
        SERVICES,
        "example-network-gateway",
        json!({"metadata": {"annotations": {"example.org/note": "mine"}}}),
    );
    for (round, cidr) in ["192.168.0.0/17", "192.168.0.0/18", "192.168.0.0/19"].into_iter().enumerate() {
        space.change(
            NETWORKS,
            "example-network",
            json!({"spec": {"cidr": cidr, "gateway": format!("192.168.0.{}", round + 2)}}),
        );
        space.until(CONFIG_MAPS, "example-network-network", |object| ensure(object["data"]["cidr"] == cidr, "not yet"));
        space.until_ready("example-network");
        let config = space.get(CONFIG_MAPS, "example-network-network");
        assert_eq!(config["data"]["extra"], "mine", "{config:#}");
        assert_eq!(config["data"]["applied"], "mine too", "{config:#}");
        assert_eq!(config["metadata"]["annotations"]["example.org/note"], "mine");
        assert_eq!(config["metadata"]["labels"]["team"], "a");
        let service = space.get(SERVICES, "example-network-gateway");
        assert_eq!(service["metadata"]["annotations"]["example.org/note"], "mine");
    }
}

#[test]
fn a_child_that_someone_deletes_comes_back_at_once() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    for (resource, name) in [
        (CONFIG_MAPS, "example-network-network"),
        (SERVICES, "example-network-gateway"),
        (ENDPOINT_SLICES, "example-network-gateway"),
    ] {
        let before = space.get(resource, name)["metadata"]["uid"].clone();
        space.delete(resource, name);
        let began = std::time::Instant::now();
        space.until(resource, name, |object| ensure(object["metadata"]["uid"] != before, "the old one"));
        // A second is the promise; a machine that is busy with other tests gets some more.
        assert!(began.elapsed().as_secs() < 10, "{name} took {:?}", began.elapsed());
    }
    space.until_ready("example-network");
    assert_eq!(space.children().len(), 3);
}

#[test]
fn a_child_that_someone_edits_is_repaired_at_once() {
    let space = Space::new();
    let operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    let uids = space.children();

    space.change(CONFIG_MAPS, "example-network-network", json!({"data": {"cidr": "edited", "gateway": null}}));
    space.until(CONFIG_MAPS, "example-network-network", |object| {
        let data = &object["data"];
        ensure(data["cidr"] == "192.168.0.0/16" && data["gateway"] == "192.168.0.1", "not yet")
    });
    space.change(SERVICES, "example-network-gateway", json!({"spec": {"ports": [{"name": "odd", "port": 99}]}}));
    space.until(SERVICES, "example-network-gateway", |object| {
        ensure(
            object["spec"]["ports"].as_array().is_some_and(|ports| ports.iter().any(|port| port["port"] == 80)),
            "not yet",
        )
    });
    space.change(
        ENDPOINT_SLICES,
        "example-network-gateway",
        json!({"endpoints": [{"addresses": ["10.9.9.9"]}], "metadata": {"labels": {"kubernetes.io/service-name": "odd"}}}),
    );
    space.until(ENDPOINT_SLICES, "example-network-gateway", |object| {
        ensure(object["endpoints"][0]["addresses"] == json!(["192.168.0.1"]), "the address")?;
        ensure(object["metadata"]["labels"]["kubernetes.io/service-name"] == "example-network-gateway", "the label")
    });
    assert_eq!(space.children(), uids, "repaired, not made anew");
    assert!(operator.until_log(": repaired ").contains("ConfigMap example-network-network"));
}

#[test]
fn marks_that_someone_strips_are_put_back_without_making_the_object_anew() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    let before = space.get(CONFIG_MAPS, "example-network-network");
    let strips = [
        json!({"metadata": {"ownerReferences": null}}),
        json!({"metadata": {"labels": {"samplecrd.k8s.io/network": null}}}),
        json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}),
        json!({"metadata": {"labels": null, "annotations": null}}),
    ];
    for strip in strips {
        space.change(CONFIG_MAPS, "example-network-network", strip.clone());
        eventually(&format!("marks put back after {strip}"), || {
            let now = space.get(CONFIG_MAPS, "example-network-network");
            let (now, before) = (&now["metadata"], &before["metadata"]);
            for mark in ["ownerReferences", "labels", "annotations", "uid"] {
                ensure(now[mark] == before[mark], format!("{mark}: {:#}", now[mark]))?;
            }
            Ok::<_, String>(())
        });
    }
}
