//! `network-operator test`: runs the tests that rule authors write beside their rules.
//!
//! The format of test files is in [`super::rule_test`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::output::{self, Format, Outcome, Stream, Style, paint};
use super::rule_test::{self, TestFile};
use super::{difference, input, rule_test_update};
use crate::rules::{Program, source};

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 all tests hold; 1 some do not; 2 usage, unreadable tests or unusable rules.

A test file:
  apiVersion: rules.samplecrd.k8s.io/v1alpha1
  kind: RuleTest
  metadata: {name: network}
  spec:
    tests:
      - name: a gateway becomes a Service
        network: {metadata: {name: a}, spec: {cidr: 10.0.0.0/8, gateway: 10.0.0.1}}
        expect: {}          # `network-operator test --update` fills it in")]
pub struct Args {
    /// Test files, or folders that are searched for them, folders in them included.
    #[arg(value_name = "PATH", default_value = "rules")]
    paths: Vec<PathBuf>,
    /// Write what the rules give into the test files, as what is expected from now on.
    #[arg(long)]
    update: bool,
    /// Only tests whose name contains this.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Print the results for machines.
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    output: Option<Format>,
}

/// Runs the tests.
pub fn main(args: &Args) -> Outcome {
    let files = find(&args.paths)?;
    let mut results = Vec::new();
    let mut programs: BTreeMap<Vec<PathBuf>, Vec<Program>> = BTreeMap::new();
    for file in &files {
        if !programs.contains_key(&file.rules) {
            programs.insert(file.rules.clone(), input::programs(&file.rules)?);
        }
    }
    for file in &files {
        let programs = programs.get(&file.rules).map(Vec::as_slice).unwrap_or_default();
        results.extend(run(file, programs, args)?);
    }
    if results.is_empty() {
        return Err("there is no test of that name".to_owned());
    }
    let failed = results.iter().filter(|result| result.outcome == "failed").count();
    let updated = results.iter().filter(|result| result.outcome == "updated").count();
    match args.output {
        None => output::data(&results.iter().map(TestResult::text).collect::<String>())?,
        Some(format) => output::value(&results.iter().map(TestResult::json).collect::<Vec<_>>(), format)?,
    }
    let verdict = match (failed, updated) {
        (0, 0) => paint(Stream::Stderr, Style::Good, "all hold"),
        (0, updated) => format!("{updated} updated"),
        (failed, _) => paint(Stream::Stderr, Style::Error, &format!("{failed} failed")),
    };
    output::note(&format!("{} test{}: {verdict}", results.len(), if results.len() == 1 { "" } else { "s" }));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// One test's result.
struct TestResult {
    place: String,
    name: String,
    outcome: &'static str,
    difference: String,
}

impl TestResult {
    fn text(&self) -> String {
        let style = match self.outcome {
            "ok" => Style::Good,
            "updated" => Style::Warning,
            _ => Style::Error,
        };
        let word = paint(Stream::Stdout, style, &format!("{:7}", self.outcome));
        let difference: String = self.difference.lines().flat_map(|line| ["    ", line, "\n"]).collect();
        format!("{word} {}: {}\n{difference}", self.place, self.name)
    }

    fn json(&self) -> Value {
        let mut result = json!({"place": self.place, "name": self.name, "outcome": self.outcome});
        if !self.difference.is_empty() {
            result["difference"] = json!(self.difference);
        }
        result
    }
}

fn run(file: &TestFile, programs: &[Program], args: &Args) -> Result<Vec<TestResult>, String> {
    let mut results = Vec::new();
    let mut updates = Vec::new();
    for test in &file.tests {
        if args.filter.as_ref().is_some_and(|filter| !test.name.contains(filter.as_str())) {
            continue;
        }
        let place = file.file.at(test.span).to_string();
        let verdict = test.run(programs).map_err(|message| format!("{place}: {message}"))?;
        let holds = verdict.expected == verdict.actual;
        let difference = if holds {
            String::new()
        } else {
            let (old, new) = (difference::sorted_yaml(&verdict.expected), difference::sorted_yaml(&verdict.actual));
            difference::unified(&old, &new, Some(("expected", "given by the rules")), Stream::Stdout)
        };
        let outcome = match (holds, args.update) {
            (true, _) => "ok",
            (false, true) => "updated",
            (false, false) => "failed",
        };
        updates.push((test, (!holds && args.update).then_some(verdict.actual)));
        results.push(TestResult { place, name: test.name.clone(), outcome, difference });
    }
    if updates.iter().any(|(_, update)| update.is_some()) {
        let text = rule_test_update::rewrite(&file.file.text, &updates)?;
        std::fs::write(&file.file.path, text).map_err(|error| format!("cannot write {}: {error}", file.file.path))?;
    }
    Ok(results)
}

/// The test files that paths name; a folder is searched, and files in it that are no tests are passed over.
fn find(paths: &[PathBuf]) -> Result<Vec<TestFile>, String> {
    let mut found = Vec::new();
    for path in paths {
        let before = found.len();
        let folder =
            std::fs::metadata(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?.is_dir();
        let mut files = Vec::new();
        walk(path, &mut files)?;
        for path in files {
            for file in source::read(std::slice::from_ref(&path)).map_err(|error| error.to_string())? {
                let tests = rule_test::read(&file)?.unwrap_or_default();
                if tests.len() > 1 {
                    return Err(format!("{}: several rule tests in one file; give each a file of its own", file.path));
                }
                found.extend(tests);
            }
        }
        if found.len() == before {
            let what = if folder { "holds no rule tests" } else { "is not a rule test" };
            return Err(format!("{} {what}; a rule test has `kind: {}`", path.display(), rule_test::KIND));
        }
    }
    Ok(found)
}

fn walk(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let fail = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let entries = std::fs::read_dir(path).map_err(fail)?;
    let mut inside: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(fail)?;
    inside.sort();
    for path in inside {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if !hidden && (yaml || path.is_dir()) {
            walk(&path, files)?;
        }
    }
    Ok(())
}
