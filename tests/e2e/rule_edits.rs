//! Rules that change while the operator runs, or while it does not.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::support::{CONFIG_MAPS, NETWORKS, SERVICES, Space, ensure, eventually, network};

const TWO: &str = r#"
apiVersion: rules.samplecrd.k8s.io/v1alpha1
kind: RuleSet
metadata: {name: two}
spec:
  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}
  resources:
    - id: config
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}-config"}
        data: {cidr: "${self.spec.cidr}", color: blue}
    - id: extra
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}-extra"}
        data: {cidr: "${self.spec.cidr}"}
"#;

/// `TWO` without its second resource.
fn one() -> String {
    TWO.split("    - id: extra").next().expect("a part").to_owned()
}

/// A folder for rule files that the operator follows.
fn folder(space: &Space<'_>, files: &[(&str, &str)]) -> PathBuf {
    let folder = space.folder.path().join("rules");
    std::fs::create_dir_all(&folder).expect("a folder for rules");
    for (name, text) in files {
        std::fs::write(folder.join(name), text).expect("a rule file");
    }
    folder
}

fn names(space: &Space<'_>) -> Vec<String> {
    space.children().into_keys().collect()
}

#[test]
fn an_edit_reaches_every_network_without_a_restart_and_touches_only_what_it_changes() {
    let space = Space::new();
    let rules = folder(&space, &[("two.yaml", TWO)]);
    let operator = space.operator().rules([&rules]).start();
    for name in ["a", "b"] {
        space.create(network(name, json!({"cidr": "10.0.0.0/8"})));
        space.until_ready(name);
    }
    let before = space.children();
    let audit = space.audit();
    std::fs::write(rules.join("two.yaml"), TWO.replace("blue", "green")).expect("edit the rules");
    for name in ["a-config", "b-config"] {
        space.until(CONFIG_MAPS, name, |object| ensure(object["data"]["color"] == "green", "not yet"));
    }
    assert!(operator.lines("rules in force: two@").len() >= 2, "{}", operator.log());
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(space.children(), before, "the same objects");
    let written: Vec<_> = audit.writes().into_iter().filter(|write| write.resource == "configmaps").collect();
    assert_eq!(written.len(), 2, "the extra ones do not change: {written:?}");
}

#[test]
fn an_edit_that_changes_nothing_writes_nothing() {
    let space = Space::new();
    let rules = folder(&space, &[("two.yaml", TWO)]);
    let _operator = space.operator().rules([&rules]).start();
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    let audit = space.audit();
    std::fs::write(rules.join("two.yaml"), format!("# A remark.\n{TWO}")).expect("edit the rules");
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(audit.writes(), []);
}

#[test]
fn a_field_that_leaves_a_rule_leaves_the_child() {
    let space = Space::new();
    let rules = folder(&space, &[("two.yaml", TWO)]);
    let operator = space.operator().rules([&rules]).start();
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    std::fs::write(rules.join("two.yaml"), TWO.replace(", color: blue", "")).expect("edit the rules");
    space.until(CONFIG_MAPS, "a-config", |object| ensure(object["data"].get("color").is_none(), "still there"));
    operator.kill();

    // The same while nobody watches.
    std::fs::write(rules.join("two.yaml"), TWO.replace("{cidr: \"${self.spec.cidr}\", color: blue}", "{other: text}"))
        .expect("edit the rules");
    let _operator = space.operator().rules([&rules]).start();
    space.until(CONFIG_MAPS, "a-config", |object| ensure(object["data"] == json!({"other": "text"}), "not yet"));
}

#[test]
fn a_resource_that_leaves_the_rules_takes_its_child_and_nobody_elses() {
    let space = Space::new();
    let rules = folder(&space, &[("two.yaml", TWO)]);
    let operator = space.operator().rules([&rules]).start();
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    assert_eq!(names(&space), ["ConfigMap a-config", "ConfigMap a-extra"]);
    std::fs::write(rules.join("two.yaml"), one()).expect("edit the rules");
    space.until_gone(CONFIG_MAPS, "a-extra");
    assert_eq!(names(&space), ["ConfigMap a-config"]);
    operator.until_log("pruned ConfigMap a-extra");
    space.until_ready("a");

    std::fs::write(rules.join("two.yaml"), TWO).expect("edit the rules");
    space.until(CONFIG_MAPS, "a-extra", |_| Ok(()));
    operator.kill();
    std::fs::write(rules.join("two.yaml"), one()).expect("edit the rules");
    let _operator = space.operator().rules([&rules]).start();
    space.until_gone(CONFIG_MAPS, "a-extra");
}

#[test]
fn a_resource_that_is_renamed_keeps_its_object() {
    let space = Space::new();
    let rules = folder(&space, &[("two.yaml", TWO)]);
    let _operator = space.operator().rules([&rules]).start();
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    let before = space.children();
    std::fs::write(rules.join("two.yaml"), TWO.replace("id: extra", "id: additional")).expect("edit the rules");
    space.until(CONFIG_MAPS, "a-extra", |object| {
        ensure(object["metadata"]["annotations"]["rules.samplecrd.k8s.io/source"] == "two/additional", "not yet")
    });
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(space.children(), before, "same UIDs");
}

#[test]
fn a_broken_edit_keeps_the_last_good_rules_and_a_good_one_takes_over_again() {
    let space = Space::new();
    let rules = folder(&space, &[("two.yaml", TWO)]);
    let operator = space.operator().rules([&rules]).start();
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    let before = space.children();

    std::fs::write(rules.join("two.yaml"), TWO.replace("self.spec.cidr", "self.spec.cdir")).expect("break the rules");
    let line = operator.until_log("cdir");
    assert!(line.contains("two.yaml") || operator.log().contains("two.yaml:"), "it says where: {}", operator.log());
    space.create(network("b", json!({"cidr": "10.1.0.0/16"})));
    space.until_ready("b");
    space.change(NETWORKS, "a", json!({"spec": {"cidr": "10.2.0.0/16"}}));
    space.until(CONFIG_MAPS, "a-config", |object| ensure(object["data"]["cidr"] == "10.2.0.0/16", "not yet"));
    assert!(before.iter().all(|(name, uid)| space.children().get(name) == Some(uid)), "nothing is deleted");

    std::fs::write(rules.join("two.yaml"), TWO.replace("blue", "red")).expect("mend the rules");
    space.until(CONFIG_MAPS, "b-config", |object| ensure(object["data"]["color"] == "red", "not yet"));
}

#[test]
fn rules_that_are_broken_at_the_start_freeze_their_children_and_the_other_rule_sets_work() {
    let space = Space::new();
    let other = TWO.replace("name: two", "name: other").replace("-config", "-third").replace("-extra", "-fourth");
    let rules = folder(&space, &[("two.yaml", TWO), ("other.yaml", &other)]);
    let operator = space.operator().rules([&rules]).start();
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    let before = space.children();
    assert_eq!(before.len(), 4);
    operator.kill();

    std::fs::write(rules.join("two.yaml"), TWO.replace("self.spec.cidr", "self.spec.")).expect("break the rules");
    space.change(CONFIG_MAPS, "a-config", json!({"data": {"color": "edited"}}));
    let _operator = space.operator().rules([&rules]).start();
    space.change(NETWORKS, "a", json!({"spec": {"cidr": "10.2.0.0/16"}}));
    space.until(CONFIG_MAPS, "a-third", |object| ensure(object["data"]["cidr"] == "10.2.0.0/16", "not yet"));
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(space.children(), before, "none is deleted");
    assert_eq!(space.get(CONFIG_MAPS, "a-config")["data"]["color"], "edited", "not written either");
    assert_eq!(space.get(CONFIG_MAPS, "a-extra")["data"]["cidr"], "10.0.0.0/8");

    std::fs::write(rules.join("two.yaml"), TWO).expect("mend the rules");
    space.until(CONFIG_MAPS, "a-config", |object| ensure(object["data"]["color"] == "blue", "not yet"));
}

#[test]
fn a_rules_folder_that_is_emptied_or_vanishes_deletes_nothing() {
    let space = Space::new();
    let rules = folder(&space, &[("two.yaml", TWO)]);
    let operator = space.operator().rules([&rules]).start();
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    let before = space.children();

    std::fs::remove_file(rules.join("two.yaml")).expect("empty the folder");
    std::thread::sleep(Duration::from_secs(3));
    std::fs::remove_dir(&rules).expect("remove the folder");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(space.children(), before);
    assert!(!operator.lines("rules").is_empty(), "it says so: {}", operator.log());
    operator.kill();

    let operator = space.operator().rules([&rules]).start_unready();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(space.children(), before, "nor after a restart: {}", operator.log());

    folder(&space, &[("two.yaml", &one())]);
    space.until_gone(CONFIG_MAPS, "a-extra");
}

#[test]
fn the_swap_of_a_config_map_volume_is_seen_twice_in_a_row() {
    let space = Space::new();
    let rules = space.folder.path().join("mounted");
    let version = |name: &str, color: &str| {
        std::fs::create_dir_all(rules.join(name)).expect("a version");
        std::fs::write(rules.join(name).join("two.yaml"), TWO.replace("blue", color)).expect("a rule file");
        // As the kubelet does it: a new link beside the old one, then a rename over it.
        std::os::unix::fs::symlink(name, rules.join("..data_tmp")).expect("a link");
        std::fs::rename(rules.join("..data_tmp"), rules.join("..data")).expect("swap");
    };
    version("..first", "blue");
    std::os::unix::fs::symlink("..data/two.yaml", rules.join("two.yaml")).expect("a link");
    let _operator = space.operator().rules([&rules]).start();
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    for (name, color) in [("..second", "green"), ("..third", "red")] {
        version(name, color);
        space.until(CONFIG_MAPS, "a-config", |object| ensure(object["data"]["color"] == color, "not yet"));
    }
}

#[test]
fn a_rule_for_another_kind_of_child_is_followed_while_running() {
    let space = Space::new();
    let rules = folder(&space, &[("two.yaml", &one())]);
    let _operator = space.operator().rules([&rules]).start();
    space.create(network("a", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("a");
    let service = r#"
    - id: service
      manifest:
        apiVersion: v1
        kind: Service
        metadata: {name: "${self.metadata.name}-service"}
        spec: {type: ClusterIP, clusterIP: None, ports: [{name: http, port: 80, protocol: TCP, targetPort: 80}]}
"#;
    std::fs::write(rules.join("two.yaml"), one() + service).expect("edit the rules");
    space.until(SERVICES, "a-service", |_| Ok(()));
    space.until_ready("a");
    space.delete(SERVICES, "a-service");
    space.until(SERVICES, "a-service", |_| Ok(()));
    std::fs::write(rules.join("two.yaml"), one()).expect("edit the rules");
    eventually("only the first child", || {
        let names = names(&space);
        ensure(names == ["ConfigMap a-config"], format!("{names:?}"))
    });
}
