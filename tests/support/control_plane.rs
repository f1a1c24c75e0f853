//! A control plane: started through the Go program in `tests/control-plane`, spoken to in plain HTTP requests.
//!
//! The tests use their own small client instead of the operator's modules, so that a fault there cannot hide itself.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex, Once, PoisonError};

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

/// Runs the requests of all tests.
static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Runtime::new().expect("a runtime"));

/// The control plane that the tests of this binary share.
static SHARED: LazyLock<ControlPlane> = LazyLock::new(|| ControlPlane::start(&[]));

/// A running control plane. It ends when this value is dropped or the process ends, however it ends.
pub struct ControlPlane {
    /// What the program said about it.
    pub announcement: Value,
    client: kube::Client,
    /// The last use of the pipe that keeps it alive, and its answers.
    pipe: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    program: Child,
}

/// What the API server says when it does not do what it is asked.
#[derive(Debug, Clone)]
pub struct Refused {
    /// HTTP status code; 0 when there was no answer.
    pub code: u16,
    /// One word, such as `NotFound`.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.code, self.reason, self.message)
    }
}

/// The content type of a body decides what the API server makes of it.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Body<'a> {
    None,
    Object(&'a Value),
    MergePatch(&'a Value),
    JsonPatch(&'a Value),
    Apply(&'a Value),
}

impl ControlPlane {
    /// The one that all tests of this binary share; started by the first that asks.
    pub fn shared() -> &'static Self {
        &SHARED
    }

    /// Starts one with the Network CRD installed and every request recorded. Takes a few seconds, and minutes where a
    /// Kubernetes version has to be compiled first.
    pub fn start(arguments: &[&str]) -> Self {
        build_program();
        let mut program = Command::new(folder().join("bin/control-plane"))
            .args(["up", "--audit", "--crd"])
            .arg(repository().join("crds/networks.yaml"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start tests/control-plane");
        let stdin = program.stdin.take().expect("piped");
        let mut stdout = BufReader::new(program.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("read what the control plane announces");
        let announcement: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("the control plane did not start: {error}"));
        let kubeconfig = PathBuf::from(announcement["kubeconfig"].as_str().expect("a path"));
        let client = RUNTIME.block_on(client(&kubeconfig));
        Self { announcement, client, pipe: Mutex::new((stdin, stdout)), program }
    }

    /// A part of what the program announced, such as `server`.
    pub fn said(&self, field: &str) -> &str {
        self.announcement[field].as_str().unwrap_or_else(|| panic!("no `{field}` in {}", self.announcement))
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        Path::new(self.said("kubeconfig"))
    }

    /// Tells the program to do something to a component, such as `restart kube-apiserver`, and waits until it is done.
    pub fn tell(&self, command: &str) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(pipe.0, "{command}").expect("the control plane reads its input");
        let mut answer = String::new();
        pipe.1.read_line(&mut answer).expect("the control plane answers");
        assert!(answer.contains("\"done\""), "{command}: {answer}");
    }

    /// One request by the administrator.
    pub fn call(&self, method: &str, path: &str, body: Body<'_>) -> Result<Value, Refused> {
        let text = self.call_text(method, path, body)?;
        Ok(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method} {path}: {error}: {text}")))
    }

    /// One request by the administrator, and the answer as it is.
    pub fn call_text(&self, method: &str, path: &str, body: Body<'_>) -> Result<String, Refused> {
        let (kind, body) = match body {
            Body::None => ("application/json", None),
            Body::Object(value) => ("application/json", Some(value)),
            Body::MergePatch(value) => ("application/merge-patch+json", Some(value)),
            Body::JsonPatch(value) => ("application/json-patch+json", Some(value)),
            Body::Apply(value) => ("application/apply-patch+yaml", Some(value)),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, kind)
            .body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())
            .expect("a request");
        RUNTIME.block_on(self.client.request_text(request)).map_err(|error| match error {
            kube::Error::Api(status) => Refused { code: status.code, reason: status.reason, message: status.message },
            other => Refused { code: 0, reason: "NoAnswer".to_owned(), message: other.to_string() },
        })
    }

    /// Applies an RBAC object that is not in a namespace.
    pub fn apply_cluster_wide(&self, plural: &str, object: &Value) {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}/{name}?fieldManager=test&force=true");
        self.call("PATCH", &path, Body::Apply(object)).unwrap_or_else(|refused| panic!("apply {name}: {refused}"));
    }

    /// kubectl as the administrator: whether it succeeded, and what it printed.
    pub fn kubectl(&self, arguments: &[&str], stdin: &str) -> (bool, String) {
        let mut child = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start kubectl: is it installed?");
        child.stdin.take().expect("piped").write_all(stdin.as_bytes()).expect("kubectl reads its input");
        let output = child.wait_with_output().expect("wait for kubectl");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// The sum of a counter over all label values for which `wanted` holds; it gets the text between the braces.
    pub fn metric(&self, name: &str, wanted: impl Fn(&str) -> bool) -> f64 {
        let text = self.call_text("GET", "/metrics", Body::None).expect("the API server's metrics");
        let lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.split_once("} "));
        lines.filter(|(labels, _)| wanted(labels)).filter_map(|(_, value)| value.parse::<f64>().ok()).sum()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // The shared one is never dropped; then the end of the process closes the pipe.
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, output) = &mut *pipe;
        let _ = Command::new("kill").arg(self.program.id().to_string()).status();
        let _ = std::io::copy(output, &mut std::io::sink());
        let _ = self.program.wait();
    }
}

async fn client(kubeconfig: &Path) -> kube::Client {
    let file = Kubeconfig::read_from(kubeconfig).expect("the kubeconfig");
    let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.expect("a config");
    config.default_retry = false;
    kube::Client::try_from(config).expect("a client")
}

/// Compiles the program that starts control planes, unless that was done already; once per test process.
fn build_program() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let status = Command::new("go")
            .args(["run", ".", "build"])
            .current_dir(folder())
            .stdout(Stdio::null())
            .status()
            .expect("start Go: it compiles the control plane that the tests run on");
        assert!(status.success(), "cannot build the control plane");
    });
}

fn folder() -> PathBuf {
    repository().join("tests/control-plane")
}

/// The folder of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
