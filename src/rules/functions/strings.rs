//! Texts: parts, positions, joining and splitting. Positions count characters (Unicode code points), not bytes.

use cel::Value;

use super::{Args, Entry, Failure, Library, entry, format_text};
use crate::rules::expr::operators::int;
use crate::rules::expr::value::{list, plain_type_name, text};

pub(super) static LIBRARY: Library = Library { name: "strings", kubernetes: true, entries: ENTRIES };

const ENTRIES: &[Entry] = &[
    entry(
        "charAt",
        &["<string>.charAt(int) -> string"],
        "The character at the position; empty just behind the last one.",
        &[("'héllo'.charAt(1)", "'é'"), ("'a'.charAt(1)", "''")],
        char_at,
    ),
    entry(
        "indexOf",
        &["<string>.indexOf(string) -> int", "<string>.indexOf(string, int) -> int"],
        "The position of the first occurrence (at or after the given one), or -1.",
        &[("'network'.indexOf('t')", "2"), ("'a.b.c'.indexOf('.', 2)", "3")],
        index_of,
    ),
    entry(
        "lastIndexOf",
        &["<string>.lastIndexOf(string) -> int", "<string>.lastIndexOf(string, int) -> int"],
        "The position of the last occurrence (at or before the given one), or -1.",
        &[("'a.b.c'.lastIndexOf('.')", "3"), ("'a.b.c'.lastIndexOf('.', 2)", "1")],
        last_index_of,
    ),
    entry(
        "join",
        &["<list<string>>.join() -> string", "<list<string>>.join(string) -> string"],
        "The texts of the list, one after the other, with the given text between them.",
        &[("['a', 'b'].join(',')", "'a,b'"), ("['a', 'b'].join()", "'ab'")],
        join,
    ),
    entry(
        "lowerAscii",
        &["<string>.lowerAscii() -> string"],
        "The text with the letters A to Z made small; others stay.",
        &[("'TacoÉ'.lowerAscii()", "'tacoÉ'")],
        |args| mapped(args, str::to_ascii_lowercase),
    ),
    entry(
        "upperAscii",
        &["<string>.upperAscii() -> string"],
        "The text with the letters a to z made capital; others stay.",
        &[("'tacoé'.upperAscii()", "'TACOé'")],
        |args| mapped(args, str::to_ascii_uppercase),
    ),
    entry(
        "trim",
        &["<string>.trim() -> string"],
        "The text without white space around it.",
        &[("'  a b\\n'.trim()", "'a b'")],
        |args| mapped(args, |text| text.trim().to_owned()),
    ),
    entry(
        "replace",
        &["<string>.replace(string, string) -> string", "<string>.replace(string, string, int) -> string"],
        "The text with every occurrence (or the first so many) of one text replaced by another.",
        &[("'a.b.c'.replace('.', '-')", "'a-b-c'"), ("'a.b.c'.replace('.', '-', 1)", "'a-b.c'")],
        replace,
    ),
    entry(
        "split",
        &["<string>.split(string) -> list<string>", "<string>.split(string, int) -> list<string>"],
        "The parts of the text between the separators; at most so many, the last one being the rest.",
        &[("'a,b,c'.split(',')", "['a', 'b', 'c']"), ("'a,b,c'.split(',', 2)", "['a', 'b,c']")],
        split,
    ),
    entry(
        "substring",
        &["<string>.substring(int) -> string", "<string>.substring(int, int) -> string"],
        "The part from the first position to the end, or up to, but without, the second position.",
        &[("'network'.substring(3)", "'work'"), ("'network'.substring(0, 3)", "'net'")],
        substring,
    ),
    entry(
        "format",
        &["<string>.format(list<dyn>) -> string"],
        "The text with `%s` (anything), `%d` (integers), `%.2f` and `%e` (doubles; thousands are set apart: `1,234.50`, `1.234500×10⁰³`), `%b`, `%o`, `%x` and `%X` replaced by the \
         elements of the list; `%%` is a percent sign.",
        &[
            ("'%s has %d ports, %.1f%%'.format(['web', 2, 50.0])", "'web has 2 ports, 50.0%'"),
            ("'%x'.format([255])", "'ff'"),
        ],
        format_text::format,
    ),
    entry(
        "strings.quote",
        &["strings.quote(string) -> string"],
        "The text in double quotes, with what needs it escaped.",
        &[("strings.quote('a\"b')", "'\"a\\\\\"b\"'")],
        quote,
    ),
];

fn mapped(args: &Args<'_>, map: fn(&str) -> String) -> Result<Value, Failure> {
    args.count(1)?;
    let source = args.string(0)?;
    args.budget.bytes(source.len())?;
    Ok(text(map(source)))
}

fn out_of_range(index: i64, size: usize) -> Failure {
    Failure::new(format!("there is no position {index} in a text of {size} characters"))
}

/// The characters of an argument, paid for.
fn chars(args: &Args<'_>, index: usize) -> Result<Vec<char>, Failure> {
    let source = args.string(index)?;
    args.budget.bytes(source.len())?;
    Ok(source.chars().collect())
}

fn char_at(args: &Args<'_>) -> Result<Value, Failure> {
    args.count(2)?;
    let (chars, index) = (chars(args, 0)?, args.int(1)?);
    match usize::try_from(index) {
        Ok(at) if at < chars.len() => Ok(text(chars[at])),
        Ok(at) if at == chars.len() => Ok(text("")),
        _ => Err(out_of_range(index, chars.len())),
    }
}

fn index_of(args: &Args<'_>) -> Result<Value, Failure> {
    let offset = match args.values.len() {
        2 => 0,
        3 => args.int(2)?,
        _ => return Err(Failure::NoOverload),
    };
    let (chars, wanted) = (chars(args, 0)?, chars(args, 1)?);
    if wanted.is_empty() {
        return Ok(Value::Int(offset));
    }
    let from = usize::try_from(offset).map_err(|_| out_of_range(offset, chars.len()))?;
    let rest = chars.get(from..).unwrap_or_default();
    args.budget.steps(rest.len().saturating_mul(wanted.len()) / 16)?;
    let found = rest.windows(wanted.len()).position(|part| part == wanted.as_slice());
    Ok(found.map_or(Value::Int(-1), |at| int(from + at)))
}

fn last_index_of(args: &Args<'_>) -> Result<Value, Failure> {
    let (chars, wanted) = (chars(args, 0)?, chars(args, 1)?);
    let last = match args.values.len() {
        2 if wanted.is_empty() => return Ok(int(chars.len())),
        2 => chars.len().saturating_sub(1),
        3 if wanted.is_empty() => return Ok(Value::Int(args.int(2)?)),
        3 => {
            let offset = args.int(2)?;
            let last = usize::try_from(offset).map_err(|_| out_of_range(offset, chars.len()))?;
            if last >= chars.len() {
                return Ok(Value::Int(-1));
            }
            last
        }
        _ => return Err(Failure::NoOverload),
    };
    args.budget.steps(chars.len().saturating_mul(wanted.len()) / 16)?;
    let found = chars.windows(wanted.len()).take(last.saturating_add(1)).rposition(|part| part == wanted.as_slice());
    Ok(found.map_or(Value::Int(-1), int))
}

fn join(args: &Args<'_>) -> Result<Value, Failure> {
    let separator = match args.values.len() {
        1 => "",
        2 => args.string(1)?,
        _ => return Err(Failure::NoOverload),
    };
    let items = args.list(0)?;
    let mut joined = String::new();
    for (at, item) in items.iter().enumerate() {
        let Value::String(item) = item else {
            return Err(Failure::new(format!(
                "only texts can be joined, and element {at} is of type {}",
                plain_type_name(item)
            )));
        };
        args.budget.step()?;
        args.budget.bytes(item.len() + separator.len())?;
        if at > 0 {
            joined.push_str(separator);
        }
        joined.push_str(item);
    }
    Ok(text(joined))
}

fn replace(args: &Args<'_>) -> Result<Value, Failure> {
    let limit = match args.values.len() {
        3 => None,
        4 => usize::try_from(args.int(3)?).ok(),
        _ => return Err(Failure::NoOverload),
    };
    let (source, old, new) = (args.string(0)?, args.string(1)?, args.string(2)?);
    args.budget.steps(source.len() / 16)?;
    let count = source.matches(old).count().min(limit.unwrap_or(usize::MAX));
    args.budget.bytes(source.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(text(match limit {
        Some(limit) => source.replacen(old, new, limit),
        None => source.replace(old, new),
    }))
}

fn split(args: &Args<'_>) -> Result<Value, Failure> {
    let limit = match args.values.len() {
        2 => None,
        3 => usize::try_from(args.int(2)?).ok(),
        _ => return Err(Failure::NoOverload),
    };
    let (source, separator) = (args.string(0)?, args.string(1)?);
    args.budget.bytes(source.len())?;
    let limit = limit.unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(list(Vec::new()));
    }
    let mut parts = Vec::new();
    let mut push = |part: &str| {
        args.budget.elements(1)?;
        parts.push(text(part));
        Ok(())
    };
    if separator.is_empty() {
        // Character by character, the last part being the rest.
        let mut rest = source;
        let mut left = limit;
        while let Some(c) = rest.chars().next() {
            let end = if left == 1 { rest.len() } else { c.len_utf8() };
            push(&rest[..end])?;
            rest = &rest[end..];
            left -= 1;
        }
    } else {
        source.splitn(limit, separator).try_for_each(push)?;
    }
    Ok(list(parts))
}

fn substring(args: &Args<'_>) -> Result<Value, Failure> {
    let chars = chars(args, 0)?;
    let start = args.int(1)?;
    let end = match args.values.len() {
        2 => i64::try_from(chars.len()).unwrap_or(i64::MAX),
        3 => args.int(2)?,
        _ => return Err(Failure::NoOverload),
    };
    let position = |index: i64| match usize::try_from(index) {
        Ok(at) if at <= chars.len() => Ok(at),
        _ => Err(out_of_range(index, chars.len())),
    };
    let (from, to) = (position(start)?, position(end)?);
    match chars.get(from..to) {
        Some(part) => Ok(text(part.iter().collect::<String>())),
        None => Err(Failure::new(format!("a part cannot begin at {start} and end at {end}"))),
    }
}

fn quote(args: &Args<'_>) -> Result<Value, Failure> {
    args.count(1)?;
    let source = args.string(0)?;
    args.budget.bytes(source.len().saturating_mul(2))?;
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
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    Ok(text(quoted))
}
