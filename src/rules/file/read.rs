//! Reads a [`RuleSet`] out of a document, field by field.

use std::sync::Arc;

use super::{ForEach, Name, Op, Patch, Resource, RuleSet, Validation, Variable};
use crate::diagnostic::{Diagnostic, Severity, SourceFile, Span};
use crate::rules::fields::{self, Object, Shape};
use crate::rules::record::Record;
use crate::rules::template::Reader;
use crate::rules::yaml::{self, Node, NodeKind, Text};
use crate::rules::{Gvk, OnConflict, OnDelete, OnDrift, OnExists, OnImmutable, OnRemove, Policy, names};

/// The rule sets of one file, and every fault of their YAML, their fields and their expressions' syntax. Names that
/// must be unique among files are not compared here.
pub fn read(file: &Arc<SourceFile>) -> (Vec<RuleSet>, Vec<Diagnostic>) {
    let (documents, mut faults) = yaml::parse(file);
    let mut sets = Vec::new();
    if documents.is_empty() && faults.is_empty() {
        faults.push(
            Diagnostic::warning("empty-file", "there is no rule set in this file", file.at(Span::new(0, 0))).help(
                format!("a rule set begins with `apiVersion: {}` and `kind: {}`", fields::API_VERSION, fields::KIND),
            ),
        );
    }
    for document in &documents {
        let mut found = Vec::new();
        let set = Reader::new(file, &mut found).rule_set(document);
        let broken = found.iter().any(|fault| fault.severity == Severity::Error);
        sets.extend(set.map(|set| RuleSet { broken, ..set }));
        found.truncate(yaml::MAX_FAULTS);
        faults.append(&mut found);
    }
    (sets, faults)
}

impl Reader<'_> {
    fn rule_set(&mut self, document: &Node) -> Option<RuleSet> {
        if self.is_something_else(document) {
            return None;
        }
        let root = self.record(document, &fields::RULE_SET)?;
        let metadata = root.get("metadata").and_then(|node| self.record(node, nested(&fields::RULE_SET, "metadata")));
        let name = metadata.and_then(|metadata| metadata.text("name").map(name));
        if let Some(name) = &name {
            self.set_name(name);
        }
        let spec_table = nested(&fields::RULE_SET, "spec");
        let spec = self.record(root.get("spec")?, spec_table)?;
        let (parent, parent_span) = self.parent(&spec, nested(spec_table, "for"));
        let validations = self.validations(&spec, nested(spec_table, "validations"));
        let variables = self.variables(spec.get("variables"));
        let resources = self.resources(&spec, nested(spec_table, "resources"));
        let status = spec.get("status").map(|node| self.tree(node));
        Some(RuleSet {
            file: Arc::clone(self.file),
            span: document.span,
            name: name.unwrap_or_else(|| Name { text: String::new(), span: root.span }),
            parent: parent.unwrap_or_else(|| Gvk { group: String::new(), version: String::new(), kind: String::new() }),
            parent_span,
            validations,
            variables,
            resources,
            status,
            broken: false,
        })
    }

    /// Whether a document is an object of another API; says so once instead of once per field.
    fn is_something_else(&mut self, document: &Node) -> bool {
        let text = |field| document.get(field).and_then(Node::text);
        let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else { return false };
        let ours = |text: &str| text.split('/').next() == fields::API_VERSION.split('/').next();
        if kind.value == fields::KIND || ours(&api_version.value) {
            return false;
        }
        self.faults.push(
            Diagnostic::error(
                "not-a-rule-set",
                format!("this is a {} of `{}`, not a rule set", kind.value, api_version.value),
                self.file.at(kind.span),
            )
            .help(format!("a rule set begins with `apiVersion: {}` and `kind: {}`", fields::API_VERSION, fields::KIND))
            .help("keep other objects out of the rules folder"),
        );
        true
    }

    fn set_name(&mut self, name: &Name) {
        if let Some(reason) = names::label(&name.text) {
            self.faults.push(
                Diagnostic::error(
                    "bad-name",
                    format!("`{}` cannot name a rule set: {reason}", name.text),
                    self.file.at(name.span),
                )
                .help("use small letters, digits and `-`, at most 63"),
            );
        }
    }

    fn parent(&mut self, spec: &Record<'_>, table: &'static Object) -> (Option<Gvk>, Span) {
        let Some(node) = spec.get("for") else { return (None, spec.span) };
        let Some(record) = self.record(node, table) else { return (None, node.span) };
        let api_version = record.text("apiVersion");
        let kind = record.text("kind");
        let gvk = api_version.zip(kind).and_then(|(api_version, kind)| self.gvk(api_version, kind));
        (gvk, node.span)
    }

    /// Group, version and kind from their two texts.
    pub(super) fn gvk(&mut self, api_version: &Text, kind: &Text) -> Option<Gvk> {
        let gvk = names::gvk(&api_version.value, &kind.value);
        if gvk.is_none() {
            let (text, what, help) = if names::is_kind(&kind.value) {
                (api_version, "apiVersion", "write `group/version`, or `v1` for the core group")
            } else {
                (kind, "kind", "a kind begins with a capital letter: `ConfigMap`")
            };
            self.faults.push(
                Diagnostic::error(
                    "bad-kind",
                    format!("`{}` is not a valid `{what}`", text.value),
                    self.file.at(text.span),
                )
                .help(help),
            );
        }
        gvk
    }

    fn validations(&mut self, spec: &Record<'_>, table: &'static Object) -> Vec<Validation> {
        let records = self.records(spec.get("validations"), table);
        let mut validations = Vec::new();
        for record in &records {
            let message = record.text("message");
            if let Some(text) = message
                && let Some(at) = text.value.find("${")
            {
                let span = text.span_of(&self.file.text, at..at + 2);
                self.faults.push(
                    Diagnostic::error("template-in-message", "`message` is plain text", self.file.at(span))
                        .help("use `messageExpression`, whose value is CEL: 'gateway ' + self.spec.gateway"),
                );
            }
            let message_expression = self.expression_field(record, "messageExpression");
            if let Some(rule) = self.expression_field(record, "rule") {
                validations.push(Validation {
                    rule,
                    message: message.map(|text| text.value.clone()),
                    message_expression,
                });
            }
        }
        validations
    }

    fn variables(&mut self, node: Option<&Node>) -> Vec<Variable> {
        let Some(Node { kind: NodeKind::Map(entries), .. }) = node else { return Vec::new() };
        let mut variables = Vec::new();
        for entry in entries {
            let name = name(&entry.key);
            self.identifier(&name, "a variable");
            match entry.value.text() {
                Some(text) if !entry.value.is_null() => {
                    variables.push(Variable { name, expression: self.bare(text) });
                }
                Some(_) => self.faults.push(
                    Diagnostic::error(
                        "no-value",
                        format!("`{}` has no value", entry.key.value),
                        self.file.at(entry.key.span),
                    )
                    .help("give it a CEL expression"),
                ),
                None if entry.value.kind == NodeKind::Refused => {}
                None => self.faults.push(
                    Diagnostic::error(
                        "wrong-type",
                        format!("a variable is an expression, this is {}", entry.value.describe()),
                        self.file.at(entry.key.span),
                    )
                    .help("write a CEL list or map in quotes: \"[1, 2]\", \"{'a': 1}\""),
                ),
            }
        }
        variables
    }

    /// A name that expressions can use.
    fn identifier(&mut self, name: &Name, what: &str) {
        let Some(reason) = names::identifier(&name.text) else { return };
        let fault = Diagnostic::error(
            "bad-name",
            format!("`{}` cannot name {what}: {reason}", name.text),
            self.file.at(name.span),
        );
        self.faults.push(match names::camel_case(&name.text) {
            Some(better) => fault.help(format!("write `{better}`")),
            None if names::is_taken(&name.text) => fault.help("choose another name"),
            None => fault.help("use letters and digits, first a letter"),
        });
    }

    fn resources(&mut self, spec: &Record<'_>, table: &'static Object) -> Vec<Resource> {
        let records = self.records(spec.get("resources"), table);
        records.iter().filter_map(|record| self.resource(record, table)).collect()
    }

    fn resource(&mut self, record: &Record<'_>, table: &'static Object) -> Option<Resource> {
        let id = record.text("id").map(name);
        if let Some(id) = &id {
            if id.text.starts_with(|c: char| c.is_ascii_uppercase()) {
                self.faults.push(
                    Diagnostic::error(
                        "bad-name",
                        format!("`{}` cannot name a resource: it begins with a capital letter", id.text),
                        self.file.at(id.span),
                    )
                    .help("begin with a small letter"),
                );
            } else {
                self.identifier(id, "a resource");
            }
        }
        let when = self.expression_field(record, "when");
        let for_each = record.get("forEach").and_then(|node| self.for_each(node));
        let item_key = self.expression_field(record, "itemKey");
        if let (Some(key), None) = (record.entry("itemKey"), record.get("forEach")) {
            self.faults.push(
                Diagnostic::error("item-key-alone", "`itemKey` without `forEach`", self.file.at(key.key.span))
                    .help("only items of a `forEach` have keys; remove it"),
            );
        }
        let manifest = record.get("manifest").map(|node| self.tree(node));
        let patches = self.patches(record, nested(table, "patches"));
        let ready_when = match record.get("readyWhen").map(|node| &node.kind) {
            Some(NodeKind::Scalar(text)) => vec![self.bare(text)],
            Some(NodeKind::List(items)) => items.iter().filter_map(Node::text).map(|text| self.bare(text)).collect(),
            Some(NodeKind::Map(_) | NodeKind::Refused) | None => Vec::new(),
        };
        let policy = policy(record);
        Some(Resource { id: id?, when, for_each, item_key, manifest: manifest?, patches, ready_when, policy })
    }

    fn for_each(&mut self, node: &Node) -> Option<ForEach> {
        let NodeKind::Map(entries) = &node.kind else { return None };
        if node.get("in").is_some() {
            let record = self.record(node, &fields::FOR_EACH)?;
            let key = record.text("key").map(name);
            let value = record.text("value").map(name);
            for name in key.iter().chain(&value) {
                self.identifier(name, "an item");
            }
            let over = self.expression_field(&record, "in");
            return Some(ForEach { key, value: value?, long: true, over: over? });
        }
        let [entry] = entries.as_slice() else {
            let span = entries.get(1).map_or(node.span, |entry| entry.key.span);
            self.faults.push(
                Diagnostic::error("bad-for-each", "`forEach` has one name and one expression", self.file.at(span))
                    .help("write `forEach: {item: self.spec.items}`")
                    .help("or, to have the key too, `forEach: {key: k, value: v, in: self.spec.items}`"),
            );
            return None;
        };
        let value = name(&entry.key);
        self.identifier(&value, "an item");
        if entry.value.kind == NodeKind::Refused {
            return None;
        }
        let Some(text) = entry.value.text().filter(|_| !entry.value.is_null()) else {
            self.faults.push(
                Diagnostic::error(
                    "wrong-type",
                    format!("`forEach` goes over an expression, this is {}", entry.value.describe()),
                    self.file.at(entry.key.span),
                )
                .help("write `forEach: {item: self.spec.items}`, or a CEL list in quotes: \"['a', 'b']\""),
            );
            return None;
        };
        let over = self.bare(text);
        Some(ForEach { key: None, value, long: false, over })
    }

    fn patches(&mut self, record: &Record<'_>, table: &'static Object) -> Vec<Patch> {
        let records = self.records(record.get("patches"), table);
        records.iter().filter_map(|record| self.patch(record)).collect()
    }

    fn patch(&mut self, record: &Record<'_>) -> Option<Patch> {
        let when = self.expression_field(record, "when");
        let value = record.get("value").map(|node| self.tree(node));
        let op = record.text("op")?;
        let (kind, wants) = match op.value.as_str() {
            "add" => (Op::Add, "value"),
            "replace" => (Op::Replace, "value"),
            "test" => (Op::Test, "value"),
            "move" => (Op::Move, "from"),
            "copy" => (Op::Copy, "from"),
            _ => (Op::Remove, ""),
        };
        let mut fits = true;
        for field in ["value", "from"] {
            match record.entry(field) {
                None if wants == field => {
                    fits = false;
                    self.faults.push(
                        Diagnostic::error(
                            "missing-field",
                            format!("the operation `{}` needs `{field}`", op.value),
                            self.file.at(op.span),
                        )
                        .help(if field == "value" {
                            "add `value: …`"
                        } else {
                            "add `from: /path/of/what/is/taken`"
                        }),
                    );
                }
                Some(entry) if wants != field => self.faults.push(
                    Diagnostic::error(
                        "needless-field",
                        format!("the operation `{}` has no `{field}`", op.value),
                        self.file.at(entry.key.span),
                    )
                    .help("remove it"),
                ),
                _ => {}
            }
        }
        let path = record.text("path").map(name)?;
        let from = record.text("from").map(name);
        fits.then_some(Patch { span: record.span, op: kind, path, from, value, when })
    }
}

/// The table of a field that holds one, or the table itself for a name that holds none.
fn nested(table: &'static Object, name: &str) -> &'static Object {
    table
        .fields
        .iter()
        .find(|field| field.name == name)
        .and_then(|field| match field.shape {
            Shape::Object(object) | Shape::List(object) | Shape::ForEach(object) => Some(object),
            _ => None,
        })
        .unwrap_or(table)
}

fn name(text: &Text) -> Name {
    Name { text: text.value.clone(), span: text.span }
}

fn policy(record: &Record<'_>) -> Policy {
    let is = |field: &str, word: &str| record.text(field).is_some_and(|text| text.value == word);
    Policy {
        on_exists: if is("onExists", "adopt") { OnExists::Adopt } else { OnExists::Refuse },
        on_drift: if is("onDrift", "report") { OnDrift::Report } else { OnDrift::Correct },
        on_remove: if is("onRemove", "keep") { OnRemove::Keep } else { OnRemove::Prune },
        on_delete: if is("onDelete", "keep") { OnDelete::Keep } else { OnDelete::Delete },
        on_immutable: if is("onImmutable", "recreate") { OnImmutable::Recreate } else { OnImmutable::Report },
        on_conflict: if is("onConflict", "yield") { OnConflict::Yield } else { OnConflict::Force },
    }
}
