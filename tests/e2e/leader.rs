//! Several operators, one writer.

use std::time::Duration;

use serde_json::json;

use crate::support::resource::NETWORKS;
use crate::support::space::{Space, network};
use crate::support::{ensure, within};

const ARGUMENTS: &[&str] =
    &["--leader-elect=true", "--lease-duration=6", "--lease-renew-deadline=3", "--lease-retry=0.5", "--call-timeout=2"];

fn leads(operator: &crate::support::operator::Operator) -> bool {
    operator.log().contains("leading:")
}

#[test]
fn of_two_operators_one_writes_and_the_other_takes_over_when_it_is_killed() {
    let space = Space::new();
    let first = space.operator().arguments(ARGUMENTS).start();
    first.until_log("leading:");
    let second = space.operator().arguments(ARGUMENTS).start();
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    assert!(!leads(&second), "{}", second.log());
    assert!(!second.log().contains("created"));

    first.kill();
    space.create(network("b", json!({"cidr": "10.0.0.0/8"})));
    within(Duration::from_secs(15), "the second takes over", || ensure(leads(&second), second.log()));
    space.until_ready("b");
    assert_eq!(second.lines("created").len(), 1, "what the first had done is not done again: {}", second.log());
}

#[test]
fn a_leader_that_is_told_to_stop_gives_the_lease_back_at_once() {
    let space = Space::new();
    let first = space.operator().arguments(ARGUMENTS).start();
    first.until_log("leading:");
    let second = space.operator().arguments(ARGUMENTS).start();
    assert!(first.terminate().success());
    within(Duration::from_secs(2), "the second takes over", || ensure(leads(&second), second.log()));
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
}

#[test]
fn a_leader_that_was_paused_longer_than_its_lease_does_not_write_when_it_wakes() {
    let space = Space::new();
    let first = space.operator().arguments(ARGUMENTS).start();
    first.until_log("leading:");
    let second = space.operator().arguments(ARGUMENTS).start();
    first.signal("STOP");
    within(Duration::from_secs(15), "the second takes over", || ensure(leads(&second), second.log()));
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    first.signal("CONT");
    first.until_log("not leading any more");
    space.change(NETWORKS, "a", json!({"spec": {"cidr": "10.0.0.0/16"}}));
    space.until(NETWORKS, "a", |object| {
        ensure(object["status"]["observedGeneration"] == 2, format!("{}", object["status"]))
    });
    for did in ["created", "changed", "repaired"] {
        assert!(first.lines(did).is_empty(), "the first wrote after it woke: {}", first.log());
    }
}
