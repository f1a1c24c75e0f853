//! `--help`, `completions`, `version`, `crd`: what is the same everywhere.

use crate::run_cli::operator;

const COMMANDS: [&str; 11] =
    ["run", "check", "diff", "explain", "test", "render", "rbac", "crd", "schema", "completions", "version"];

#[test]
fn every_command_explains_itself() {
    insta::assert_snapshot!("help", operator(&["--help"]).ok());
    for command in COMMANDS {
        insta::assert_snapshot!(format!("help_{command}"), operator(&[command, "--help"]).ok());
    }
}

#[test]
fn what_is_not_a_command_is_a_usage_error_with_a_hint() {
    let run = operator(&["rendr"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("render"), "{run}");
    assert_eq!(operator(&[]).code, 2);
}

#[test]
fn the_version_is_that_of_the_package_in_every_format() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(operator(&["version"]).ok(), format!("network-operator {version}\n"));
    assert_eq!(operator(&["--version"]).ok(), format!("network-operator {version}\n"));
    let json: serde_json::Value = serde_json::from_str(&operator(&["version", "-o", "json"]).ok()).expect("JSON");
    assert_eq!(json["version"], version);
    assert!(operator(&["version", "-o", "yaml"]).ok().starts_with("version: "));
}

#[test]
fn the_crd_is_printed_byte_for_byte() {
    assert_eq!(operator(&["crd"]).ok(), include_str!("../../crds/networks.yaml"));
}

#[test]
fn completions_of_every_shell_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = operator(&["completions", shell]).ok();
        for command in COMMANDS {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
    }
}
