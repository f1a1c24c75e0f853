//! What the operator asked of the API server, from the server's own audit log.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

/// The audit log from a point in time on, as far as it is about one user.
pub struct Audit {
    log: PathBuf,
    user: String,
    from: u64,
}

/// One request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verb: String,
    /// Plural name, with `/status` and the like; empty for paths that are not objects, such as discovery.
    pub resource: String,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name; empty for list, watch and create.
    pub name: String,
    /// The answer's HTTP status code.
    pub code: u64,
}

impl Asked {
    /// Whether it was meant to change something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

impl Audit {
    /// Everything that `user` asks from now on.
    pub fn from_now(log: PathBuf, user: String) -> Self {
        let from = std::fs::metadata(&log).map_or(0, |metadata| metadata.len());
        Self { log, user, from }
    }

    /// Every request so far. Watches are in it from their first answer on.
    pub fn requests(&self) -> Vec<Asked> {
        let mut file = std::fs::File::open(&self.log).expect("the audit log");
        file.seek(SeekFrom::Start(self.from)).expect("seek in the audit log");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("read the audit log");
        // The last line may not be written completely yet.
        let complete = text.rfind('\n').map_or("", |end| &text[..=end]);
        complete.lines().filter(|line| line.contains(&self.user)).filter_map(|line| self.asked(line)).collect()
    }

    /// Every write so far.
    pub fn writes(&self) -> Vec<Asked> {
        self.requests().into_iter().filter(Asked::is_write).collect()
    }

    fn asked(&self, line: &str) -> Option<Asked> {
        let entry: Value = serde_json::from_str(line).expect("a line of the audit log is JSON");
        let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        // A watch is there twice: when it begins to be answered, and at its end.
        let once = match text("/verb").as_str() {
            "watch" => "ResponseStarted",
            _ => "ResponseComplete",
        };
        if text("/user/username") != self.user || text("/stage") != once {
            return None;
        }
        let subresource = text("/objectRef/subresource");
        let resource = text("/objectRef/resource");
        Some(Asked {
            verb: text("/verb"),
            resource: if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") },
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: entry.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default(),
        })
    }
}
