//! Every command, through the real binary. Snapshots of what people read are in `snapshots/`.

mod check;
mod help;
mod rbac;
mod render;
mod rule_tests;
mod run_cli;
mod schema;
