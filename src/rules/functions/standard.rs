//! CEL's standard functions: sizes, conversions between types, and the basic questions about texts.

use std::sync::Arc;

use cel::Value;

use super::{Args, Entry, Failure, Library, entry, time};
use crate::rules::expr::operators::int;
use crate::rules::expr::value::{TypeValue, downcast, exact_int, shorten, text, type_name, type_value};

pub(super) static LIBRARY: Library = Library { name: "standard", kubernetes: true, entries: ENTRIES };

const ENTRIES: &[Entry] = &[
    entry(
        "size",
        &[
            "size(string) -> int",
            "size(bytes) -> int",
            "size(list<A>) -> int",
            "size(map<A, B>) -> int",
            "<string>.size() -> int",
            "<bytes>.size() -> int",
            "<list<A>>.size() -> int",
            "<map<A, B>>.size() -> int",
        ],
        "How many characters (Unicode code points), bytes, elements or entries there are.",
        &[("size('héllo')", "5"), ("[1, 2].size()", "2"), ("size({})", "0")],
        size,
    ),
    entry(
        "contains",
        &["<string>.contains(string) -> bool"],
        "Whether the text contains the other one.",
        &[("'network'.contains('two')", "true")],
        |args| two_texts(args, |text, part| text.contains(part)),
    ),
    entry(
        "startsWith",
        &["<string>.startsWith(string) -> bool"],
        "Whether the text begins with the other one.",
        &[("'network'.startsWith('net')", "true")],
        |args| two_texts(args, |text, part| text.starts_with(part)),
    ),
    entry(
        "endsWith",
        &["<string>.endsWith(string) -> bool"],
        "Whether the text ends with the other one.",
        &[("'network'.endsWith('work')", "true")],
        |args| two_texts(args, |text, part| text.ends_with(part)),
    ),
    entry(
        "bool",
        &["bool(string) -> bool", "bool(bool) -> bool"],
        "The bool that a text spells: `true`, `True`, `TRUE`, `t`, `1`, and likewise for false.",
        &[("bool('true')", "true")],
        to_bool,
    ),
    entry(
        "int",
        &[
            "int(int) -> int",
            "int(uint) -> int",
            "int(double) -> int",
            "int(string) -> int",
            "int(timestamp) -> int",
            "int(duration) -> int",
        ],
        "The integer: of a double without its fraction, of a decimal text, of a timestamp in seconds since 1970.",
        &[("int('42')", "42"), ("int(-3.9)", "-3")],
        to_int,
    ),
    entry(
        "uint",
        &["uint(uint) -> uint", "uint(int) -> uint", "uint(double) -> uint", "uint(string) -> uint"],
        "The unsigned integer.",
        &[("uint(7)", "7u")],
        to_uint,
    ),
    entry(
        "double",
        &["double(double) -> double", "double(int) -> double", "double(uint) -> double", "double(string) -> double"],
        "The number as a double.",
        &[("double('1.5')", "1.5"), ("double(2) / 4.0", "0.5")],
        to_double,
    ),
    entry(
        "string",
        &[
            "string(string) -> string",
            "string(bool) -> string",
            "string(int) -> string",
            "string(uint) -> string",
            "string(double) -> string",
            "string(bytes) -> string",
            "string(timestamp) -> string",
            "string(duration) -> string",
        ],
        "The value as text.",
        &[("string(42)", "'42'"), ("string(1.5)", "'1.5'"), ("string(duration('90s'))", "'90s'")],
        to_string,
    ),
    entry(
        "bytes",
        &["bytes(string) -> bytes", "bytes(bytes) -> bytes"],
        "The text's UTF-8 bytes.",
        &[("bytes('é')", "b'é'")],
        |args| match args.values {
            [Value::String(source)] => {
                args.budget.bytes(source.len())?;
                Ok(Value::Bytes(Arc::new(source.as_bytes().to_vec())))
            }
            [Value::Bytes(bytes)] => Ok(Value::Bytes(Arc::clone(bytes))),
            _ => Err(Failure::NoOverload),
        },
    ),
    entry(
        "type",
        &["type(A) -> type"],
        "The value's type, to be compared with `int`, `string`, `list`, …",
        &[("type(1) == int", "true")],
        |args| {
            args.count(1)?;
            Ok(type_value(type_name(args.value(0)?)))
        },
    ),
    entry(
        "dyn",
        &["dyn(A) -> dyn"],
        "The value itself, of a type that the checker knows nothing of: where one list is to hold several types.",
        &[("dyn(1)", "1")],
        |args| {
            args.count(1)?;
            Ok(args.value(0)?.clone())
        },
    ),
];

fn two_texts(args: &Args<'_>, holds: fn(&str, &str) -> bool) -> Result<Value, Failure> {
    args.count(2)?;
    let (text, part) = (args.string(0)?, args.string(1)?);
    args.budget.steps((text.len() + part.len()) / 64)?;
    Ok(Value::Bool(holds(text, part)))
}

fn size(args: &Args<'_>) -> Result<Value, Failure> {
    match args.values {
        [Value::String(source)] => {
            args.budget.steps(source.len() / 64)?;
            Ok(int(source.chars().count()))
        }
        [Value::Bytes(bytes)] => Ok(int(bytes.len())),
        [Value::List(items)] => Ok(int(items.len())),
        [Value::Map(map)] => Ok(int(map.map.len())),
        _ => Err(Failure::NoOverload),
    }
}

fn to_bool(args: &Args<'_>) -> Result<Value, Failure> {
    match args.values {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(source)] => match source.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            other => Err(Failure::new(format!("`{}` is neither true nor false", shorten(other)))),
        },
        _ => Err(Failure::NoOverload),
    }
}

fn to_int(args: &Args<'_>) -> Result<Value, Failure> {
    let [value] = args.values else { return Err(Failure::NoOverload) };
    let range = || Failure::new("the number does not fit into an int");
    match value {
        Value::Int(i) => Ok(Value::Int(*i)),
        Value::UInt(u) => i64::try_from(*u).map(Value::Int).map_err(|_| range()),
        // Kubernetes refuses the smallest int here too.
        Value::Float(f) if *f > -9_223_372_036_854_775_808.0 => exact_int(f.trunc()).map(Value::Int).ok_or_else(range),
        Value::Float(_) => Err(range()),
        Value::String(source) => {
            source.parse().map(Value::Int).map_err(|_| Failure::new(format!("`{}` is not an integer", shorten(source))))
        }
        Value::Timestamp(at) => Ok(Value::Int(at.timestamp())),
        Value::Duration(by) => by.num_nanoseconds().map(Value::Int).ok_or_else(range),
        _ => Err(Failure::NoOverload),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn to_uint(args: &Args<'_>) -> Result<Value, Failure> {
    let [value] = args.values else { return Err(Failure::NoOverload) };
    let range = || Failure::new("the number does not fit into a uint");
    match value {
        Value::UInt(u) => Ok(Value::UInt(*u)),
        Value::Int(i) => u64::try_from(*i).map(Value::UInt).map_err(|_| range()),
        Value::Float(f) if *f >= 0.0 && *f < 18_446_744_073_709_551_616.0 => Ok(Value::UInt(f.trunc() as u64)),
        Value::Float(_) => Err(range()),
        Value::String(source) => source
            .strip_prefix('+')
            .map_or(source.as_str(), |_| "")
            .parse()
            .map(Value::UInt)
            .map_err(|_| Failure::new(format!("`{}` is not an unsigned integer", shorten(source)))),
        _ => Err(Failure::NoOverload),
    }
}

#[allow(clippy::cast_precision_loss)]
fn to_double(args: &Args<'_>) -> Result<Value, Failure> {
    let [value] = args.values else { return Err(Failure::NoOverload) };
    match value {
        Value::Float(f) => Ok(Value::Float(*f)),
        Value::Int(i) => Ok(Value::Float(*i as f64)),
        Value::UInt(u) => Ok(Value::Float(*u as f64)),
        Value::String(source) => {
            let plain = without_separators(source);
            let number = plain.as_deref().unwrap_or(source).parse();
            number.map(Value::Float).map_err(|_| Failure::new(format!("`{}` is not a number", shorten(source))))
        }
        _ => Err(Failure::NoOverload),
    }
}

/// A number without the `_` between its digits, which Go and so Kubernetes allow.
fn without_separators(source: &str) -> Option<String> {
    let between_digits = |(at, _): (usize, &str)| {
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        digit(source[..at].chars().next_back()) && digit(source[at + 1..].chars().next())
    };
    source.match_indices('_').all(between_digits).then(|| source.replace('_', ""))
}

fn to_string(args: &Args<'_>) -> Result<Value, Failure> {
    let [value] = args.values else { return Err(Failure::NoOverload) };
    match value {
        Value::String(source) => Ok(Value::String(Arc::clone(source))),
        Value::Bytes(bytes) => {
            args.budget.bytes(bytes.len())?;
            let valid = std::str::from_utf8(bytes).map_err(|_| Failure::new("the bytes are not valid UTF-8"))?;
            Ok(text(valid))
        }
        other => plain_text(other).map(text).ok_or(Failure::NoOverload),
    }
}

/// The text of a scalar that is not text already.
pub(crate) fn plain_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(i) => i.to_string(),
        Value::UInt(u) => u.to_string(),
        Value::Float(f) => double_text(*f),
        Value::Timestamp(at) => time::timestamp_text(at),
        Value::Duration(by) => time::duration_text(by),
        other => downcast::<TypeValue>(other)?.0.to_string(),
    })
}

/// A double's text as Go's `%g` writes it: an exponent of at least two digits from 10⁶ on and below 10⁻⁴.
pub(crate) fn double_text(f: f64) -> String {
    if f.is_nan() {
        return "NaN".to_owned();
    }
    if f.is_infinite() {
        return if f > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{f:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if f == 0.0 || (-4..6).contains(&exponent) {
        return f.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
