//! What holds for every input: no panic, spans that can be drawn, content that leads back to the file, equal results.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::template::{Reader, Template};
use super::super::yaml::{self, Node, NodeKind, Style, Text};
use super::super::{ChildState, Observed, Program};
use super::{network, outcome, program};
use crate::diagnostic::{Location, SourceFile, Span, human, json, sarif, sort};

/// Characters that mean something in YAML, in CEL or in a template, and some that need care.
const FRAGMENTS: &[&str] = &[
    "${",
    "}",
    "$${",
    "$",
    "{",
    "[",
    "]",
    ",",
    ": ",
    ":",
    "- ",
    "-",
    "? ",
    "\n",
    "\n  ",
    "\n    ",
    "  ",
    " ",
    "\t",
    "\r\n",
    "\r",
    "'",
    "\"",
    "''",
    "\\",
    "\\n",
    "\\x",
    "#",
    " # ",
    "&a ",
    "*a",
    "!!str ",
    "!has(",
    "|\n",
    "|-\n",
    ">\n",
    ">2\n",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "<<: ",
    "\u{feff}",
    "\0",
    "\u{85}",
    "\u{2028}",
    "é",
    "😀",
    "~",
    "null",
    "true",
    "yes",
    "0x1F",
    "1_0",
    "1e3",
    ".5",
    "99999999999999999999",
    "self.spec.cidr",
    "variables.a",
    "resources.a.b",
    "has(x)",
    " ? ",
    " + ",
    "//",
    "r'",
    "'''",
    "`",
    "a",
    "b",
    "apiVersion: rules.samplecrd.k8s.io/v1alpha1\n",
    "kind: RuleSet\n",
    "metadata: {name: a}\n",
    "spec:\n",
    "  for: {apiVersion: a/v1, kind: A}\n",
    "  variables:\n",
    "  resources:\n",
    "    - id: a\n",
    "      when: ",
    "      forEach: {i: ",
    "      manifest:\n",
    "        apiVersion: v1\n",
    "        kind: ConfigMap\n",
    "        metadata: {name: ",
    "      patches:\n",
    "        - {op: add, path: /data/a, value: ",
    "  validations:\n",
    "    - rule: ",
    "  status:\n",
];

const RULES: &str = include_str!("whole.yaml");

fn fragments() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(FRAGMENTS), 0..60).prop_map(|parts| parts.concat().into_bytes())
}

/// A right rule file with a few bytes taken away, put in or doubled.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<prop::sample::Index>(), 0..8_usize, prop::sample::select(FRAGMENTS), any::<bool>());
    prop::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut bytes = RULES.as_bytes().to_vec();
        for (at, remove, insert, raw) in edits {
            let at = at.index(bytes.len());
            let end = (at + remove).min(bytes.len());
            let insert = if raw { &[0xc3_u8, 0x28][..] } else { insert.as_bytes() };
            bytes.splice(at..end, insert.iter().copied());
        }
        bytes
    })
}

fn in_file(at: &Location) -> bool {
    let text = &at.file.text;
    let Span { start, end } = at.span;
    start <= end && end <= text.len() && text.is_char_boundary(start) && text.is_char_boundary(end)
}

/// Loads, and where that gives programs, renders; draws every message in every form.
fn survive(bytes: Vec<u8>) -> Result<(), TestCaseError> {
    let file = SourceFile::from_bytes("rules/a.yaml", bytes);
    let (programs, mut faults) = Program::load(&[file]);
    sort(&mut faults);
    for fault in &faults {
        prop_assert!(in_file(&fault.at), "{fault:?}");
        prop_assert!(fault.related.iter().all(|(at, _)| in_file(at)), "{fault:?}");
        prop_assert!(!fault.message.contains('\n'), "{fault:?}");
    }
    human::render(&faults, human::Style::default());
    human::render(&faults, human::Style { colour: true, width: 40 });
    json::render(&faults);
    sarif::render(&faults);
    for program in &programs {
        let rendered = program.render(&network(), &Observed::default());
        for child in &rendered.children {
            match &child.state {
                ChildState::Failed(fault) => prop_assert!(in_file(&fault.at), "{fault:?}"),
                ChildState::Desired(manifest) => prop_assert!(!super::super::compile::has_null(manifest)),
                ChildState::Waiting(ids) => prop_assert!(!ids.is_empty()),
            }
        }
    }
    Ok(())
}

/// The scalar of `a: SCALAR`.
fn scalar(text: &str) -> Option<Text> {
    let (documents, faults) = yaml::parse(&SourceFile::new("a.yaml", text));
    if !faults.is_empty() {
        return None;
    }
    match documents.into_iter().next()?.kind {
        NodeKind::Map(entries) => entries.into_iter().next()?.value.text().cloned(),
        NodeKind::Scalar(_) | NodeKind::List(_) | NodeKind::Refused => None,
    }
}

/// Every character of the content, and what stands in the file where it is said to come from.
fn origins(text: &Text, source: &str) -> Vec<(char, String)> {
    let origin = |(at, c): (usize, char)| {
        let span = text.span_of(source, at..at + c.len_utf8());
        (c, source[span.start..span.end].to_owned())
    };
    text.value.char_indices().map(origin).collect()
}

proptest! {

    #[test]
    fn no_bytes_make_the_loader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survive(bytes)?;
    }

    #[test]
    fn no_mixture_of_fragments_makes_the_loader_panic(bytes in fragments()) {
        survive(bytes)?;
    }

    #[test]
    fn no_edit_of_a_rule_file_makes_the_loader_panic(bytes in mutated()) {
        survive(bytes)?;
    }

    #[test]
    fn content_in_double_quotes_leads_back_to_its_escapes(content in "[a-zé😀 '\"\\\\\n\t\u{7}${}]{0,30}") {
        let quoted = Value::String(content.clone()).to_string();
        let source = format!("a: {quoted}\n");
        let text = scalar(&source).expect("a scalar");
        prop_assert_eq!(&text.value, &content);
        for (c, written) in origins(&text, &source) {
            let escaped = Value::String(c.to_string()).to_string();
            prop_assert_eq!(written, &escaped[1..escaped.len() - 1]);
        }
    }

    #[test]
    fn content_in_single_quotes_leads_back_to_the_file(content in "[a-zé😀 '\"\\\\${}]{1,30}") {
        let source = format!("a: '{}'\n", content.replace('\'', "''"));
        let text = scalar(&source).expect("a scalar");
        prop_assert_eq!(&text.value, &content);
        for (c, written) in origins(&text, &source) {
            prop_assert_eq!(written, if c == '\'' { "''".to_owned() } else { c.to_string() });
        }
    }

    #[test]
    fn content_of_blocks_leads_back_to_the_file(
        lines in prop::collection::vec("[a-zé😀'\"\\\\#:${}][a-zé 😀'\"\\\\#:${}]{0,20}", 1..6),
        indent in 1..6_usize,
        folded in any::<bool>(),
        windows in any::<bool>(),
    ) {
        let newline = if windows { "\r\n" } else { "\n" };
        let body: String = lines.iter().map(|line| format!("{}{line}{newline}", " ".repeat(indent))).collect();
        let source = format!("a: {}{newline}{body}b: c{newline}", if folded { ">" } else { "|" });
        let text = scalar(&source).expect("a scalar");
        prop_assert_eq!(text.style, if folded { Style::Folded } else { Style::Literal });
        for (c, written) in origins(&text, &source) {
            if c != ' ' && c != '\n' {
                prop_assert_eq!(written, c.to_string());
            }
        }
    }

    #[test]
    fn content_of_plain_lines_leads_back_to_the_file(words in prop::collection::vec("[a-zé😀${}]{1,8}", 1..12), wrap in 1..5_usize) {
        let lines: Vec<String> = words.chunks(wrap).map(|words| words.join(" ")).collect();
        let source = format!("a: x{}\n", lines.join("\n   "));
        if let Some(text) = scalar(&source) {
            for (c, written) in origins(&text, &source) {
                if c != ' ' {
                    prop_assert_eq!(written, c.to_string());
                }
            }
        }
    }

    #[test]
    fn any_text_can_be_written_in_a_template(content in "[a-z${}'\" ]{0,30}") {
        let file = SourceFile::new("a.yaml", "");
        let mut faults = Vec::new();
        let text = Text { value: content.replace("${", "$${"), style: Style::Double, span: Span::default() };
        let template = Reader::new(&file, &mut faults).template(&text);
        prop_assert!(faults.is_empty());
        let Template::Literal(literal) = template else { return Err(TestCaseError::fail("an expression")) };
        prop_assert_eq!(literal, content);
    }

    #[test]
    fn numbers_are_what_was_written_or_refused(text in "[-+]?[0-9_.]{1,24}([eE][-+]?[0-9]{1,3})?|0[xob][0-9a-fA-F_]{1,8}") {
        let text = Text { value: text, style: Style::Plain, span: Span::default() };
        if let Ok(yaml::Scalar::Number(number)) = text.resolve() {
            prop_assert_eq!(number.to_string(), text.value);
        }
    }

    #[test]
    fn a_patch_that_fails_leaves_no_half_changed_object(
        operations in prop::collection::vec(
            prop::sample::select(vec![
                "{op: add, path: /data/b, value: 1}",
                "{op: remove, path: /data/a}",
                "{op: remove, path: /data/b}",
                "{op: move, from: /data/a, path: /data/b}",
                "{op: copy, from: /data/b, path: /data/c}",
                "{op: replace, path: /data/c, value: x}",
                "{op: test, path: /data/a, value: x}",
                "{op: test, path: /data/c, value: x}",
                "{op: add, path: /data/d/e, value: x}",
            ]),
            0..8,
        )
    ) {
        let spec = |operations: &[&str]| {
            let list: String = operations.iter().map(|operation| format!("        - {operation}\n")).collect();
            format!("  resources:\n    - id: a\n      manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{a: x}}}}\n      patches:\n{list}        - {{op: test, path: /kind, value: ConfigMap}}\n")
        };
        // The same operations one by one: each prefix either works or fails, and after a failure every longer one fails.
        let mut broken = false;
        for end in 0..=operations.len() {
            let child = super::render(&spec(&operations[..end])).children.remove(0);
            let failed = matches!(child.state, ChildState::Failed(_));
            prop_assert!(failed || !broken);
            broken = failed;
        }
    }
}

#[test]
fn a_message_that_quotes_several_lines_is_one_line() {
    let long = "x".repeat(100_000);
    let text = format!("apiVersion: rules.samplecrd.k8s.io/v1alpha1\n\n  b\nkind: RuleSet\n{long}: a\n");
    survive(text.into_bytes()).expect("no panic");
}

#[test]
fn rendering_is_the_same_every_time() {
    let (_, spec) =
        RULES.split_once("  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}\n").expect("the shipped form");
    let parent = json!({
        "apiVersion": "samplecrd.k8s.io/v1",
        "kind": "Network",
        "metadata": {"name": "example", "namespace": "default", "labels": {"z": "1", "y": "2", "x": "3", "w": "4", "v": "5"}},
        "spec": {"cidr": "10.0.0.0/8", "subnets": [{"name": "a"}, {"name": "b"}], "labels": {"e": "1", "d": "2", "c": "3", "b": "4"}},
    });
    let first = program(spec).render(&parent, &Observed::default());
    assert!(!first.children.is_empty());
    for _ in 0..20 {
        // Compiled anew, and with new maps: nothing may depend on a hash's seed.
        let again = program(spec).render(&parent, &Observed::default());
        let bytes = |rendered: &super::super::Rendered| serde_json::to_string(&outcome(rendered)).expect("JSON");
        assert_eq!(bytes(&again), bytes(&first));
    }
}

#[test]
fn a_revision_follows_the_text_of_its_own_rule_set_alone() {
    let set = |name: &str, variable: &str| {
        format!(
            "apiVersion: rules.samplecrd.k8s.io/v1alpha1\nkind: RuleSet\nmetadata: {{name: {name}}}\nspec:\n  for: {{apiVersion: a/v1, kind: A}}\n  variables: {{v: {variable}}}\n"
        )
    };
    let revisions = |text: &str| -> Vec<String> {
        let (programs, faults) = Program::load(&[SourceFile::new("a.yaml", text)]);
        assert_eq!(faults, []);
        programs.iter().map(|program| program.revision().to_owned()).collect()
    };
    let alone = revisions(&set("a", "self.x"));
    let both = revisions(&format!("{}---\n{}", set("b", "self.y"), set("a", "self.x")));
    assert_eq!(alone[0], both[1]);
    assert_ne!(both[0], both[1]);
    assert_eq!(revisions(&set("a", "self.x").replace('\n', "\r\n")), alone);
    assert_ne!(revisions(&set("a", "self.z")), alone);
    assert_eq!(alone[0].len(), 12);
}

/// The depth of a tree, to be sure that what is dropped and walked recursively is shallow.
fn depth(node: &Node) -> usize {
    match &node.kind {
        NodeKind::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        NodeKind::Map(entries) => 1 + entries.iter().map(|entry| depth(&entry.value)).max().unwrap_or(0),
        NodeKind::Scalar(_) | NodeKind::Refused => 0,
    }
}

#[test]
fn aliases_cannot_make_a_tree_deeper_than_the_limit() {
    let levels = (1..200).map(|level| format!("a{level}: &a{level} [*a{}]\n", level - 1));
    let text: String = std::iter::once("a0: &a0 [x]\n".to_owned()).chain(levels).collect();
    let (documents, faults) = yaml::parse(&SourceFile::new("a.yaml", text));
    assert!(faults.iter().any(|fault| fault.code == "too-deep"));
    assert!(documents.iter().all(|document| depth(document) <= yaml::MAX_DEPTH));
}
