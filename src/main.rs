//! The `network-operator` binary; everything is in the library.

fn main() -> std::process::ExitCode {
    network_operator::cli::main()
}
