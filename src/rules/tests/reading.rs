//! What a rule sees of other children: in `readyWhen`, and of a `forEach` whose `when` is false.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{Observed, Rendered};
use super::{network, outcome, program};

/// What is observed: id, item key, object.
fn observed(there: &[(&str, &str, Value)]) -> Observed {
    let mut resources: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for (id, item, object) in there {
        resources.entry((*id).to_owned()).or_default().insert((*item).to_owned(), object.clone());
    }
    Observed { resources }
}

fn rendered(spec: &str, there: &[(&str, &str, Value)]) -> Rendered {
    program(spec).render(&network(), &observed(there))
}

/// `readyWhen` of each child.
fn readiness(spec: &str, there: &[(&str, &str, Value)]) -> Vec<(String, Option<Result<bool, String>>)> {
    let rendered = rendered(spec, there);
    let names = outcome(&rendered).into_iter().map(|(name, _)| name);
    let ready =
        rendered.children.into_iter().map(|child| child.ready.map(|ready| ready.map_err(|fault| fault.message)));
    names.zip(ready).collect()
}

#[test]
fn ready_when_may_read_a_child_that_stands_later_in_the_file() {
    let rule = "  resources:
    - id: first
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}
      readyWhen: resources.later.data.done == 'yes'
    - id: later
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: later}}
      readyWhen: resources.first.data.done == 'yes'
";
    let with = |done: &str| json!({"data": {"done": done}});
    // One that is not there yet makes its reader wait, which is no fault.
    assert_eq!(
        readiness(rule, &[("first", "", with("yes"))]),
        [("first".to_owned(), Some(Ok(false))), ("later".to_owned(), None)]
    );
    // Readiness orders nothing, so the two may ask about each other.
    assert_eq!(
        readiness(rule, &[("first", "", with("yes")), ("later", "", with("no"))]),
        [("first".to_owned(), Some(Ok(false))), ("later".to_owned(), Some(Ok(true)))]
    );
}

#[test]
fn ready_when_of_an_item_sees_its_item_and_children_that_are_made_later() {
    let rule = "  variables:
    wanted: resources.?later.?data.?size.orValue('')
  resources:
    - id: subnet
      forEach: {subnet: self.spec.subnets}
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${subnet.name}\"}}
      readyWhen: [string(subnet.size) == variables.wanted, resource.data.name == subnet.name]
    - id: later
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: later}}
";
    let named = |name: &str| json!({"data": {"name": name}});
    let there =
        [("subnet", "a", named("a")), ("subnet", "b", named("b")), ("later", "", json!({"data": {"size": "2"}}))];
    let told = readiness(rule, &there);
    assert_eq!(told[0], ("subnet[a]".to_owned(), Some(Ok(false))));
    assert_eq!(told[1], ("subnet[b]".to_owned(), Some(Ok(true))));
}

#[test]
fn ready_when_that_reads_a_child_the_rules_do_not_want_says_so() {
    let rule = |read: &str| {
        format!(
            "  resources:
    - id: first
      manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: first}}}}
      readyWhen: {read}
    - id: later
      when: has(self.spec.nothing)
      manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: later}}}}
"
        )
    };
    let there = [("first", "", json!({})), ("later", "", json!({"data": {"done": "yes"}}))];
    assert_eq!(
        readiness(&rule("resources.later.data.done == 'yes'"), &there)[0].1,
        Some(Err(
            "there is no `later` here, its `when` is false; `resources.?later` reads it where it is there".to_owned()
        ))
    );
    assert_eq!(readiness(&rule("resources.?later.hasValue() == false"), &there)[0].1, Some(Ok(true)));
}

/// A child for each subnet for which `when` holds, and one that reads them.
fn reader_of_subnets(when: &str, read: &str) -> String {
    format!(
        "  resources:
    - id: subnet
      when: {when}
      forEach: {{subnet: self.spec.subnets}}
      manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: \"subnet-${{subnet.name}}\"}}}}
    - id: reader
      manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: reader}}, data: {{read: \"${{{read}}}\"}}}}
"
    )
}

#[test]
fn an_item_that_when_leaves_out_is_absent_to_readers_although_the_cluster_still_has_it() {
    let of = |name: &str| json!({"data": {"name": name}});
    // Both are in the cluster: `a` was wanted before the rule was edited.
    let there = [("subnet", "a", of("a")), ("subnet", "b", of("b"))];
    let read = |when: &str, read: &str| {
        let children = outcome(&rendered(&reader_of_subnets(when, read), &there));
        let reader = children.iter().find(|(name, _)| name == "reader").expect("the reader");
        let names: Vec<&str> = children.iter().map(|(name, _)| name.as_str()).collect();
        (names.join(" "), reader.1.pointer("/data/read").unwrap_or(&reader.1).clone())
    };
    let some = "subnet.name == 'b'";
    assert_eq!(read(some, "resources.subnet.map(k, k).join(',')"), ("subnet[b] reader".to_owned(), json!("b")));
    assert_eq!(read(some, "resources.subnet['b'].data.name").1, json!("b"));
    assert_eq!(read(some, "resources.subnet[?'a'].?data.?name.orValue('none')").1, json!("none"));
    assert_eq!(read(some, "string('a' in resources.subnet)").1, json!("false"));
    // With none left there is still a map, an empty one.
    for none in ["subnet.name == 'c'", "has(self.spec.nothing)"] {
        assert_eq!(read(none, "string(size(resources.subnet))"), ("reader".to_owned(), json!("0")));
        assert_eq!(read(none, "resources.?subnet[?'a'].?data.?name.orValue('none')").1, json!("none"));
    }
    let faults = [(some, "resources.subnet['a'].data.name"), (some, "resources.subnet.a.data.name")];
    let told = faults.map(|(when, expression)| read(when, expression).1.to_string());
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_reader_waits_for_the_items_that_are_wanted_and_for_no_others() {
    let rule = reader_of_subnets("subnet.name == 'b'", "resources.subnet.map(k, k).join(',')");
    let waits = |there: &[(&str, &str, Value)]| outcome(&rendered(&rule, there)).pop().expect("the reader").1;
    assert_eq!(waits(&[("subnet", "a", json!({}))]), json!({"waiting": ["subnet"]}));
    assert_eq!(waits(&[("subnet", "b", json!({}))])["data"]["read"], json!("b"));
}
