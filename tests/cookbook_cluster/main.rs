//! The recipes of `rules/cookbook` on a real API server, with the real operator: what they say about a cluster is true.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its own files has failed")]

#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;
#[cfg(test)]
mod words;

use std::path::PathBuf;

use serde_json::{Value, json};
use support::control_plane::{Body, repository};
use support::operator::Operator;
use support::resource::Resource;
use support::{CONFIG_MAPS, NETWORKS, SERVICES, Space, ensure, eventually};

const DEPLOYMENTS: Resource = Resource { api: "/apis/apps/v1", plural: "deployments" };
const FIREWALLS: Resource = Resource { api: "/apis/example.com/v1", plural: "firewalls" };

/// A recipe at work in a namespace of its own.
struct Served {
    folder: PathBuf,
    space: Space<'static>,
    operator: Operator,
}

impl Served {
    fn new(recipe: &str) -> Self {
        Self::prepared(recipe, |_| {})
    }

    /// With objects that are there before the operator is.
    fn prepared(recipe: &str, prepare: impl FnOnce(&Space<'static>)) -> Self {
        let folder = repository().join("rules/cookbook").join(recipe);
        let space = Space::new();
        let mut rights = Space::shipped_rights();
        for (group, resource) in [("apps", "deployments"), ("example.com", "firewalls")] {
            let right = json!({"apiGroups": [group], "resources": [resource],
                "verbs": ["get", "list", "watch", "create", "patch", "delete"]});
            rights.as_array_mut().unwrap().push(right);
        }
        space.grant(&rights);
        if folder.join("crd.yaml").exists() {
            let crd = documents(&folder.join("crd.yaml")).remove(0);
            let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            match space.plane.call("POST", crds, Body::Object(&crd)) {
                Ok(_) => {}
                Err(refused) => assert_eq!(refused.reason, "AlreadyExists", "{refused}"),
            }
            eventually("the foreign kind served", || {
                space.plane.call("GET", &FIREWALLS.all(&space.name), Body::None).map_err(|refused| refused.to_string())
            });
        }
        prepare(&space);
        let operator = space.operator().rules([folder.join("rules.yaml")]).start();
        Self { folder, space, operator }
    }

    /// One of the recipe's Networks, for this namespace.
    fn network(&self, file: &str) -> Value {
        let mut network = documents(&self.folder.join(file)).remove(0);
        network["metadata"]["namespace"] = json!(self.space.name);
        network
    }

    /// Creates the recipe's Network.
    fn create(&self) {
        self.space.create(self.network("network.yaml"));
    }

    /// Gives the Network the spec that it has in another file.
    fn change_to(&self, file: &str) {
        let wanted = self.network(file);
        let mut spec = self.space.get(NETWORKS, "example")["spec"].clone();
        for (field, value) in spec.as_object_mut().unwrap() {
            *value = wanted["spec"].get(field).cloned().unwrap_or(Value::Null);
        }
        self.space.change(NETWORKS, "example", json!({"spec": spec}));
    }
}

fn documents(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether everything in `wanted` is in `there`.
fn holds(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| there.get(key).is_some_and(|there| holds(there, value)))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(there, wanted)| holds(there, wanted))
        }
        _ => there == wanted,
    }
}

/// Recipes that only render: their first Network becomes what stands beside it.
fn renders(recipe: &str) {
    let served = Served::new(recipe);
    served.create();
    served.space.until_ready("example");
    for wanted in documents(&served.folder.join("expected.yaml")) {
        let resource = Resource::of_kind(wanted["kind"].as_str().unwrap());
        let there = served.space.get(resource, wanted["metadata"]["name"].as_str().unwrap());
        assert!(holds(&there, &wanted), "{recipe}: {wanted:#} is not in {there:#}");
    }
}

#[test]
fn names_labels_defaults_documents_parts_and_patches_arrive_as_they_stand_in_the_cookbook() {
    for recipe in [
        "03-name-too-long",
        "04-copy-labels",
        "05-default-for-an-absent-field",
        "13-document-in-a-configmap",
        "16-split-a-cidr",
        "17-small-differences-by-patch",
    ] {
        renders(recipe);
    }
}

#[test]
fn a_child_with_a_condition_comes_and_goes_with_the_field() {
    let served = Served::new("01-conditional-child");
    served.create();
    served.space.until_ready("example");
    served.space.get(CONFIG_MAPS, "example-gateway");
    served.change_to("network-without-gateway.yaml");
    served.space.until_gone(CONFIG_MAPS, "example-gateway");
    served.space.until_ready("example");
}

#[test]
fn subnets_in_another_order_write_nothing_and_one_that_goes_takes_only_its_child() {
    let served = Served::new("02-child-per-subnet");
    served.create();
    served.space.until_ready("example");
    let children = || served.space.list(CONFIG_MAPS).into_iter().filter(|child| child["data"]["cidr"].is_string());
    let before: Vec<_> = children().map(|child| child["metadata"]["resourceVersion"].clone()).collect();
    assert_eq!(before.len(), 2);
    let audit = served.space.audit();
    served.change_to("network-other-order.yaml");
    served.space.until_ready("example");
    let after: Vec<_> = children().map(|child| child["metadata"]["resourceVersion"].clone()).collect();
    assert_eq!(before, after);
    assert!(audit.writes().iter().all(|write| write.resource == "networks/status"), "{:?}", audit.writes());

    served.space.change(
        NETWORKS,
        "example",
        json!({"spec": {"subnets": [{"name": "back", "cidr": "192.168.2.0/24"}]}}),
    );
    served.space.until_gone(CONFIG_MAPS, "example-front");
    let back = served.space.get(CONFIG_MAPS, "example-back");
    assert!(before.contains(&back["metadata"]["resourceVersion"]));
}

#[test]
fn an_old_object_is_taken_over_with_what_others_put_on_it() {
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "example-config", "annotations": {"example.com/note": "by hand"}},
        "data": {"cidr": "10.0.0.0/8", "more": "stays"}});
    let served = Served::prepared("06-adopt-an-old-object", |space| drop(space.create(old)));
    let uid = served.space.get(CONFIG_MAPS, "example-config")["metadata"]["uid"].clone();
    served.create();
    served.space.until_ready("example");
    let child = served.space.get(CONFIG_MAPS, "example-config");
    assert_eq!(child["metadata"]["uid"], uid);
    assert_eq!(child["data"], json!({"cidr": "192.168.0.0/16", "more": "stays"}));
    assert_eq!(child["metadata"]["annotations"]["example.com/note"], "by hand");
    assert_eq!(child["metadata"]["ownerReferences"][0]["name"], "example");
    assert!(served.operator.log().contains("adopted ConfigMap example-config"), "{}", served.operator.log());
    served.space.delete(NETWORKS, "example");
    served.space.until_gone(CONFIG_MAPS, "example-config");
}

#[test]
fn a_field_that_cannot_be_changed_is_changed_by_making_the_child_anew() {
    let served = Served::new("07-replace-an-immutable-field");
    served.create();
    served.space.until_ready("example");
    let uid = served.space.get(CONFIG_MAPS, "example-config")["metadata"]["uid"].clone();
    served.change_to("network-changed.yaml");
    served.space.until(CONFIG_MAPS, "example-config", |child| {
        ensure(child["data"]["cidr"] == "10.0.0.0/8", "not changed")?;
        ensure(child["metadata"]["uid"] != uid, "it is the old one, and it was changed?")
    });
    served.space.until_ready("example");
}

#[test]
fn a_child_that_reads_another_is_written_after_it() {
    let served = Served::new("08-one-child-after-another");
    let audit = served.space.audit();
    served.create();
    served.space.until_ready("example");
    let made: Vec<_> =
        audit.writes().into_iter().filter(|write| write.code == 201).map(|write| write.resource).collect();
    assert_eq!(made, ["configmaps", "deployments"]);
}

#[test]
fn a_value_of_another_child_arrives_and_goes_with_it() {
    let served = Served::new("09-value-from-another-child");
    served.create();
    served.space.until_ready("example");
    let address = served.space.get(SERVICES, "net-example")["spec"]["clusterIP"].clone();
    let child = served.space.get(CONFIG_MAPS, "example-config");
    assert_eq!(child["data"], json!({"cidr": "192.168.0.0/16", "gatewayIP": address}));
    served.change_to("network-without-gateway.yaml");
    served.space.until(CONFIG_MAPS, "example-config", |child| {
        ensure(child["data"] == json!({"cidr": "192.168.0.0/16"}), "the address is still there")
    });
    served.space.until_gone(SERVICES, "net-example");
}

#[test]
fn fields_of_the_status_come_and_go() {
    let served = Served::new("10-status-field");
    served.create();
    served.space.until_ready("example");
    let status = served.space.get(NETWORKS, "example")["status"].clone();
    assert_eq!(status["prefixLength"], 16);
    assert_eq!(status["gatewayName"], format!("net-example.{}.svc", served.space.name));
    served.change_to("network-without-gateway.yaml");
    served.space.until(NETWORKS, "example", |network| {
        ensure(network["status"].get("gatewayName").is_none(), "the name is still there")?;
        ensure(network["status"]["prefixLength"] == 16, "the prefix length is gone")
    });
}

#[test]
fn a_network_whose_fields_do_not_fit_says_so_and_its_children_stay_as_they_are() {
    let served = Served::new("11-cross-field-validation");
    served.create();
    served.space.until_ready("example");
    let before = served.space.get(CONFIG_MAPS, "example-config");
    served.change_to("network-wrong.yaml");
    let condition = served.space.until_condition("example", "False", "InvalidSpec");
    let message = condition["message"].as_str().unwrap();
    assert!(message.contains("gateway 10.0.0.1 is outside 192.168.0.0/16"), "{message}");
    assert!(message.contains("every subnet must be inside spec.cidr"), "{message}");
    assert_eq!(served.space.get(CONFIG_MAPS, "example-config"), before);
}

#[test]
fn a_child_of_a_foreign_kind_is_made_and_its_readiness_is_the_foreign_controllers() {
    let served = Served::new("12-child-of-a-foreign-kind");
    served.create();
    served.space.until_condition("example", "False", "ChildNotReady");
    let child = served.space.get(FIREWALLS, "example-firewall");
    assert_eq!(child["spec"], json!({"allow": ["192.168.0.0/16"], "logging": true}));
    let status = format!("{}/status", FIREWALLS.one(&served.space.name, "example-firewall"));
    let active = json!({"status": {"phase": "Active"}});
    served.space.plane.call("PATCH", &status, Body::MergePatch(&active)).unwrap();
    served.space.until_ready("example");
}

#[test]
fn a_child_that_is_to_stay_outlives_its_network_and_the_next_one_of_that_name_takes_it_up() {
    let served = Served::new("14-keep-a-child");
    served.create();
    served.space.until_ready("example");
    let record = served.space.get(CONFIG_MAPS, "example-record");
    assert!(record["metadata"].get("ownerReferences").is_none(), "{record:#}");
    served.space.delete(NETWORKS, "example");
    served.space.until_gone(CONFIG_MAPS, "example-config");
    let kept = served.space.get(CONFIG_MAPS, "example-record");
    assert_eq!(kept["metadata"]["uid"], record["metadata"]["uid"]);
    served.create();
    served.space.until_ready("example");
    served.space.change(NETWORKS, "example", json!({"spec": {"cidr": "10.0.0.0/8"}}));
    served.space.until(CONFIG_MAPS, "example-record", |child| {
        ensure(child["data"]["cidr"] == "10.0.0.0/8", "not taken up again")?;
        ensure(child["metadata"]["uid"] == record["metadata"]["uid"], "another object")
    });
}

#[test]
fn a_field_that_the_rule_does_not_give_stays_the_autoscalers() {
    let served = Served::new("15-field-of-an-autoscaler");
    served.create();
    served.space.until_ready("example");
    let scaled = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "example-proxy"},
        "spec": {"replicas": 5}});
    served.space.apply(&scaled, "autoscaler");
    served.space.change(NETWORKS, "example", json!({"spec": {"cidr": "10.0.0.0/8"}}));
    served.space.until(DEPLOYMENTS, "example-proxy", |child| {
        let value = &child["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"];
        ensure(value == "10.0.0.0/8", "the Network's change has not come")?;
        ensure(child["spec"]["replicas"] == 5, "the replicas were taken")
    });
    served.space.until_ready("example");
    assert_eq!(served.space.get(DEPLOYMENTS, "example-proxy")["spec"]["replicas"], 5);
}

#[test]
fn every_recipe_is_in_one_of_these_tests() {
    let text = std::fs::read_to_string(repository().join("tests/cookbook_cluster/main.rs")).unwrap();
    for entry in std::fs::read_dir(repository().join("rules/cookbook")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        assert!(!entry.path().is_dir() || text.contains(&format!("\"{name}\"")), "no test serves the recipe {name}");
    }
}
