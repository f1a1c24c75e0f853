//! Example objects in files, against the CRD that defines their kind.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::manifest::as_diagnostics;
use crate::diagnostic::{Diagnostic, Location, SourceFile, Span};
use crate::rules::names;
use crate::rules::schema::crd::CrdSchema;
use crate::rules::schema::instance::{Step, violations};
use crate::rules::yaml::{self, Node, NodeKind, Scalar};

/// Everything that is wrong with the objects of a file whose kind one of the CRDs defines; objects of other kinds are
/// passed over.
pub fn objects(file: &Arc<SourceFile>, crds: &[CrdSchema]) -> Vec<Diagnostic> {
    let (documents, mut found) = yaml::parse(file);
    for document in &documents {
        let value = value_of(document, file, &mut found);
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let gvk = names::gvk(&text("apiVersion"), &text("kind"));
        let Some(crd) = gvk.and_then(|gvk| crds.iter().find(|crd| crd.gvk == gvk)) else { continue };
        let locate = |path: &[Step], key: bool| at(document, path, key, file);
        found.extend(as_diagnostics(violations(&value, &crd.schema), &locate));
        if let Some(reason) = value["metadata"]["name"].as_str().and_then(names::subdomain) {
            let name = [Step::Key("metadata".to_owned()), Step::Key("name".to_owned())];
            let message = format!("this cannot be the name of a {}: {reason}", crd.gvk.kind);
            found.push(Diagnostic::error("bad-name", message, at(document, &name, false, file)));
        }
    }
    found.sort_by_key(|fault| fault.at.span);
    found
}

/// The JSON of a document. A scalar that readers would not agree about is a fault and becomes text.
fn value_of(node: &Node, file: &Arc<SourceFile>, found: &mut Vec<Diagnostic>) -> Value {
    match &node.kind {
        NodeKind::List(items) => items.iter().map(|item| value_of(item, file, found)).collect(),
        NodeKind::Map(entries) => {
            let fields = entries.iter().map(|entry| (entry.key.value.clone(), value_of(&entry.value, file, found)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        NodeKind::Refused => Value::Null,
        NodeKind::Scalar(text) => match text.resolve() {
            Ok(Scalar::Null) => Value::Null,
            Ok(Scalar::Bool(flag)) => Value::Bool(flag),
            Ok(Scalar::Number(number)) => Value::Number(number),
            Ok(Scalar::Text(text)) => Value::String(text.to_owned()),
            Err(bent) => {
                let mut fault = Diagnostic::error("ambiguous-scalar", bent.message, file.at(node.span));
                fault.help = bent.help;
                found.push(fault);
                Value::String(text.value.clone())
            }
        },
    }
}

/// Where a value stands: the value itself, or its key. What is not there is at the nearest thing around it.
fn at(document: &Node, path: &[Step], key: bool, file: &Arc<SourceFile>) -> Location {
    let (mut node, mut span) = (document, first(document));
    for step in path {
        let next = match (step, &node.kind) {
            (Step::Key(name), NodeKind::Map(entries)) => {
                entries.iter().find(|entry| entry.key.value == *name).map(|entry| (&entry.value, entry.key.span))
            }
            (Step::Index(index), NodeKind::List(items)) => items.get(*index).map(|item| (item, first(item))),
            _ => None,
        };
        let Some((inner, key_span)) = next else { return file.at(span) };
        node = inner;
        span = if key || !matches!(inner.kind, NodeKind::Scalar(_)) { key_span } else { inner.span };
    }
    file.at(span)
}

/// The beginning of a node, short enough to underline.
fn first(node: &Node) -> Span {
    match &node.kind {
        NodeKind::Map(entries) => entries.first().map_or(node.span, |entry| entry.key.span),
        NodeKind::List(items) => items.first().map_or(node.span, first),
        NodeKind::Scalar(_) | NodeKind::Refused => node.span,
    }
}
