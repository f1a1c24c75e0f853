//! Regular expressions: `matches`, `find` and `findAll`, in the dialect of Kubernetes (Go's RE2). Patterns are translated to
//! the dialect of the `regex` crate, which differs in a few places: its `\d`, `\w`, `\s` and `\b` go beyond ASCII, and it
//! gives `[`, `&&`, `--` and `~~` a meaning inside brackets.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

use ::regex::{Regex, RegexBuilder};
use cel::Value;

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::value::{list, shorten, text};

pub(super) static LIBRARY: Library = Library { name: "regex", kubernetes: true, entries: ENTRIES };

const ENTRIES: &[Entry] = &[
    entry(
        "matches",
        &["<string>.matches(string) -> bool", "matches(string, string) -> bool"],
        "Whether the regular expression matches somewhere in the text; `^` and `$` tie it to the ends.",
        &[("'10.0.0.1'.matches('^[0-9.]+$')", "true"), ("'abc'.matches('b')", "true")],
        |args| {
            args.count(2)?;
            let regex = compiled(args)?;
            Ok(Value::Bool(regex.is_match(args.string(0)?)))
        },
    ),
    entry(
        "find",
        &["<string>.find(string) -> string"],
        "The first part of the text that matches the regular expression; empty if none does.",
        &[("'abc 123'.find('[0-9]+')", "'123'"), ("'abc'.find('[0-9]+')", "''")],
        |args| {
            args.count(2)?;
            let regex = compiled(args)?;
            Ok(text(regex.find(args.string(0)?).map_or("", |found| found.as_str())))
        },
    ),
    entry(
        "findAll",
        &["<string>.findAll(string) -> list<string>", "<string>.findAll(string, int) -> list<string>"],
        "All parts of the text that match the regular expression, or the first so many.",
        &[("'1 22 333'.findAll('[0-9]+')", "['1', '22', '333']"), ("'1 22 333'.findAll('[0-9]+', 2)", "['1', '22']")],
        |args| {
            let limit = match args.values.len() {
                2 => -1,
                3 => args.int(2)?,
                _ => return Err(Failure::NoOverload),
            };
            let regex = compiled(args)?;
            let mut found = Vec::new();
            for part in regex.find_iter(args.string(0)?).take(usize::try_from(limit).unwrap_or(usize::MAX)) {
                args.budget.elements(1)?;
                args.budget.bytes(part.len())?;
                found.push(text(part.as_str()));
            }
            Ok(list(found))
        },
    ),
];

/// The memory that one compiled pattern may take, in bytes.
const MAX_COMPILED: usize = 256 * 1024;
/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 1024;
/// How many compiled patterns a thread remembers: rules have few, and compiling is what is slow.
const REMEMBERED: usize = 64;

thread_local! {
    static COMPILED: RefCell<HashMap<String, Rc<Regex>>> = RefCell::new(HashMap::new());
}

/// The compiled second argument; pays for a search in the first.
fn compiled(args: &Args<'_>) -> Result<Rc<Regex>, Failure> {
    let (subject, pattern) = (args.string(0)?, args.string(1)?);
    // A search is linear in both.
    args.budget.steps(subject.len().saturating_mul(pattern.len().min(64)) / 64 + 1)?;
    if let Some(known) = COMPILED.with_borrow(|known| known.get(pattern).cloned()) {
        return Ok(known);
    }
    args.budget.steps(4000)?;
    let regex = Rc::new(compile(pattern).map_err(Failure::Message)?);
    COMPILED.with_borrow_mut(|known| {
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(pattern.to_owned(), Rc::clone(&regex));
    });
    Ok(regex)
}

/// Compiles a pattern as Kubernetes understands it; the error says why it is none.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("the regular expression is longer than {MAX_PATTERN} bytes"));
    }
    let translated =
        translate(pattern).map_err(|reason| format!("`{}` is not a regular expression: {reason}", shorten(pattern)))?;
    RegexBuilder::new(&translated).size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED * 4).build().map_err(|error| {
        match error {
            ::regex::Error::CompiledTooBig(_) => format!("`{}` is too large a regular expression", shorten(pattern)),
            other => {
                // The last line of the crate's message is the reason, the ones before it draw the place.
                let message = other.to_string();
                let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                format!("`{}` is not a regular expression: {reason}", shorten(pattern))
            }
        }
    })
}

/// RE2's dialect → the crate's.
fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    // Just behind the `[` or `[^` of a class, where `]` is a character like any other.
    let mut class_start = false;
    let mut repeats = Repeats::None;
    while let Some(c) = chars.next() {
        let first_in_class = std::mem::take(&mut class_start);
        match c {
            '\\' => {
                let Some(escaped) = chars.next() else { return Err("it ends with a `\\`".to_owned()) };
                escape(escaped, in_class, &mut chars, &mut out)?;
            }
            '[' if !in_class => {
                in_class = true;
                class_start = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' => match named_class(&mut chars) {
                // `[:alpha:]`; any other bracket inside brackets is itself.
                Some(name) => out.push_str(&name),
                None => out.push_str("\\["),
            },
            ']' if in_class && first_in_class => out.push_str("\\]"),
            ']' => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '-' if in_class && chars.peek() == Some(&'-') => out.push_str("\\-"),
            '*' | '+' | '?' if !in_class => {
                repeats.operator(c == '?')?;
                out.push(c);
                continue;
            }
            '(' if !in_class => {
                // Flags that only the crate knows.
                let flags: String =
                    chars.clone().skip(1).take_while(|c| c.is_ascii_alphabetic() || *c == '-').collect();
                if chars.peek() == Some(&'?') && flags.contains(['x', 'u', 'R']) {
                    return Err(format!("`(?{flags}` has a flag that is none of i, m, s and U"));
                }
                out.push('(');
                if chars.peek() == Some(&'?') {
                    group(&mut chars, &mut out)?;
                }
            }
            '{' if !in_class => match counted(&chars)? {
                Some(count) => {
                    repeats.operator(false)?;
                    chars.nth(count.len());
                    let _ = write!(out, "{{{count}}}");
                    continue;
                }
                // Not a repetition, so the character itself.
                None => out.push_str("\\{"),
            },
            other => out.push(other),
        }
        repeats = Repeats::None;
    }
    Ok(out)
}

/// The rest of `[:name:]`, when that is what follows its first bracket.
fn named_class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let rest: String = chars.clone().collect();
    let name = rest.strip_prefix(':')?.split_once(":]")?.0;
    if !name.chars().all(|c| c.is_ascii_alphabetic() || c == '^') {
        return None;
    }
    chars.nth(name.chars().count() + 2);
    Some(format!("[:{name}:]"))
}

/// The beginning of a group behind its parenthesis. Names are left out: no function asks for them, and the crate refuses
/// some that RE2 takes.
fn group(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> Result<(), String> {
    let rest: String = chars.clone().take(128).collect();
    let Some(named) = rest.strip_prefix("?P<").or_else(|| rest.strip_prefix("?<")) else {
        out.extend(chars.next());
        return Ok(());
    };
    let Some((name, _)) = named.split_once('>') else { return Err("the name of a group is never closed".to_owned()) };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err("the name of a group may have letters, digits and `_` only".to_owned());
    }
    chars.nth(rest.len() - named.len() + name.len());
    Ok(())
}

/// What was repeated just before: RE2 refuses to repeat a repetition.
#[derive(Clone, Copy)]
enum Repeats {
    None,
    Once,
    /// With the `?` that makes it take as little as it can.
    Lazily,
}

impl Repeats {
    /// One more repetition operator.
    fn operator(&mut self, question_mark: bool) -> Result<(), String> {
        *self = match (*self, question_mark) {
            (Self::None, _) => Self::Once,
            (Self::Once, true) => Self::Lazily,
            _ => return Err("a repetition cannot be repeated".to_owned()),
        };
        Ok(())
    }
}

/// The inside of `{2}`, `{2,}` or `{2,3}`, when that is what follows an opening brace.
fn counted(chars: &std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<String>, String> {
    let rest: String = chars.clone().take(32).collect();
    let Some((inside, _)) = rest.split_once('}') else { return Ok(None) };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if least.is_empty() || !number(least) || !number(most) {
        return Ok(None);
    }
    if [least, most].iter().any(|count| !count.is_empty() && count.parse().is_ok_and(|count: u64| count > 1000)) {
        return Err("more than 1000 repetitions".to_owned());
    }
    Ok(Some(inside.to_owned()))
}

fn escape(
    escaped: char,
    in_class: bool,
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    out: &mut String,
) -> Result<(), String> {
    match (escaped, in_class) {
        ('d', false) => out.push_str("[0-9]"),
        ('d', true) => out.push_str("0-9"),
        ('D', _) => out.push_str("[^0-9]"),
        ('w', false) => out.push_str("[0-9A-Za-z_]"),
        ('w', true) => out.push_str("0-9A-Za-z_"),
        ('W', _) => out.push_str("[^0-9A-Za-z_]"),
        ('s', false) => out.push_str("[\\t\\n\\x0C\\r ]"),
        ('s', true) => out.push_str("\\t\\n\\x0C\\r "),
        ('S', _) => out.push_str("[^\\t\\n\\x0C\\r ]"),
        ('b', false) => out.push_str("(?-u:\\b)"),
        ('Q', false) => {
            let rest: String = chars.by_ref().collect();
            let (literal, after) = rest.split_once("\\E").unwrap_or((&rest, ""));
            out.push_str(&::regex::escape(literal));
            out.push_str(&translate(after)?);
        }
        ('C' | '<' | '>' | 'Z' | 'R' | 'X' | 'G' | 'u' | 'U' | 'b' | 'B' | 'A' | 'z', true)
        | ('C' | '<' | '>' | 'Z' | 'R' | 'X' | 'G' | 'u' | 'U', false) => {
            return Err(format!("there is no escape `\\{escaped}`"));
        }
        // A character by its number, in octal.
        ('0'..='7', _) => {
            let mut digits = escaped.to_string();
            while digits.len() < 3
                && let Some(digit) = chars.next_if(|c| matches!(c, '0'..='7'))
            {
                digits.push(digit);
            }
            if digits.len() == 1 && escaped != '0' {
                return Err("there are no references to groups".to_owned());
            }
            let _ = write!(out, "\\x{{{:x}}}", u32::from_str_radix(&digits, 8).unwrap_or_default());
        }
        _ => {
            out.push('\\');
            out.push(escaped);
            // `\x{e9}` and `\p{Greek}`: the braces are no repetition.
            if matches!(escaped, 'x' | 'p' | 'P') && chars.peek() == Some(&'{') {
                out.extend(chars.by_ref().take_while(|c| *c != '}'));
                out.push('}');
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, subject: &str) -> bool {
        compile(pattern).unwrap().is_match(subject)
    }

    #[test]
    fn classes_are_ascii_as_in_kubernetes() {
        assert!(!matches(r"^\d$", "٣"));
        assert!(!matches(r"^\w$", "é"));
        assert!(matches(r"^[\w-]+$", "a-b_1"));
        assert!(matches(r"^[^\d]$", "é"));
        assert!(matches(r"\bb", "éb"));
    }

    #[test]
    fn brackets_inside_brackets_are_characters() {
        assert!(matches("^[[a]$", "["));
        assert!(matches("^[]a]+$", "]a"));
        assert!(matches("^[a&&b]+$", "a&b"));
        assert!(matches("^[[:alpha:]0]+$", "a0"));
        assert!(matches("^[[:alpha:]]+$", "a"));
        assert!(!matches("^[[:alpha:]]+$", ":"));
    }

    #[test]
    fn literal_spans_are_literal() {
        assert!(matches(r"^\Qa.b\E.$", "a.bc"));
        assert!(!matches(r"^\Qa.b\E$", "axb"));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        assert!(compile("(").unwrap_err().contains("unclosed group"));
        assert!(compile("a{1001}").is_err());
        assert!(compile("((a{100}){100}){100}").unwrap_err().contains("too large"));
        assert!(compile("(?=a)").is_err());
    }
}
