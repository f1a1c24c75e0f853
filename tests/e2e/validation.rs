//! What the schema cannot refuse, the operator does: the children stay as they are and the Network says why.

use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, ENDPOINT_SLICES, NETWORKS, SERVICES, Space, condition, network};

/// Specs that cannot be used, and what the message must name.
fn bad() -> Vec<(Value, Vec<&'static str>)> {
    vec![
        (json!({"cidr": "192.168.0.0/16", "gateway": "10.0.0.1"}), vec!["10.0.0.1", "192.168.0.0/16", "outside"]),
        (json!({"cidr": "fd00:10::/64", "gateway": "192.168.0.1"}), vec!["192.168.0.1", "fd00:10::/64", "IPv6"]),
        (
            json!({"cidr": "fd00:10::/64", "gateway": "FD00:10:0:0::1"}),
            vec!["FD00:10:0:0::1", "fd00:10::/64", "fd00:10::1", "canonical"],
        ),
    ]
}

#[test]
fn a_network_that_cannot_be_used_gets_no_children_and_says_why() {
    let space = Space::new();
    let operator = space.operator().start();
    for (index, (spec, words)) in bad().into_iter().enumerate() {
        let name = format!("bad-{index}");
        space.create(network(&name, spec.clone()));
        let ready = space.until_condition(&name, "False", "InvalidSpec");
        let message = ready["message"].as_str().unwrap_or_default();
        for word in words {
            assert!(message.contains(word), "no `{word}` in: {message}");
        }
        let object = space.get(NETWORKS, &name);
        assert_eq!(condition(&object, "Stalled").map(|stalled| &stalled["status"]), Some(&json!("True")));
        operator.until_log(&format!("/{name}: InvalidSpec: "));
    }
    assert!(space.children().is_empty(), "{:?}", space.children());
}

#[test]
fn children_stay_untouched_while_their_network_is_wrong_and_follow_once_it_is_right() {
    let space = Space::new();
    let _operator = space.operator().start();
    let good = json!({"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"});
    space.create(network("example-network", good.clone()));
    space.until_ready("example-network");
    let children = || {
        [
            space.get(CONFIG_MAPS, "example-network-network"),
            space.get(SERVICES, "example-network-gateway"),
            space.get(ENDPOINT_SLICES, "example-network-gateway"),
        ]
    };
    let before = children();
    let audit = space.audit();
    for (spec, _) in bad() {
        space.change(NETWORKS, "example-network", json!({"spec": spec}));
        space.until_condition("example-network", "False", "InvalidSpec");
    }
    assert_eq!(children(), before);
    let writes: Vec<_> = audit.writes().into_iter().filter(|write| write.resource != "networks/status").collect();
    assert_eq!(writes, [], "no write but to the status");

    space.change(NETWORKS, "example-network", json!({"spec": {"cidr": "192.168.0.0/24", "gateway": "192.168.0.1"}}));
    space.until_ready("example-network");
    assert_eq!(space.get(CONFIG_MAPS, "example-network-network")["data"]["cidr"], "192.168.0.0/24");
    let object = space.get(NETWORKS, "example-network");
    assert_eq!(condition(&object, "Stalled"), None, "nothing is left to mend");
}
