//! Starting the binary and looking at what it says.

use std::fmt;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a call came to.
pub struct Run {
    pub line: String,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ network-operator {}", self.line)?;
        write!(f, "{}", self.stdout)?;
        if !self.stderr.is_empty() {
            write!(f, "--- stderr\n{}", self.stderr)?;
        }
        write!(f, "--- exit code {}", self.code)
    }
}

impl Run {
    /// Its stdout, if it went well.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self}");
        self.stdout
    }
}

/// Calls the binary in `tests/cli/fixtures`, with nothing on stdin and none of the caller's settings.
pub fn operator(arguments: &[&str]) -> Run {
    operator_with(arguments, "")
}

/// The same, with a text on stdin.
pub fn operator_with(arguments: &[&str], stdin: &str) -> Run {
    operator_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/fixtures"), arguments, stdin)
}

/// The same, in another folder.
pub fn operator_in(folder: &Path, arguments: &[&str], stdin: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_network-operator"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A command that does not read stdin may have ended already.
    drop(child.stdin.take().expect("stdin is piped").write_all(stdin.as_bytes()));
    let output = child.wait_with_output().expect("the binary ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Run {
        line: arguments.join(" "),
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Sends a text through a program; `None` where the machine does not have it, which in CI is a failure.
pub fn filter(command: &mut Command, input: &str) -> Option<String> {
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = started else { return left_out(command) };
    let mut stdin = child.stdin.take()?;
    let input = input.to_owned();
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if stderr.contains("No module named") {
        return left_out(command);
    }
    assert!(output.status.success(), "{stderr}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn left_out(command: &Command) -> Option<String> {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{command:?} is needed in CI");
    eprintln!("left out: {command:?} is not on this machine");
    None
}
