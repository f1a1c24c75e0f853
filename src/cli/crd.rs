//! `network-operator crd`: the custom resource definition that ships with the operator.

use std::process::ExitCode;

use super::output::{self, Outcome};

/// The shipped CRD, as committed.
pub const SHIPPED: &str = include_str!("../../crds/networks.yaml");
/// What messages call it.
pub const SHIPPED_PATH: &str = "crds/networks.yaml";

/// Arguments of `crd`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: network-operator crd | kubectl apply -f -")]
pub struct Args {}

/// Prints the CRD.
pub fn main(_: &Args) -> Outcome {
    output::data(SHIPPED)?;
    Ok(ExitCode::SUCCESS)
}
