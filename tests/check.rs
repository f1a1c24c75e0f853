//! What the checker says of whole rule files: `tests/check/CASE.yaml` is checked against `tests/check/crd.yaml` and the
//! kinds built in, and what it says, as a person sees it, is the snapshot `CASE`.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases has failed")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use network_operator::diagnostic::{SourceFile, human};
use network_operator::rules::schema::Layered;
use network_operator::rules::schema::builtin::builtin;
use network_operator::rules::schema::crd::CrdSchema;
use network_operator::rules::{check, compile, file};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check"))
}

fn crds() -> Vec<CrdSchema> {
    let text = fs::read_to_string(folder().join("crd.yaml")).unwrap();
    let documents =
        text.split("\n---\n").map(|document| serde_saphyr::from_str::<serde_json::Value>(document).unwrap());
    documents.flat_map(|crd| CrdSchema::read(&crd).unwrap()).collect()
}

/// The files of the cases, by name.
fn cases(prefix: &str) -> Vec<Arc<SourceFile>> {
    let mut paths: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let wanted = paths
        .iter()
        .filter(|path| name(path) != "crd.yaml" && name(path).starts_with("object-") == (prefix == "object-"));
    wanted.map(|path| SourceFile::new(name(path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_fault_of_a_rule_file_is_said_where_it_is_with_what_to_write_instead() {
    insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "check/snapshots", omit_expression => true}, {
        for file in cases("") {
            let (_, found) = check::files(&[Arc::clone(&file)], &crds(), builtin());
            let name = file.path.trim_end_matches(".yaml");
            insta::assert_snapshot!(name, human::render(&found, human::Style::default()));
        }
    });
}

#[test]
fn example_objects_are_checked_against_the_crd() {
    insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "check/snapshots", omit_expression => true}, {
        for file in cases("object-") {
            let found = check::objects(&file, &crds());
            let name = file.path.trim_end_matches(".yaml");
            insta::assert_snapshot!(name, human::render(&found, human::Style::default()));
        }
    });
}

#[test]
fn the_shipped_rules_give_the_checker_nothing_to_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crd = serde_saphyr::from_str(&fs::read_to_string(root.join("crds/networks.yaml")).unwrap()).unwrap();
    let crds = CrdSchema::read(&crd).unwrap();
    let file = SourceFile::new("rules/network.yaml", fs::read_to_string(root.join("rules/network.yaml")).unwrap());
    let (programs, found) = check::files(&[file], &crds, builtin());
    assert_eq!(human::render(&found, human::Style::default()), "");
    assert_eq!(programs.len(), 1);
}

#[test]
fn the_recipes_of_the_cookbook_give_the_checker_nothing_to_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| -> Vec<CrdSchema> {
        let text = fs::read_to_string(path).unwrap();
        CrdSchema::read(&serde_saphyr::from_str(&text).unwrap()).unwrap()
    };
    let mut said = String::new();
    let mut recipes: Vec<_> =
        fs::read_dir(root.join("rules/cookbook")).unwrap().map(|entry| entry.unwrap().path()).collect();
    recipes.sort();
    for recipe in recipes.iter().filter(|recipe| recipe.join("rules.yaml").exists()) {
        let mut crds = read(&root.join("crds/networks.yaml"));
        if recipe.join("crd.yaml").exists() {
            crds.extend(read(&recipe.join("crd.yaml")));
        }
        let name = recipe.file_name().unwrap().to_string_lossy().into_owned();
        let file = SourceFile::new(name, fs::read_to_string(recipe.join("rules.yaml")).unwrap());
        let (_, found) = check::files(&[file], &crds, &Layered(vec![builtin(), &crds]));
        said += &human::render(&found, human::Style::default());
    }
    assert_eq!(said, "");
}

#[test]
fn a_slip_in_any_name_of_the_shipped_rules_is_an_error() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crd = serde_saphyr::from_str(&fs::read_to_string(root.join("crds/networks.yaml")).unwrap()).unwrap();
    let crds = CrdSchema::read(&crd).unwrap();
    let text = fs::read_to_string(root.join("rules/network.yaml")).unwrap();
    let file = SourceFile::new("rules/network.yaml", text.clone());
    let (sets, _) = compile::read(&[file]);
    // Each name once: the place where it is used last.
    let mut names = std::collections::BTreeMap::new();
    for set in &sets {
        file::each_expression(set, &mut |expression| {
            let source = expression.source();
            // Names after a dot, and names before a parenthesis: fields and functions.
            for (start, word) in words(source) {
                let after_dot = source[..start].ends_with(['.', '?']);
                if word.len() >= 4 && (after_dot || source[start + word.len()..].starts_with('(')) {
                    names.insert(word.to_owned(), expression.at_range(start..start + word.len()).span);
                }
            }
        });
    }
    assert!(names.len() > 30, "only {} names", names.len());
    let mut missed = Vec::new();
    for span in names.into_values() {
        let word = &text[span.start..span.end];
        // Two letters change places; if they are the same, one is doubled.
        let (a, b) = (&word[1..2], &word[2..3]);
        let slip = if a == b {
            format!("{}{a}{}", &word[..1], &word[1..])
        } else {
            format!("{}{b}{a}{}", &word[..1], &word[3..])
        };
        let wrong = format!("{}{slip}{}", &text[..span.start], &text[span.end..]);
        let (_, found) = check::files(&[SourceFile::new("rules/network.yaml", wrong)], &crds, builtin());
        let line = text[..span.start].matches('\n').count() + 1;
        // The message is at the slip, and proposes what was there.
        let told = found
            .iter()
            .any(|fault| fault.at.span.start == span.start && fault.help.iter().any(|help| help.contains(word)));
        if !told {
            missed.push(format!("line {line}: `{slip}` for `{word}`: {:?}", found.first().map(ToString::to_string)));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// The words of a text and where they begin; those in quotes are left out.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let (mut quoted, mut start) = (false, None);
    for (index, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let is_word = c.is_ascii_alphanumeric() && !quoted;
        match (start, is_word) {
            (None, true) => start = Some(index),
            (Some(from), false) => {
                words.push((from, &text[from..index]));
                start = None;
            }
            _ => {}
        }
        quoted ^= c == '\'';
    }
    words
}
