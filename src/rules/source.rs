//! Finding and reading rule files: the only file access of the rules layer.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::yaml;
use crate::diagnostic::SourceFile;

/// A path that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct ReadError {
    /// The path.
    pub path: PathBuf,
    /// Why.
    pub source: std::io::Error,
}

/// Reads rule files: a file as it is, a folder by its `*.yaml` and `*.yml` files (not those of its sub-folders: a mounted
/// `ConfigMap` keeps old versions in hidden ones; nor a `kustomization.yaml`), in the order of their names.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Arc<SourceFile>>, ReadError> {
    let mut files = Vec::new();
    for path in paths {
        let fail = |source| ReadError { path: path.clone(), source };
        if std::fs::metadata(path).map_err(fail)?.is_dir() {
            let entries = std::fs::read_dir(path).map_err(fail)?;
            let mut inside: Vec<_> =
                entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(fail)?;
            inside.sort();
            for file in inside.into_iter().filter(|file| is_rule_file(file)) {
                files.push(read_one(&file)?);
            }
        } else {
            files.push(read_one(path)?);
        }
    }
    Ok(files)
}

/// File beside the rules whose lines confirm edits that delete much (see [`crate::reload`]).
pub const ALLOW_PRUNE: &str = "allow-prune";

/// The lines of the [`ALLOW_PRUNE`] files of these folders (for a file: of the folder that it is in).
pub fn confirmations(paths: &[PathBuf]) -> BTreeSet<String> {
    let folders = paths.iter().filter_map(|path| if path.is_dir() { Some(path.as_path()) } else { path.parent() });
    let texts = folders.filter_map(|folder| std::fs::read_to_string(folder.join(ALLOW_PRUNE)).ok());
    texts.flat_map(|text| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()).collect()
}

/// What kustomize wants to find in a folder that it builds, such as that of the shipped rules.
const NO_RULE_FILES: [&str; 2] = ["kustomization.yaml", "kustomization.yml"];

fn is_rule_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let hidden = name.starts_with('.') || NO_RULE_FILES.contains(&&*name);
    let yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    yaml && !hidden && !path.is_dir()
}

/// Bytes that are no text, and files that are too large, are for the reader of the text to report, beside all other faults.
fn read_one(path: &Path) -> Result<Arc<SourceFile>, ReadError> {
    let fail = |source| ReadError { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    // One byte more than is allowed, so that a file of any size is known to be too large without being held.
    file.take(yaml::MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(fail)?;
    Ok(SourceFile::from_bytes(path.display().to_string(), bytes))
}
