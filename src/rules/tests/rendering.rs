//! What the rules make of a Network.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::Observed;
use super::{network, outcome, program, render};

const CONFIG: &str = r#"
  validations:
    - rule: self.spec.cidr != ''
      message: the cidr is empty
  variables:
    title: self.metadata.name + '-network'
  resources:
    - id: config
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${variables.title}"}
        data:
          cidr: ${self.spec.cidr}
          gateway: ${self.spec.?gateway}
          absent: ${self.spec.?nothing}
          text: "in ${self.metadata.namespace} there are ${size(self.spec.subnets)}, $${not.this}"
      patches:
        - {op: add, path: /data/dns, value: "${self.spec.cidr}", when: has(self.spec.gateway)}
    - id: gateway
      when: has(self.spec.gateway)
      manifest:
        apiVersion: v1
        kind: Service
        metadata: {name: "${self.metadata.name}-gateway"}
        spec: {clusterIP: None}
      readyWhen: has(resource.spec.clusterIP)
    - id: subnet
      forEach: {subnet: self.spec.subnets}
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}-${subnet.name}"}
        data: {size: "${string(subnet.size)}", gateway: "${resources.gateway.spec.clusterIP}"}
  status:
    gatewayIP: ${resources.?gateway.?spec.?clusterIP}
"#;

#[test]
fn a_network_becomes_its_children() {
    let rendered = render(CONFIG);
    assert_eq!(rendered.invalid, []);
    assert_eq!(
        outcome(&rendered),
        [
            (
                "config".to_owned(),
                json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "example-network"},
                    "data": {
                        "cidr": "192.168.0.0/16",
                        "gateway": "192.168.0.1",
                        "text": "in default there are 2, ${not.this}",
                        "dns": "192.168.0.0/16",
                    },
                }),
            ),
            (
                "gateway".to_owned(),
                json!({
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "example-gateway"},
                    "spec": {"clusterIP": "None"},
                }),
            ),
            ("subnet[a]".to_owned(), json!({"waiting": ["gateway"]})),
            ("subnet[b]".to_owned(), json!({"waiting": ["gateway"]})),
        ]
    );
}

#[test]
fn a_child_that_was_waited_for_gives_its_values_and_the_status() {
    let observed = Observed {
        resources: BTreeMap::from([(
            "gateway".to_owned(),
            BTreeMap::from([(String::new(), json!({"spec": {"clusterIP": "10.0.0.7"}}))]),
        )]),
    };
    let program = program(CONFIG);
    let rendered = program.render(&network(), &observed);
    let subnet = outcome(&rendered).pop().expect("a subnet");
    assert_eq!(subnet.1["data"], json!({"size": "2", "gateway": "10.0.0.7"}));
    assert_eq!(serde_json::Value::Object(rendered.status), json!({"gatewayIP": "10.0.0.7"}));
    assert_eq!(program.reads()["gateway"], [["spec", "clusterIP"]]);
}
