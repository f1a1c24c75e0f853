//! Every kind of fault in a rule file, as a person reads it. The snapshots are the reference of the messages.

use std::sync::Arc;

use super::super::Program;
use super::super::yaml;
use super::rule_file;
use crate::diagnostic::{SourceFile, human, json, sarif, sort};

/// What is said about these files.
pub(super) fn told(files: &[Arc<SourceFile>]) -> String {
    let (_, mut faults) = Program::load(files);
    sort(&mut faults);
    human::render(&faults, human::Style::default())
}

/// A test per message: what is under `spec`, and the snapshot of all that is said about it.
macro_rules! spec {
    ($($name:ident: $text:expr;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(told(&[rule_file($text)]));
        }
    )*};
}

/// The same with a whole file.
macro_rules! file {
    ($($name:ident: $text:expr;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(told(&[SourceFile::new("rules/network.yaml", $text)]));
        }
    )*};
}

/// A resource with this `data` (a flow mapping or a block indented by ten).
fn config(data: &str) -> String {
    format!(
        "  resources:
    - id: config
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {{name: \"${{self.metadata.name}}\"}}
        data:{data}
"
    )
}

// YAML

spec! {
    a_conditional_expression_without_quotes: &config("\n          a: ${has(self.spec.gateway) ? self.spec.gateway : 'none'}");
    a_hash_inside_an_expression_without_quotes: &config("\n          a: ${self.spec.cidr + ' # ' + self.spec.gateway}");
    an_expression_inside_a_flow_mapping: &config(" {a: ${self.spec.cidr}, b: c}");
    an_expression_inside_a_flow_list: &config(" {a: [x, ${self.spec.cidr}]}");
    a_bare_expression_with_a_colon: "  variables:\n    mask: has(self.spec.gateway) ? 1 : 2\n";
    a_bare_expression_that_begins_with_not: "  validations:\n    - rule: !has(self.spec.gateway)\n";
    a_bare_expression_that_begins_with_not_and_goes_on: "  validations:\n    - rule: !has(self.spec.gateway) || self.spec.gateway != ''\n";
    a_bare_expression_that_begins_with_a_quote: "  validations:\n    - rule: 'a' in self.spec.labels\n";
    a_bare_expression_that_begins_with_a_list: "  validations:\n    - rule: ['a', 'b'].exists(x, x == self.spec.cidr)\n";
    a_bare_expression_that_a_comment_cuts: "  variables:\n    mask: self.spec.cidr + ' # ' + self.spec.gateway\n";
    a_missing_space_after_a_colon: "  variables:\n    a:self.spec.cidr\n    b: self.spec.gateway\n";
    a_template_inside_a_flow_mapping: &config(" {a: x-${self.metadata.name}-${self.spec.cidr}-y, b: c}");
    an_expression_inside_a_flow_mapping_of_several_lines: &config(" {\n          a: b,\n          c: ${self.spec.cidr}\n        }");
    double_braces_of_another_template_language: &config("\n          a: {{ .Values.a }}\n          b: ${{self.spec.cidr}}");
    quotes_inside_the_same_quotes: "  validations:\n    - rule: 'has(self.spec.x) ? self.spec.x : 'none''\n";
    a_block_expression_without_text: "  validations:\n    - rule: |\n    - rule: self.spec.cidr != ''\n";
    a_dash_without_a_space: "  validations:\n    -rule: self.spec.cidr != ''\n";
    a_list_expression_where_for_each_wants_a_name: "  resources:\n    - id: a\n      forEach: self.spec.subnets\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
    a_tab_as_indentation: "  variables:\n\tmask: self.spec.cidr\n";
    a_duplicate_key: "  variables:\n    mask: self.spec.cidr\n    size: self.spec.size\n    mask: self.spec.mask\n";
    numbers_that_yaml_would_bend: &config("\n          a: 0340914\n          b: 1_000\n          c: 0x10\n          d: 1e3\n          e: .5\n          f: 1.10\n          g: 99999999999999999999\n          h: 0.12345678901234567890\n          i: +1\n          j: .inf");
    a_key_that_yaml_would_bend: &config(" {0123: a}");
    null_by_its_short_name: &config("\n          a: ~");
    null_by_its_long_name: &config("\n          a: null\n          b: [Null]");
    a_line_break_after_an_expression: &config("\n          a: |\n            ${self.spec.size}\n");
    a_key_without_a_value: &config("\n          a:\n          b: x");
    words_that_yaml_1_1_bends: &config("\n          a: yes\n          b: off\n          c: 12:30");
    a_merge_key: "  variables: &v\n    a: self.spec.cidr\n  resources:\n    - <<: *v\n      id: a\n";
    an_alias_of_nothing: "  variables:\n    a: *b\n";
    an_alias_inside_itself: "  variables: &v\n    a: *v\n";
    a_tag: &config("\n          a: !!binary aGVsbG8=");
    a_list_as_a_key: &config("\n          ? [a, b]\n          : c");
    a_quote_that_is_not_closed: &config("\n          a: \"${self.spec.cidr}\n          b: c\n");
    a_bracket_that_is_not_closed: &config(" {a: b\n");
    a_wrong_indentation: "  variables:\n    a: self.spec.cidr\n   b: self.spec.cidr\n";
    an_unknown_escape: &config("\n          a: \"\\d+\"");
    a_value_that_begins_with_a_percent_sign: &config("\n          a: %d");
    a_list_item_after_a_value: "  variables: self\n    - a\n";
    text_after_a_closing_quote: &config("\n          a: \"b\" c");
    text_after_a_closing_bracket: &config("\n          a: [b] c");
}

#[test]
fn billions_of_laughs_are_cut_short() {
    let level = |level: usize| format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "));
    let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    let text: String = std::iter::once(first).chain((1..=12).map(level)).collect();
    insta::assert_snapshot!(told(&[SourceFile::new("rules/network.yaml", text)]));
}

#[test]
fn nesting_has_a_limit() {
    let text = format!("a: {}x{}\n", "[".repeat(150), "]".repeat(150));
    insta::assert_snapshot!(told(&[SourceFile::new("rules/network.yaml", text)]));
}

#[test]
fn the_number_of_nodes_has_a_limit() {
    let text = format!("a: [{}]\n", "x,".repeat(300_000));
    insta::assert_snapshot!(told(&[SourceFile::new("rules/network.yaml", text)]));
}

#[test]
fn bytes_that_are_no_text_are_told_with_their_place() {
    let broken: [&[u8]; 3] = [b"kind: Rule\xffSet\n", b"\xff\xfek\0i\0", b"kind: \0\n"];
    let files = broken.map(|bytes| SourceFile::from_bytes("rules/network.yaml", bytes.to_vec()));
    let faults: Vec<_> = files.iter().flat_map(|file| yaml::parse(file).1).collect();
    assert_eq!(faults.len(), 3);
    insta::assert_snapshot!(human::render(&faults, human::Style::default()));
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let file = SourceFile::from_bytes("rules/network.yaml", vec![b'#'; 11 * 1024 * 1024]);
    insta::assert_snapshot!(told(&[file]));
}

file! {
    a_control_character: "kind: Rule\u{7}Set\n";
    a_file_without_a_rule_set: "# nothing yet\n";
    a_kubernetes_object_in_a_rule_file: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n";
    a_list_as_a_document: "- a\n- b\n";
    a_fault_in_one_document_does_not_hide_the_next: "kind: [RuleSet\n---\nkind: RuleSets\n";
    a_name_that_is_a_number: "apiVersion: rules.samplecrd.k8s.io/v1alpha1\nkind: RuleSet\nmetadata: {name: 1}\nspec: {for: {apiVersion: v1, kind: network}}\n";
    a_file_with_windows_line_ends: "apiVersion: rules.samplecrd.k8s.io/v1alpha1\r\nkind: RuleSet\r\nmetadata: {name: a}\r\nspec:\r\n  for: {apiVersion: a/v1, kind: A}\r\n  variables:\r\n    a: >-\r\n      self.spec.cidr +\r\n      selv.spec\r\n";
}

// Fields

spec! {
    an_unknown_field_and_its_neighbour: "  resources:\n    - id: a\n      wen: has(self.spec.gateway)\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
    an_unknown_field_without_a_neighbour: "  templates: []\n";
    a_missing_manifest: "  resources:\n    - id: a\n      when: 'true'\n";
    a_mapping_where_a_list_belongs: "  resources:\n    a: {id: a}\n";
    a_list_where_an_expression_belongs: "  validations:\n    - rule: [a]\n";
    a_field_without_a_value: "  validations:\n    - rule:\n";
    an_unknown_word: &format!("{}      onExists: adapt\n      onDelete: none\n", config(" {}"));
    names_that_expressions_cannot_read: "  variables:\n    dns-servers: self.spec.dns\n    in: self.spec.x\n    self: self.spec.y\n    1st: self.spec.z\n";
    an_id_that_expressions_cannot_read: "  resources:\n    - id: my-config\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n    - id: Config\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n";
    two_resources_of_one_id: "  resources:\n    - id: a\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n    - id: a\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n";
    an_item_key_without_items: "  resources:\n    - id: a\n      itemKey: self.metadata.name\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
    two_names_in_for_each: "  resources:\n    - id: a\n      forEach: {k: self.spec.labels, v: self.spec.labels}\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
    a_list_in_for_each: "  resources:\n    - id: a\n      forEach: {k: [a, b]}\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
    a_variable_that_is_a_list: "  variables:\n    a: [1, 2]\n";
    a_template_in_a_message: "  validations:\n    - rule: self.spec.cidr != ''\n      message: the cidr ${self.spec.cidr} is bad\n";
    a_template_where_cel_is_expected: "  resources:\n    - id: a\n      when: ${has(self.spec.gateway)}\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
    patches_that_lack_a_part_or_have_one_too_many: &format!("{}      patches:\n        - {{op: add, path: /data/a}}\n        - {{op: move, path: /data/a}}\n        - {{op: remove, path: /data/a, value: x}}\n        - {{op: merge, path: /data/a}}\n", config(" {}"));
    pointers_that_are_none: &format!("{}      patches:\n        - {{op: remove, path: data.a}}\n        - {{op: remove, path: /data/a~b}}\n        - {{op: remove, path: \"/data/${{self.metadata.name}}\"}}\n", config(" {}"));
    a_parent_that_is_no_kind: "  validations: []\n  forr: {}\n";
}

// Expressions

spec! {
    a_syntax_error_inside_a_plain_scalar: &config("\n          a: ${self.spec.}");
    a_syntax_error_inside_double_quotes_after_an_escape: &config("\n          a: \"é\\u00e9\\t${self.spec.cidr +}\"");
    a_syntax_error_inside_single_quotes_after_a_doubled_quote: &config("\n          a: 'it''s ${size(''a'' + )}'");
    a_syntax_error_inside_a_literal_block: &config("\n          a: |\n            first line\n            second ${self.spec.cidr ++ 1} line");
    a_syntax_error_inside_a_folded_block: &config("\n          a: >-\n            ${self.spec.cidr\n            + )}");
    a_syntax_error_on_the_second_line_of_double_quotes: &config("\n          a: \"first\n            second ${self.spec.cidr + }\"");
    an_expression_that_is_not_closed: &config("\n          a: \"${self.spec.cidr\"");
    an_expression_that_is_empty: &config("\n          a: \"${ }\"");
    a_string_that_is_not_closed: &config("\n          a: \"${self.spec.cidr + 'a}\"");
}

// Manifests

/// A resource with this manifest.
fn manifest(manifest: &str) -> String {
    format!("  resources:\n    - id: a\n      manifest: {manifest}\n")
}

spec! {
    a_manifest_without_anything: &manifest("{data: {}}");
    a_manifest_without_a_name: &manifest("{apiVersion: v1, kind: ConfigMap, metadata: {labels: {}}}");
    a_kind_that_is_computed: &manifest("{apiVersion: v1, kind: \"${self.spec.kind}\", metadata: {name: a}}");
    a_kind_in_small_letters: &manifest("{apiVersion: v1, kind: configmap, metadata: {name: a}}");
    an_api_version_with_two_slashes: &manifest("{apiVersion: a/b/v1, kind: ConfigMap, metadata: {name: a}}");
    metadata_that_the_engine_owns: &manifest("\n        apiVersion: v1\n        kind: ConfigMap\n        metadata:\n          name: a\n          namespace: other\n          ownerReferences: []\n          labels: {app.kubernetes.io/managed-by: me, samplecrd.k8s.io/network: x}\n          resourceVersion: '1'\n        status: {}");
    a_name_that_can_never_be_valid: &manifest("{apiVersion: v1, kind: Service, metadata: {name: My_Service}}");
    a_template_whose_name_can_never_be_valid: &manifest("{apiVersion: v1, kind: ConfigMap, metadata: {name: \"${self.metadata.name}_config\"}}");
    a_patch_of_what_the_engine_owns: &format!("{}      patches:\n        - {{op: add, path: /metadata/namespace, value: x}}\n        - {{op: replace, path: /kind, value: Secret}}\n        - {{op: add, path: /metadata/labels/app.kubernetes.io~1managed-by, value: me}}\n", config(" {}"));
    a_status_field_with_a_computed_name: "  status:\n    ${self.metadata.name}: a\n";
}

// References

spec! {
    a_field_without_self: &config("\n          a: ${spec.cidr}");
    a_variable_without_its_prefix: "  variables:\n    prefix: '24'\n    mask: prefix + 1\n";
    a_misspelt_variable: "  variables:\n    prefix: '24'\n    mask: variables.prefx + 1\n";
    a_misspelt_resource: &format!("{}  status:\n    a: ${{resources.?confg.?data}}\n", config(" {}"));
    a_name_that_nobody_declared: &config("\n          a: ${network.spec.cidr}");
    resources_read_in_a_validation: "  validations:\n    - rule: has(resources.a)\n";
    resources_read_by_a_variable_of_a_validation: &format!("{}  variables:\n    b: resources.config.data\n  validations:\n    - rule: variables.b.a == ''\n", config(" {}"));
    resource_read_outside_ready_when: &config("\n          a: ${resource.spec.x}");
    resources_by_a_computed_name: &config("\n          a: ${resources[self.metadata.name].data.a}");
    variables_in_a_circle: "  variables:\n    a: variables.b + 1\n    b: variables.c + 1\n    c: variables.a + 1\n";
    a_resource_that_reads_itself: &config("\n          a: ${resources.config.data.b}");
    resources_in_a_circle: "  variables:\n    ip: resources.b.spec.clusterIP\n  resources:\n    - id: a\n      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {ip: \"${variables.ip}\"}}\n    - id: b\n      manifest: {apiVersion: v1, kind: Service, metadata: {name: b}, spec: {type: \"${resources.a.data.type}\"}}\n";
}

#[test]
fn variables_may_not_build_on_each_other_for_ever() {
    let chain: String = (1..200).map(|i| format!("    v{i}: variables.v{} + 1\n", i - 1)).collect();
    let told = told(&[rule_file(&format!("  variables:\n    v0: self.spec.size\n{chain}"))]);
    insta::assert_snapshot!(told.split("\n\n").next().expect("a message"));
}

#[test]
fn two_rule_sets_of_one_name() {
    let set = "apiVersion: rules.samplecrd.k8s.io/v1alpha1\nkind: RuleSet\nmetadata: {name: network}\nspec: {for: {apiVersion: a/v1, kind: A}}\n";
    let files = [SourceFile::new("rules/a.yaml", set), SourceFile::new("rules/b.yaml", set)];
    assert_eq!(Program::load(&files).0.len(), 0);
    insta::assert_snapshot!(told(&files));
}

#[test]
fn a_rule_set_with_a_fault_does_not_stop_the_next() {
    let set = |name: &str, field: &str| {
        format!(
            "apiVersion: rules.samplecrd.k8s.io/v1alpha1\nkind: RuleSet\nmetadata: {{name: {name}}}\nspec: {{{field}: {{apiVersion: a/v1, kind: A}}}}\n"
        )
    };
    let text = format!("{}---\n{}", set("good", "for"), set("bad", "four"));
    let (programs, faults) = Program::load(&[SourceFile::new("rules/network.yaml", text)]);
    assert_eq!(programs.iter().map(Program::name).collect::<Vec<_>>(), ["good"]);
    assert!(!faults.is_empty());
}

/// A file with an error that points to a second place, and a warning.
fn two_faults() -> Vec<crate::diagnostic::Diagnostic> {
    let spec = "  variables:\n    mask: self.spec.cidr\n    mask: self.spec.mask\n  status:\n    é: yes\n";
    let (_, mut faults) = Program::load(&[rule_file(spec)]);
    sort(&mut faults);
    faults
}

#[test]
fn machines_get_the_same_as_json() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&json::render(&two_faults())).expect("JSON"));
}

#[test]
fn code_hosting_services_get_the_same_as_sarif() {
    let mut log = sarif::render(&two_faults());
    log["runs"][0]["tool"]["driver"]["version"] = "VERSION".into();
    insta::assert_snapshot!(serde_json::to_string_pretty(&log).expect("JSON"));
}

#[test]
fn colour_changes_nothing_but_the_colour() {
    let coloured = human::render(&two_faults(), human::Style { colour: true, ..human::Style::default() });
    assert!(coloured.contains("\u{1b}["));
    let escape = regex::Regex::new("\u{1b}\\[[0-9;]*m").expect("a pattern");
    let bare: Vec<String> = escape.replace_all(&coloured, "").lines().map(|line| line.trim_end().to_owned()).collect();
    let plain = human::render(&two_faults(), human::Style::default());
    assert_eq!(bare, plain.lines().collect::<Vec<_>>());
}
