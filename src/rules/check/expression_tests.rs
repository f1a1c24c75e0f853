//! What the checker says of single expressions. Whole rule files are in `tests/check.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::json;

use super::expression::{Checked, Checker, Goes, Source};
use super::library::Library;
use super::scope::{Member, Scope, Value};
use crate::diagnostic::{Location, Severity, SourceFile, Span};
use crate::rules::expr::Expr;
use crate::rules::functions::functions;
use crate::rules::schema::openapi::schema;
use crate::rules::schema::{Schema, crd};
use crate::rules::types::Type;
use crate::rules::types::signature::Signature;

/// Macros, whose signatures name variables.
const MACROS: &[&str] = &["cel.bind", "sortBy", "transformList", "transformMap", "transformMapEntry"];

const FUNCTIONS: &[&str] = &[
    "cidr(string) -> kubernetes.CIDR",
    "ip(string) -> kubernetes.IP",
    "<kubernetes.CIDR>.containsIP(string) -> bool",
    "<kubernetes.CIDR>.containsIP(kubernetes.IP) -> bool",
    "<kubernetes.CIDR>.prefixLength() -> int",
    "string(kubernetes.CIDR) -> string",
    "<list<string>>.join() -> string",
    "<list<string>>.join(string) -> string",
    "<list<A>>.sum() -> A",
    "<list<A>>.indexOf(A) -> int",
    "<string>.lowerAscii() -> string",
    "math.greatest(dyn…) -> dyn",
    "toJson(dyn) -> string",
];

fn network() -> Arc<Schema> {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "required": ["cidr"], "properties": {
        "cidr": text, "gateway": text, "mtu": {"type": "integer"},
        "mode": {"type": "string", "enum": ["bridge", "routed"], "default": "bridge"},
        "dnsServers": {"type": "array", "items": text},
        "subnets": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
            "name": text, "cidr": text, "gateway": text}}},
        "port": {"x-kubernetes-int-or-string": true},
        "nat": {"type": "object", "properties": {"enabled": {"type": "boolean"}, "address": text}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "note": {"type": "string", "nullable": true}}});
    let root = schema(
        &json!({"type": "object", "required": ["spec"], "properties": {
        "spec": spec, "metadata": {"type": "object"}}}),
        None,
    );
    crd::as_stored(&Arc::new(root))
}

fn scope() -> Scope {
    let mut scope = Scope::default();
    scope.names.insert("self".to_owned(), Value::root("self", &network()));
    let member = |ty: Type| Member { value: Value::of(ty), only_when: None, needs: BTreeSet::new() };
    let variables = BTreeMap::from([
        ("network".to_owned(), member(Type::Opaque("CIDR".into()))),
        ("names".to_owned(), member(Type::list(Type::String))),
    ]);
    scope.spaces.insert("variables", Rc::new(variables));
    scope
}

/// Checks an expression with a checker set up by `run`.
fn with(text: &str, run: impl FnOnce(Checker<'_>) -> Checked) -> (Checked, Arc<SourceFile>) {
    with_library(text, &Library::new(FUNCTIONS.iter().copied()), run)
}

fn with_library(text: &str, library: &Library, run: impl FnOnce(Checker<'_>) -> Checked) -> (Checked, Arc<SourceFile>) {
    let expr = Expr::parse(text).unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
    let file = SourceFile::new("x", text);
    let locate = |range: Range<usize>| Location { file: Arc::clone(&file), span: Span::new(range.start, range.end) };
    let source = Source { expr: &expr, locate: &locate };
    (run(Checker::new(library, source)), Arc::clone(&file))
}

/// The type of an expression, or what is wrong with it, with the characters that each message is about.
fn said(text: &str) -> String {
    let (mut checked, _) = with(text, |checker| checker.goes(Goes::Manifest).any(&scope()));
    checked.found.extend(checked.unguarded.drain(..).map(|(_, fault)| fault));
    told(text, &checked)
}

fn told(text: &str, checked: &Checked) -> String {
    let mut out = String::new();
    if checked.found.is_empty() {
        let _ = write!(out, "{}", checked.value.ty);
    }
    for fault in &checked.found {
        let at = &text[fault.at.span.start..fault.at.span.end];
        let severity = if fault.severity == Severity::Error { "" } else { "warning: " };
        let _ = write!(out, "{severity}[{at}] {}", fault.message);
        for help in &fault.help {
            let _ = write!(out, "\n    {help}");
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

const EXPRESSIONS: &[&str] = &[
    "self.spec.cidr",
    "self.spec.cdir",
    "self.spec.gateway",
    "self.spec.?gateway",
    "self.spec.?gateway.orValue('')",
    "has(self.spec.gateway) && self.spec.gateway != ''",
    "!has(self.spec.gateway) || self.spec.gateway != ''",
    "has(self.spec.gateway) ? self.spec.gateway : 'none'",
    "!has(self.spec.gateway) ? self.spec.gateway : 'none'",
    "cidr(self.spec.cidr).containsIP(self.spec.gateway)",
    "self.spec.mtu == '1500'",
    "self.spec.mode == 'brige'",
    "self.spec.subnets.filter(s, has(s.gateway)).map(s, s.gateway)",
    "self.spec.?subnets.orValue([]).map(s, s.gateway)",
    "self.spec.?subnets.orValue([]).all(s, s.name)",
    "self.spec.cidr + 1",
    "'a' + self.spec.?gateway",
    "size(self.spec.cidr) > 'a'",
    "cidr(1)",
    "cidr()",
    "cdr('x')",
    "self.spec.cidr.containsIP('x')",
    "self.spec.?cidr.startsWith('x')",
    "gateway",
    "prefix",
    "variables.netwrk",
    "network.prefixLength()",
    "variables.network.prefixLength()",
    "variables.network.prefixLength",
    "self.spec.cidr.foo",
    "self.spec.subnets.name",
    "self.spec.nat.address",
    "has(self.spec.nat.address)",
    "has(self.spec.nat) && has(self.spec.nat.address) && self.spec.nat.address == ''",
    "self.spec.free.x.y",
    "self.metadata.labels.app",
    "self.metadata.labels['app']",
    "'app' in self.metadata.labels",
    "has(self.metadata.labels) && 'app' in self.metadata.labels ? self.metadata.labels['app'] : ''",
    "self.metadata.name == null",
    "self.spec.note == null",
    "self.spec.?gateway == null",
    "self.spec.?gateway == 'x'",
    "1 + 1.0",
    "-'a'",
    "!self.spec.mtu",
    "self.spec.cidr ? 1 : 2",
    "1 in 'abc'",
    "1 in ['a']",
    "math.greatest(1, 2)",
    "math.gratest(1, 2)",
    "optional.of(1).orValue('a')",
    "[1, 'a']",
    "[]",
    "{'a': 1}",
    "size([])",
    "len('a')",
    "size('a', 'b')",
    "self.spec.?gateway.optMap(g, g + 'x')",
    "self.spec.cidr.optMap(g, g)",
    "self.spec.mtu.map(x, x)",
    "self.spec.?dnsServers.map(x, x)",
    "[1,2].map(x)",
    "self.spec.dnsServers[0]",
    "self.spec.?dnsServers[?0].orValue('')",
    "self.spec.dnsServers['a']",
    "self.spec['cidr']",
    "self.spec['cdir']",
    "type(1) == int",
    "Foo{a: 1}",
    "self.spec.port + 1",
    "self.spec.subnets.exists(s, s.nam == 'x') || gatway",
    "self.spec.gateway.size() > 0 && self.spec.gateway != 'x'",
    "size(self.spec.?dnsServers.orValue([])) > 0 ? self.spec.dnsServers[0] : ''",
    "self.spec.?nat.?enabled.orValue(false) ? self.spec.nat.address : ''",
    "[?self.spec.?gateway]",
    "[?self.spec.cidr]",
    "{?'a': self.spec.?gateway}",
    "status.foo",
    "spec.cidr",
    "self.kind",
    "self.metadata.generation + 1",
    "cidr",
    "cidr(self.spec.?gateway)",
    "'x'.join(',')",
    "[1].join(',')",
    "self.spec.dnsServers.sum()",
    "bool",
    "self.spec.cidr.lowerAscii(1)",
    "lowerAscii('A')",
    "self.spec.mtu > 1500 ? 'a' : 1",
    "self.spec == 1",
    "string(variables.network)",
    "variables.network + '/24'",
    "variables.network == self.spec.cidr",
    "self.spec.subnets == self.spec.cidr",
];

#[test]
fn the_type_of_an_expression_or_what_is_wrong_with_it() {
    let mut out = String::new();
    for text in EXPRESSIONS {
        let _ = write!(out, "{text}\n  {}\n\n", said(text).replace('\n', "\n  "));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn every_documented_signature_can_be_read_and_every_example_has_the_type_that_it_shows() {
    let mut wrong = Vec::new();
    for doc in functions() {
        let is_macro = Library::macro_form(doc.name).is_some() || MACROS.contains(&doc.name);
        for text in doc.signatures {
            if Signature::parse(text).is_none() && !is_macro {
                wrong.push(format!("{}: not a signature: {text}", doc.name));
            }
        }
        for (example, result) in doc.examples {
            let both = format!("({example}) == ({result})");
            let found = with_library(&both, &super::LIBRARY, |checker| checker.any(&Scope::default())).0.found;
            wrong.extend(found.iter().map(|fault| format!("{both}: {} {:?}", fault.message, fault.help)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the checker refuses what evaluation answers, or lets pass what no answer comes from.
#[test]
fn what_the_checker_says_of_the_expressions_that_kubernetes_was_asked_about() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cel_conformance/expressions.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut refused, mut passed) = (Vec::new(), 0);
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Ok(expr) = Expr::parse(line) else { continue };
        let Ok(_) = expr.eval(&crate::rules::expr::Scope::new()) else { continue };
        let found = with_library(line, &super::LIBRARY, |checker| checker.any(&Scope::default())).0.found;
        let errors: Vec<_> = found.iter().filter(|fault| fault.severity == Severity::Error).collect();
        passed += usize::from(errors.is_empty());
        refused.extend(errors.iter().map(|fault| format!("{line}\n    {}", fault.message)));
    }
    assert!(passed > 500, "only {passed} expressions passed");
    insta::assert_snapshot!(refused.join("\n"));
}
