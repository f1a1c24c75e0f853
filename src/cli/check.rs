//! `network-operator check`: is everything right with rule files, before anything runs and without a cluster?
//!
//! The checking itself is [`crate::rules::check`]; here the files are read, example Networks are tried on the rules, and all
//! that was found is printed, in the order of the files.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use super::output::{self, Outcome, Stream, Style, paint};
use super::{crd, input, offline};
use crate::diagnostic::{self, Diagnostic, Severity, SourceFile};
use crate::rules::schema::crd::CrdSchema;
use crate::rules::schema::{KindSchemas, Layered, builtin::builtin};
use crate::rules::{ChildState, Program, check, source};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 no errors; 1 errors (or, with --deny-warnings, warnings); 2 usage or unreadable files.

Examples:
  network-operator check rules/
  network-operator check --crd my-crd.yaml --network example/ --format sarif rules/ > check.sarif"
)]
pub struct Args {
    /// Rule files, or folders with rule files.
    #[arg(value_name = "PATH", required = true)]
    rules: Vec<PathBuf>,
    /// A file or folder with CRDs of parents and children; may be given several times. The shipped CRD is known.
    #[arg(long, value_name = "FILE")]
    crd: Vec<PathBuf>,
    /// A file or folder with example Networks to try on the rules; may be given several times.
    #[arg(long, value_name = "FILE")]
    network: Vec<PathBuf>,
    /// How what was found is printed.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Let warnings fail the check too.
    #[arg(long)]
    deny_warnings: bool,
}

/// How diagnostics are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// With the lines of the file and a caret.
    Human,
    /// A JSON list.
    Json,
    /// SARIF 2.1.0, for code review and editors.
    Sarif,
}

/// Prints everything that is wrong.
pub fn main(args: &Args) -> Outcome {
    let mut found = Vec::new();
    let rules = read(&args.rules)?;
    let crds = crds(&args.crd, &mut found)?;
    let kinds = Layered(vec![&crds as &dyn KindSchemas, builtin()]);
    let (programs, faults) = check::files(&rules, &crds, &kinds);
    found.extend(faults);
    let examples = read(&args.network)?;
    for file in &examples {
        let faults = check::objects(file, &crds);
        let readable = !diagnostic::has_errors(&faults);
        found.extend(faults);
        if readable {
            found.extend(try_out(file, &programs)?);
        }
    }
    in_order(&mut found, &args.crd, &rules, &examples);
    match args.format {
        Format::Human => output::data(&diagnostic::human::render(&found, output::diagnostics(Stream::Stdout)))?,
        Format::Json => output::value(&diagnostic::json::render(&found), output::Format::Json)?,
        Format::Sarif => output::value(&diagnostic::sarif::render(&found), output::Format::Json)?,
    }
    let errors = found.iter().filter(|fault| fault.severity == Severity::Error).count();
    let warnings = found.len() - errors;
    output::note(&summary(rules.len(), examples.len(), errors, warnings));
    let failed = errors > 0 || (args.deny_warnings && warnings > 0);
    Ok(if failed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn read(paths: &[PathBuf]) -> Result<Vec<Arc<SourceFile>>, String> {
    source::read(paths).map_err(|error| error.to_string())
}

/// The kinds that CRD files define, before the shipped one: a user's version of it goes first.
fn crds(paths: &[PathBuf], found: &mut Vec<Diagnostic>) -> Result<Vec<CrdSchema>, String> {
    let mut files = read(paths)?;
    files.push(SourceFile::new(crd::SHIPPED_PATH, crd::SHIPPED));
    let mut crds = Vec::new();
    for file in &files {
        for object in input::parse(file)? {
            match CrdSchema::read(&object.value) {
                Ok(versions) => crds.extend(versions),
                Err(message) => found.push(
                    Diagnostic::error("bad-crd", format!("this CRD cannot be used: {message}"), object.at)
                        .help("`kubectl get crd NAME -o yaml` gives one as the cluster has it"),
                ),
            }
        }
    }
    Ok(crds)
}

/// Renders the example Networks of a file.
fn try_out(file: &Arc<SourceFile>, programs: &[Program]) -> Result<Vec<Diagnostic>, String> {
    let mut found = Vec::new();
    for object in input::parse(file)? {
        let sets = offline::for_kind(programs, &object.gvk());
        let outcome = offline::render(&sets, &object.value, &[]);
        for (_, rendered) in &outcome.sets {
            found.extend(rendered.invalid.iter().map(|fault| {
                let kind = &outcome.parent.gvk.kind;
                Diagnostic::error(
                    "invalid-example",
                    format!("the rules refuse this {kind}: {}", fault.message),
                    object.at.clone(),
                )
                .related(fault.at.clone(), "by this validation")
            }));
            let failed = rendered.children.iter().filter_map(|child| match &child.state {
                ChildState::Failed(fault) => Some(fault),
                ChildState::Desired(_) | ChildState::Waiting(_) => None,
            });
            found.extend(failed.chain(&rendered.status_faults).map(|fault| {
                let who = outcome.title();
                Diagnostic::error("render-fault", format!("{}, for {who}", fault.message), fault.at.clone())
                    .related(object.at.clone(), "for this example")
            }));
        }
    }
    Ok(found)
}

/// In the order in which the files were named, and of the places in each.
fn in_order(found: &mut Vec<Diagnostic>, crds: &[PathBuf], rules: &[Arc<SourceFile>], examples: &[Arc<SourceFile>]) {
    diagnostic::sort(found);
    let place = |fault: &Diagnostic| {
        let path = &fault.at.file.path;
        let in_rules = rules.iter().chain(examples).position(|file| file.path == *path);
        let in_crds = crds.iter().position(|crd| path.starts_with(&crd.display().to_string()));
        (in_rules.map_or(0, |index| index + 1), in_crds)
    };
    found.sort_by_key(place);
}

fn summary(rules: usize, examples: usize, errors: usize, warnings: usize) -> String {
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut checked = count(rules, "rule file");
    if examples > 0 {
        checked = format!("{checked} and {}", count(examples, "example file"));
    }
    let verdict = match (errors, warnings) {
        (0, 0) => paint(Stream::Stderr, Style::Good, "no faults"),
        (0, _) => paint(Stream::Stderr, Style::Warning, &count(warnings, "warning")),
        (_, 0) => paint(Stream::Stderr, Style::Error, &count(errors, "error")),
        _ => {
            paint(Stream::Stderr, Style::Error, &format!("{}, {}", count(errors, "error"), count(warnings, "warning")))
        }
    };
    format!("checked {checked}: {verdict}")
}
