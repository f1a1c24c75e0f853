//! Signatures of functions: read from the text that documents them (`<string>.matches(string) -> bool`), and matched
//! against the arguments of a call.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Type;

/// One way to call a function.
#[derive(Debug, Clone)]
pub struct Signature {
    /// The name as it is written, with its namespace: `math.greatest`, `matches`.
    pub name: String,
    /// The type before the dot, for a function that is called on a value.
    pub receiver: Option<Type>,
    /// The types of the arguments.
    pub parameters: Vec<Type>,
    /// Whether the last argument may be repeated or left out.
    pub variadic: bool,
    /// What it returns.
    pub result: Type,
}

/// Type parameters that a call has given a meaning.
pub type Bindings = BTreeMap<Arc<str>, Type>;

impl Signature {
    /// Reads `<receiver>.name(type, type) -> type`. `None` when the text is not of that form.
    pub fn parse(text: &str) -> Option<Self> {
        let (call, result) = text.rsplit_once("->")?;
        let call = call.trim();
        let open = argument_list(call)?;
        let (head, arguments) = (call[..open].trim(), call[open + 1..].strip_suffix(')')?.trim());
        let (receiver, name) = match head.strip_prefix('<') {
            Some(rest) => {
                let end = matching_angle(rest)?;
                (Some(parse_type(&rest[..end])?), rest[end + 1..].strip_prefix('.')?)
            }
            None => (None, head),
        };
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(valid) {
            return None;
        }
        let (arguments, variadic) = match arguments.strip_suffix("...").or_else(|| arguments.strip_suffix('…')) {
            Some(rest) => (rest.trim_end().trim_end_matches(','), true),
            None => (arguments, false),
        };
        let parameters = split_top(arguments).into_iter().map(parse_type).collect::<Option<Vec<_>>>()?;
        Some(Self { name: name.to_owned(), receiver, parameters, variadic, result: parse_type(result)? })
    }

    /// Whether the call has as many arguments as the signature wants.
    pub fn takes(&self, count: usize) -> bool {
        if self.variadic { count + 1 >= self.parameters.len() } else { count == self.parameters.len() }
    }

    /// The type that the argument at a position must have.
    pub fn parameter(&self, index: usize) -> Option<&Type> {
        self.parameters.get(index).or_else(|| self.parameters.last().filter(|_| self.variadic))
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(receiver) = &self.receiver {
            write!(f, "<{receiver}>.")?;
        }
        write!(f, "{}(", self.name)?;
        for (index, parameter) in self.parameters.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{parameter}")?;
        }
        write!(f, "{}) -> {}", if self.variadic { "…" } else { "" }, self.result)
    }
}

/// Where the argument list begins: the last `(` of the outermost level, since types may be written with parentheses.
fn argument_list(call: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (index, c) in call.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

fn matching_angle(text: &str) -> Option<usize> {
    let mut depth = 1_u32;
    for (index, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// The parts between the commas that are in no bracket.
fn split_top(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (index, c) in text.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}

/// Reads one type: `string`, `list<A>`, `kubernetes.CIDR`.
pub fn parse_type(text: &str) -> Option<Type> {
    let text = text.trim();
    if let Some((name, rest)) = text.split_once(['<', '(']) {
        let inner = rest.strip_suffix(['>', ')'])?;
        let arguments = split_top(inner).into_iter().map(parse_type).collect::<Option<Vec<_>>>()?;
        return match (name.trim(), arguments.as_slice()) {
            ("list", [element]) => Some(Type::list(element.clone())),
            ("map", [key, value]) => Some(Type::Map(Arc::new(key.clone()), Arc::new(value.clone()))),
            ("optional" | "optional_type", [inner]) => Some(Type::Optional(Arc::new(inner.clone()))),
            ("type", [_]) => Some(Type::Type),
            _ => None,
        };
    }
    Some(match text {
        "dyn" | "any" => Type::Dyn,
        "null" | "null_type" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "type" => Type::Type,
        "list" => Type::list(Type::Dyn),
        "map" => Type::Map(Arc::new(Type::Dyn), Arc::new(Type::Dyn)),
        "optional" => Type::Optional(Arc::new(Type::Dyn)),
        _ => {
            let name = text.rsplit('.').next().unwrap_or(text);
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return None;
            }
            if name.len() == 1 && text.len() == 1 { Type::Param(name.into()) } else { Type::Opaque(name.into()) }
        }
    })
}

/// Whether a value of type `found` may stand where a signature wants `wanted`; gives type parameters their meaning.
pub fn accepts(wanted: &Type, found: &Type, bindings: &mut Bindings) -> bool {
    if matches!(wanted, Type::Dyn | Type::Error) {
        return true;
    }
    if let Type::Param(name) = wanted {
        let Some(bound) = bindings.get(name).cloned() else {
            bindings.insert(Arc::clone(name), found.clone());
            return true;
        };
        if matches!(bound, Type::Never) {
            bindings.insert(Arc::clone(name), found.clone());
            return true;
        }
        return fits(&bound, found, bindings);
    }
    fits(wanted, found, bindings)
}

fn fits(wanted: &Type, found: &Type, bindings: &mut Bindings) -> bool {
    if found.is_unknown() || wanted.is_unknown() {
        return true;
    }
    match (wanted, found) {
        (Type::List(w), Type::List(f)) | (Type::Optional(w), Type::Optional(f)) => accepts(w, f, bindings),
        (Type::Map(wk, wv), Type::Map(fk, fv)) => accepts(wk, fk, bindings) && accepts(wv, fv, bindings),
        // At run time an object is a map; its values may be of any type.
        (Type::Map(wk, wv), Type::Object(_)) => {
            accepts(wk, &Type::String, bindings) && accepts(wv, &Type::Dyn, bindings)
        }
        (Type::Object(_), Type::Object(_) | Type::Map(..))
        | (Type::Int | Type::String, Type::IntOrString)
        | (Type::IntOrString, Type::Int | Type::String) => true,
        _ => wanted.same(found),
    }
}

/// The type with its parameters replaced by what they mean; those without a meaning stay.
#[must_use]
pub fn apply(ty: &Type, bindings: &Bindings) -> Type {
    match ty {
        Type::Param(name) => bindings.get(name).cloned().unwrap_or_else(|| ty.clone()),
        Type::List(element) => Type::list(apply(element, bindings)),
        Type::Optional(inner) => Type::Optional(Arc::new(apply(inner, bindings))),
        Type::Map(key, value) => Type::Map(Arc::new(apply(key, bindings)), Arc::new(apply(value, bindings))),
        other => other.clone(),
    }
}

/// The type with the parameters that have no meaning replaced: by [`Type::Never`] in what a call returns
/// (`optional.none()` holds nothing), by [`Type::Error`] where the call is faulty.
#[must_use]
pub fn without_parameters(ty: &Type, unbound: &Type) -> Type {
    let inner = |ty: &Type| Arc::new(without_parameters(ty, unbound));
    match ty {
        Type::Param(_) => unbound.clone(),
        Type::List(element) => Type::List(inner(element)),
        Type::Optional(value) => Type::Optional(inner(value)),
        Type::Map(key, value) => Type::Map(inner(key), inner(value)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(text: &str) -> Signature {
        Signature::parse(text).unwrap_or_else(|| panic!("not a signature: {text}"))
    }

    #[test]
    fn signatures_are_printed_as_they_are_read() {
        for text in [
            "<string>.matches(string) -> bool",
            "<list<A>>.sum() -> A",
            "math.greatest(dyn…) -> dyn",
            "<map<K, V>>.get(K, V) -> optional<V>",
        ] {
            assert_eq!(signature(text).to_string(), text);
        }
        assert_eq!(signature("cidr(string) -> kubernetes.CIDR").to_string(), "cidr(string) -> CIDR");
        assert_eq!(signature("f(list(A)) -> optional_type(A)").to_string(), "f(list<A>) -> optional<A>");
    }

    #[test]
    fn what_is_not_a_signature_is_none() {
        for text in ["", "f", "f(string", "f() -> ", "<string>.() -> bool", "f(<>) -> int", "->", "é(é) -> é"] {
            assert!(Signature::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_type_parameter_means_the_same_in_the_whole_signature() {
        let or_value = signature("<optional<A>>.orValue(A) -> A");
        let mut bindings = Bindings::new();
        assert!(accepts(or_value.receiver.as_ref().unwrap(), &Type::optional(Type::Int), &mut bindings));
        assert!(!accepts(&or_value.parameters[0], &Type::String, &mut bindings.clone()));
        assert!(accepts(&or_value.parameters[0], &Type::Int, &mut bindings));
        assert_eq!(apply(&or_value.result, &bindings).to_string(), "int");
    }
}
