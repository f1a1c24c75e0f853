//! The Network resource: what the API server takes, what it refuses, and what kubectl shows.

use serde_json::{Value, json};

use crate::support::{ControlPlane, NETWORKS, Space, network};

/// Specs that every supported server takes.
fn good() -> Vec<Value> {
    vec![
        json!({"cidr": "192.168.0.0/16"}),
        json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"}),
        json!({"cidr": "fd00:10::/64"}),
        json!({"cidr": "fd00:10::/64", "gateway": "fd00:10::1"}),
        json!({"cidr": "0.0.0.0/0"}),
        json!({"cidr": "::/0"}),
        json!({"cidr": "10.0.0.0/32"}),
        json!({"cidr": "10.0.0.0/8", "dnsServers": ["10.0.0.2", "fd00::2"], "domain": "lab.example", "mtu": 9000}),
        json!({"cidr": "10.0.0.0/8", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "UDP"}]}),
        json!({"cidr": "10.0.0.0/8", "subnets": [{"name": "front", "cidr": "10.1.0.0/16"}]}),
    ]
}

/// Specs that no supported server takes, each with the field that the refusal must name.
fn bad() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"cidr": "nonsense"}), "spec.cidr"),
        (json!({"cidr": "300.1.1.0/24"}), "spec.cidr"),
        (json!({"cidr": ""}), "spec.cidr"),
        (json!({"cidr": 42}), "spec.cidr"),
        (json!({"cidr": null}), "cidr"),
        (json!({}), "cidr"),
        (json!({"cidr": "10.0.0.0"}), "spec.cidr"),
        (json!({"cidr": "10.0.0.0/33"}), "spec.cidr"),
        (json!({"cidr": "10.0.0.0/08"}), "spec.cidr"),
        (json!({"cidr": "010.0.0.0/8"}), "spec.cidr"),
        (json!({"cidr": "10.0.0/8"}), "spec.cidr"),
        (json!({"cidr": "fd00::/129"}), "spec.cidr"),
        (json!({"cidr": "fd00::1::/64"}), "spec.cidr"),
        (json!({"cidr": "::ffff:10.0.0.0/104"}), "spec.cidr"),
        (json!({"cidr": " 10.0.0.0/8"}), "spec.cidr"),
        (json!({"cidr": "10.0.0.0/8\n"}), "spec.cidr"),
        (json!({"cidr": "1e3"}), "spec.cidr"),
        (json!({"cidr": "10.0.0.0/8", "gateway": "nonsense"}), "spec.gateway"),
        (json!({"cidr": "10.0.0.0/8", "gateway": ""}), "spec.gateway"),
        (json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.01"}), "spec.gateway"),
        (json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1/8"}), "spec.gateway"),
        (json!({"cidr": "fe80::/10", "gateway": "fe80::1%eth0"}), "spec.gateway"),
        (json!({"cidr": "10.0.0.0/8", "dnsServers": ["10.0.0.2", "10.0.0.2"]}), "spec.dnsServers"),
        (json!({"cidr": "10.0.0.0/8", "dnsServers": ["dns.example"]}), "spec.dnsServers"),
        (json!({"cidr": "10.0.0.0/8", "domain": "Lab.example"}), "spec.domain"),
        (json!({"cidr": "10.0.0.0/8", "mtu": 10}), "spec.mtu"),
        (json!({"cidr": "10.0.0.0/8", "mtu": "1500"}), "spec.mtu"),
        (json!({"cidr": "10.0.0.0/8", "ports": []}), "spec.ports"),
        (json!({"cidr": "10.0.0.0/8", "ports": [{"name": "a", "port": 0}]}), "spec.ports[0].port"),
        (json!({"cidr": "10.0.0.0/8", "ports": [{"name": "A", "port": 1}]}), "spec.ports[0].name"),
        (json!({"cidr": "10.0.0.0/8", "ports": [{"port": 1}]}), "spec.ports[0].name"),
        (
            json!({"cidr": "10.0.0.0/8", "ports": [{"name": "a", "port": 1, "protocol": "tcp"}]}),
            "spec.ports[0].protocol",
        ),
        (json!({"cidr": "10.0.0.0/8", "ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}), "spec.ports[1]"),
        (json!({"cidr": "10.0.0.0/8", "subnets": [{"name": "a", "cidr": "10.0.0.0"}]}), "spec.subnets[0].cidr"),
    ]
}

fn takes_the_good_and_refuses_the_bad(space: &Space<'_>) {
    for (index, spec) in good().into_iter().enumerate() {
        space.create(network(&format!("good-{index}"), spec));
    }
    for (index, (spec, field)) in bad().into_iter().enumerate() {
        let refused = match space.try_create(network(&format!("bad-{index}"), spec.clone())) {
            Ok(object) => panic!("{spec} was taken: {object:#}"),
            Err(refused) => refused,
        };
        assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"), "{spec}: {refused}");
        // Old servers leave out which element of a list it is.
        let without_index = field.split('[').next().unwrap_or_default();
        assert!(refused.message.contains(field) || refused.message.contains(without_index), "{spec}: {refused}");
    }
}

#[test]
fn the_server_itself_takes_good_networks_and_refuses_bad_ones() {
    takes_the_good_and_refuses_the_bad(&Space::new());
}

#[test]
fn a_port_without_a_protocol_is_tcp() {
    let space = Space::new();
    let object = space.create(network("ports", json!({"cidr": "10.0.0.0/8", "ports": [{"name": "a", "port": 80}]})));
    assert_eq!(object["spec"]["ports"], json!([{"name": "a", "port": 80, "protocol": "TCP"}]));
}

#[test]
fn kubectl_refuses_what_the_server_refuses_and_says_why() {
    let space = Space::new();
    for (value, said) in [("nonsense", "must be of type cidr"), ("\"\"", "must be of type cidr"), ("42", "spec.cidr")] {
        let text = format!(
            "apiVersion: samplecrd.k8s.io/v1\nkind: Network\nmetadata: {{name: bad}}\nspec: {{cidr: {value}}}\n"
        );
        let (done, output) = space.kubectl(&["apply", "-f", "-"], &text);
        assert!(!done && output.contains(said), "{value}: {output}");
    }
}

#[test]
fn kubectl_shows_networks_in_columns_under_their_short_name_and_their_category() {
    let space = Space::new();
    let spec = json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"});
    let object = space.create(network("example-network", spec));
    let now = object["metadata"]["creationTimestamp"].clone();
    let status = json!({"status": {"childrenReady": "2/3", "conditions": [{"type": "Ready", "status": "False",
        "reason": "Waiting", "message": "waits", "lastTransitionTime": now}]}});
    let path = format!("{}/status", NETWORKS.one(&space.name, "example-network"));
    space.plane.call("PATCH", &path, crate::support::control_plane::Body::MergePatch(&status)).expect("write a status");
    for name in ["networks", "network", "nw", "samplecrd"] {
        let (done, output) = space.kubectl(&["get", name], "");
        let rows: Vec<Vec<_>> = output.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(done, "{output}");
        let rows = &rows[rows.len() - 2..];
        assert_eq!(rows[0], ["NAME", "CIDR", "GATEWAY", "READY", "CHILDREN", "AGE"], "{output}");
        assert_eq!(rows[1][..5], ["example-network", "192.168.0.0/16", "192.168.0.1", "False", "2/3"], "{output}");
    }
    let (_, output) = space.kubectl(&["get", "all"], "");
    assert!(!output.contains("example-network"), "`all` is not for custom resources: {output}");
}

#[test]
fn every_field_is_explained() {
    fn walk(path: &str, schema: &Value) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            // Three words would only repeat the name of these.
            let plain = ["apiVersion", "kind", "metadata"].contains(&name.as_str());
            let place = format!("{path}.{name}");
            let in_condition = place.starts_with(".status.conditions[]") || place.starts_with(".status.children[]");
            assert!(plain || in_condition || field["description"].is_string(), "{place} has no description");
            walk(&place, field);
            walk(&format!("{place}[]"), &field["items"]);
        }
    }
    let text = std::fs::read_to_string(crate::support::control_plane::repository().join("crds/networks.yaml"));
    let crd: Value = serde_saphyr::from_str(&text.expect("the CRD")).expect("the CRD is YAML");
    let version = &crd["spec"]["versions"][0];
    walk("", &version["schema"]["openAPIV3Schema"]);
    assert!(!crd.to_string().contains("x-kubernetes-validations"), "kubectl refuses it against 1.21");
    // `kubectl apply` keeps a copy of the object in an annotation, and those may have 256 KiB.
    assert!(crd.to_string().len() < 64 * 1024);
}

#[test]
fn the_crd_installs_on_1_21_and_holds_the_same_there() {
    if std::env::var_os("KUBEBUILDER_ASSETS").is_some() {
        return; // one version is all there is
    }
    let plane = ControlPlane::start(&["--version", "v1.21.6"]);
    let (done, output) = plane.kubectl(&["apply", "-f", "crds/networks.yaml"], "");
    assert!(done, "{output}");
    takes_the_good_and_refuses_the_bad(&Space::on(&plane));
}
