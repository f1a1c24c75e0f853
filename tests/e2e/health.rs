//! `/livez` and `/readyz` on the operator's own port.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::support::{ControlPlane, NETWORKS, Operator, Space, condition, ensure, eventually, network, within};

const ANY_PORT: &str = "--health-address=127.0.0.1:0";

/// Status code and body.
fn get(operator: &Operator, path: &str) -> (u16, String) {
    let line = operator.until_log("health at http://");
    let address = line.rsplit("http://").next().expect("an address").trim().to_owned();
    let mut stream = TcpStream::connect(&address).unwrap_or_else(|error| panic!("{address}: {error}"));
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("set a timeout");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("ask");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status code");
    (code, body.to_owned())
}

fn until_ready(operator: &Operator) {
    eventually("ready", || {
        let answer = get(operator, "/readyz");
        ensure(answer == (200, "ok".to_owned()), format!("{answer:?}"))
    });
}

#[test]
fn an_operator_whose_caches_are_complete_is_live_and_ready() {
    let space = Space::new();
    let operator = space.operator().arguments(&[ANY_PORT]).start();
    until_ready(&operator);
    assert_eq!(get(&operator, "/livez"), (200, "ok".to_owned()));
    let (code, text) = get(&operator, "/readyz?verbose");
    assert_eq!((code, &*text), (200, "[+]caches ok\n[+]watches ok\n[+]rules ok\nreadyz check passed\n"));
    let (code, text) = get(&operator, "/livez?verbose");
    assert_eq!((code, &*text), (200, "[+]reconcile-loop ok\n[+]watches ok\nlivez check passed\n"));
    assert_eq!(get(&operator, "/elsewhere").0, 404);
}

#[test]
fn who_may_not_watch_is_live_and_not_ready_until_he_may() {
    let space = Space::without_rights(ControlPlane::shared());
    let operator = space.operator().arguments(&[ANY_PORT]).start_unready();
    eventually("the missing right", || {
        let (code, text) = get(&operator, "/readyz");
        ensure(code == 503 && text.contains("not allowed to list and watch networks"), &text)?;
        ensure(text.contains("[-]caches failed: not listed yet: "), &text)?;
        ensure(text.contains("`network-operator rbac`"), &text)
    });
    assert_eq!(get(&operator, "/livez").0, 200);
    space.grant(&Space::shipped_rights());
    within(Duration::from_mins(1), "ready", || {
        let (code, text) = get(&operator, "/readyz");
        ensure(code == 200, &text)
    });
}

#[test]
fn broken_rules_make_it_unready_though_it_goes_on_with_the_last_good_ones() {
    const RULES: &str = r#"apiVersion: rules.samplecrd.k8s.io/v1alpha1
kind: RuleSet
metadata: {name: one}
spec:
  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}
  resources:
    - id: config
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}"}, data: {cidr: "${self.spec.cidr}"}}
"#;
    let space = Space::new();
    let operator = space.operator().arguments(&[ANY_PORT]).rule_text(RULES).start();
    until_ready(&operator);
    let file = space.folder.path().join("rules.yaml");
    std::fs::write(&file, RULES.replace("spec.cidr", "spec.cird")).expect("break the rules");
    eventually("the broken rule", || {
        let (code, text) = get(&operator, "/readyz");
        let place = format!("{}:8:", file.display());
        ensure(code == 503 && text.contains("[-]rules failed: ") && text.contains(&place), &text)?;
        ensure(text.contains("cird") && text.contains("[+]caches ok") && text.contains("[+]watches ok"), &text)
    });
    assert_eq!(get(&operator, "/livez").0, 200);
    space.create(network("n", json!({"cidr": "10.0.0.0/24"})));
    space.until(NETWORKS, "n", |object| {
        let ready = condition(object, "Ready").is_some_and(|ready| ready["status"] == "True");
        ensure(ready, "the last good rules are not at work")
    });
    std::fs::write(&file, RULES).expect("mend the rules");
    until_ready(&operator);
}

#[test]
fn a_follower_is_ready() {
    let space = Space::new();
    let elect = [ANY_PORT, "--leader-elect=true", "--lease-namespace", &space.name];
    let leader = space.operator().arguments(&elect).start();
    until_ready(&leader);
    let follower = space.operator().arguments(&elect).start();
    until_ready(&follower);
    space.create(network("n", json!({"cidr": "10.0.0.0/24"})));
    space.until(NETWORKS, "n", |object| ensure(condition(object, "Ready").is_some(), "not seen yet"));
    assert_eq!(get(&follower, "/livez").0, 200, "what waits in a follower's queue is not stuck");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let space = Space::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let flag = format!("--health-address={}", taken.local_addr().expect("an address"));
    let mut operator = space.operator().arguments(&[&flag]).start_unready();
    assert!(!operator.exit(Duration::from_secs(20)).success());
    let log = operator.log();
    assert!(log.contains("cannot listen on 127.0.0.1:") && log.contains("`--health-address`"), "{log}");
}
