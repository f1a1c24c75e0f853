//! The log: lines for people on a terminal, JSON otherwise, always on stderr.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// One readable line each.
    Text,
    /// One JSON object each.
    Json,
}

/// Sets up logging for the process. `filter` is a level or an `EnvFilter` directive list.
pub fn init(format: Format, filter: &str) -> Result<(), String> {
    // kube logs every failed request once more, without its cause; ours say what it was for.
    let filter = EnvFilter::try_new(format!("kube_client=off,kube_runtime=off,{filter}"))
        .map_err(|error| format!("cannot read log filter `{filter}`: {error}; try `info` or `debug`"))?;
    let terminal = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let json = format == Format::Json || (format == Format::Auto && !terminal);
    if json { builder.json().flatten_event(true).try_init() } else { builder.with_ansi(terminal).compact().try_init() }
        .map_err(|error| format!("cannot set up the log: {error}"))
}
