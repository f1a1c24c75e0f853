//! Values arrive as they were written: byte for byte, whatever YAML makes of such texts elsewhere.

use serde_json::{Map, Value, json};

use crate::support::control_plane::Body;
use crate::support::{CONFIG_MAPS, Space, network};

/// Texts that some YAML reader or writer, somewhere, takes for something else.
const BENT: [&str; 36] = [
    "on",
    "off",
    "yes",
    "no",
    "y",
    "n",
    "~",
    "null",
    "true",
    "0123",
    "0o17",
    "1e3",
    "0x10",
    "1_000",
    ".5",
    "1:20",
    "-0",
    "2.16e+07",
    "9007199254740993",
    "2001-01-01",
    "\"",
    "'",
    "",
    " ",
    " lead",
    "trail ",
    "a\nb",
    "a\n",
    "\t",
    "a: b",
    "# x",
    "- x",
    "{a",
    "\u{1F600}",
    "\u{feff}x",
    "${not.an.expression}",
];

#[test]
fn texts_that_yaml_likes_to_bend_arrive_byte_for_byte_from_the_network() {
    let space = Space::new();
    let _operator = space
        .operator()
        .rule_text(
            r#"
apiVersion: rules.samplecrd.k8s.io/v1alpha1
kind: RuleSet
metadata: {name: bent}
spec:
  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}
  resources:
    - id: config
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}"}
        data: "${self.metadata.annotations}"
"#,
        )
        .start();
    let texts: Map<String, Value> =
        BENT.iter().enumerate().map(|(index, text)| (format!("t{index}"), json!(text))).collect();
    let mut object = network("bent", json!({"cidr": "10.0.0.0/8"}));
    object["metadata"]["annotations"] = Value::Object(texts.clone());
    space.create(object);
    space.until_ready("bent");
    assert_eq!(space.get(CONFIG_MAPS, "bent")["data"], Value::Object(texts));
}

#[test]
fn texts_that_yaml_likes_to_bend_arrive_byte_for_byte_from_the_rules() {
    let space = Space::new();
    // JSON is YAML, and leaves no doubt about what is meant; `${` is written `$${`.
    let texts: Map<String, Value> =
        BENT.iter().enumerate().map(|(index, text)| (format!("t{index}"), json!(text.replace("${", "$${")))).collect();
    let rules = json!({
        "apiVersion": "rules.samplecrd.k8s.io/v1alpha1", "kind": "RuleSet", "metadata": {"name": "bent"},
        "spec": {
            "for": {"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network"},
            "resources": [{"id": "config", "manifest": {"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "${self.metadata.name}"}, "data": texts}}],
        },
    });
    let _operator = space.operator().rule_text(&rules.to_string()).start();
    space.create(network("bent", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("bent");
    let data = space.get(CONFIG_MAPS, "bent")["data"].clone();
    for (index, text) in BENT.iter().enumerate() {
        assert_eq!(data[format!("t{index}")], *text, "{text:?}");
    }
}

#[test]
fn numbers_become_decimal_text_and_keep_every_digit() {
    let space = Space::new();
    let _operator = space
        .operator()
        .rule_text(
            r#"
apiVersion: rules.samplecrd.k8s.io/v1alpha1
kind: RuleSet
metadata: {name: numbers}
spec:
  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}
  resources:
    - id: config
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}"}
        data:
          mtu: "${string(self.spec.mtu)}"
          big: "n=${9007199254740993}"
          million: "${21600000} packets"
"#,
        )
        .start();
    space.create(network("numbers", json!({"cidr": "10.0.0.0/8", "mtu": 9000})));
    space.until_ready("numbers");
    let data = space.get(CONFIG_MAPS, "numbers")["data"].clone();
    assert_eq!(data, json!({"mtu": "9000", "big": "n=9007199254740993", "million": "21600000 packets"}));
}

#[test]
fn a_network_from_the_shipped_rules_is_stored_as_it_was_sent() {
    // What the server stores differently from what it was sent would cost a write after every restart.
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(network(
        "full",
        json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1", "domain": "lab.example", "mtu": 1500,
            "dnsServers": ["10.0.0.2", "10.0.0.3"], "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "UDP"}],
            "subnets": [{"name": "s", "cidr": "10.1.0.0/16"}]}),
    ));
    space.until_ready("full");
    for (resource, name) in [
        (CONFIG_MAPS, "full-network"),
        (crate::support::SERVICES, "full-gateway"),
        (crate::support::ENDPOINT_SLICES, "full-gateway"),
    ] {
        let stored = space.get(resource, name);
        let mut applied = space.get(resource, name);
        for field in ["managedFields", "resourceVersion", "uid", "creationTimestamp"] {
            applied["metadata"].as_object_mut().expect("metadata").remove(field);
        }
        // Applying what is stored, as somebody else and without force, conflicts nowhere and changes no value.
        let path = format!("{}?fieldManager=probe&dryRun=All", resource.one(&space.name, name));
        let answer = space.plane.call("PATCH", &path, Body::Apply(&applied)).expect("no conflict");
        for field in ["data", "spec", "endpoints", "ports", "addressType"] {
            assert_eq!(answer.get(field), stored.get(field));
        }
    }
}
