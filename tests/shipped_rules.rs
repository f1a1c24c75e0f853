//! The rules that are shipped, without a cluster: they are right, and a Network becomes what it should.

#![expect(clippy::panic, reason = "a rule set that gives no child has failed")]

use std::collections::BTreeMap;
use std::path::Path;

use network_operator::diagnostic::{Diagnostic, SourceFile};
use network_operator::rules::schema::builtin::builtin;
use network_operator::rules::schema::crd::CrdSchema;
use network_operator::rules::{ChildState, Observed, Program, Rendered, check};
use serde_json::{Value, json};

fn text(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

fn said(faults: &[Diagnostic]) -> String {
    faults.iter().map(|fault| format!("{}: {}", fault.at, fault.message)).collect::<Vec<_>>().join("\n")
}

fn program() -> Program {
    let file = SourceFile::new("rules/network.yaml", text("rules/network.yaml"));
    let (mut programs, faults) = Program::load(&[file]);
    assert!(faults.is_empty(), "{}", said(&faults));
    programs.pop().expect("a rule set")
}

fn render(name: &str, spec: &Value) -> Rendered {
    let network = json!({"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network",
        "metadata": {"name": name, "namespace": "default", "uid": "1"}, "spec": spec});
    program().render(&network, &Observed::default())
}

/// The children by their resource's id.
fn children(name: &str, spec: &Value) -> BTreeMap<String, Value> {
    let rendered = render(name, spec);
    let faults: Vec<_> = rendered.invalid.iter().chain(&rendered.status_faults).map(|fault| &fault.message).collect();
    assert!(faults.is_empty(), "{faults:?}");
    let manifests = rendered.children.into_iter().map(|child| match child.state {
        ChildState::Desired(manifest) => (child.id, manifest),
        other => panic!("{}: {other:?}", child.id),
    });
    manifests.collect()
}

/// What is said of a Network that cannot be used.
fn refusal(spec: &Value) -> Vec<String> {
    let rendered = render("example-network", spec);
    assert!(rendered.children.is_empty());
    rendered.invalid.into_iter().map(|fault| fault.message).collect()
}

#[test]
fn they_pass_the_check_without_a_warning() {
    let file = SourceFile::new("rules/network.yaml", text("rules/network.yaml"));
    let crd: Value = serde_saphyr::from_str(&text("crds/networks.yaml")).expect("the CRD is YAML");
    let crds = CrdSchema::read(&crd).expect("the CRD has a schema");
    let (_, found) = check::files(&[file], &crds, builtin());
    assert!(found.is_empty(), "{}", said(&found));
}

#[test]
fn a_network_becomes_a_config_map_a_service_and_an_endpoint_slice() {
    let spec = json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"});
    insta::assert_json_snapshot!(children("example-network", &spec));
}

#[test]
fn an_ipv6_network_with_everything_becomes_the_same_and_more() {
    let spec = json!({
        "cidr": "fd00:10::/64", "gateway": "fd00:10::1", "domain": "lab.example", "mtu": 9000,
        "dnsServers": ["fd00:10::53", "fd00:10::54"],
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "http", "port": 80, "protocol": "TCP"}],
        "subnets": [{"name": "front", "cidr": "fd00:10::/80"}, {"name": "back", "cidr": "fd00:10:0:0:1::/80"}],
    });
    insta::assert_json_snapshot!(children("six", &spec));
}

#[test]
fn a_network_without_a_gateway_is_a_config_map_only() {
    let children = children("example-network", &json!({"cidr": "10.0.0.0/8"}));
    assert_eq!(children.keys().collect::<Vec<_>>(), ["config"]);
    assert_eq!(children["config"]["data"].get("gateway"), None);
}

#[test]
fn the_status_says_the_gateways_name_and_the_prefix_length() {
    let status = render("example-network", &json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"})).status;
    assert_eq!(Value::Object(status), json!({"gatewayName": "example-network-gateway", "prefixLength": 16}));
    let status = render("example-network", &json!({"cidr": "192.168.0.0/16"})).status;
    assert_eq!(Value::Object(status), json!({"prefixLength": 16}));
}

#[test]
fn what_cannot_be_used_is_refused_with_every_value_named() {
    let refusals = [
        (json!({"cidr": "192.168.0.0/16", "gateway": "10.0.0.1"}), "gateway 10.0.0.1 is outside 192.168.0.0/16"),
        (
            json!({"cidr": "fd00:10::/64", "gateway": "192.168.0.1"}),
            "gateway 192.168.0.1 and cidr fd00:10::/64 are of different families (one is IPv4, the other IPv6)",
        ),
        (
            json!({"cidr": "fd00:10::/64", "gateway": "FD00:10:0::1"}),
            "gateway FD00:10:0::1 of network fd00:10::/64 is not in canonical form; write fd00:10::1",
        ),
        (
            json!({"cidr": "192.168.3.4/16"}),
            "cidr 192.168.3.4/16 is not the network itself in canonical form; write 192.168.0.0/16",
        ),
        (
            json!({"cidr": "FD00:10::/64"}),
            "cidr FD00:10::/64 is not the network itself in canonical form; write fd00:10::/64",
        ),
        (
            json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.0"}),
            "gateway 10.0.0.0 is the network address or the broadcast address of 10.0.0.0/8",
        ),
        (
            json!({"cidr": "10.0.0.0/8", "gateway": "10.255.255.255"}),
            "gateway 10.255.255.255 is the network address or the broadcast address of 10.0.0.0/8",
        ),
        (
            json!({"cidr": "10.0.0.0/8", "ports": [{"name": "a", "port": 1, "protocol": "TCP"}, {"name": "b", "port": 1, "protocol": "TCP"}]}),
            "ports must differ in number or protocol: a is 1/TCP, b is 1/TCP",
        ),
        (
            json!({"cidr": "10.0.0.0/16", "subnets": [{"name": "in", "cidr": "10.0.3.0/24"}, {"name": "out", "cidr": "10.1.3.0/24"}]}),
            "outside 10.0.0.0/16: subnet out (10.1.3.0/24)",
        ),
    ];
    for (spec, message) in refusals {
        assert_eq!(refusal(&spec), [message], "{spec}");
    }
}

#[test]
fn a_point_to_point_network_and_a_single_host_may_have_a_gateway() {
    for (cidr, gateway) in [("10.0.0.0/31", "10.0.0.0"), ("10.0.0.7/32", "10.0.0.7"), ("fd00::/64", "fd00::")] {
        assert_eq!(children("n", &json!({"cidr": cidr, "gateway": gateway})).len(), 3);
    }
}

#[test]
fn every_name_that_a_network_may_have_gives_names_that_its_children_may_have() {
    let names = [
        "a",
        "0",
        "0.lab",
        "net-0-lab",
        "a.b",
        "a-b",
        &"n".repeat(63),
        &"n".repeat(253),
        &format!("a.{}", "b".repeat(251)),
    ];
    let spec = json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"});
    let mut services = std::collections::BTreeSet::new();
    for name in names {
        let children = children(name, &spec);
        let name_of = |id: &str| children[id]["metadata"]["name"].as_str().expect("a name").to_owned();
        let service = name_of("gateway");
        assert!(service.len() <= 63, "{service}");
        assert!(service.starts_with(|c: char| c.is_ascii_lowercase()), "{service}");
        assert!(service.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{service}");
        assert_eq!(name_of("endpoints"), service);
        assert_eq!(children["endpoints"]["metadata"]["labels"]["kubernetes.io/service-name"], service.as_str());
        assert!(name_of("config").len() <= 253);
        assert!(services.insert(service.clone()), "two Networks share {service}");
    }
    assert_eq!(children("example-network", &spec)["gateway"]["metadata"]["name"], "example-network-gateway");
}
