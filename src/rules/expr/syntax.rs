//! Parsing, and what to say when it fails: first what the tokens alone show (limits, quotes, brackets, operators of other
//! languages), then what the grammar refuses.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cel::IdedExpr;
use cel::common::ast::SourceInfo;
use cel::parser::ParseErrors;

use super::ExprFault;
use super::budget::{MAX_DEPTH, MAX_SOURCE, MAX_TOKENS};
use super::lexer::{Kind, Token};
use super::value::shorten;
use crate::rules::functions;

/// Words that CEL keeps for itself, besides its literals and `in`.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

fn fault(range: Range<usize>, message: impl Into<String>, help: impl Into<Option<&'static str>>) -> ExprFault {
    ExprFault { message: message.into(), range, help: help.into().map(str::to_owned) }
}

/// The faults that can be seen without parsing. Parsing a text that has some would only say the same less well.
pub(super) fn mistakes(source: &str, tokens: &[Token]) -> Vec<ExprFault> {
    if source.len() > MAX_SOURCE {
        let message = format!("the expression is {} bytes long, more than {} KiB", source.len(), MAX_SOURCE / 1024);
        return vec![fault(0..0, message, "split it with `variables`")];
    }
    if tokens.is_empty() {
        return vec![fault(0..source.len(), "the expression is empty", None)];
    }
    if tokens.len() > MAX_TOKENS {
        let message = format!("the expression has more than {MAX_TOKENS} words and symbols");
        return vec![fault(0..source.len(), message, "split it with `variables`")];
    }
    let mut faults: Vec<ExprFault> = (0..tokens.len()).filter_map(|index| token_fault(source, tokens, index)).collect();
    faults.extend(bracket_faults(source, tokens));
    faults.sort_by_key(|fault| fault.range.start);
    if faults.is_empty()
        && let Some(range) = too_deep(source, tokens)
    {
        let message = format!("the expression nests deeper than {MAX_DEPTH} levels");
        faults.push(fault(range, message, "split it with `variables`"));
    }
    faults
}

fn token_fault(source: &str, tokens: &[Token], index: usize) -> Option<ExprFault> {
    let token = &tokens[index];
    let range = token.range.clone();
    let text = token.text(source);
    let before = index.checked_sub(1).and_then(|before| tokens.get(before));
    let next = tokens.get(index + 1);
    let next_text = next.map_or("", |next| next.text(source));
    let adjacent = next.is_some_and(|next| next.range.start == range.end);
    match token.kind {
        Kind::OpenText => {
            let quote = if text.trim_start_matches(['r', 'R', 'b', 'B']).starts_with('"') { "\"" } else { "'" };
            Some(ExprFault {
                message: "the text that begins here has no closing quote".to_owned(),
                range: range.start..range.start + text.chars().next().map_or(0, char::len_utf8),
                help: Some(format!("close it with `{quote}` on the same line; a quote inside is written `\\{quote}`")),
            })
        }
        Kind::Text => wrong_escape(text).map(|(at, escape)| ExprFault {
            message: format!("there is no escape `{escape}`"),
            range: range.start + at..range.start + at + escape.len(),
            help: Some("write `\\\\` for a backslash, or put `r` before the opening quote".to_owned()),
        }),
        Kind::Quoted => Some(fault(range, "names in backticks are not supported", "write `object['name']`")),
        Kind::Unknown => Some(unknown_character(source, token, before, next_text, adjacent)),
        Kind::Word => word_fault(source, tokens, index),
        Kind::Op if text == "!" && adjacent && next_text == "==" => {
            Some(fault(range.start..range.end + 2, "`!==` is not an operator", "write `!=`"))
        }
        Kind::Op if text == "<" && adjacent && next_text == ">" => {
            Some(fault(range.start..range.end + 1, "`<>` is not an operator", "write `!=`"))
        }
        _ => None,
    }
}

/// The first escape in a literal that CEL does not know, and where it is.
fn wrong_escape(literal: &str) -> Option<(usize, String)> {
    let flags = literal.find(['\'', '"'])?;
    if literal[..flags].contains(['r', 'R']) {
        return None;
    }
    let mut chars = literal.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            let (_, escaped) = chars.next()?;
            if !"abfnrtv\\'\"`?xXuU01234567".contains(escaped) {
                return Some((at, format!("\\{escaped}")));
            }
        }
    }
    None
}

fn unknown_character(
    source: &str,
    token: &Token,
    before: Option<&Token>,
    next_text: &str,
    adjacent: bool,
) -> ExprFault {
    let range = token.range.clone();
    let text = token.text(source);
    let after_operator = before.filter(|before| before.range.end == range.start).map(|before| before.text(source));
    match text {
        "=" if matches!(after_operator, Some("==" | "!=")) => {
            fault(range, "one `=` too many", "CEL compares with `==` and `!=`")
        }
        "=" if next_text == ">" && adjacent => fault(range, "`=>` is not an operator", "write `>=` to compare"),
        "=" => fault(range, "`=` is not an operator", "to compare, write `==`"),
        "&" => fault(range, "`&` is not an operator", "for «and», write `&&`"),
        "|" => fault(
            range,
            "`|` is not an operator: there are no filters",
            "for «or», write `||`; functions are called as `value.function()`",
        ),
        "$" if next_text == "{" => fault(
            range,
            "`${` begins an expression, and this is inside one already",
            "write what is between the braces alone",
        ),
        "$" => fault(range, "`$` has no meaning in CEL", None),
        ";" => fault(range, "`;` has no meaning in CEL: an expression is a single value", None),
        "#" => fault(range, "`#` has no meaning in CEL", "comments begin with `//`"),
        "^" | "~" => fault(range, format!("`{text}` is not an operator"), None),
        "“" | "”" | "„" | "‘" | "’" | "«" | "»" => {
            fault(range, format!("`{text}` is not a quote that CEL knows"), "use `'` or `\"`")
        }
        "\u{a0}" | "\u{feff}" | "\u{200b}" => {
            fault(range, "an invisible character that is not a space", "delete it and type a space")
        }
        "\\" => fault(range, "`\\` has a meaning inside quotes only", None),
        "@" => fault(range, "`@` has no meaning in CEL", None),
        other => {
            let shown = other.escape_debug();
            fault(range, format!("`{shown}` has no meaning in CEL"), "text belongs into quotes: `'…'`")
        }
    }
}

fn word_fault(source: &str, tokens: &[Token], index: usize) -> Option<ExprFault> {
    let token = &tokens[index];
    let range = token.range.clone();
    let word = token.text(source);
    let previous = index.checked_sub(1).and_then(|before| tokens.get(before));
    let after_dot = previous.is_some_and(|before| matches!(before.text(source), "." | ".?"));
    if after_dot {
        return None;
    }
    let after_value = previous.is_some_and(|before| ends_value(before, source));
    let instead = match word.to_ascii_lowercase().as_str() {
        "and" => Some("`&&`"),
        "or" => Some("`||`"),
        "eq" | "is" | "equals" => Some("`==`"),
        "ne" | "neq" => Some("`!=`"),
        "lt" => Some("`<`"),
        "gt" => Some("`>`"),
        "le" | "lte" => Some("`<=`"),
        "ge" | "gte" => Some("`>=`"),
        "mod" => Some("`%`"),
        _ => None,
    };
    if let Some(instead) = instead.filter(|_| after_value) {
        return Some(ExprFault {
            message: format!("`{word}` is not an operator"),
            range,
            help: Some(format!("write {instead}")),
        });
    }
    let next = tokens.get(index + 1);
    let before_value = next.is_some_and(|next| matches!(next.kind, Kind::Word | Kind::Text | Kind::Number));
    if word.eq_ignore_ascii_case("not")
        && !after_value
        && before_value
        && next.is_some_and(|next| next.text(source) != "in")
    {
        return Some(fault(range, "`not` is not an operator", "write `!`"));
    }
    if word.eq_ignore_ascii_case("not") && next.is_some_and(|next| next.text(source) == "in") {
        return Some(fault(range, "`not in` is not an operator", "write `!(x in list)`"));
    }
    if matches!(word, "True" | "False" | "None" | "nil" | "TRUE" | "FALSE")
        && next.is_none_or(|next| next.text(source) != "(")
    {
        let help = match word {
            "True" | "TRUE" => "write `true`",
            "False" | "FALSE" => "write `false`",
            _ => "write `null`, or `optional.none()` to leave something out",
        };
        return Some(fault(range, format!("`{word}` is not a word of CEL"), help));
    }
    if RESERVED.contains(&word) {
        let help = match word {
            "if" | "else" => "a condition is written `condition ? this : that`",
            "for" | "while" | "loop" => "a loop is written `list.map(x, …)` or `list.filter(x, …)`",
            "let" | "var" | "const" => "give the value a name under `variables`",
            _ => "as a field it is written `object.name` or `object['name']`",
        };
        return Some(fault(range, format!("`{word}` is reserved and cannot be a name"), help));
    }
    None
}

/// Whether a token can be the end of a value.
fn ends_value(token: &Token, source: &str) -> bool {
    match token.kind {
        Kind::Word => token.text(source) != "in",
        Kind::Number | Kind::Text | Kind::OpenText | Kind::Quoted => true,
        Kind::Op => matches!(token.text(source), ")" | "]" | "}"),
        Kind::Unknown => false,
    }
}

fn closing(open: &str) -> &'static str {
    match open {
        "(" => ")",
        "{" => "}",
        _ => "]",
    }
}

fn bracket_faults(source: &str, tokens: &[Token]) -> Vec<ExprFault> {
    let mut open: Vec<&Token> = Vec::new();
    for token in tokens.iter().filter(|token| token.kind == Kind::Op) {
        let text = token.text(source);
        match text {
            "(" | "[" | "[?" | "{" => open.push(token),
            ")" | "]" | "}" => match open.pop() {
                None => {
                    return vec![fault(
                        token.range.clone(),
                        format!("this `{text}` closes nothing"),
                        "delete it, or add its opening partner",
                    )];
                }
                Some(start) if closing(start.text(source)) != text => {
                    let (start_text, wanted) = (start.text(source), closing(start.text(source)));
                    return vec![fault(
                        token.range.clone(),
                        format!("`{text}` cannot close the `{start_text}` before it: expected `{wanted}`"),
                        None,
                    )];
                }
                Some(_) => {}
            },
            _ => {}
        }
    }
    match open.last() {
        Some(token) => {
            let text = token.text(source);
            let message = format!("this `{text}` is never closed");
            vec![ExprFault { message, range: token.range.clone(), help: Some(format!("add `{}`", closing(text))) }]
        }
        None => Vec::new(),
    }
}

/// An upper bound of the syntax tree's depth, taken from the tokens, so that no recursive code ever sees a deeper one. Where
/// it exceeds the limit: the token at which it does.
fn too_deep(source: &str, tokens: &[Token]) -> Option<Range<usize>> {
    #[derive(Default, Clone, Copy)]
    struct Level {
        conditions: usize,
        operators: usize,
        postfix: usize,
    }
    let mut levels = vec![Level::default()];
    for (index, token) in tokens.iter().enumerate() {
        let after_value = index.checked_sub(1).is_some_and(|before| ends_value(&tokens[before], source));
        let is_in = token.kind == Kind::Word && token.text(source) == "in";
        if token.kind != Kind::Op && !is_in {
            continue;
        }
        let level = levels.last_mut()?;
        match token.text(source) {
            "," => *level = Level::default(),
            // Chains of these are balanced by the parser.
            "&&" | "||" => *level = Level { conditions: level.conditions, ..Level::default() },
            "?" | ":" => *level = Level { conditions: level.conditions + 1, ..Level::default() },
            "(" | "[" | "[?" | "{" => {
                level.postfix += 1;
                levels.push(Level::default());
            }
            ")" | "]" | "}" => {
                levels.pop();
                if levels.is_empty() {
                    return None;
                }
            }
            "." | ".?" | "!" => level.postfix += 1,
            "-" if !after_value => level.postfix += 1,
            _ => *level = Level { operators: level.operators + 1, postfix: 0, ..*level },
        }
        let depth: usize = levels.iter().map(|level| level.conditions + level.operators + level.postfix).sum();
        if depth > MAX_DEPTH {
            return Some(token.range.clone());
        }
    }
    None
}

/// Parses with the `cel` crate. Its parser is generated code; should it ever panic, that is a fault of the expression too.
pub(super) fn parse(source: &str, tokens: &[Token]) -> Result<(IdedExpr, SourceInfo), Vec<ExprFault>> {
    let parser = functions::environment().parser().max_recursion_depth(u16::MAX);
    match catch_unwind(AssertUnwindSafe(|| parser.parse_with_source_info(source))) {
        Ok(Ok(parsed)) => Ok(parsed),
        Ok(Err(errors)) => Err(explain(source, tokens, &errors)),
        Err(_) => Err(vec![fault(0..source.len(), "the expression cannot be read", None)]),
    }
}

fn explain(source: &str, tokens: &[Token], errors: &ParseErrors) -> Vec<ExprFault> {
    let mut faults: Vec<ExprFault> = Vec::new();
    for error in &errors.errors {
        let at = offset(source, error.pos);
        let found = grammar_fault(source, tokens, at, &error.msg);
        // One mistake makes the parser stumble several times; the first is the one to mend.
        let is_syntax = error.msg.starts_with("Syntax error");
        if is_syntax && !faults.is_empty() {
            continue;
        }
        if !faults.iter().any(|fault| fault.range == found.range) {
            faults.push(found);
        }
    }
    if faults.is_empty() {
        faults.push(fault(0..source.len(), "the expression cannot be read", None));
    }
    faults.sort_by_key(|fault| fault.range.start);
    faults
}

/// The byte offset of a line and a column, both counted from 1 and in characters.
fn offset(source: &str, (line, column): (isize, isize)) -> usize {
    let line = usize::try_from(line).unwrap_or(1).max(1);
    let column = usize::try_from(column).unwrap_or(1).max(1);
    let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = source.get(start..).unwrap_or_default();
    start + rest.char_indices().nth(column - 1).map_or(rest.len(), |(at, _)| at)
}

fn grammar_fault(source: &str, tokens: &[Token], at: usize, message: &str) -> ExprFault {
    let index = tokens.iter().position(|token| token.range.contains(&at) || token.range.start >= at);
    let range = index.map_or(source.len()..source.len(), |index| tokens[index].range.clone());
    let text = shorten(index.map_or("", |index| tokens[index].text(source)));
    if message.starts_with("invalid int") || message.starts_with("invalid uint") {
        return fault(
            range,
            format!("`{text}` does not fit into 64 bits"),
            "write it in quotes if it is an identifier",
        );
    }
    if message.starts_with("invalid double") {
        return fault(range, format!("`{text}` is too large for a double"), None);
    }
    if message.starts_with("invalid string literal") || message.starts_with("invalid bytes literal") {
        return fault(
            range,
            "the text holds an escape that CEL does not know",
            "write `\\\\` for a backslash, or put `r` before the opening quote",
        );
    }
    if message.contains("has() macro") {
        return fault(range, "`has()` takes a field: `has(object.field)`", "for a key, write `'key' in object`");
    }
    if message.contains("simple name") || message.contains("must be a simple") {
        return fault(range, "a loop variable must be a plain name", "write `list.map(x, …)`");
    }
    if message.contains("sortBy") {
        return fault(range, "`sortBy` is called on a list", None);
    }
    if message.contains("same name") {
        return fault(range, "the two loop variables have the same name", None);
    }
    if let Some(name) = message.strip_prefix("reserved identifier: ") {
        return fault(range, format!("`{name}` is reserved and cannot be a name"), None);
    }
    unexpected(source, tokens, index, range, &text)
}

/// What the grammar stumbled over, told by the tokens around the place.
fn unexpected(source: &str, tokens: &[Token], index: Option<usize>, range: Range<usize>, text: &str) -> ExprFault {
    let before = index.unwrap_or(tokens.len()).checked_sub(1).map(|before| &tokens[before]);
    let before_text = shorten(before.map_or("", |before| before.text(source)));
    let Some(token) = index.map(|index| &tokens[index]) else {
        let last = tokens.last().map_or(range, |last| last.range.clone());
        return fault(last, format!("the expression ends too early: expected a value after `{before_text}`"), None);
    };
    let begins_value =
        matches!(token.kind, Kind::Word | Kind::Number | Kind::Text) || matches!(text, "(" | "[" | "{" | "!");
    match before {
        Some(before) if ends_value(before, source) && begins_value => fault(
            range,
            format!("expected an operator between `{before_text}` and `{text}`"),
            if token.kind == Kind::Text || before.kind == Kind::Text {
                Some("texts are joined with `+`")
            } else {
                None
            },
        ),
        Some(_) if matches!(before_text.as_str(), "." | ".?") => fault(
            range,
            format!("expected a field name after `{before_text}`, found `{text}`"),
            "a key that is no name is written `object['key']`",
        ),
        Some(before) if !ends_value(before, source) => {
            fault(range, format!("expected a value after `{before_text}`, found `{text}`"), None)
        }
        None => fault(range, format!("expected a value, found `{text}`"), None),
        _ if text == ":" => {
            fault(range, "this `:` has no `?` before it", "a condition is written `condition ? this : that`")
        }
        _ if text == "?" => {
            fault(range, "this `?` has no `:` after it", "a condition is written `condition ? this : that`")
        }
        _ => {
            let open_condition = tokens.iter().any(|token| token.text(source) == "?");
            let help = open_condition.then_some("a condition is written `condition ? this : that`");
            fault(range, format!("`{text}` is not expected here"), help)
        }
    }
}
