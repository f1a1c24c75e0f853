//! Health: the named checks behind `/livez` and `/readyz`.
//!
//! *Live* means that the process can do its work at all; where it is not, a restart helps. *Ready* means more: the caches are
//! complete, every watch is allowed, and the rules in force are those in the files. A follower is ready. An operator that goes
//! on with its last good rules does its work but is not ready, so that a roll-out of broken rules stalls instead of spreading.
//!
//! An API server that cannot be reached makes nobody less live: a restart would change nothing about it.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// One question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Name, as the API server names its own checks: small letters and `-`.
    pub name: &'static str,
    /// What is wrong; `None` if nothing is.
    pub fault: Option<String>,
}

/// The answers to all questions of one kind. Its text is in the format of the API server's `?verbose`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// `livez` or `readyz`.
    pub name: &'static str,
    /// The answers.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.checks.iter().all(|check| check.fault.is_none())
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for Check { name, fault } in &self.checks {
            match fault {
                None => writeln!(f, "[+]{name} ok")?,
                Some(fault) => writeln!(f, "[-]{name} failed: {}", fault.trim_end().replace('\n', "\n    "))?,
            }
        }
        writeln!(f, "{} check {}", self.name, if self.is_good() { "passed" } else { "failed" })
    }
}

/// A reconcile that takes longer than this is stuck: every call in it is bounded by seconds.
pub const STUCK: Duration = Duration::from_mins(3);

/// Whether the process can work. `stuck`: for how long the work queue has not moved although it should have. `dead`: what is
/// no longer watched although it should be.
pub fn live(stuck: Duration, dead: &[String]) -> Report {
    let wedged = (stuck > STUCK).then(|| format!("no reconcile has begun or ended for {} s", stuck.as_secs()));
    let watches = (!dead.is_empty()).then(|| format!("the watch of {} has ended", dead.join(", ")));
    Report {
        name: "livez",
        checks: vec![Check { name: "reconcile-loop", fault: wedged }, Check { name: "watches", fault: watches }],
    }
}

/// What stands in the way of being ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Obstacles {
    /// Why the caches are not complete.
    pub caches: Option<String>,
    /// What the API server says to watches that do not run.
    pub watches: Vec<String>,
    /// Why the rules in the files are not those in force.
    pub rules: Option<String>,
}

/// Whether the process does its work as the files say.
pub fn ready(obstacles: Obstacles) -> Report {
    let watches = (!obstacles.watches.is_empty()).then(|| obstacles.watches.join("\n"));
    Report {
        name: "readyz",
        checks: vec![
            Check { name: "caches", fault: obstacles.caches },
            Check { name: "watches", fault: watches },
            Check { name: "rules", fault: obstacles.rules },
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_stands_still_or_a_watch_that_ended_is_not_live() {
        assert_eq!(live(STUCK, &[]).to_string(), "[+]reconcile-loop ok\n[+]watches ok\nlivez check passed\n");
        let wedged = live(STUCK + Duration::from_secs(1), &[]);
        assert!(!wedged.is_good());
        assert!(
            wedged.to_string().starts_with("[-]reconcile-loop failed: no reconcile has begun or ended for 181 s\n")
        );
        let dead = live(Duration::ZERO, &["configmaps".to_owned(), "services".to_owned()]);
        assert!(!dead.is_good());
        assert!(dead.to_string().contains("[-]watches failed: the watch of configmaps, services has ended\n"));
    }

    #[test]
    fn every_obstacle_alone_is_one_too_many() {
        assert!(ready(Obstacles::default()).is_good());
        let some = || Some("trouble\nin two lines\n".to_owned());
        for (name, obstacles) in [
            ("caches", Obstacles { caches: some(), ..Obstacles::default() }),
            ("watches", Obstacles { watches: some().into_iter().collect(), ..Obstacles::default() }),
            ("rules", Obstacles { rules: some(), ..Obstacles::default() }),
        ] {
            let report = ready(obstacles);
            assert!(!report.is_good());
            let text = report.to_string();
            assert!(text.contains(&format!("[-]{name} failed: trouble\n    in two lines\n")), "{text}");
            assert_eq!(text.matches("[+]").count(), 2, "{text}");
        }
    }
}
