//! `format`: a text with placeholders, filled as Kubernetes fills it.

use std::fmt::Write;

use cel::Value;
use cel::objects::Key;

use super::standard::plain_text;
use super::{Args, Failure, time};
use crate::rules::expr::value::{plain_type_name, text};

/// `<string>.format(list)`
pub(super) fn format(args: &Args<'_>) -> Result<Value, Failure> {
    args.count(2)?;
    let (mut rest, values) = (args.string(0)?, args.list(1)?);
    args.budget.bytes(rest.len())?;
    let mut filled = String::new();
    let mut next = values.iter();
    while let Some(at) = rest.find('%') {
        filled.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            filled.push('%');
            rest = after;
            continue;
        }
        let Some(value) = next.next() else {
            return Err(Failure::new(format!(
                "there are more placeholders than the {} values to fill them",
                values.len()
            )));
        };
        let (precision, after) = precision(rest)?;
        let Some(verb) = after.chars().next() else {
            return Err(Failure::new("the text ends within a placeholder"));
        };
        let piece = fill(verb, precision, value, args)?;
        args.budget.bytes(piece.len())?;
        filled.push_str(&piece);
        rest = &after[verb.len_utf8()..];
    }
    filled.push_str(rest);
    Ok(text(filled))
}

/// The most decimals that a number is written with.
const MAX_PRECISION: usize = 1000;

fn precision(rest: &str) -> Result<(usize, &str), Failure> {
    let Some(after) = rest.strip_prefix('.') else { return Ok((6, rest)) };
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    match after[..digits].parse() {
        Ok(precision) if precision <= MAX_PRECISION => Ok((precision, &after[digits..])),
        Ok(_) => Err(Failure::new(format!("a placeholder asks for more than {MAX_PRECISION} decimals"))),
        Err(_) => Err(Failure::new("a `.` in a placeholder must be followed by a number of decimals")),
    }
}

fn fill(verb: char, precision: usize, value: &Value, args: &Args<'_>) -> Result<String, Failure> {
    let wrong = |wanted: &str| {
        Failure::new(format!("`%{verb}` is for {wanted}, not for a value of type {}", plain_type_name(value)))
    };
    match (verb, value) {
        ('s', value) => shown(value, false, args),
        ('d', Value::Int(i)) => Ok(i.to_string()),
        ('d', Value::UInt(u)) => Ok(u.to_string()),
        ('f' | 'e', Value::Float(f)) => Ok(double(verb, precision, *f)),
        ('f' | 'e', Value::String(word)) => match word.as_str() {
            "NaN" => Ok(double(verb, precision, f64::NAN)),
            "Infinity" => Ok(double(verb, precision, f64::INFINITY)),
            "-Infinity" => Ok(double(verb, precision, f64::NEG_INFINITY)),
            _ => Err(wrong("doubles")),
        },
        ('f' | 'e', _) => Err(wrong("doubles")),
        ('b', Value::Int(i)) => Ok(signed(*i, |magnitude| format!("{magnitude:b}"))),
        ('b', Value::UInt(u)) => Ok(format!("{u:b}")),
        ('b', Value::Bool(b)) => Ok(if *b { "1" } else { "0" }.to_owned()),
        ('b', _) => Err(wrong("integers and bools")),
        ('o', Value::Int(i)) => Ok(signed(*i, |magnitude| format!("{magnitude:o}"))),
        ('o', Value::UInt(u)) => Ok(format!("{u:o}")),
        ('d' | 'o', _) => Err(wrong("integers")),
        ('x' | 'X', value) => {
            let hex = match value {
                Value::Int(i) => signed(*i, |magnitude| format!("{magnitude:x}")),
                Value::UInt(u) => format!("{u:x}"),
                Value::String(source) => hex_bytes(source.as_bytes()),
                Value::Bytes(bytes) => hex_bytes(bytes),
                _ => return Err(wrong("integers, texts and bytes")),
            };
            Ok(if verb == 'X' { hex.to_ascii_uppercase() } else { hex })
        }
        (other, _) => Err(Failure::new(format!("`%{}` is not a placeholder", other.escape_debug()))),
    }
}

fn signed(value: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", digits(value.unsigned_abs()))
}

fn hex_bytes(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn double(verb: char, precision: usize, f: f64) -> String {
    let f = if f == 0.0 { 0.0 } else { f };
    if verb == 'f' {
        return match special(f) {
            Some(word) => word.to_owned(),
            None => grouped(&format!("{f:.precision$}")),
        };
    }
    // Kubernetes takes the precision of `%e` for a width: there are always six decimals.
    let text = special(f).map_or_else(|| scientific(f), str::to_owned);
    format!("{text:>precision$}")
}

fn scientific(f: f64) -> String {
    let scientific = format!("{f:.6e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, ""));
    format!("{digits}×10{}", superscript(exponent))
}

/// How a double is written that is no number.
fn special(f: f64) -> Option<&'static str> {
    match f {
        f if f.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// A decimal with a comma between every three digits before its point.
fn grouped(decimal: &str) -> String {
    let (sign, decimal) = decimal.strip_prefix('-').map_or(("", decimal), |decimal| ("-", decimal));
    let (whole, fraction) = decimal.find('.').map_or((decimal, ""), |point| decimal.split_at(point));
    let mut grouped = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// An exponent as Kubernetes raises it, with at least two digits.
fn superscript(exponent: &str) -> String {
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
    let raised = |digit: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit.to_digit(10).unwrap_or(0) as usize).unwrap_or(digit);
    format!("{sign}{}", format!("{digits:0>2}").chars().map(raised).collect::<String>())
}

/// A value as `%s` shows it; inside a list or map texts are quoted, doubles have six decimals, and times say what they are.
fn shown(value: &Value, inside: bool, args: &Args<'_>) -> Result<String, Failure> {
    args.budget.step()?;
    let result = match value {
        Value::String(source) if inside => quoted(source),
        Value::String(source) => source.as_str().to_owned(),
        Value::Bytes(bytes) if inside => format!("b{}", quoted(&String::from_utf8_lossy(bytes))),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Null => "null".to_owned(),
        Value::Float(f) if inside && (f.is_nan() || f.is_infinite()) => {
            format!(
                "\"{}\"",
                if f.is_nan() {
                    "NaN"
                } else if *f > 0.0 {
                    "+Inf"
                } else {
                    "-Inf"
                }
            )
        }
        Value::Float(f) if inside => format!("{f:.6}"),
        Value::Timestamp(at) if inside => format!("timestamp(\"{}\")", time::timestamp_text(at)),
        Value::Duration(by) if inside => format!("duration(\"{}\")", time::duration_text(by)),
        Value::List(items) => {
            let mut parts = Vec::with_capacity(items.len());
            for item in items.iter() {
                parts.push(shown(item, true, args)?);
            }
            format!("[{}]", parts.join(", "))
        }
        Value::Map(map) => {
            let mut parts = Vec::with_capacity(map.map.len());
            for (key, value) in map.map.iter() {
                let key = match key {
                    Key::String(key) => quoted(key),
                    other => other.to_string(),
                };
                parts.push((key, shown(value, true, args)?));
            }
            parts.sort();
            let parts: Vec<String> = parts.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", parts.join(", "))
        }
        other => plain_text(other).ok_or_else(|| {
            let type_name = plain_type_name(other);
            Failure::new(format!("`%s` cannot show a value of type {type_name}; wrap it in `string(…)`"))
        })?,
    };
    args.budget.bytes(result.len())?;
    Ok(result)
}

/// The text in double quotes, with Go's escapes.
fn quoted(source: &str) -> String {
    let mut quoted = String::with_capacity(source.len() + 2);
    quoted.push('"');
    for c in source.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c if c < ' ' || c == '\u{7f}' => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(c));
            }
            c if c.is_control() || (c.is_whitespace() && c != ' ') => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
