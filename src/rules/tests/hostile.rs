//! Files that are made to hurt: each ends within its bounds, and quickly.

use std::time::{Duration, Instant};

use super::super::Program;
use super::super::yaml::MAX_FAULTS;
use super::rule_file;
use crate::diagnostic::{SourceFile, human, sort};

/// A part of the largest file that is read: what takes too long with it takes minutes with that one.
const LARGE: usize = 2 * 1024 * 1024;

/// Loads a file and draws what is said of it. Generous with time, for test machines are slow and debug builds slower:
/// what must not happen is a minute.
fn load(what: &str, file: SourceFile) {
    let start = Instant::now();
    let (_, mut faults) = Program::load(&[file.into()]);
    sort(&mut faults);
    human::render(&faults, human::Style::default());
    assert!(faults.len() <= 3 * MAX_FAULTS, "{what}: {} faults", faults.len());
    let took = start.elapsed();
    assert!(took < Duration::from_secs(20), "{what} took {took:?}");
}

fn large(part: &str) -> String {
    part.repeat(LARGE / part.len())
}

fn plain(text: String) -> SourceFile {
    SourceFile { path: "rules/a.yaml".to_owned(), text, not_utf8: None }
}

fn rules(spec: &str) -> SourceFile {
    (*rule_file(&spec[..spec.len().min(LARGE - 1000)])).clone()
}

#[test]
fn megabytes_of_anything_end() {
    for part in [
        "a", " ", "\n", "[", "{", "- ", "a: b\n", "'", "\"\\", "${", "#", "&a ", "? ", "---\n", "é", "\u{feff}",
        "a: 'b'\n", "%",
    ] {
        load(part, plain(large(part)));
    }
}

#[test]
fn megabytes_of_expressions_end() {
    load("right ones", rules(&format!("  status:\n    a: \"{}\"\n", large("${a}"))));
    load("wrong ones", rules(&format!("  status:\n    a: \"{}\"\n", large("${+}"))));
    load("one that never ends", rules(&format!("  status:\n    a: \"{}\"\n", large("${ {"))));
    load("one long one", rules(&format!("  variables:\n    a: {}b\n", large("a + "))));
    load("one deep one", rules(&format!("  variables:\n    a: \"{}\"\n", large("("))));
}

#[test]
fn many_variables_and_resources_in_a_chain_end() {
    let variables: String = (1..3000).map(|i| format!("    v{i}: variables.v{}\n", i - 1)).collect();
    load("variables", rules(&format!("  variables:\n    v0: self.spec.cidr\n{variables}")));
    let circle: String = (1..3000).map(|i| format!("    v{i}: variables.v{}\n", i - 1)).collect();
    load("a circle", rules(&format!("  variables:\n    v0: variables.v2999\n{circle}")));
    let resources: String = (1..1000)
        .map(|i| format!("    - {{id: r{i}, manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: r{i}}}, data: {{a: \"${{resources.r{}.data.a}}\"}}}}}}\n", i - 1))
        .collect();
    load("resources", rules(&format!("  resources:\n{resources}")));
    let all: Vec<String> = (0..60).map(|i| format!("variables.v{i}")).collect();
    let dense: String = (0..60).map(|i| format!("    v{i}: {}\n", all.join(" + "))).collect();
    load("everything reads everything", rules(&format!("  variables:\n{dense}")));
}

#[test]
fn the_deepest_chain_of_variables_that_is_allowed_is_evaluated() {
    let chain: String = (1..53).map(|i| format!("    v{i}: variables.v{} + 1\n", i - 1)).collect();
    let rule = format!(
        "  variables:\n    v0: size(self.spec.subnets)\n{chain}  resources:\n    - id: a\n      manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{a: \"${{variables.v52}}\"}}}}\n"
    );
    let children = super::outcome(&super::render(&rule));
    assert_eq!(children[0].1["data"]["a"], 54);
}
