//! Finding and reading rule files: the only file access of the rules layer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

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
/// `ConfigMap` keeps old versions in hidden ones), in the order of their names.
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

fn is_rule_file(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    yaml && !hidden && !path.is_dir()
}

fn read_one(path: &Path) -> Result<Arc<SourceFile>, ReadError> {
    let fail = |source| ReadError { path: path.to_owned(), source };
    let bytes = std::fs::read(path).map_err(fail)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        fail(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!("not UTF-8 at byte {}; save the file as UTF-8", error.utf8_error().valid_up_to()),
        ))
    })?;
    Ok(SourceFile::new(path.display().to_string(), text))
}
