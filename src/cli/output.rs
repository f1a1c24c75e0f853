//! The one place that prints: data to stdout, everything else to stderr.
//!
//! Whoever reads our output may stop early (`| head`); that is not an error. Colour is for people: only on a terminal,
//! and never where `NO_COLOR` is set (<https://no-color.org>).

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::diagnostic::human;
use crate::yaml_text;

/// What a command comes to: the exit code, or a message for exit code 2.
pub type Outcome = Result<ExitCode, String>;

/// Machine formats of a command's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// JSON, indented.
    Json,
    /// YAML.
    Yaml,
}

/// Writes data to stdout.
pub fn data(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot write to stdout: {error}")),
        _ => Ok(()),
    }
}

/// Writes a value to stdout in a machine format.
pub fn value(value: &impl Serialize, format: Format) -> Result<(), String> {
    let value = serde_json::to_value(value).map_err(|error| format!("cannot print the result: {error}"))?;
    match format {
        Format::Json => data(&format!("{value:#}\n")),
        Format::Yaml => data(&yaml_text::document(&value)),
    }
}

/// Says a line to the person at the terminal.
pub fn note(line: &str) {
    // There is nobody left to tell if stderr is gone.
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Says what went wrong. Exit code 2.
pub fn failure(message: &str) -> ExitCode {
    note(&format!("{}: {message}", paint(Stream::Stderr, Style::Error, "error")));
    ExitCode::from(2)
}

/// Where a text goes.
#[derive(Debug, Clone, Copy)]
pub enum Stream {
    /// Data.
    Stdout,
    /// All else.
    Stderr,
}

/// What a text means; the colour follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Something failed, or goes away.
    Error,
    /// Something is worth a look.
    Warning,
    /// Something is fine, or comes.
    Good,
    /// A heading.
    Strong,
    /// Less important than the rest.
    Dim,
}

/// Whether a stream is a terminal whose user has not declined colour.
pub fn colour(stream: Stream) -> bool {
    let terminal = match stream {
        Stream::Stdout => io::stdout().is_terminal(),
        Stream::Stderr => io::stderr().is_terminal(),
    };
    terminal
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// How diagnostics are drawn on a stream.
pub fn diagnostics(stream: Stream) -> human::Style {
    let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    human::Style { colour: colour(stream), width: width.unwrap_or(human::Style::default().width) }
}

/// The text in the style's colour, where the stream takes colour.
pub fn paint(stream: Stream, style: Style, text: &str) -> String {
    if !colour(stream) {
        return text.to_owned();
    }
    let code = match style {
        Style::Error => "31",
        Style::Warning => "33",
        Style::Good => "32",
        Style::Strong => "1",
        Style::Dim => "2",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Rows in columns, each as wide as its widest cell; the last column is not padded.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width + 3 - cell.chars().count()));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
