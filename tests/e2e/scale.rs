//! Many Networks at once: what they cost is counted at the API server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::control_plane::Body;
use crate::support::{ControlPlane, NETWORKS, Space, condition, ensure, network, within};

/// Requests that are not the operator's: they go away when the count before is taken from the count after.
const METRIC: &str = "apiserver_request_total";

#[test]
fn a_thousand_networks_that_exist_at_the_start_become_ready_with_at_most_eight_requests_each() {
    const COUNT: u32 = 1_000;
    // Everything that this server is asked counts, so no other test may ask it.
    let plane = ControlPlane::start(&[]);
    let space = Space::on(&plane);
    for index in 0..COUNT {
        let (high, low) = (index / 256, index % 256);
        let spec = json!({"cidr": format!("10.{high}.{low}.0/24"), "gateway": format!("10.{high}.{low}.1")});
        space.create(network(&format!("net-{index:04}"), spec));
    }
    let before = plane.metric(METRIC, |_| true);
    let audit = space.audit();
    let mut polls = 0.0;
    let operator = space.operator().start_unready();
    let began = std::time::Instant::now();
    within(std::time::Duration::from_mins(5), "all Networks ready", || {
        polls += 1.0;
        std::thread::sleep(std::time::Duration::from_millis(500));
        let list = plane.call("GET", &NETWORKS.all(&space.name), Body::None).expect("the Networks");
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ready = items.iter().filter(|item| is_ready(item)).count();
        ensure(
            ready == items.len() && ready == 1_000,
            format!("{ready} of {} are ready: {}", items.len(), operator.log()),
        )
    });
    let took = began.elapsed();
    // The garbage collector and others may still be at it.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let total = plane.metric(METRIC, |_| true) - before - polls - 1.0;
    let mut by_kind = BTreeMap::<String, u32>::new();
    for asked in audit.requests() {
        *by_kind.entry(format!("{} {}", asked.verb, asked.resource)).or_default() += 1;
    }
    println!("{COUNT} Networks ready in {took:.1?}; {total} requests in all; the operator's: {by_kind:#?}");
    assert!(total <= f64::from(8 * COUNT), "{total} requests");
    // Servers of old refuse the way in which Services are created elsewhere; a look and a second try are needed there.
    if !plane.said("version").starts_with("v1.2") {
        for kind in ["patch configmaps", "patch services", "patch endpointslices", "patch networks/status"] {
            assert_eq!(by_kind.get(kind), Some(&COUNT), "one each, none wasted: {by_kind:#?}");
        }
        let mine: u32 = by_kind.values().sum();
        assert!(mine < 4 * COUNT + 60, "{by_kind:#?}");
    }
    assert_eq!(space.children().len(), 3 * 1_000);

    // And none of them is touched by a restart.
    assert!(operator.terminate().success());
    let audit = space.audit();
    let operator = space.operator().start();
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(audit.writes(), [], "{}", operator.log());
}

fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|ready| ready["status"] == "True")
}
