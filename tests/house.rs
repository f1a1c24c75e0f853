//! The house rules that no compiler and no linter holds: where dependencies come from and under which licences, which layer
//! may use which, and that a reader finds the way.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read the repository has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Licences that an Apache-2.0 program may be built from without asking anybody. To add one, read it first.
const LICENCES: [&str; 8] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// Longest source file, in lines, that a reader should be asked to hold in mind. Over it, split by meaning.
const FILE_MAX: usize = 600;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files below a folder.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut open = vec![repository().join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn short(path: &Path) -> String {
    path.strip_prefix(repository()).unwrap().display().to_string()
}

/// Whether an SPDX expression can be met by allowed licences alone. `/` is how `OR` was once written.
fn allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut at = 0;
    let result = either(&words, &mut at);
    result && at == words.len()
}

fn either(words: &[&str], at: &mut usize) -> bool {
    let mut result = both(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        result |= both(words, at);
    }
    result
}

fn both(words: &[&str], at: &mut usize) -> bool {
    let mut result = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        result &= one(words, at);
    }
    result
}

fn one(words: &[&str], at: &mut usize) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let result = either(words, at);
        *at += 1;
        return result;
    }
    if words.get(*at) == Some(&"WITH") {
        *at += 2;
        return words.get(*at - 1).is_some_and(|exception| LICENCES.contains(&&*format!("{word} WITH {exception}")));
    }
    LICENCES.contains(word)
}

#[test]
fn a_licence_expression_is_met_by_allowed_licences_alone() {
    for good in ["MIT", "GPL-3.0 OR MIT", "MIT/GPL-3.0", "(GPL-3.0 OR MIT) AND ISC", "Apache-2.0 WITH LLVM-exception"] {
        assert!(allowed(good), "{good}");
    }
    for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0", "MIT WITH something", "MIT MIT"] {
        assert!(!allowed(bad), "{bad}");
    }
}

#[test]
fn every_dependency_has_a_licence_that_we_may_use() {
    let host = Command::new("rustc").arg("-vV").output().expect("start rustc");
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc says its host");
    // Only what is compiled here: the manifests of other platforms' dependencies need not be on this machine.
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version=1", "--filter-platform", host])
        .current_dir(repository())
        .output()
        .expect("start cargo");
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "only {} packages", packages.len());
    let bad: Vec<_> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(allowed))
        .map(|package| format!("{} {}: {}", package["name"], package["version"], package["license"]))
        .collect();
    assert!(bad.is_empty(), "licences that are not in LICENCES:\n{}", bad.join("\n"));
}

#[test]
fn every_dependency_comes_from_the_public_registry_with_a_checksum() {
    for package in read("Cargo.lock").split("[[package]]").skip(1) {
        let field = |name: &str| package.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
        let name = field("name").expect("a name");
        match field("source") {
            None => assert_eq!(name, "\"network-operator\"", "a dependency that is not from the registry"),
            Some(source) => {
                assert_eq!(source, "\"registry+https://github.com/rust-lang/crates.io-index\"", "{name}");
                assert!(field("checksum").is_some(), "{name} has no checksum");
            }
        }
    }
}

/// The layers as the crate documentation gives them, lowest first: the modules of each.
fn layers() -> Vec<Vec<String>> {
    let text = read("src/lib.rs");
    let rows = text.lines().skip_while(|line| !line.starts_with("//! | layer |")).skip(2);
    rows.take_while(|line| line.starts_with("//! |"))
        .map(|row| {
            let modules = row.split('|').nth(2).expect("a column of modules");
            modules.split("[`").skip(1).map(|rest| rest.split('`').next().unwrap().to_owned()).collect()
        })
        .collect()
}

#[test]
fn every_module_is_in_the_table_of_layers() {
    let listed: Vec<_> = layers().concat();
    let text = read("src/lib.rs");
    let modules: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("pub mod ")).map(|rest| rest.trim_end_matches(';')).collect();
    assert!(modules.len() > 10);
    for module in modules {
        assert!(listed.iter().any(|name| name == module), "`{module}` is missing in the table of layers in src/lib.rs");
    }
}

#[test]
fn no_module_uses_one_of_a_higher_layer() {
    let layers = layers();
    let layer_of = |module: &str| layers.iter().position(|modules| modules.iter().any(|name| name == module));
    let mut faults = Vec::new();
    for path in rust_files("src") {
        let name = short(&path);
        let module = name.trim_start_matches("src/").split(['/', '.']).next().unwrap().to_owned();
        let Some(own) = layer_of(&module) else { continue };
        // What stands in tests may look anywhere.
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            for used in line.split("crate::").skip(1) {
                let used = used.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
                if layer_of(used).is_some_and(|layer| layer > own) {
                    faults.push(format!("{name}:{}: `{module}` uses `{used}`", number + 1));
                }
            }
        }
    }
    assert!(faults.is_empty(), "against the layers in src/lib.rs:\n{}", faults.join("\n"));
}

#[test]
fn the_rules_know_neither_a_cluster_nor_async() {
    for path in rust_files("src/rules") {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            for word in ["kube::", "tokio::", "async fn", ".await"] {
                assert!(!line.contains(word), "{}:{}: `{word}` in the pure layer", short(&path), number + 1);
            }
        }
    }
}

#[test]
fn every_file_says_its_place_in_the_flow_and_can_be_read_in_one_sitting() {
    let mut faults = Vec::new();
    for path in ["src", "tests", "benches"].into_iter().flat_map(rust_files) {
        let text = fs::read_to_string(&path).unwrap();
        if !text.starts_with("//! ") {
            faults.push(format!("{}: does not begin with `//!`", short(&path)));
        }
        let lines = text.lines().count();
        if lines > FILE_MAX {
            faults.push(format!("{}: {lines} lines; split it by meaning", short(&path)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
