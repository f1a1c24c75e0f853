//! What commands read: rule files, and objects from files, folders and stdin.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::output::{self, Stream};
use crate::diagnostic::{self, Diagnostic, Location, Severity, SourceFile, Span};
use crate::rules::yaml::{self, Node, NodeKind, Scalar};
use crate::rules::{Gvk, Program, source};

/// An object, and where it was written.
#[derive(Debug, Clone)]
pub struct Object {
    /// The object.
    pub value: Value,
    /// Its place.
    pub at: Location,
}

impl Object {
    /// Its group, version and kind; empty where it does not say.
    pub fn gvk(&self) -> Gvk {
        gvk(&self.value)
    }
}

/// Group, version and kind as an object says them.
pub fn gvk(object: &Value) -> Gvk {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    Gvk { group: group.to_owned(), version: version.to_owned(), kind: text("kind").to_owned() }
}

/// `metadata.KEY` of an object; empty where it has none.
pub fn metadata<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// The rule sets of files and folders, ready to run. What is wrong with them is said on stderr; an error if that leaves
/// something unusable.
pub fn programs(paths: &[PathBuf]) -> Result<Vec<Program>, String> {
    let files = source::read(paths).map_err(|error| error.to_string())?;
    compiled(&files, paths)
}

/// Rule sets from texts that are read already.
pub fn compiled(files: &[Arc<SourceFile>], paths: &[PathBuf]) -> Result<Vec<Program>, String> {
    let (programs, diagnostics) = Program::load(files);
    say(&diagnostics);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    let places = || paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
    if errors > 0 {
        return Err(format!("the rules cannot be used; `network-operator check {}` says more", places()));
    }
    if programs.is_empty() {
        return Err(format!("there is no rule set in {}", places()));
    }
    Ok(programs)
}

/// Draws diagnostics on stderr.
pub fn say(diagnostics: &[Diagnostic]) {
    if !diagnostics.is_empty() {
        output::note(diagnostic::human::render(diagnostics, output::diagnostics(Stream::Stderr)).trim_end());
    }
}

/// The objects of files, folders and (`-`) stdin, in that order; lists are taken apart.
pub fn objects(paths: &[PathBuf]) -> Result<Vec<Object>, String> {
    let mut objects = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            objects.extend(parse(&stdin()?)?);
            continue;
        }
        for file in source::read(std::slice::from_ref(path)).map_err(|error| error.to_string())? {
            objects.extend(parse(&file)?);
        }
    }
    Ok(objects)
}

/// All of stdin, as a file of that name.
pub fn stdin() -> Result<Arc<SourceFile>, String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).map_err(|error| format!("cannot read stdin: {error}"))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| format!("cannot read stdin: not UTF-8 at byte {}", error.utf8_error().valid_up_to()))?;
    Ok(SourceFile::new("<stdin>", text))
}

/// The objects of a text, YAML or JSON; lists are taken apart.
pub fn parse(file: &Arc<SourceFile>) -> Result<Vec<Object>, String> {
    let mut flat = Vec::new();
    for object in raw(file)? {
        flatten(object, &mut flat)?;
    }
    Ok(flat)
}

/// The documents of a text as they are.
pub fn raw(file: &Arc<SourceFile>) -> Result<Vec<Object>, String> {
    let whole = file.at(Span::new(0, 0));
    let mut objects = Vec::new();
    // `kubectl get -o json` of a whole cluster is larger than a rule file may be, and JSON has no traps to explain.
    if file.text.trim_start().starts_with('{') {
        let read = serde_json::Deserializer::from_str(&file.text).into_iter::<Value>();
        for value in read {
            let value = value.map_err(|error| format!("{}: not JSON: {error}", file.path))?;
            objects.push(Object { value, at: whole.clone() });
        }
    } else {
        let (documents, faults) = yaml::parse(file);
        let (errors, _): (Vec<_>, Vec<_>) = faults.into_iter().partition(|fault| fault.severity == Severity::Error);
        if !errors.is_empty() {
            say(&errors);
            return Err(format!("cannot read {}", file.path));
        }
        for document in &documents {
            let value = json(document, file)?;
            objects.push(Object { value, at: file.at(start(document)) });
        }
    }
    Ok(objects)
}

fn flatten(object: Object, flat: &mut Vec<Object>) -> Result<(), String> {
    let Object { value, at } = object;
    let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && value.get("items").is_some_and(Value::is_array);
    match value {
        Value::Null => Ok(()),
        Value::Object(mut list) if is_list => {
            let Some(Value::Array(items)) = list.remove("items") else { return Ok(()) };
            items.into_iter().try_for_each(|value| flatten(Object { value, at: at.clone() }, flat))
        }
        value
            if value.get("kind").is_some_and(Value::is_string)
                && value.get("apiVersion").is_some_and(Value::is_string) =>
        {
            flat.push(Object { value, at });
            Ok(())
        }
        _ => Err(format!("{at}: this is not an object: it has no `apiVersion` and `kind`")),
    }
}

/// Where a node's own text begins.
fn start(node: &Node) -> Span {
    match &node.kind {
        NodeKind::Map(entries) => entries.first().map_or(node.span, |entry| entry.key.span),
        NodeKind::List(_) | NodeKind::Scalar(_) | NodeKind::Refused => node.span,
    }
}

/// A tree of YAML as a value.
pub fn json(node: &Node, file: &Arc<SourceFile>) -> Result<Value, String> {
    match &node.kind {
        // Reported when the text was read.
        NodeKind::Refused => Ok(Value::Null),
        NodeKind::List(items) => items.iter().map(|item| json(item, file)).collect(),
        NodeKind::Map(entries) => {
            let entries = entries.iter().map(|entry| Ok((entry.key.value.clone(), json(&entry.value, file)?)));
            entries.collect::<Result<Map<_, _>, String>>().map(Value::Object)
        }
        NodeKind::Scalar(text) => match text.resolve() {
            Ok(Scalar::Null) => Ok(Value::Null),
            Ok(Scalar::Bool(value)) => Ok(Value::Bool(value)),
            Ok(Scalar::Number(value)) => Ok(Value::Number(value)),
            Ok(Scalar::Text(_)) => match text.bent_by_yaml_1_1() {
                Some(bent) => Err(format!("{}: {}; {}", file.at(node.span), bent.message, bent.help.join(", "))),
                None => Ok(Value::String(text.value.clone())),
            },
            Err(_) if text.value == "~" => Ok(Value::Null),
            Err(bent) => Err(format!("{}: {}; {}", file.at(node.span), bent.message, bent.help.join(", "))),
        },
    }
}
