//! The functions of the rule language: CEL's standard ones, Kubernetes' libraries, and a few of our own. A library is a
//! file here and registers itself, code and documentation, in one table; the evaluator, the type checker and the language
//! reference all read that table.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::Value;

use super::expr::budget::{Budget, Failure};
use super::expr::value::plain_type_name;

mod cidr;
mod differences;
mod encoders;
mod format;
mod format_text;
mod ip;
mod lists;
mod macros;
mod names;
mod networks;
mod optional;
mod quantity;
mod regex;
mod semver;
mod sets;
mod standard;
mod strings;
mod texts;
pub(crate) mod time;
mod url;

pub use differences::{Difference, known_differences};
pub(super) use macros::environment;

/// What the documentation, the type checker and `check` know of a function or macro.
#[derive(Debug, Clone, Copy)]
pub struct FunctionDoc {
    /// The name it is called by; a namespaced function has its namespace (`ip.isCanonical`).
    pub name: &'static str,
    /// One text per overload: `size(string) -> int`, `<list<A>>.sum() -> A`. A receiver stands in angle brackets. Types are
    /// CEL's own names, `list<A>`, `map<K, V>`, `optional<A>`, and type parameters of one capital letter; `A...` repeats.
    pub signatures: &'static [&'static str],
    /// What it does, in a sentence or two.
    pub doc: &'static str,
    /// Expressions and what they are equal to (an expression too). A test evaluates them.
    pub examples: &'static [(&'static str, &'static str)],
    /// The library it belongs to.
    pub library: &'static str,
    /// Whether Kubernetes 1.36 has it. What is ours alone cannot be moved into a CRD's validation rules.
    pub kubernetes: bool,
}

/// The arguments of a call; a member call's receiver is the first one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Args<'a> {
    pub values: &'a [Value],
    pub budget: &'a Budget,
}

/// The code of a function. It decides by the arguments' types which overload is meant.
pub(crate) type Function = fn(&Args<'_>) -> Result<Value, Failure>;

/// A function and its documentation; a macro has no code, the parser expands it.
pub(crate) struct Entry {
    name: &'static str,
    signatures: &'static [&'static str],
    doc: &'static str,
    examples: &'static [(&'static str, &'static str)],
    function: Option<Function>,
}

/// A file of this folder.
pub(crate) struct Library {
    name: &'static str,
    kubernetes: bool,
    entries: &'static [Entry],
}

const fn entry(
    name: &'static str,
    signatures: &'static [&'static str],
    doc: &'static str,
    examples: &'static [(&'static str, &'static str)],
    function: Function,
) -> Entry {
    Entry { name, signatures, doc, examples, function: Some(function) }
}

static LIBRARIES: [&Library; 18] = [
    &standard::LIBRARY,
    &macros::LIBRARY,
    &optional::LIBRARY,
    &strings::LIBRARY,
    &regex::LIBRARY,
    &lists::LIBRARY,
    &sets::LIBRARY,
    &time::LIBRARY,
    &ip::LIBRARY,
    &cidr::LIBRARY,
    &networks::LIBRARY,
    &quantity::LIBRARY,
    &semver::LIBRARY,
    &url::LIBRARY,
    &format::LIBRARY,
    &names::LIBRARY,
    &encoders::LIBRARY,
    &texts::LIBRARY,
];

/// The code behind one name; several libraries may have a say (`indexOf` of a list, of a text).
pub(super) type Overloads = &'static [Function];

struct Table {
    global: HashMap<&'static str, Vec<Function>>,
    member: HashMap<&'static str, Vec<Function>>,
    docs: Vec<FunctionDoc>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { global: HashMap::new(), member: HashMap::new(), docs: Vec::new() };
    for library in LIBRARIES {
        for entry in library.entries {
            if let Some(function) = entry.function {
                if entry.signatures.iter().any(|signature| signature.starts_with('<')) {
                    table.member.entry(entry.name).or_default().push(function);
                }
                if entry.signatures.iter().any(|signature| !signature.starts_with('<')) {
                    table.global.entry(entry.name).or_default().push(function);
                }
            }
            table.docs.push(FunctionDoc {
                name: entry.name,
                signatures: entry.signatures,
                doc: entry.doc,
                examples: entry.examples,
                library: library.name,
                kubernetes: library.kubernetes,
            });
        }
    }
    table
});

/// Every function and macro there is, library by library.
pub fn functions() -> &'static [FunctionDoc] {
    &TABLE.docs
}

/// The code of the function of that name; empty when there is none.
pub(super) fn find(name: &str, member: bool) -> Overloads {
    if member && name == lists::SORT_BY_KEYS {
        return &[lists::sort_by_keys];
    }
    let names = if member { &TABLE.member } else { &TABLE.global };
    names.get(name).map_or(&[], Vec::as_slice)
}

/// Whether `name`, with its dots, is a function that is called without a receiver.
pub(super) fn is_global(name: &str) -> bool {
    TABLE.global.contains_key(name)
}

/// The type that a name stands for.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    const TYPES: [&str; 15] = [
        "bool",
        "bytes",
        "double",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "type",
        "uint",
        "optional_type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
        "net.IP",
        "net.CIDR",
    ];
    TYPES.into_iter().find(|known| *known == name)
}

fn signatures(name: &str) -> impl Iterator<Item = &'static str> {
    functions().iter().filter(move |doc| doc.name == name).flat_map(|doc| doc.signatures.iter().copied())
}

/// Says that there is no such function.
pub(super) fn unknown(name: &str, member: bool) -> String {
    match signatures(name).next() {
        Some(signature) if member => format!("`{name}` is called without a receiver: `{signature}`"),
        Some(signature) => format!("`{name}` is called on a value: `{signature}`"),
        None => format!("there is no function `{name}`"),
    }
}

/// Says which types the function was called with and which it takes.
pub(super) fn no_overload(name: &str, member: bool, args: &[Value]) -> String {
    let types: Vec<&str> = args.iter().map(plain_type_name).collect();
    let called = match types.split_first() {
        Some((receiver, rest)) if member => format!("<{receiver}>.{name}({})", rest.join(", ")),
        _ => format!("{name}({})", types.join(", ")),
    };
    let mut known: Vec<String> = signatures(name)
        .filter(|signature| signature.starts_with('<') == member)
        .take(4)
        .map(|signature| format!("`{signature}`"))
        .collect();
    if known.is_empty() {
        known.push("nothing".to_owned());
    }
    format!("there is no `{called}`, only {}", known.join(", "))
}

impl<'a> Args<'a> {
    fn value(&self, index: usize) -> Result<&'a Value, Failure> {
        self.values.get(index).ok_or(Failure::NoOverload)
    }

    /// Fails unless there are that many.
    fn count(&self, count: usize) -> Result<(), Failure> {
        if self.values.len() == count { Ok(()) } else { Err(Failure::NoOverload) }
    }

    fn string(&self, index: usize) -> Result<&'a str, Failure> {
        match self.value(index)? {
            Value::String(text) => Ok(text.as_str()),
            _ => Err(Failure::NoOverload),
        }
    }

    fn int(&self, index: usize) -> Result<i64, Failure> {
        match self.value(index)? {
            Value::Int(int) => Ok(*int),
            _ => Err(Failure::NoOverload),
        }
    }

    fn list(&self, index: usize) -> Result<&'a Arc<Vec<Value>>, Failure> {
        match self.value(index)? {
            Value::List(items) => Ok(items),
            _ => Err(Failure::NoOverload),
        }
    }

    /// One of our own types.
    fn of<T: 'static>(&self, index: usize) -> Result<&'a T, Failure> {
        super::expr::value::downcast(self.value(index)?).ok_or(Failure::NoOverload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::expr::{Expr, Scope};

    #[test]
    fn every_example_of_the_documentation_holds() {
        let mut wrong = Vec::new();
        for doc in functions() {
            for (expression, result) in doc.examples {
                let source = format!("({expression}) == ({result})");
                let outcome = Expr::parse(&source).map(|expr| expr.eval(&Scope::new()));
                match outcome {
                    Ok(Ok(Value::Bool(true))) => {}
                    other => wrong.push(format!("{source}: {other:?}")),
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_function_is_documented_with_an_example() {
        for doc in functions() {
            assert!(!doc.signatures.is_empty() && !doc.doc.is_empty() && !doc.examples.is_empty(), "{}", doc.name);
            for signature in doc.signatures {
                assert!(signature.contains(" -> "), "{signature}");
            }
        }
    }
}
