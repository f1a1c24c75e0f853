//! Values as text for other programs: base64, JSON, YAML. CEL has base64, but Kubernetes does not offer it; JSON and YAML
//! are our own, for a document inside a `ConfigMap`.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use cel::Value;

use serde_json::Value as Json;

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::to_json;
use crate::rules::expr::value::{shorten, text};
use crate::yaml_text;

pub(super) static LIBRARY: Library = Library { name: "encoders", kubernetes: false, entries: ENTRIES };

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
    entry(
        "toJson",
        &["toJson(A) -> string"],
        "The value as JSON on one line, keys sorted.",
        &[("toJson({'b': [1, true], 'a': 'x'})", "'{\"a\":\"x\",\"b\":[1,true]}'")],
        |args| Ok(text(json(args)?.to_string())),
    ),
    entry(
        "toYaml",
        &["toYaml(A) -> string"],
        "The value as a YAML document, keys sorted, with a newline at its end. Texts that some reader could take for \
         something else are quoted.",
        &[("toYaml({'b': [1, 'on'], 'a': 'x'})", "'a: x\\nb:\\n- 1\\n- \"on\"\\n'")],
        |args| Ok(text(yaml_text::document(&json(args)?))),
    ),
];

/// The argument as JSON, paid for with the text that it becomes.
fn json(args: &Args<'_>) -> Result<Json, Failure> {
    args.count(1)?;
    let json = to_json(args.value(0)?).map_err(Failure::Message)?;
    let json = json.ok_or_else(|| Failure::new("the optional holds no value; write `.orValue(…)`"))?;
    let (values, bytes) = measure(&json, 0);
    args.budget.steps(values)?;
    args.budget.bytes(bytes)?;
    Ok(json)
}

/// The number of values, and roughly the bytes of their text, indentation included.
fn measure(json: &Json, depth: usize) -> (usize, usize) {
    let add = |(values, bytes): (usize, usize), (v, b): (usize, usize)| (values + v, bytes + b);
    let own = (1, 16 + 2 * depth);
    match json {
        Json::String(source) => add(own, (0, source.len())),
        Json::Array(items) => items.iter().map(|item| measure(item, depth + 1)).fold(own, add),
        Json::Object(fields) => {
            fields.iter().map(|(key, value)| add(measure(value, depth + 1), (0, key.len()))).fold(own, add)
        }
        _ => own,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::rules::expr::{Expr, Scope, from_json, to_json};

    #[test]
    fn what_yaml_likes_to_bend_comes_back_as_it_was() {
        let expr = Expr::parse("toYaml(x)").unwrap();
        for source in ["on", "1e3", "0123", "null", ".5", "1_000", "0x10", "a\nb\n\n", "😀", "'\"", "", " ", "12:30:00"]
        {
            let value = json!({source: [source, {"k": source}]});
            let mut scope = Scope::new();
            scope.set("x", from_json(&value));
            let text = to_json(&expr.eval(&scope).unwrap()).unwrap().unwrap();
            let read: serde_json::Value = serde_saphyr::from_str(text.as_str().unwrap()).unwrap();
            assert_eq!(read, value);
        }
    }
}
