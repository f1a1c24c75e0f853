//! Trouble outside of the operator: it stays alive, says what is wrong, and goes on when it is over.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::control_plane::{Body, repository};
use crate::support::{CONFIG_MAPS, ControlPlane, NETWORKS, SERVICES, Space, condition, ensure, eventually, network};

fn example() -> Value {
    network("example-network", json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"}))
}

#[test]
fn a_right_that_is_missing_is_named_and_once_it_is_granted_everything_goes_on() {
    let space = Space::without_rights(ControlPlane::shared());
    let mut rights = Space::shipped_rights();
    rights.as_array_mut().expect("rules").retain(|rule| rule["apiGroups"] != json!(["discovery.k8s.io"]));
    let mut looking = rights.clone();
    looking.as_array_mut().expect("rules").push(
        json!({"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list", "watch"]}),
    );
    space.grant(&looking);
    let mut operator = space.operator().start();
    space.create(example());
    let ready = space.until_condition("example-network", "False", "Forbidden");
    let message = ready["message"].as_str().unwrap_or_default();
    for word in ["endpointslices", space.name.as_str(), "rbac"] {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
    space.get(CONFIG_MAPS, "example-network-network");
    space.get(SERVICES, "example-network-gateway");
    operator.assert_healthy();
    space.grant(&Space::shipped_rights());
    space.until_ready("example-network");
}

#[test]
fn rights_that_are_missing_at_the_start_do_not_end_it() {
    let space = Space::without_rights(ControlPlane::shared());
    let mut operator = space.operator().start_unready();
    operator.until_log("networks");
    space.create(example());
    std::thread::sleep(Duration::from_secs(3));
    operator.assert_healthy();
    let log = operator.log();
    assert!(log.contains("list") && log.contains("networks"), "{log}");
    assert!(log.lines().count() < 60, "it does not flood its log: {log}");
    space.grant(&Space::shipped_rights());
    space.until_ready("example-network");
}

#[test]
fn a_crd_that_is_missing_at_the_start_is_waited_for_and_one_that_is_made_again_is_followed() {
    let plane = ControlPlane::start(&[]);
    let space = Space::on(&plane);
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/networks.samplecrd.k8s.io";
    let gone = || eventually("the CRD gone", || ensure(plane.call("GET", crd, Body::None).is_err(), "there"));
    let install = || {
        let file = repository().join("crds/networks.yaml");
        let (done, output) = plane.kubectl(&["apply", "-f", file.to_str().expect("a path")], "");
        assert!(done, "{output}");
        eventually("Networks served", || plane.call("GET", &NETWORKS.all(&space.name), Body::None));
    };
    plane.call("DELETE", crd, Body::None).expect("delete the CRD");
    gone();
    let mut operator = space.operator().start_unready();
    let line = operator.until_log("CRD");
    assert!(line.contains("Network"), "{line}");
    operator.assert_healthy();
    install();
    operator.until_log("caches are in sync");
    space.create(example());
    space.until_ready("example-network");

    plane.call("DELETE", crd, Body::None).expect("delete the CRD");
    gone();
    eventually("the children gone with their Network", || ensure(space.children().is_empty(), "there"));
    install();
    space.create(example());
    space.until_ready("example-network");
    operator.assert_healthy();
}

#[test]
fn a_crd_without_a_status_subresource_is_refused_with_the_fix() {
    let space = Space::new();
    let operator = space
        .operator()
        .rule_text(
            r#"
apiVersion: rules.samplecrd.k8s.io/v1alpha1
kind: RuleSet
metadata: {name: none}
spec:
  for: {apiVersion: v1, kind: ConfigMap}
  resources:
    - id: service
      manifest:
        apiVersion: v1
        kind: Service
        metadata: {name: "${self.metadata.name}"}
        spec: {clusterIP: None}
"#,
        )
        .start_unready();
    let line = operator.until_log("status subresource");
    assert!(line.contains("ConfigMap") && line.contains("subresources"), "{line}");
}

#[test]
fn an_api_server_that_restarts_is_found_again() {
    let plane = ControlPlane::start(&[]);
    let space = Space::on(&plane);
    let mut operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    for command in ["restart kube-apiserver", "kill kube-apiserver", "start kube-apiserver", "restart etcd"] {
        plane.tell(command);
    }
    eventually("the API server answers", || plane.call("GET", &NETWORKS.all(&space.name), Body::None));
    space.change(NETWORKS, "example-network", json!({"spec": {"cidr": "192.168.0.0/24"}}));
    space.until(CONFIG_MAPS, "example-network-network", |object| {
        ensure(object["data"]["cidr"] == "192.168.0.0/24", "not yet")
    });
    space.delete(SERVICES, "example-network-gateway");
    space.until(SERVICES, "example-network-gateway", |_| Ok(()));
    space.until_ready("example-network");
    operator.assert_healthy();
}

#[test]
fn a_child_whose_deletion_hangs_is_named_with_its_finalizer() {
    let space = Space::new();
    let _operator = space.operator().start();
    space.create(example());
    space.until_ready("example-network");
    space.change(CONFIG_MAPS, "example-network-network", json!({"metadata": {"finalizers": ["example.org/hold"]}}));
    space.delete(CONFIG_MAPS, "example-network-network");
    let message = space.until(NETWORKS, "example-network", |object| {
        let ready = condition(object, "Ready").ok_or("no condition")?;
        ensure(ready["status"] == "False", "still ready")?;
        Ok(ready["message"].as_str().unwrap_or_default().to_owned())
    });
    assert!(message.contains("example.org/hold") && message.contains("example-network-network"), "{message}");
    space.change(CONFIG_MAPS, "example-network-network", json!({"metadata": {"finalizers": null}}));
    space.until_ready("example-network");
    assert_eq!(space.get(CONFIG_MAPS, "example-network-network")["metadata"].get("finalizers"), None);
}

#[test]
fn a_child_that_is_too_large_is_said_before_it_is_sent_and_the_others_are_made() {
    let space = Space::new();
    let operator = space
        .operator()
        .rule_text(
            r#"
apiVersion: rules.samplecrd.k8s.io/v1alpha1
kind: RuleSet
metadata: {name: large}
spec:
  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}
  variables:
    kib: "lists.range(1024).map(i, 'x').join('')"
  resources:
    - id: large
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}-large"}
        data: {text: "${lists.range(self.spec.mtu).map(i, variables.kib).join('')}"}
    - id: small
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}-small"}
        data: {text: small}
"#,
        )
        .start();
    let audit = space.audit();
    space.create(network("a", json!({"cidr": "10.0.0.0/8", "mtu": 1100})));
    let message = space.until(NETWORKS, "a", |object| {
        let ready = condition(object, "Ready").ok_or("no condition")?;
        ensure(ready["status"] == "False", "ready")?;
        Ok(ready.clone())
    });
    println!("{message:#}");
    space.get(CONFIG_MAPS, "a-small");
    std::thread::sleep(Duration::from_secs(3));
    let tries = audit.writes().into_iter().filter(|write| write.name == "a-large").count();
    assert!(tries <= 1, "{tries} tries: {}", operator.log());

    space.change(NETWORKS, "a", json!({"spec": {"mtu": 600}}));
    space.until_ready("a");
    assert_eq!(space.get(CONFIG_MAPS, "a-large")["data"]["text"].as_str().map(str::len), Some(600 * 1024));
}

#[test]
fn a_namespace_that_goes_away_does_not_make_it_fight() {
    let space = Space::new();
    let mut operator = space.operator().start();
    for index in 0..5 {
        space.create(network(&format!("n{index}"), json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1"})));
        space.until_ready(&format!("n{index}"));
    }
    let path = format!("/api/v1/namespaces/{}", space.name);
    space.plane.call("DELETE", &path, Body::None).expect("delete the namespace");
    eventually("the namespace gone", || {
        ensure(space.plane.call("GET", &path, Body::None).is_err_and(|refused| refused.code == 404), "there")
    });
    operator.assert_healthy();
    let log = operator.log();
    assert!(log.lines().count() < 200, "it does not flood its log: {} lines", log.lines().count());
}
