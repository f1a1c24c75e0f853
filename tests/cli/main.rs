//! Every command, through the real binary. Snapshots of what people read are in `snapshots/`.

#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;

#[cfg(test)]
mod check;
#[cfg(test)]
mod diff;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod help;
#[cfg(test)]
mod rbac;
#[cfg(test)]
mod render;
#[cfg(test)]
mod rule_tests;
#[cfg(test)]
mod run_cli;
#[cfg(test)]
mod schema;
