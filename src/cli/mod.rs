//! The command line: a file per command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub mod run;

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
}

/// Parses the command line and does what it says.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => run::main(&args),
    }
}

/// Prints what went wrong to stderr; exit code 2.
fn fail(message: &str) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "error: {message}");
    ExitCode::from(2)
}
