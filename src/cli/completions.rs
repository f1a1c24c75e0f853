//! `network-operator completions`: what a shell needs to complete our commands and options.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::output::{self, Outcome};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  bash   source <(network-operator completions bash)
  zsh    network-operator completions zsh > \"${fpath[1]}/_network-operator\"
  fish   network-operator completions fish > ~/.config/fish/completions/network-operator.fish")]
pub struct Args {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
pub fn main(args: &Args) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "network-operator", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
