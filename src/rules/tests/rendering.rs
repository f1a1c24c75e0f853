//! What the rules make of a Network.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::Observed;
use super::{network, outcome, program, render};

const CONFIG: &str = r#"
  validations:
    - rule: self.spec.cidr != ''
      message: the cidr is empty
  variables:
    title: self.metadata.name + '-network'
  resources:
    - id: config
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${variables.title}"}
        data:
          cidr: ${self.spec.cidr}
          gateway: ${self.spec.?gateway}
          absent: ${self.spec.?nothing}
          text: "in ${self.metadata.namespace} there are ${size(self.spec.subnets)}, $${not.this}"
      patches:
        - {op: add, path: /data/dns, value: "${self.spec.cidr}", when: has(self.spec.gateway)}
    - id: gateway
      when: has(self.spec.gateway)
      manifest:
        apiVersion: v1
        kind: Service
        metadata: {name: "${self.metadata.name}-gateway"}
        spec: {clusterIP: None}
      readyWhen: has(resource.spec.clusterIP)
    - id: subnet
      forEach: {subnet: self.spec.subnets}
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}-${subnet.name}"}
        data: {size: "${string(subnet.size)}", gateway: "${resources.gateway.spec.clusterIP}"}
  status:
    gatewayIP: ${resources.?gateway.?spec.?clusterIP}
"#;

#[test]
fn a_network_becomes_its_children() {
    let rendered = render(CONFIG);
    assert_eq!(rendered.invalid, []);
    assert_eq!(
        outcome(&rendered),
        [
            (
                "config".to_owned(),
                json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "example-network"},
                    "data": {
                        "cidr": "192.168.0.0/16",
                        "gateway": "192.168.0.1",
                        "text": "in default there are 2, ${not.this}",
                        "dns": "192.168.0.0/16",
                    },
                }),
            ),
            (
                "gateway".to_owned(),
                json!({
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "example-gateway"},
                    "spec": {"clusterIP": "None"},
                }),
            ),
            ("subnet[a]".to_owned(), json!({"waiting": ["gateway"]})),
            ("subnet[b]".to_owned(), json!({"waiting": ["gateway"]})),
        ]
    );
}

#[test]
fn a_child_that_was_waited_for_gives_its_values_and_the_status() {
    let observed = Observed {
        resources: BTreeMap::from([(
            "gateway".to_owned(),
            BTreeMap::from([(String::new(), json!({"spec": {"clusterIP": "10.0.0.7"}}))]),
        )]),
    };
    let program = program(CONFIG);
    let rendered = program.render(&network(), &observed);
    let subnet = outcome(&rendered).pop().expect("a subnet");
    assert_eq!(subnet.1["data"], json!({"size": "2", "gateway": "10.0.0.7"}));
    assert_eq!(serde_json::Value::Object(rendered.status), json!({"gatewayIP": "10.0.0.7"}));
    assert_eq!(program.reads()["gateway"], [["spec", "clusterIP"]]);
}

/// A `ConfigMap` with this `data` (a block indented by ten) and what comes before and after the resource.
fn config(data: &str) -> String {
    format!(
        "  resources:\n    - id: config\n      manifest:\n        apiVersion: v1\n        kind: ConfigMap\n        metadata: {{name: config}}\n        data:\n{data}"
    )
}

/// What a `ConfigMap` with this `data` becomes.
fn data(data: &str) -> Value {
    let outcome = outcome(&render(&config(data)));
    let (_, manifest) = outcome.into_iter().next().expect("one child");
    manifest.get("data").cloned().unwrap_or(manifest)
}

#[test]
fn exactly_one_expression_keeps_its_type_and_everything_else_is_text() {
    let data = data(
        "          int: ${size(self.spec.subnets)}
          bool: ${has(self.spec.gateway)}
          list: ${self.spec.subnets.map(s, s.name)}
          map: ${self.spec.labels}
          double: ${1.5}
          text: \"${size(self.spec.subnets)}\"
          mixed: a ${size(self.spec.subnets)} ${has(self.spec.gateway)} ${1.5} ${9223372036854775807} ${18446744073709551615u}
          big: \" ${21600000.0}\"
          literal: $${a} $$${b} $ {c}
          constant: 9223372036854775807
",
    );
    assert_eq!(
        data,
        json!({
            "int": 2,
            "bool": true,
            "list": ["a", "b"],
            "map": {"team": "net", "zone": "x"},
            "double": 1.5,
            "text": 2,
            "mixed": "a 2 true 1.5 9223372036854775807 18446744073709551615",
            "big": " 21600000",
            "literal": "${a} $${b} $ {c}",
            "constant": i64::MAX,
        })
    );
}

#[test]
fn an_optional_without_a_value_leaves_its_key_or_element_out() {
    let data = data(
        "          a: ${self.spec.?nothing}
          b: ['x', \"${self.spec.?nothing}\", \"${self.spec.?gateway}\"]
          c: {d: \"${self.spec.?nothing}\"}
          e: a${self.spec.?gateway}
",
    );
    assert_eq!(data, json!({"b": ["x", "192.168.0.1"], "c": {}, "e": "a192.168.0.1"}));
}

#[test]
fn keys_may_be_computed() {
    let data = data("          \"${self.metadata.name}-key\": a\n          ${self.metadata.namespace}: b\n");
    assert_eq!(data, json!({"example-key": "a", "default": "b"}));
}

/// Everything that can go wrong with one child, as it is said on the Network.
#[test]
fn faults_of_a_child_name_the_place_in_the_rule() {
    let cases = [
        ("an absent field", "          a: ${self.spec.nothing}\n"),
        ("a null", "          a: ${null}\n"),
        ("a null inside", "          a: \"${[1, null]}\"\n"),
        ("nothing inside a text", "          a: a${self.spec.?nothing}\n"),
        ("a list inside a text", "          a: a${self.spec.subnets}\n"),
        ("a null inside a text", "          a: a${null}\n"),
        ("equal keys", "          example: a\n          \"${self.metadata.name}\": b\n"),
        ("equal computed keys", "          \"${self.metadata.name}\": a\n          \"${'example'}\": b\n"),
        ("a key that is a list", "          \"${self.spec.subnets}\": b\n"),
    ];
    let told = cases.map(|(what, rule)| format!("{what}: {}", data(rule)));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn faults_of_whole_children_name_the_place_in_the_rule() {
    let child = |manifest: &str, rest: &str| format!("  resources:\n    - id: a\n      manifest: {manifest}\n{rest}");
    let object = |kind: &str, name: &str| format!("{{apiVersion: v1, kind: {kind}, metadata: {{name: \"{name}\"}}}}");
    let cases = [
        ("an illegal name", child(&object("ConfigMap", "${'A'}"), "")),
        ("a Service name with a digit first", child(&object("Service", "1${self.metadata.name}"), "")),
        (
            "a long Service name",
            child(
                &object(
                    "Service",
                    "${self.metadata.name}-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                ),
                "",
            ),
        ),
        ("an empty name", child(&object("ConfigMap", "${''}"), "")),
        ("no name", child(&object("ConfigMap", "${self.spec.?nothing}"), "")),
        ("a name that is no text", child(&object("ConfigMap", "${1}"), "")),
        (
            "a computed namespace",
            child("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, \"${'namespace'}\": b}}", ""),
        ),
        ("when is no boolean", child(&object("ConfigMap", "a"), "      when: self.metadata.name\n")),
        ("when fails", child(&object("ConfigMap", "a"), "      when: self.spec.nothing == 'a'\n")),
        ("items that are no list", child(&object("ConfigMap", "a"), "      forEach: {i: self.metadata.name}\n")),
        ("two items of one key", child(&object("ConfigMap", "${i}"), "      forEach: {i: \"['a', 'b', 'a']\"}\n")),
        ("two items of one name", child(&object("ConfigMap", "a"), "      forEach: {i: \"['a', 'b']\"}\n")),
        (
            "an item without a key",
            child(&object("ConfigMap", "a"), "      forEach: {i: \"['a']\"}\n      itemKey: \"''\"\n"),
        ),
        (
            "two resources of one name",
            child(&object("ConfigMap", "a"), &format!("    - id: b\n      manifest: {}\n", object("ConfigMap", "a"))),
        ),
        (
            "too large",
            child(
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: \"${variables.big}\"}}",
                "  variables:\n    a: '\"0123456789abcdef\"'\n    b: variables.a + variables.a + variables.a + variables.a + variables.a + variables.a + variables.a + variables.a\n    c: variables.b + variables.b + variables.b + variables.b + variables.b + variables.b + variables.b + variables.b\n    d: variables.c + variables.c + variables.c + variables.c + variables.c + variables.c + variables.c + variables.c\n    e: variables.d + variables.d + variables.d + variables.d + variables.d + variables.d + variables.d + variables.d\n    f: variables.e + variables.e + variables.e + variables.e + variables.e + variables.e + variables.e + variables.e\n    big: variables.f + variables.f + variables.f\n",
            ),
        ),
        (
            "a variable that fails",
            child(
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: \"${variables.bad}\"}}",
                "  variables:\n    bad: self.spec.nothing\n",
            ),
        ),
        (
            "a variable that fails, read as optional",
            child(
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: \"${variables.?bad}\"}}",
                "  variables:\n    bad: self.spec.nothing\n",
            ),
        ),
        (
            "a resource that is not wanted",
            child(
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: \"${resources.b.spec.clusterIP}\"}}",
                &format!("    - id: b\n      when: 'false'\n      manifest: {}\n", object("Service", "b")),
            ),
        ),
    ];
    let told = cases.map(|(what, rule)| {
        let children = outcome(&render(&rule));
        let children = children.iter().map(|(name, outcome)| format!("  {name}: {outcome}"));
        format!("{what}:\n{}", children.collect::<Vec<_>>().join("\n"))
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_variable_is_evaluated_only_where_it_is_needed() {
    let rule = format!(
        "{}  variables:\n    bad: self.spec.nothing\n    worse: variables.bad + 'x'\n",
        config(
            "          a: \"${has(self.spec.nothing) ? variables.worse : 'none'}\"\n          b: \"${has(variables.bad)}\"\n"
        )
    );
    assert_eq!(outcome(&render(&rule))[0].1["data"], json!({"a": "none", "b": true}));
}

#[test]
fn an_item_keeps_its_identity_when_the_order_changes() {
    let keys = |over: &str, more: &str| -> Vec<String> {
        let rule = format!(
            "  resources:\n    - id: a\n      forEach: {over}\n{more}      manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: \"${{'a-' + string(1)}}\"}}}}\n"
        );
        render(&rule).children.into_iter().map(|child| child.item).collect()
    };
    assert_eq!(keys("{i: \"['x', 'y']\"}", ""), ["x", "y"]);
    assert_eq!(keys("{i: \"[3, 1]\"}", ""), ["3", "1"]);
    assert_eq!(keys("{i: self.spec.labels}", ""), ["team", "zone"]);
    assert_eq!(keys("{s: self.spec.subnets}", "      when: s.name != ''\n"), ["a", "b"]);
    assert_eq!(keys("{key: i, value: s, in: self.spec.subnets}", "      itemKey: s.size\n"), ["1", "2"]);
    assert_eq!(keys("{key: i, value: s, in: \"[true, false]\"}", ""), ["0", "1"]);
    assert_eq!(keys("{key: i, value: s, in: self.spec.labels}", "      when: s == 'net'\n"), ["team"]);
}

#[test]
fn when_guards_the_list_that_it_does_not_read() {
    let rule = "  resources:
    - id: a
      when: has(self.spec.nothing)
      forEach: {i: self.spec.nothing}
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${i}\"}}
";
    assert_eq!(outcome(&render(rule)), []);
}

#[test]
fn a_validation_says_which_value_is_wrong_and_stops_everything_else() {
    let rule = format!(
        "  validations:
    - rule: self.spec.gateway.startsWith('10.')
      messageExpression: \"'gateway ' + self.spec.gateway + ' is outside'\"
      message: not this
    - rule: self.spec.gateway == ''
      message: plain words
    - rule: self.spec.gateway == 'x'
    - rule: self.spec.nothing == 'x'
    - rule: self.spec.gateway
    - rule: \"false\"
      messageExpression: self.spec.nothing
      message: the fallback
    - rule: \"true\"
{}",
        config("          a: b\n")
    );
    let rendered = render(&rule);
    assert!(rendered.children.is_empty());
    let told: Vec<String> = rendered.invalid.iter().map(|fault| format!("{}: {}", fault.at, fault.message)).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn readiness_is_asked_of_the_child_as_the_cluster_has_it() {
    let rule = "  resources:
    - id: a
      manifest: {apiVersion: v1, kind: Service, metadata: {name: a}}
      readyWhen: [has(resource.spec.clusterIP), resource.spec.clusterIP != self.spec.gateway]
";
    let program = program(rule);
    let ready = |object: Option<Value>| {
        let there = object.map(|object| ("a".to_owned(), BTreeMap::from([(String::new(), object)])));
        let observed = Observed { resources: there.into_iter().collect() };
        let child = program.render(&network(), &observed).children.remove(0);
        child.ready.map(|ready| ready.map_err(|fault| fault.message))
    };
    assert_eq!(ready(None), None);
    assert_eq!(ready(Some(json!({"spec": {}}))), Some(Ok(false)));
    assert_eq!(ready(Some(json!({"spec": {"clusterIP": "192.168.0.1"}}))), Some(Ok(false)));
    assert_eq!(ready(Some(json!({"spec": {"clusterIP": "10.0.0.1"}}))), Some(Ok(true)));
    assert!(ready(Some(json!({"spec": {"clusterIP": "10.0.0.1"}, "metadata": 1}))).is_some_and(|ready| ready.is_ok()));
    assert!(ready(Some(json!({}))).is_some_and(|ready| ready.is_err()));
}

#[test]
fn a_reader_of_all_items_waits_for_all_of_them() {
    let rule = "  resources:
    - id: all
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: all}
        data: {ips: \"${resources.subnet.map(k, resources.subnet[k].spec.clusterIP)}\"}
    - id: subnet
      forEach: {subnet: self.spec.subnets}
      manifest: {apiVersion: v1, kind: Service, metadata: {name: \"${subnet.name}\"}}
";
    let program = program(rule);
    let service = |ip: &str| json!({"spec": {"clusterIP": ip}});
    let mut there = BTreeMap::from([("b".to_owned(), service("2")), ("gone".to_owned(), service("3"))]);
    let all = |there: &BTreeMap<String, Value>| {
        let observed = Observed { resources: BTreeMap::from([("subnet".to_owned(), there.clone())]) };
        let outcome = outcome(&program.render(&network(), &observed));
        // The children come in the order in which they are needed, not as in the file.
        assert_eq!(
            outcome.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["subnet[a]", "subnet[b]", "all"]
        );
        outcome[2].1.clone()
    };
    assert_eq!(all(&there), json!({"waiting": ["subnet"]}));
    there.insert("a".to_owned(), service("1"));
    // An item that the rules no longer speak of is not seen.
    assert_eq!(all(&there)["data"]["ips"], json!(["1", "2"]));
    assert_eq!(program.reads()["subnet"], [Vec::<String>::new()]);
}

#[test]
fn a_status_field_that_fails_does_not_hide_the_others() {
    let rendered = render(&format!(
        "{}  status:\n    bad: ${{self.spec.nothing}}\n    good: ${{self.spec.cidr}}\n    nested: {{a: \"${{self.spec.?nothing}}\", b: 1}}\n    wait: ${{resources.config.data.a}}\n",
        config("          a: b\n")
    ));
    assert_eq!(Value::Object(rendered.status), json!({"good": "192.168.0.0/16", "nested": {"b": 1}}));
    assert_eq!(rendered.status_faults.len(), 1);
}
