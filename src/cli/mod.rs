//! The command line: a file per command.
//!
//! What a command is for, what it reads, and its exit codes stand in its own file and in its `--help`. All of them print
//! through [`output`]: data to stdout, everything else to stderr.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub mod check;
pub mod completions;
pub mod crd;
pub mod diff;
pub mod difference;
pub mod explain;
pub mod field;
pub mod input;
pub mod krm;
pub mod live;
pub mod offline;
pub mod output;
pub mod rbac;
pub mod render;
pub mod rule_test;
pub mod rule_test_update;
pub mod run;
pub mod schema;
pub mod test;
pub mod version;

/// Kubernetes objects for your own custom resource, by editing YAML rules.
#[derive(Debug, Parser)]
#[command(name = "network-operator", version, about, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator: watch the custom resources and keep their children as the rules say.
    Run(run::Args),
    /// Check rule files, CRDs and example Networks, without a cluster.
    Check(check::Args),
    /// Show the children that Networks should have, without a cluster.
    Render(render::Args),
    /// Show what `run` would do to the cluster now.
    Diff(diff::Args),
    /// Say which rule line and which Network field gave a child's field its value.
    Explain(explain::Args),
    /// Run the tests of rules: Networks and the children that are expected of them.
    Test(test::Args),
    /// Print the smallest set of rights that the rules need.
    Rbac(rbac::Args),
    /// Print the custom resource definition.
    Crd(crd::Args),
    /// Print the JSON Schema of rule files.
    Schema(schema::Args),
    /// Print a script that completes commands and options in a shell.
    Completions(completions::Args),
    /// Print the version.
    Version(version::Args),
}

/// Parses the command line and does what it says.
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => return run::main(&args),
        Command::Check(args) => check::main(&args),
        Command::Render(args) => render::main(&args),
        Command::Diff(args) => diff::main(&args),
        Command::Explain(args) => explain::main(&args),
        Command::Test(args) => test::main(&args),
        Command::Rbac(args) => rbac::main(&args),
        Command::Crd(args) => crd::main(&args),
        Command::Schema(args) => schema::main(&args),
        Command::Completions(args) => completions::main(&args),
        Command::Version(args) => version::main(&args),
    };
    outcome.unwrap_or_else(|message| output::failure(&message))
}

/// Prints what went wrong to stderr; exit code 2.
fn fail(message: &str) -> ExitCode {
    output::failure(message)
}
