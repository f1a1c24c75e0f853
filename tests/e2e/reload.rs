//! Rule edits while the operator runs.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::resource::{CONFIG_MAPS, NETWORKS};
use crate::support::space::{Space, network};
use crate::support::{ensure, eventually};

const HEAD: &str = "\
apiVersion: rules.samplecrd.k8s.io/v1alpha1
kind: RuleSet
metadata: {name: edited}
spec:
  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}
  resources:
";

/// A rule set with one `ConfigMap` for each of these `ID: data` pairs.
fn rules(resources: &[(&str, &str)]) -> String {
    let resource = |(id, data): &(&str, &str)| {
        format!(
            "    - id: {id}\n      manifest:\n        apiVersion: v1\n        kind: ConfigMap\n        metadata: {{name: \"${{self.metadata.name}}-{id}\"}}\n        data: {{{data}}}\n"
        )
    };
    format!("{HEAD}{}", resources.iter().map(resource).collect::<Vec<_>>().concat())
}

/// A rules folder as the kubelet makes it of a `ConfigMap`: files are links into `..data`, itself a link that is swapped.
struct Mounted {
    folder: PathBuf,
    version: u32,
}

impl Mounted {
    fn new(space: &Space<'_>, text: &str) -> Self {
        let folder = space.folder.path().join("mounted");
        std::fs::create_dir(&folder).expect("make the rules folder");
        let mut mounted = Self { folder, version: 0 };
        mounted.swap(text);
        std::os::unix::fs::symlink("..data/rules.yaml", mounted.folder.join("rules.yaml")).expect("link the rule file");
        mounted
    }

    fn swap(&mut self, text: &str) {
        self.version += 1;
        let version = format!("..version_{}", self.version);
        std::fs::create_dir(self.folder.join(&version)).expect("make a version");
        std::fs::write(self.folder.join(&version).join("rules.yaml"), text).expect("write a version");
        std::os::unix::fs::symlink(&version, self.folder.join("..data_tmp")).expect("link a version");
        std::fs::rename(self.folder.join("..data_tmp"), self.folder.join("..data")).expect("swap the version");
    }
}

fn data(space: &Space<'_>, name: &str, wanted: &Value) {
    space.until(CONFIG_MAPS, name, |object| ensure(object["data"] == *wanted, format!("data is {}", object["data"])));
}

#[test]
fn a_good_edit_reaches_every_network_and_a_broken_one_changes_nothing_and_is_loud() {
    let space = Space::new();
    let mut mounted = Mounted::new(&space, &rules(&[("a", "cidr: \"${self.spec.cidr}\"")]));
    let operator = space.operator().rules([&mounted.folder]).start();
    for name in ["one", "two"] {
        space.create(network(name, json!({"cidr": "10.0.0.0/8"})));
        space.until_ready(name);
    }

    mounted.swap(&rules(&[("a", "cidr: \"${self.spec.cidr}\", more: x")]));
    for name in ["one", "two"] {
        data(&space, &format!("{name}-a"), &json!({"cidr": "10.0.0.0/8", "more": "x"}));
    }

    mounted.swap(&rules(&[("a", "cidr: \"${self.spec.cird}\"")]));
    let said = operator.until_log("cird");
    assert!(said.contains("rules.yaml:12:"), "it says where: {said}");
    operator.until_log("going on with the last good version");
    space.create(network("three", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("three");
    data(&space, "three-a", &json!({"cidr": "10.0.0.0/8", "more": "x"}));

    // Twice in a row, as fast as it goes: the last one counts.
    mounted.swap(&rules(&[("a", "x: one")]));
    mounted.swap(&rules(&[("a", "x: two")]));
    for name in ["one", "two", "three"] {
        data(&space, &format!("{name}-a"), &json!({"x": "two"}));
    }
}

#[test]
fn a_child_that_an_edit_drops_is_pruned_and_networks_it_does_not_touch_are_not_written() {
    let space = Space::new();
    let both = rules(&[("a", "x: \"1\""), ("b", "x: \"1\"")]);
    let mut mounted = Mounted::new(&space, &both);
    let operator = space.operator().rules([&mounted.folder]).start();
    space.create(network("n", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("n");
    mounted.swap(&rules(&[("a", "x: \"1\"")]));
    space.until_gone(CONFIG_MAPS, "n-b");
    space.until(NETWORKS, "n", |object| {
        ensure(object["status"]["childrenReady"] == "1/1", format!("{}", object["status"]))
    });

    let audit = space.audit();
    mounted.swap(&format!("# a comment changes the revision and no child\n{}", rules(&[("a", "x: \"1\"")])));
    eventually("the edit is in force", || ensure(operator.lines("rules in force").len() >= 3, operator.log()));
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(audit.writes(), [], "nothing changed for any Network");
}

#[test]
fn an_emptied_or_vanished_rules_folder_freezes_everything_and_deletes_nothing() {
    let space = Space::new();
    let folder = space.folder.path().join("rules");
    std::fs::create_dir(&folder).expect("make the rules folder");
    let text = rules(&[("a", "cidr: \"${self.spec.cidr}\"")]);
    std::fs::write(folder.join("rules.yaml"), &text).expect("write the rules");
    let operator = space.operator().rules([&folder]).start();
    space.create(network("n", json!({"cidr": "10.0.0.0/8"})));
    space.until_ready("n");
    let uid = space.get(CONFIG_MAPS, "n-a")["metadata"]["uid"].clone();

    std::fs::remove_file(folder.join("rules.yaml")).expect("empty the folder");
    operator.until_log("there is no rule file");
    std::fs::remove_dir(&folder).expect("remove the folder");
    operator.until_log("cannot read");
    // The rules in force stay so: what was there is kept as it should be.
    space.change(NETWORKS, "n", json!({"spec": {"cidr": "10.0.0.0/16"}}));
    data(&space, "n-a", &json!({"cidr": "10.0.0.0/16"}));

    std::fs::create_dir(&folder).expect("make the folder again");
    std::fs::write(folder.join("rules.yaml"), &text).expect("write the rules again");
    eventually("the rules are in force again", || ensure(operator.lines("rules in force").len() >= 2, operator.log()));
    assert_eq!(space.get(CONFIG_MAPS, "n-a")["metadata"]["uid"], uid);
    data(&space, "n-a", &json!({"cidr": "10.0.0.0/16"}));
}

#[test]
fn an_edit_that_would_delete_much_is_held_until_it_is_confirmed_also_over_a_restart() {
    let space = Space::new();
    let mut mounted = Mounted::new(&space, &rules(&[("a", "x: \"1\""), ("b", "x: \"1\"")]));
    let operator = space.operator().rules([&mounted.folder]).start();
    let names: Vec<_> = (0..12).map(|number| format!("n{number}")).collect();
    for name in &names {
        space.create(network(name, json!({"cidr": "10.0.0.0/8"})));
    }
    for name in &names {
        space.until_ready(name);
    }
    mounted.swap(&rules(&[("a", "x: \"2\"")]));
    let said = operator.until_log("are held: they would delete 12 of 24 children");
    assert!(said.contains("ConfigMap"), "it says which: {said}");
    assert_eq!(space.get(CONFIG_MAPS, "n3-a")["data"], json!({"x": "1"}), "the edit is held as a whole");
    operator.terminate();

    // There is no version from before now: the new rules come into force, without their deletions.
    let operator = space.operator().rules([&mounted.folder]).start();
    operator.until_log("are held: they would delete 12 of 24 children");
    data(&space, "n3-a", &json!({"x": "2"}));
    assert!(space.find(CONFIG_MAPS, "n3-b").is_some());

    let line = operator.lines("are held").last().cloned().unwrap_or_default();
    let revision =
        line.split("rules ").nth(1).and_then(|rest| rest.split(' ').next()).expect("the revision in the log");
    std::fs::write(mounted.folder.join("allow-prune"), format!("{revision}\n")).expect("confirm");
    for name in &names {
        space.until_gone(CONFIG_MAPS, &format!("{name}-b"));
    }
}
