//! The operator as a process: the real binary, its rules, its log, its end.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::space::Space;
use super::{ensure, eventually, within};

/// The operator's `ServiceAccount`, by which RBAC and the audit log know it.
pub const ACCOUNT: &str = "network-operator";

/// Starts a program so that it cannot outlive this one: says its process id, and kills it when standard input ends, which
/// happens however this process ends. Exits as the program does.
const GUARD: &str = r#"
exec 3<&0
"$@" </dev/null >&2 3<&- & program=$!
echo $program
(read -r _ <&3; kill -9 $program) 2>/dev/null & watcher=$!
exec 3<&-
wait $program; code=$?
kill $watcher 2>/dev/null
exit $code
"#;

/// An operator that is about to be started.
pub struct Starter<'a> {
    space: &'a Space<'a>,
    rules: Vec<PathBuf>,
    arguments: Vec<String>,
    everywhere: bool,
}

impl<'a> Starter<'a> {
    pub(super) fn new(space: &'a Space<'a>) -> Self {
        Self { space, rules: vec![Space::shipped_rules()], arguments: Vec::new(), everywhere: false }
    }

    /// Rule files or folders, instead of the shipped ones.
    #[must_use]
    pub fn rules(mut self, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        self.rules = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
        self
    }

    /// One rule file with this text, instead of the shipped ones. It is `rules.yaml` in the test's folder.
    #[must_use]
    pub fn rule_text(self, text: &str) -> Self {
        let path = self.space.folder.path().join("rules.yaml");
        std::fs::write(&path, text).expect("write a rule file");
        self.rules([path])
    }

    /// More arguments of `run`.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Work in all namespaces.
    #[must_use]
    pub fn everywhere(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// Starts it, and waits until it has read what is in the cluster.
    pub fn start(self) -> Operator {
        let operator = self.start_unready();
        operator.until_log("caches are in sync");
        operator
    }

    /// Starts it.
    pub fn start_unready(self) -> Operator {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let log = self.space.folder.path().join(format!("operator-{number}.log"));
        let kubeconfig = self.space.kubeconfig(&format!("operator-{number}.kubeconfig"));
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "sh", env!("CARGO_BIN_EXE_network-operator"), "run", "--log-format=text"]);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.args(self.rules.iter().flat_map(|path| [Path::new("--rules"), path]));
        if !self.everywhere {
            command.args(["--namespace", &self.space.name]);
        }
        if !self.arguments.iter().any(|argument| argument.starts_with("--leader-elect")) {
            command.arg("--leader-elect=false");
        }
        command.args(&self.arguments);
        for variable in ["RUST_LOG", "KUBECONFIG", "NETWORK_OPERATOR_RULES", "NETWORK_OPERATOR_NAMESPACES"] {
            command.env_remove(variable);
        }
        let file = std::fs::File::create(&log).expect("create a log file");
        let mut guard =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file).spawn().expect("start the operator");
        let stdin = guard.stdin.take().expect("piped");
        let mut line = String::new();
        BufReader::new(guard.stdout.take().expect("piped")).read_line(&mut line).expect("the operator's process id");
        let pid = line.trim().parse().unwrap_or_else(|_| panic!("the operator did not start: {}", read(&log)));
        Operator { pid, log, guard, _stdin: stdin }
    }
}

/// A running operator. Dropping it kills it.
pub struct Operator {
    /// Its process id.
    pub pid: u32,
    /// Its log file.
    pub log: PathBuf,
    guard: Child,
    /// Keeps it alive.
    _stdin: ChildStdin,
}

impl Operator {
    /// Its log so far.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// Waits for a line of the log with this text; gives the line.
    pub fn until_log(&self, text: &str) -> String {
        eventually(&format!("a line with `{text}` in the operator's log"), || {
            let log = self.log();
            log.lines().find(|line| line.contains(text)).map(str::to_owned).ok_or(log)
        })
    }

    /// The lines of the log with this text.
    pub fn lines(&self, text: &str) -> Vec<String> {
        self.log().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }

    /// Sends it a signal, such as `TERM`, `STOP` or `CONT`.
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([&format!("-{signal}"), &self.pid.to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot send SIG{signal} to the operator");
    }

    /// Kills it as a crash would, and waits until it is gone.
    pub fn kill(mut self) {
        self.signal("KILL");
        self.guard.wait().expect("wait for the operator");
    }

    /// Asks it to end; gives its exit status.
    pub fn terminate(mut self) -> ExitStatus {
        self.signal("TERM");
        self.exit(Duration::from_secs(20))
    }

    /// Waits for its end; gives its exit status.
    pub fn exit(&mut self, limit: Duration) -> ExitStatus {
        let log = self.log.clone();
        within(limit, "the operator's end", || {
            let status = self.guard.try_wait().expect("wait for the operator");
            status.ok_or_else(|| format!("it still runs: {}", read(&log)))
        })
    }

    /// Whether it runs.
    pub fn running(&mut self) -> bool {
        self.guard.try_wait().expect("look after the operator").is_none()
    }

    /// Asserts that it has not crashed and never said that it panicked.
    pub fn assert_healthy(&mut self) {
        let log = self.log();
        assert!(self.running(), "the operator has ended: {log}");
        let panicked = ensure(!log.contains("panicked"), "the operator panicked");
        assert!(panicked.is_ok(), "{log}");
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(40)..].join("\n");
            println!("--- the operator's log, its last lines ---\n{last}");
        }
        if self.running() {
            self.signal("KILL");
            let _ = self.guard.wait();
        }
    }
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}
