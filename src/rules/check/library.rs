//! The functions that an expression may call, by name.

use std::collections::BTreeMap;

use crate::rules::types::Type;
use crate::rules::types::signature::{Bindings, Signature, accepts, apply};

/// CEL's standard library, which every expression has.
const STANDARD: &[&str] = &[
    "bool(bool) -> bool",
    "bool(string) -> bool",
    "bytes(bytes) -> bytes",
    "bytes(string) -> bytes",
    "double(double) -> double",
    "double(int) -> double",
    "double(uint) -> double",
    "double(string) -> double",
    "duration(duration) -> duration",
    "duration(string) -> duration",
    "dyn(A) -> dyn",
    "int(int) -> int",
    "int(uint) -> int",
    "int(double) -> int",
    "int(string) -> int",
    "int(timestamp) -> int",
    "int(duration) -> int",
    "string(string) -> string",
    "string(bool) -> string",
    "string(int) -> string",
    "string(uint) -> string",
    "string(double) -> string",
    "string(bytes) -> string",
    "string(timestamp) -> string",
    "string(duration) -> string",
    "timestamp(timestamp) -> timestamp",
    "timestamp(string) -> timestamp",
    "timestamp(int) -> timestamp",
    "type(A) -> type",
    "uint(uint) -> uint",
    "uint(int) -> uint",
    "uint(double) -> uint",
    "uint(string) -> uint",
    "size(string) -> int",
    "size(bytes) -> int",
    "size(list<A>) -> int",
    "size(map<A, B>) -> int",
    "<string>.size() -> int",
    "<bytes>.size() -> int",
    "<list<A>>.size() -> int",
    "<map<A, B>>.size() -> int",
    "<string>.contains(string) -> bool",
    "<string>.startsWith(string) -> bool",
    "<string>.endsWith(string) -> bool",
    "<string>.matches(string) -> bool",
    "matches(string, string) -> bool",
    "<timestamp>.getFullYear() -> int",
    "<timestamp>.getFullYear(string) -> int",
    "<timestamp>.getMonth() -> int",
    "<timestamp>.getMonth(string) -> int",
    "<timestamp>.getDate() -> int",
    "<timestamp>.getDate(string) -> int",
    "<timestamp>.getDayOfMonth() -> int",
    "<timestamp>.getDayOfMonth(string) -> int",
    "<timestamp>.getDayOfWeek() -> int",
    "<timestamp>.getDayOfWeek(string) -> int",
    "<timestamp>.getDayOfYear() -> int",
    "<timestamp>.getDayOfYear(string) -> int",
    "<timestamp>.getHours() -> int",
    "<timestamp>.getHours(string) -> int",
    "<timestamp>.getMinutes() -> int",
    "<timestamp>.getMinutes(string) -> int",
    "<timestamp>.getSeconds() -> int",
    "<timestamp>.getSeconds(string) -> int",
    "<timestamp>.getMilliseconds() -> int",
    "<timestamp>.getMilliseconds(string) -> int",
    "<duration>.getHours() -> int",
    "<duration>.getMinutes() -> int",
    "<duration>.getSeconds() -> int",
    "<duration>.getMilliseconds() -> int",
    "optional.of(A) -> optional<A>",
    "optional.none() -> optional<A>",
    "optional.ofNonZeroValue(A) -> optional<A>",
    "<optional<A>>.hasValue() -> bool",
    "<optional<A>>.value() -> A",
    "<optional<A>>.or(optional<A>) -> optional<A>",
    "<optional<A>>.orValue(A) -> A",
];

/// What parsers turn into something else before the checker sees it; known so that a wrong use can be named.
const MACROS: &[(&str, &str)] = &[
    ("has", "has(object.field)"),
    ("all", "list.all(x, condition)"),
    ("exists", "list.exists(x, condition)"),
    ("exists_one", "list.exists_one(x, condition)"),
    ("existsOne", "list.existsOne(x, condition)"),
    ("map", "list.map(x, value)"),
    ("filter", "list.filter(x, condition)"),
    ("optMap", "optional.optMap(x, value)"),
    ("optFlatMap", "optional.optFlatMap(x, optional)"),
];

/// Functions by name.
#[derive(Debug)]
pub struct Library {
    functions: BTreeMap<String, Vec<Signature>>,
}

impl Library {
    /// The standard library and the functions that these signatures describe. A text that is not a signature (a macro's)
    /// is left out.
    pub fn new<'a>(signatures: impl IntoIterator<Item = &'a str>) -> Self {
        let mut functions: BTreeMap<String, Vec<Signature>> = BTreeMap::new();
        for text in STANDARD.iter().copied().chain(signatures) {
            let Some(signature) = Signature::parse(text) else { continue };
            let overloads = functions.entry(signature.name.clone()).or_default();
            if !overloads.iter().any(|known| known.to_string() == signature.to_string()) {
                overloads.push(signature);
            }
        }
        Self { functions }
    }

    /// The ways to call a function, on a value or not.
    pub fn overloads(&self, name: &str, on_value: bool) -> Vec<&Signature> {
        let all = self.functions.get(name).into_iter().flatten();
        all.filter(|signature| signature.receiver.is_some() == on_value).collect()
    }

    /// All names, for «did you mean».
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str).chain(MACROS.iter().map(|(name, _)| *name))
    }

    /// How a macro is written.
    pub fn macro_form(name: &str) -> Option<&'static str> {
        MACROS.iter().find(|(known, _)| *known == name).map(|(_, form)| *form)
    }

    /// Whether a name is the part before the dot of some function's name: `math`, `optional`.
    pub fn is_namespace(&self, name: &str) -> bool {
        self.functions.keys().any(|known| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    }

    /// A function of one argument that makes a value of one type into another: `string`, `cidr`.
    pub fn conversion(&self, from: &Type, to: &Type) -> Option<&str> {
        if from.is_unknown() || to.is_unknown() {
            return None;
        }
        let wanted = to.to_string().to_lowercase();
        let overloads = self.overloads(&wanted, false);
        let fits = |signature: &&&Signature| {
            let mut bindings = Bindings::new();
            signature.parameters.len() == 1
                && accepts(&signature.parameters[0], from, &mut bindings)
                && apply(&signature.result, &bindings).same(to)
        };
        overloads.iter().find(fits).map(|signature| signature.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_standard_signature_can_be_read() {
        for text in STANDARD {
            assert!(Signature::parse(text).is_some(), "{text}");
        }
    }

    #[test]
    fn conversions_are_found_by_the_name_of_the_type() {
        let library = Library::new(["cidr(string) -> kubernetes.CIDR"]);
        assert_eq!(library.conversion(&Type::Int, &Type::String), Some("string"));
        assert_eq!(library.conversion(&Type::String, &Type::Opaque("CIDR".into())), Some("cidr"));
        assert_eq!(library.conversion(&Type::list(Type::Int), &Type::String), None);
    }
}
