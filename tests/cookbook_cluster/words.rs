//! The table of the six `on…` words in `rules/README.md` is true, as far as no recipe shows it.

use serde_json::{Value, json};

use crate::support::operator::Operator;
use crate::support::{CONFIG_MAPS, NETWORKS, Space, condition, ensure, network};

/// A `ConfigMap` with a word, for a Network that has a gateway.
fn with(space: &Space<'static>, word: &str) -> Operator {
    let rules = format!(
        r#"
apiVersion: rules.samplecrd.k8s.io/v1alpha1
kind: RuleSet
metadata: {{name: words}}
spec:
  for: {{apiVersion: samplecrd.k8s.io/v1, kind: Network}}
  resources:
    - id: config
      {word}
      when: has(self.spec.gateway)
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {{name: "${{self.metadata.name}}-config"}}
        immutable: ${{self.spec.?mtu.optMap(mtu, mtu == 1400)}}
        data: {{cidr: "${{self.spec.cidr}}", gateway: "${{self.spec.gateway}}"}}
"#
    );
    let operator = space.operator().rule_text(&rules).start();
    space.create(network("example", json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1"})));
    space.until_ready("example");
    operator
}

/// Waits until the child's data are these.
fn until_data(space: &Space<'_>, data: &Value) {
    space.until(CONFIG_MAPS, "example-config", |child| ensure(child["data"] == *data, format!("not {data}")));
}

#[test]
fn with_on_drift_report_an_edit_stays_until_the_next_edit_of_the_network_and_a_deleted_child_comes_back() {
    let space = Space::new();
    let _operator = with(&space, "onDrift: report");
    space.change(CONFIG_MAPS, "example-config", json!({"data": {"cidr": "by hand"}}));
    space.until_condition("example", "False", "Drifted");
    until_data(&space, &json!({"cidr": "by hand", "gateway": "10.0.0.1"}));
    space.change(NETWORKS, "example", json!({"spec": {"gateway": "10.0.0.2"}}));
    until_data(&space, &json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.2"}));
    space.until_ready("example");
    let uid = space.get(CONFIG_MAPS, "example-config")["metadata"]["uid"].clone();
    space.delete(CONFIG_MAPS, "example-config");
    space.until(CONFIG_MAPS, "example-config", |child| ensure(child["metadata"]["uid"] != uid, "not deleted yet"));
    space.until_ready("example");
}

#[test]
fn with_on_remove_keep_a_child_outlives_its_condition_and_goes_with_its_network() {
    let space = Space::new();
    let _operator = with(&space, "onRemove: keep");
    space.change(NETWORKS, "example", json!({"spec": {"gateway": null}}));
    space.until_ready("example");
    let kept = space.get(CONFIG_MAPS, "example-config");
    assert_eq!(kept["metadata"]["ownerReferences"][0]["name"], "example");
    space.change(CONFIG_MAPS, "example-config", json!({"data": {"cidr": "by hand"}}));
    space.change(NETWORKS, "example", json!({"spec": {"cidr": "10.0.0.0/9"}}));
    space.until_ready("example");
    until_data(&space, &json!({"cidr": "by hand", "gateway": "10.0.0.1"}));
    space.delete(NETWORKS, "example");
    space.until_gone(CONFIG_MAPS, "example-config");
}

/// Another manager takes a field of the child by server-side apply.
fn take_cidr(space: &Space<'_>) {
    let taken = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "example-config"},
        "data": {"cidr": "theirs"}});
    space.apply(&taken, "another");
}

#[test]
fn with_on_conflict_yield_another_managers_field_is_left_to_it_and_the_message_names_both() {
    let space = Space::new();
    let _operator = with(&space, "onConflict: yield");
    take_cidr(&space);
    space.change(NETWORKS, "example", json!({"spec": {"gateway": "10.0.0.2"}}));
    until_data(&space, &json!({"cidr": "theirs", "gateway": "10.0.0.2"}));
    space.until(NETWORKS, "example", |object| {
        let message = condition(object, "Ready").map(|ready| ready["message"].to_string()).unwrap_or_default();
        ensure(message.contains("data.cidr") && message.contains("another"), message)
    });
    space.until_ready("example");
}

#[test]
fn without_a_word_another_managers_field_is_taken_back() {
    let space = Space::new();
    let _operator = with(&space, "onConflict: force");
    take_cidr(&space);
    until_data(&space, &json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1"}));
}

#[test]
fn without_a_word_a_change_that_cannot_be_made_is_reported_and_the_child_stays() {
    let space = Space::new();
    let _operator = with(&space, "onImmutable: report");
    space.change(NETWORKS, "example", json!({"spec": {"mtu": 1400}}));
    space.until_ready("example");
    space.change(NETWORKS, "example", json!({"spec": {"cidr": "10.0.0.0/9"}}));
    let ready = space.until_condition("example", "False", "ImmutableField");
    assert!(ready["message"].as_str().is_some_and(|message| message.contains("data")), "{ready}");
    assert!(condition(&space.get(NETWORKS, "example"), "Stalled").is_some());
    until_data(&space, &json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1"}));
}
