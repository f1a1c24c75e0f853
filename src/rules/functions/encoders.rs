//! Base64. CEL has these functions; Kubernetes does not offer them.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use cel::Value;

use super::{Entry, Failure, Library, entry};
use crate::rules::expr::value::{shorten, text};

pub(super) static LIBRARY: Library = Library { name: "base64", kubernetes: false, entries: ENTRIES };

const ENTRIES: &[Entry] = &[
    entry(
        "base64.encode",
        &["base64.encode(bytes) -> string", "base64.encode(string) -> string"],
        "The bytes (a text's are its UTF-8) in base64, as `Secret.data` wants them.",
        &[("base64.encode(b'hello')", "'aGVsbG8='"), ("base64.encode('hello')", "'aGVsbG8='")],
        |args| {
            args.count(1)?;
            let bytes = match args.value(0)? {
                Value::Bytes(bytes) => bytes.as_slice(),
                Value::String(source) => source.as_bytes(),
                _ => return Err(Failure::NoOverload),
            };
            args.budget.bytes(bytes.len().saturating_mul(2))?;
            Ok(text(STANDARD.encode(bytes)))
        },
    ),
    entry(
        "base64.decode",
        &["base64.decode(string) -> bytes"],
        "The bytes that the base64 text stands for; `string(…)` makes them a text.",
        &[("string(base64.decode('aGVsbG8='))", "'hello'"), ("base64.decode('aGVsbG8')", "b'hello'")],
        |args| {
            args.count(1)?;
            let source = args.string(0)?;
            args.budget.bytes(source.len())?;
            let decoded = STANDARD.decode(source).or_else(|_| STANDARD_NO_PAD.decode(source));
            match decoded {
                Ok(bytes) => Ok(Value::Bytes(Arc::new(bytes))),
                Err(_) => Err(Failure::new(format!("`{}` is not base64", shorten(source)))),
            }
        },
    ),
];
