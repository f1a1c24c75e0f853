//! Names that a Network may have and that its children may not: a clear answer or legal names, never a crash loop.

use serde_json::json;

use crate::support::{CONFIG_MAPS, ENDPOINT_SLICES, SERVICES, Space, network};

fn spec() -> serde_json::Value {
    json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"})
}

#[test]
fn a_network_with_the_longest_name_there_is_has_children() {
    let space = Space::new();
    let mut operator = space.operator().start();
    let names = [format!("{}-one", "n".repeat(249)), format!("{}-two", "n".repeat(249))];
    for name in &names {
        assert_eq!(name.len(), 253);
        space.create(network(name, spec()));
    }
    for name in &names {
        space.until_ready(name);
    }
    assert_eq!(space.children().len(), 6, "the two share nothing: {:?}", space.children());
    for config in space.list(CONFIG_MAPS) {
        if let Some(label) = config["metadata"]["labels"]["samplecrd.k8s.io/network"].as_str() {
            assert!(label.len() <= 63, "{label}");
            let owner = config["metadata"]["ownerReferences"][0]["name"].as_str();
            assert!(names.iter().any(|name| Some(name.as_str()) == owner), "the whole name is in the owner reference");
        }
    }
    operator.assert_healthy();
}

#[test]
fn a_network_with_dots_and_one_that_begins_with_a_digit_have_children() {
    let space = Space::new();
    let mut operator = space.operator().start();
    for name in ["lab.example.org", "lab-example.org", "0", "1.2.3.4"] {
        space.create(network(name, spec()));
        space.until_ready(name);
        space.get(CONFIG_MAPS, &format!("{name}-network"));
    }
    assert_eq!(space.children().len(), 12, "{:?}", space.children());
    // A Service and its slice find each other by name.
    for slice in space.list(ENDPOINT_SLICES) {
        let service = slice["metadata"]["labels"]["kubernetes.io/service-name"].as_str().expect("a label");
        space.get(SERVICES, service);
    }
    operator.assert_healthy();
}

#[test]
fn a_name_that_no_child_can_have_is_said_on_the_network_and_the_other_children_are_made() {
    let space = Space::new();
    let mut operator = space
        .operator()
        .rule_text(
            r#"
apiVersion: rules.samplecrd.k8s.io/v1alpha1
kind: RuleSet
metadata: {name: plain}
spec:
  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}
  resources:
    - id: config
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}"}
        data: {cidr: "${self.spec.cidr}"}
    - id: gateway
      manifest:
        apiVersion: v1
        kind: Service
        metadata: {name: "${self.metadata.name}-gateway"}
        spec: {clusterIP: None, ports: [{name: http, port: 80, protocol: TCP}]}
"#,
        )
        .start();
    let long = "n".repeat(60);
    for name in ["lab.example", long.as_str()] {
        space.create(network(name, spec()));
        let ready = space.until(crate::support::NETWORKS, name, |object| {
            let ready = crate::support::condition(object, "Ready").ok_or("no condition")?;
            crate::support::ensure(ready["status"] == "False", "not yet")?;
            Ok(ready.clone())
        });
        let message = ready["message"].as_str().unwrap_or_default();
        assert!(message.contains(&format!("{name}-gateway")), "{message}");
        space.until(CONFIG_MAPS, name, |_| Ok(()));
    }
    operator.assert_healthy();
}
