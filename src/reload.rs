//! Reload: follow the rule files and put edits into force, or keep the last good version.
//!
//! The files are read again every second and compared by content. That is a few kilobytes, it sees what Kubernetes does (a
//! `ConfigMap` volume swaps its `..data` symlink) and what editors do (rename, truncate and write) alike, and unlike inotify it
//! cannot miss anything on a network file system or an overlay. An edit counts once two reads in a row agree, so that a file
//! is not judged while it is being written.
//!
//! An edit that would delete many children at once is more often a mistake than a wish. It is held, with a list of what it
//! would delete, until a line in the file `allow-prune` beside the rules names exactly these rules (`NAME@REVISION`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tracing::{error, warn};

use crate::diagnostic::{Diagnostic, Severity, SourceFile};
use crate::rules::schema::Layered;
use crate::rules::schema::builtin::builtin;
use crate::rules::schema::crd::CrdSchema;
use crate::rules::source::{self, ReadError};
use crate::rules::{Program, check};

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_secs(1);
/// Time between the two reads that must agree.
const SETTLE: Duration = Duration::from_millis(150);

/// The rules to put into force, and what is to be said about them.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// Usable rule sets, new or kept.
    pub programs: Vec<Arc<Program>>,
    /// Some rule set has no usable version: nothing is pruned whose rule set is not among `programs`.
    pub frozen: bool,
    /// What the checker said.
    pub diagnostics: Vec<Diagnostic>,
    /// Rule sets that go on with their last good version.
    pub kept: Vec<String>,
    /// Why there is nothing to load at all.
    pub trouble: Option<String>,
    /// Lines of the `allow-prune` files.
    pub confirmed: BTreeSet<String>,
}

impl Loaded {
    /// What is loaded, in one line: `NAME@REVISION`, separated by commas. It is what a line of an `allow-prune` file confirms.
    pub fn revision(&self) -> String {
        let sets: Vec<_> = self.programs.iter().map(|set| format!("{}@{}", set.name(), set.revision())).collect();
        sets.join(",")
    }

    /// Why the rules in the files are not those in force, in the words of the checker; `None` if they are.
    pub fn fault(&self) -> Option<String> {
        if let Some(trouble) = &self.trouble {
            return Some(format!("rules cannot be loaded: {trouble}"));
        }
        let errors = self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        let errors: Vec<_> = errors.map(ToString::to_string).collect();
        (!errors.is_empty()).then(|| errors.join("\n"))
    }

    /// Whether the files are as they should be.
    pub fn is_good(&self) -> bool {
        self.trouble.is_none() && !self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// What becomes of the rules in force (`before`) when the files read like this. `parents` are the CRDs that are known; rule
/// sets of other parents are used unchecked. Pure.
pub fn merge(before: &[Arc<Program>], files: Result<Vec<Arc<SourceFile>>, ReadError>, parents: &[CrdSchema]) -> Loaded {
    let keep_all = |trouble: String| Loaded {
        programs: before.to_vec(),
        frozen: true,
        kept: before.iter().map(|program| program.name().to_owned()).collect(),
        trouble: Some(trouble),
        ..Loaded::default()
    };
    let files = match files {
        Ok(files) if files.is_empty() => return keep_all("there is no rule file (`*.yaml`) in it".to_owned()),
        Ok(files) => files,
        Err(error) => return keep_all(error.to_string()),
    };
    let (fresh, mut diagnostics) = load(&files, parents);
    // A rule file that is there and holds nothing was more likely truncated than meant: to drop its rules, one removes it.
    for fault in diagnostics.iter_mut().filter(|fault| fault.code == "empty-file") {
        fault.severity = Severity::Error;
    }
    let broken = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    let mut programs: BTreeMap<String, Arc<Program>> =
        fresh.into_iter().map(|program| (program.name().to_owned(), Arc::new(program))).collect();
    let mut kept = Vec::new();
    if broken {
        // A set that is missing now may be the one that is broken: an error is not «absent».
        for program in before {
            if !programs.contains_key(program.name()) {
                kept.push(program.name().to_owned());
                programs.insert(program.name().to_owned(), program.clone());
            }
        }
    }
    Loaded { programs: programs.into_values().collect(), frozen: broken, diagnostics, kept, ..Loaded::default() }
}

fn load(files: &[Arc<SourceFile>], parents: &[CrdSchema]) -> (Vec<Program>, Vec<Diagnostic>) {
    let custom = parents.to_vec();
    let kinds = Layered(vec![builtin(), &custom]);
    check::files_of_known_parents(files, parents, &kinds)
}

/// Says in the log what was loaded, and everything that is wrong with it.
pub fn announce(loaded: &Loaded) {
    for diagnostic in &loaded.diagnostics {
        match diagnostic.severity {
            Severity::Error => error!("{diagnostic}"),
            Severity::Warning => warn!("{diagnostic}"),
        }
    }
    if let Some(trouble) = &loaded.trouble {
        error!("rules cannot be loaded: {trouble}; every child stays as it is");
    }
    if !loaded.kept.is_empty() {
        warn!("going on with the last good version of {}", loaded.kept.join(", "));
    }
    if loaded.programs.is_empty() {
        error!(
            "no rule set can be used; nothing is written until the rules are mended (`network-operator check` says how)"
        );
    }
}

/// Looks at rule files for edits.
pub struct RuleFiles {
    paths: Vec<PathBuf>,
    last: Snapshot,
}

/// Content of the files, or what stood in the way.
type Snapshot = (Result<Vec<(String, String)>, String>, BTreeSet<String>);

impl RuleFiles {
    /// The files and folders to follow.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, last: (Ok(Vec::new()), BTreeSet::new()) }
    }

    /// Reads them now.
    pub fn read(&mut self) -> Result<Vec<Arc<SourceFile>>, ReadError> {
        let files = source::read(&self.paths);
        self.last = self.snapshot(&files);
        files
    }

    /// Returns when the files read differently from the last time, with what they read like now.
    pub async fn changed(&mut self) -> Result<Vec<Arc<SourceFile>>, ReadError> {
        loop {
            tokio::time::sleep(LOOK).await;
            let mut now = self.snapshot(&source::read(&self.paths));
            while now != self.last {
                tokio::time::sleep(SETTLE).await;
                let files = source::read(&self.paths);
                let again = self.snapshot(&files);
                if again == now {
                    self.last = now;
                    return files;
                }
                now = again;
            }
        }
    }

    /// The lines of the `allow-prune` files, as last read.
    pub fn confirmations(&self) -> BTreeSet<String> {
        self.last.1.clone()
    }

    fn snapshot(&self, files: &Result<Vec<Arc<SourceFile>>, ReadError>) -> Snapshot {
        let files = match files {
            Ok(files) => Ok(files.iter().map(|file| (file.path.clone(), file.text.clone())).collect()),
            Err(error) => Err(error.to_string()),
        };
        (files, source::confirmations(&self.paths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(name: &str, data: &str) -> String {
        format!(
            "apiVersion: rules.samplecrd.k8s.io/v1alpha1\nkind: RuleSet\nmetadata: {{name: {name}}}\nspec:\n  for: {{apiVersion: samplecrd.k8s.io/v1, kind: Network}}\n  resources:\n    - id: config\n      manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: \"${{self.metadata.name}}-{name}\"}}, data: {{x: {data}}}}}\n"
        )
    }

    fn files(texts: &[(&str, String)]) -> Vec<Arc<SourceFile>> {
        texts.iter().map(|(path, text)| SourceFile::new(*path, text.clone())).collect()
    }

    fn names(loaded: &Loaded) -> Vec<&str> {
        loaded.programs.iter().map(|program| program.name()).collect()
    }

    #[test]
    fn good_files_take_the_place_of_what_was_there_and_a_set_that_is_gone_is_gone() {
        let before = merge(&[], Ok(files(&[("a.yaml", rules("a", "one")), ("b.yaml", rules("b", "one"))])), &[]);
        assert!(before.is_good());
        assert_eq!(names(&before), ["a", "b"]);
        let after = merge(&before.programs, Ok(files(&[("a.yaml", rules("a", "two"))])), &[]);
        assert!(after.is_good() && !after.frozen && after.kept.is_empty());
        assert_eq!(names(&after), ["a"]);
        assert_ne!(before.revision().split(',').next(), Some(after.revision().as_str()));
    }

    #[test]
    fn a_broken_set_keeps_its_last_good_version_while_the_others_go_on() {
        let before = merge(&[], Ok(files(&[("a.yaml", rules("a", "one")), ("b.yaml", rules("b", "one"))])), &[]);
        for broken in [rules("a", "\"${self.\""), "no: rules".to_owned(), String::new()] {
            let after = merge(&before.programs, Ok(files(&[("a.yaml", broken), ("b.yaml", rules("b", "two"))])), &[]);
            assert!(!after.is_good() && after.frozen);
            assert_eq!(names(&after), ["a", "b"]);
            assert_eq!(after.kept, ["a"]);
            assert_eq!(after.programs[0].revision(), before.programs[0].revision());
            assert_ne!(after.programs[1].revision(), before.programs[1].revision());
        }
        let start = merge(&[], Ok(files(&[("a.yaml", rules("a", "\"${self.\"")), ("b.yaml", rules("b", "one"))])), &[]);
        assert_eq!(names(&start), ["b"], "without a last good version it is frozen");
        assert!(start.frozen);
    }

    #[test]
    fn nothing_to_read_is_not_nothing_wanted() {
        let before = merge(&[], Ok(files(&[("a.yaml", rules("a", "one"))])), &[]);
        let missing = ReadError { path: "rules".into(), source: std::io::ErrorKind::NotFound.into() };
        for nothing in [Ok(files(&[])), Ok(files(&[("a.yaml", "# only a comment\n".to_owned())])), Err(missing)] {
            let after = merge(&before.programs, nothing, &[]);
            assert_eq!(names(&after), ["a"]);
            assert!(after.frozen && !after.is_good());
        }
    }
}
