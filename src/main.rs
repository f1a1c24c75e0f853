//! The `network-operator` binary.

fn main() {}
