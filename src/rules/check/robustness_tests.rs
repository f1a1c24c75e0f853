//! The checker and any text: it may say what it likes, but it returns.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;

use crate::diagnostic::{SourceFile, human};
use crate::rules::schema::builtin::builtin;
use crate::rules::schema::crd::CrdSchema;

fn crds() -> Vec<CrdSchema> {
    let spec = json!({"type": "object", "required": ["cidr"], "properties": {
        "cidr": {"type": "string"}, "mtu": {"type": "integer"}, "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "subnets": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}}}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {
        "group": "samplecrd.k8s.io", "scope": "Namespaced", "names": {"kind": "Network", "plural": "networks"},
        "versions": [{"name": "v1", "served": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
            "type": "object", "required": ["spec"], "properties": {
                "spec": spec, "status": {"type": "object", "properties": {"x": {"type": "string"}}}}}}}]}});
    CrdSchema::read(&crd).unwrap()
}

/// Checks a file and draws what was found, since a span that is no span shows only then.
fn check(text: String) {
    let file = SourceFile::new("x.yaml", text);
    let (_, found) = super::files(&[file], &crds(), builtin());
    let _ = human::render(&found, human::Style::default());
}

/// A rule file that uses all of the language.
const WHOLE: &str = r#"apiVersion: rules.samplecrd.k8s.io/v1alpha1
kind: RuleSet
metadata: {name: network}
spec:
  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}
  validations:
    - {rule: "!has(self.spec.mtu) || self.spec.mtu > 5", messageExpression: "'é' + string(self.spec.mtu)"}
  variables:
    names: self.spec.?subnets.orValue([]).filter(s, has(s.name)).map(s, s.name)
    big: has(self.spec.mtu) && self.spec.mtu > 9000
  resources:
    - id: config
      when: variables.big
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}-e", labels: {a: "${self.spec.mode}"}}
        data: {a: "${variables.names.join(',')}", "${self.spec.cidr}": b}
      patches:
        - {op: add, path: /data/x, value: "a${self.spec.?mtu.orValue(1)}", when: self.spec.mode == 'a'}
        - {op: move, from: /data/x, path: /data/y~1z}
    - id: item
      forEach: {key: k, value: v, in: "self.spec.?labels.orValue({})"}
      itemKey: k
      manifest:
        apiVersion: v1
        kind: Service
        metadata: {name: "${self.metadata.name}-${k}"}
        spec: {ports: [{port: "${v.size()}", targetPort: "${resources.?config.?data['a'].orValue('é')}"}]}
      readyWhen: [resource.spec.type == 'ClusterIP', "resource.?status.hasValue()"]
  status:
    x: ${resources.item[?'a'].?spec.?type}
"#;

const PIECES: &[&str] = &[
    "self",
    ".spec",
    ".cidr",
    ".?mtu",
    ".subnets",
    "[0]",
    "[?0]",
    "['a']",
    "has(",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "'é'",
    "1",
    "1.5",
    "1u",
    "-",
    "!",
    " + ",
    " == ",
    " && ",
    " || ",
    " ? ",
    " : ",
    " in ",
    " < ",
    ".map(x, ",
    ".filter(x, ",
    ".all(x, ",
    "x",
    "x.name",
    ".orValue(",
    ".optMap(y, ",
    "y",
    "cidr(",
    ".prefixLength()",
    "size(",
    "null",
    "true",
    "variables.a",
    "resources.b",
    ".size()",
    "optional.none()",
    "{'a': ",
    "?'b': ",
    ", ",
    "string(",
    ".join(',')",
    "dyn(",
    ".sortBy(x, ",
    "b'é'",
    "r'\\'",
    "// é\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn an_expression_of_any_pieces_is_checked_without_a_panic(pieces in prop::collection::vec(select(PIECES), 1..24)) {
        let expression = pieces.concat().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        check(WHOLE.replace("variables.names.join(',')", &expression));
    }

    #[test]
    fn a_rule_file_with_parts_cut_out_and_put_elsewhere_is_checked_without_a_panic(
        cuts in prop::collection::vec((any::<Index>(), 0_usize..40, any::<Index>()), 1..4),
    ) {
        let mut text = WHOLE.to_owned();
        for (from, length, to) in cuts {
            let boundary = |mut at: usize, text: &str| { while !text.is_char_boundary(at) { at -= 1; } at };
            let start = boundary(from.index(text.len()), &text);
            let end = boundary((start + length).min(text.len()), &text);
            let part: String = text.drain(start..end).collect();
            let to = boundary(to.index(text.len()), &text);
            text.insert_str(to, &part);
        }
        check(text);
    }
}

#[test]
fn the_whole_language_is_right_as_it_stands() {
    let (_, found) = super::files(&[SourceFile::new("x.yaml", WHOLE)], &crds(), builtin());
    insta::assert_snapshot!(human::render(&found, human::Style::default()));
}

#[test]
fn conditions_in_conditions_take_no_time() {
    let started = std::time::Instant::now();
    let nested = (0..30).fold("true".to_owned(), |inner, _| format!("({inner} ? has(self.spec.mtu) : false)"));
    check(WHOLE.replace("variables.names.join(',')", &format!("{nested} ? 'a' : 'b'")));
    let maps = (0..20).fold("b'x'".to_owned(), |inner, _| format!("{{'a': {inner}}}"));
    check(WHOLE.replace("has(self.spec.mtu) && self.spec.mtu > 9000", &maps).replace("[{port: ", "${variables.big} #"));
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}
