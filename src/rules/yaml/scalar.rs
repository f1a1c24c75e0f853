//! What a scalar means: YAML 1.2's core schema, and a refusal wherever two readers of YAML would disagree.
//!
//! Kubernetes tools mix YAML 1.1 and 1.2. `0340914` is 340914 to one, 115148 to another and text to a third; a rule
//! must not depend on who reads it. So a plain scalar that looks like a number is a number only when printing that
//! number gives back the very same characters; everything else that looks like one is refused with the quoted form.

use serde_json::Number;

use super::{Style, Text};

/// A scalar's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar<'a> {
    /// Empty, `null`, `Null` or `NULL`.
    Null,
    /// `true` or `false`, in the spellings of the core schema.
    Bool(bool),
    /// A number that reads back as it was written.
    Number(Number),
    /// Everything else, and everything quoted.
    Text(&'a str),
}

/// A plain scalar that readers of YAML do not agree about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bent {
    /// What is wrong, one line.
    pub message: String,
    /// What to write instead, one hint a line.
    pub help: Vec<String>,
}

impl Text {
    /// The value by YAML 1.2's core schema, or why it has to be written in another way.
    pub fn resolve(&self) -> Result<Scalar<'_>, Bent> {
        if self.style != Style::Plain {
            return Ok(Scalar::Text(&self.value));
        }
        let text = self.value.as_str();
        match text {
            "" | "null" | "Null" | "NULL" => return Ok(Scalar::Null),
            "true" | "True" | "TRUE" => return Ok(Scalar::Bool(true)),
            "false" | "False" | "FALSE" => return Ok(Scalar::Bool(false)),
            "~" => {
                return Err(Bent {
                    message: "`~` is YAML for null, and null is never sent".to_owned(),
                    help: vec![quote_it(text), "to leave a field out, leave its key out".to_owned()],
                });
            }
            _ => {}
        }
        if !looks_like_number(text) {
            return Ok(Scalar::Text(text));
        }
        number(text).map(Scalar::Number)
    }

    /// Whether a reader of YAML 1.1 would take this plain text for something else.
    pub fn bent_by_yaml_1_1(&self) -> Option<Bent> {
        if self.style != Style::Plain {
            return None;
        }
        match self.value.as_str() {
            "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(self.boolean("true")),
            "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(self.boolean("false")),
            text if is_sexagesimal(text) => Some(Bent {
                message: format!(
                    "`{text}` is text here, and a number in base 60 to a reader of YAML 1.1 such as Python's"
                ),
                help: vec![quote_it(text)],
            }),
            _ => None,
        }
    }

    fn boolean(&self, value: &str) -> Bent {
        Bent {
            message: format!("`{}` is text here, and {value} to a reader of YAML 1.1 such as `kubectl`", self.value),
            help: vec![
                format!("if text is meant, quote it: \"{}\"", self.value),
                format!("if a boolean is meant, write {value}"),
            ],
        }
    }
}

fn quote_it(text: &str) -> String {
    format!("quote it: \"{text}\"")
}

/// What any reader in use takes for a number: 1.1 and 1.2, decimal or not, with `_`, exponent, infinity.
fn looks_like_number(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(body, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let radix = |prefix: &str, allowed: fn(char) -> bool| {
        body.strip_prefix(prefix)
            .is_some_and(|digits| digits.contains(|c: char| c != '_') && digits.chars().all(|c| c == '_' || allowed(c)))
    };
    if radix("0x", |c| c.is_ascii_hexdigit()) || radix("0o", |c| c.is_digit(8)) || radix("0b", |c| c.is_digit(2)) {
        return true;
    }
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body, None),
    };
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit() || c == '_');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let starts_well = mantissa.starts_with(|c: char| c.is_ascii_digit())
        || (mantissa.starts_with('.') && fraction.starts_with(|c: char| c.is_ascii_digit()));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && exponent.chars().all(|c| c.is_ascii_digit())
    });
    starts_well && digits(whole) && digits(fraction) && exponent_fits
}

/// `1:30` and `12:30:45.5`: base 60 in YAML 1.1.
fn is_sexagesimal(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = body.split(':');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    !rest.is_empty()
        && !first.is_empty()
        && first.chars().all(|c| c.is_ascii_digit())
        && rest.iter().enumerate().all(|(i, part)| {
            let part = if i + 1 == rest.len() { part.split('.').next().unwrap_or_default() } else { part };
            (1..=2).contains(&part.len())
                && part.chars().all(|c| c.is_ascii_digit())
                && part.parse::<u8>().is_ok_and(|value| value < 60)
        })
}

fn number(text: &str) -> Result<Number, Bent> {
    let plain_digits = {
        let body = text.strip_prefix('-').unwrap_or(text);
        body.chars().all(|c| c.is_ascii_digit()) && (body == "0" || !body.starts_with('0')) && text != "-0"
    };
    if plain_digits {
        if let Ok(value) = text.parse::<i64>() {
            return Ok(value.into());
        }
        if let Ok(value) = text.parse::<u64>() {
            return Ok(value.into());
        }
        return Err(Bent {
            message: format!("the number `{text}` does not fit into 64 bits"),
            help: vec![quote_it(text)],
        });
    }
    let value = text.parse::<f64>().ok().and_then(Number::from_f64);
    match value {
        Some(value) if value.to_string() == text => Ok(value),
        Some(value) if text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-')) && !octal(text) => {
            Err(Bent {
                message: format!("the number `{text}` would not read back as written but as `{value}`"),
                help: vec![quote_it(text), format!("or write the number {value}")],
            })
        }
        _ => Err(Bent {
            message: format!("`{text}` is a different number, or none, depending on who reads the YAML"),
            help: vec![quote_it(text), "or write the number in plain decimal digits".to_owned()],
        }),
    }
}

fn octal(text: &str) -> bool {
    let body = text.strip_prefix('-').unwrap_or(text);
    body.len() > 1 && body.starts_with('0') && !body.starts_with("0.")
}
