//! Rule tests: their file format, and whether one holds.
//!
//! ```yaml
//! apiVersion: rules.samplecrd.k8s.io/v1alpha1
//! kind: RuleTest
//! metadata: {name: network}
//! spec:
//!   rules: [..]                    # files and folders, from this file's folder; `..` if left out
//!   tests:
//!     - name: a gateway becomes a Service
//!       network:                   # the parent; apiVersion, kind and namespace may be left out
//!         metadata: {name: a}
//!         spec: {cidr: 10.0.0.0/8, gateway: 10.0.0.1}
//!       networkFile: a.yaml        # or from a file
//!       observed: []               # children as the cluster has them, for rules that read them
//!       expect:
//!         children: []             # all children, whole, as the rules give them (without the operator's own labels)
//!         contains: []             # some children, with some of their fields; maps may be partial, lists are whole
//!         status: {}               # the fields that the rules give the status
//!         invalid: []              # messages of validations that fail
//!         errors: {config: text}   # resources (or `status`) that cannot be rendered; a part of the message is enough
//!         waiting: {b: [a]}        # resources that wait for others
//! ```
//!
//! `invalid`, `errors` and `waiting` are compared even where they are left out: then there must be none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::input::{self, Object};
use super::offline;
use crate::diagnostic::{Severity, SourceFile, Span};
use crate::rules::yaml::{self, Node, NodeKind};
use crate::rules::{ChildState, Program, fields};

/// `kind` of a test file.
pub const KIND: &str = "RuleTest";
/// What `expect` may hold, in the order in which it is written.
const EXPECTATIONS: [&str; 6] = ["children", "contains", "status", "invalid", "errors", "waiting"];

/// The tests of one document.
#[derive(Debug)]
pub struct TestFile {
    /// The file.
    pub file: Arc<SourceFile>,
    /// Rule files and folders.
    pub rules: Vec<PathBuf>,
    /// The tests, in order.
    pub tests: Vec<Test>,
}

/// One test.
#[derive(Debug)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub span: Span,
    /// Where its `expect` begins, if it has one.
    pub expect_span: Option<Span>,
    parent: Value,
    observed: Vec<Object>,
    expect: Map<String, Value>,
}

/// The test files of a text; `None` if no document of it is one.
pub fn read(file: &Arc<SourceFile>) -> Result<Option<Vec<TestFile>>, String> {
    if !file.text.contains(KIND) {
        return Ok(None);
    }
    let (documents, faults) = yaml::parse(file);
    let errors: Vec<_> = faults.into_iter().filter(|fault| fault.severity == Severity::Error).collect();
    if !errors.is_empty() {
        input::say(&errors);
        return Err(format!("cannot read {}", file.path));
    }
    let reader = Reader { file };
    let is_test = |document: &&Node| document.get("kind").and_then(Node::text).is_some_and(|kind| kind.value == KIND);
    let files: Vec<TestFile> =
        documents.iter().filter(is_test).map(|node| reader.document(node)).collect::<Result<_, _>>()?;
    Ok((!files.is_empty()).then_some(files))
}

struct Reader<'a> {
    file: &'a Arc<SourceFile>,
}

impl Reader<'_> {
    fn fault<T>(&self, node: &Node, message: &str) -> Result<T, String> {
        Err(format!("{}: {message}", self.file.at(begin(node))))
    }

    /// Refuses keys that are not known.
    fn only(&self, node: &Node, what: &str, known: &[&str]) -> Result<(), String> {
        let NodeKind::Map(entries) = &node.kind else { return self.fault(node, &format!("{what} is a mapping")) };
        match entries.iter().find(|entry| !known.contains(&entry.key.value.as_str())) {
            Some(entry) => Err(format!(
                "{}: {what} has no field `{}`; the fields are {}",
                self.file.at(entry.key.span),
                entry.key.value,
                known.join(", ")
            )),
            None => Ok(()),
        }
    }

    fn document(&self, node: &Node) -> Result<TestFile, String> {
        self.only(node, "a rule test", &["apiVersion", "kind", "metadata", "spec"])?;
        let version = node.get("apiVersion").and_then(Node::text).map_or("", |text| text.value.as_str());
        if version != fields::API_VERSION {
            return self.fault(node, &format!("the `apiVersion` of a rule test is `{}`", fields::API_VERSION));
        }
        let Some(spec) = node.get("spec") else { return self.fault(node, "a rule test needs a `spec`") };
        self.only(spec, "the `spec` of a rule test", &["rules", "tests"])?;
        let folder = Path::new(&self.file.path).parent().unwrap_or(Path::new("."));
        let rules = match spec.get("rules") {
            None => vec![folder.join("..")],
            Some(node) => {
                self.list(node)?.iter().map(|node| Ok(folder.join(self.text(node)?))).collect::<Result<_, String>>()?
            }
        };
        let tests = match spec.get("tests") {
            Some(node) => self.list(node)?.iter().map(|node| self.test(node)).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        Ok(TestFile { file: Arc::clone(self.file), rules, tests })
    }

    fn list<'n>(&self, node: &'n Node) -> Result<&'n [Node], String> {
        match &node.kind {
            NodeKind::List(items) => Ok(items),
            _ => self.fault(node, &format!("this is {}, a list is needed", node.describe())),
        }
    }

    fn text<'n>(&self, node: &'n Node) -> Result<&'n str, String> {
        match node.text() {
            Some(text) => Ok(&text.value),
            None => self.fault(node, &format!("this is {}, text is needed", node.describe())),
        }
    }

    fn test(&self, node: &Node) -> Result<Test, String> {
        self.only(node, "a test", &["name", "network", "networkFile", "observed", "expect"])?;
        let Some(name) = node.get("name") else { return self.fault(node, "a test needs a `name`") };
        let parent = match (node.get("network"), node.get("networkFile")) {
            (Some(network), None) => input::json(network, self.file)?,
            (None, Some(path)) => self.parent(path)?,
            _ => return self.fault(node, "a test needs either `network` or `networkFile`"),
        };
        let mut observed = Vec::new();
        if let Some(list) = node.get("observed") {
            for node in self.list(list)? {
                observed.push(Object { value: input::json(node, self.file)?, at: self.file.at(begin(node)) });
            }
        }
        let expect = node.get("expect").filter(|expect| !expect.is_null());
        if let Some(expect) = expect {
            self.only(expect, "`expect`", &EXPECTATIONS)?;
        }
        let expected = expect.map(|node| input::json(node, self.file)).transpose()?;
        let expect_span = match &node.kind {
            NodeKind::Map(entries) => {
                entries.iter().find(|entry| entry.key.value == "expect").map(|entry| entry.key.span)
            }
            _ => None,
        };
        Ok(Test {
            name: self.text(name)?.to_owned(),
            span: begin(node),
            expect_span,
            parent,
            observed,
            expect: expected.and_then(|expect| expect.as_object().cloned()).unwrap_or_default(),
        })
    }

    fn parent(&self, path: &Node) -> Result<Value, String> {
        let folder = Path::new(&self.file.path).parent().unwrap_or(Path::new("."));
        let mut objects = input::objects(&[folder.join(self.text(path)?)])?;
        match objects.pop() {
            Some(object) if objects.is_empty() => Ok(object.value),
            _ => self.fault(path, "the file of a test's Network holds one object"),
        }
    }
}

fn begin(node: &Node) -> Span {
    match &node.kind {
        NodeKind::Map(entries) => entries.first().map_or(node.span, |entry| entry.key.span),
        NodeKind::List(_) | NodeKind::Scalar(_) | NodeKind::Refused => node.span,
    }
}

/// What a test wants and what the rules give, in the same shape. They are equal where the test holds.
#[derive(Debug)]
pub struct Verdict {
    /// What `expect` says.
    pub expected: Value,
    /// The same keys of what is: what `expect` should say for the test to hold.
    pub actual: Value,
}

impl Test {
    /// Runs the test.
    pub fn run(&self, programs: &[Program]) -> Result<Verdict, String> {
        let parent = self.whole_parent(programs)?;
        let sets = offline::for_kind(programs, &input::gvk(&parent));
        if sets.is_empty() {
            return Err(format!("no rule set is for the kind `{}`", input::gvk(&parent).kind));
        }
        let given = given(&offline::render(&sets, &parent, &self.observed));
        let mut expected = Map::new();
        let mut actual = Map::new();
        for key in EXPECTATIONS {
            let wanted = self.expect.get(key);
            let is = given.get(key);
            // A test that expects nothing yet holds for nothing: it shows all that `--update` would fill in.
            let fills = self.expect.is_empty() && key != "contains";
            let compared = wanted.is_some() || fills || matches!(key, "invalid" | "errors" | "waiting");
            let value = match (key, wanted) {
                ("contains", Some(wanted)) => contained(wanted, given.get("children")),
                (_, Some(wanted)) if is_part(wanted, is) => Some(wanted.clone()),
                ("children", Some(wanted)) => is.map(|is| in_order_of(wanted, is)),
                _ => is.cloned(),
            };
            if compared {
                let says = |value: &Value| !is_empty(value) || (key == "children" && !self.expect.is_empty());
                expected.extend(wanted.filter(|wanted| says(wanted)).map(|wanted| (key.to_owned(), wanted.clone())));
                actual.extend(value.filter(says).map(|value| (key.to_owned(), value)));
            }
        }
        Ok(Verdict { expected: Value::Object(expected), actual: Value::Object(actual) })
    }

    /// The parent with what a test may leave out.
    fn whole_parent(&self, programs: &[Program]) -> Result<Value, String> {
        let mut parent = Map::new();
        let first = programs.first().map(Program::parent).ok_or("there are no rules to test")?;
        let api_version =
            if first.group.is_empty() { first.version.clone() } else { format!("{}/{}", first.group, first.version) };
        parent.insert("apiVersion".to_owned(), json!(api_version));
        parent.insert("kind".to_owned(), json!(first.kind));
        parent.insert("metadata".to_owned(), json!({}));
        parent.extend(self.parent.as_object().cloned().unwrap_or_default());
        let mut parent = Value::Object(parent);
        if input::metadata(&parent, "namespace").is_empty() {
            parent["metadata"]["namespace"] = json!("default");
        }
        if input::metadata(&parent, "name").is_empty() {
            return Err("the Network of the test has no `metadata.name`".to_owned());
        }
        Ok(parent)
    }
}

/// What rendering gives, in the shape of `expect`.
fn given(outcome: &offline::Outcome<'_>) -> Map<String, Value> {
    let mut children = Vec::new();
    let mut invalid = Vec::new();
    let (mut errors, mut waiting, mut status) = (Map::new(), Map::new(), Map::new());
    for (_, rendered) in &outcome.sets {
        invalid.extend(rendered.invalid.iter().map(|fault| json!(fault.message)));
        status.extend(rendered.status.clone());
        for child in &rendered.children {
            let name = offline::resource_name(child);
            match &child.state {
                ChildState::Desired(manifest) => children.push(manifest.clone()),
                ChildState::Failed(fault) => drop(errors.insert(name, json!(fault.message))),
                ChildState::Waiting(on) => drop(waiting.insert(name, json!(on))),
            }
        }
        for fault in &rendered.status_faults {
            errors.insert("status".to_owned(), json!(fault.message));
        }
    }
    let values = [
        ("children", Value::Array(children)),
        ("invalid", Value::Array(invalid)),
        ("errors", Value::Object(errors)),
        ("waiting", Value::Object(waiting)),
        ("status", Value::Object(status)),
    ];
    values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Whether the texts that are wanted are parts of those that there are, one for one; all else is equal or not.
fn is_part(wanted: &Value, is: Option<&Value>) -> bool {
    match (wanted, is) {
        (Value::String(wanted), Some(Value::String(is))) => is.contains(wanted.as_str()),
        (Value::Array(wanted), Some(Value::Array(is))) => {
            wanted.len() == is.len() && wanted.iter().zip(is).all(|(wanted, is)| text_part(wanted, is))
        }
        (Value::Object(wanted), Some(Value::Object(is))) => {
            wanted.len() == is.len()
                && wanted.iter().all(|(key, wanted)| is.get(key).is_some_and(|is| text_part(wanted, is)))
        }
        (wanted, Some(is)) => wanted == is,
        (_, None) => false,
    }
}

fn text_part(wanted: &Value, is: &Value) -> bool {
    match (wanted, is) {
        (Value::String(wanted), Value::String(is)) => is.contains(wanted.as_str()),
        (wanted, is) => wanted == is,
    }
}

fn is_same_object(a: &Value, b: &Value) -> bool {
    offline::same_kind(&input::gvk(a), &input::gvk(b)) && input::metadata(a, "name") == input::metadata(b, "name")
}

/// The children that there are, in the order in which a test names them; more of them follow.
fn in_order_of(wanted: &Value, is: &Value) -> Value {
    let (Some(wanted), Some(is)) = (wanted.as_array(), is.as_array()) else { return is.clone() };
    let place = |child: &Value| wanted.iter().position(|wanted| is_same_object(wanted, child)).unwrap_or(usize::MAX);
    let mut ordered = is.clone();
    ordered.sort_by_key(place);
    Value::Array(ordered)
}

/// The fields that a test names of the children that it names, as they are.
fn contained(wanted: &Value, children: Option<&Value>) -> Option<Value> {
    let children = children?.as_array()?;
    let found = wanted.as_array()?.iter().filter_map(|wanted| {
        let child = children.iter().find(|child| is_same_object(wanted, child))?;
        Some(projected(wanted, child))
    });
    Some(found.collect())
}

fn projected(wanted: &Value, is: &Value) -> Value {
    match (wanted, is) {
        (Value::Object(wanted), Value::Object(is)) => {
            let fields = wanted.iter().filter_map(|(key, wanted)| Some((key.clone(), projected(wanted, is.get(key)?))));
            Value::Object(fields.collect())
        }
        _ => is.clone(),
    }
}
