//! `network-operator version`: what this binary is.

use std::process::ExitCode;

use serde_json::json;

use super::output::{self, Format, Outcome};

/// Arguments of `version`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print it for machines.
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    output: Option<Format>,
}

/// Prints the version.
pub fn main(args: &Args) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    match args.output {
        None => output::data(&format!("network-operator {version}\n"))?,
        Some(format) => output::value(
            &json!({"version": version, "os": std::env::consts::OS, "arch": std::env::consts::ARCH}),
            format,
        )?,
    }
    Ok(ExitCode::SUCCESS)
}
