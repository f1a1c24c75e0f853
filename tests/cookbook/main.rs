//! The rule language's documentation is true: every recipe of the cookbook does what it says, and the pages say what the
//! code has. Nothing here needs a cluster; `tests/cookbook_cluster` runs the recipes that are about one.
//!
//! Whatever is made from the code or from the recipes is made anew by `UPDATE=1 cargo test --test cookbook`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its own files has failed")]

mod pages;
mod recipe;
mod recipes;

use std::fs;
use std::path::Path;

/// The folder of the repository.
fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Fails unless the file has this text; with `UPDATE=1`, gives it this text.
fn keep(path: &Path, text: &str) {
    let there = fs::read_to_string(path).unwrap_or_default();
    if there == text {
        return;
    }
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, text).unwrap();
        return;
    }
    let differs = there.lines().zip(text.lines()).position(|(there, wanted)| there != wanted);
    let line = differs.unwrap_or_else(|| there.lines().count().min(text.lines().count()));
    panic!(
        "{} is out of date from line {} on\n  there:  {}\n  wanted: {}\nlook at it, then run `UPDATE=1 cargo test --test cookbook`",
        path.strip_prefix(repository()).unwrap_or(path).display(),
        line + 1,
        there.lines().nth(line).unwrap_or_default(),
        text.lines().nth(line).unwrap_or_default(),
    );
}
