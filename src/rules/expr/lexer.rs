//! CEL source → tokens with byte ranges. The parser of the `cel` crate does the parsing; this scan exists for what that
//! parser cannot give: exact source ranges of sub-expressions, limits that hold *before* a recursive parser runs, and
//! messages about what the author probably meant.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, including the words `in`, `true`, `false` and `null`.
    Word,
    /// An int, uint or double literal.
    Number,
    /// A string or bytes literal that is closed.
    Text,
    /// A string or bytes literal without its closing quote.
    OpenText,
    /// A name in backticks.
    Quoted,
    /// Punctuation and operators; the longest that CEL knows.
    Op,
    /// A character that has no meaning in CEL.
    Unknown,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    /// Byte range in the source.
    pub range: Range<usize>,
}

impl Token {
    /// The token's text within the source it was scanned from.
    pub fn text<'s>(&self, source: &'s str) -> &'s str {
        source.get(self.range.clone()).unwrap_or_default()
    }
}

const OPERATORS: [&str; 26] = [
    "&&", "||", "==", "!=", "<=", ">=", ".?", "[?", "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "+", "-", "*",
    "/", "%", "!", "<", ">",
];

/// Scans the whole source; never fails.
pub(super) fn scan(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = source.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = source.get(at..).unwrap_or_default();
        if c.is_ascii_whitespace() || c == '\u{c}' {
            at += 1;
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let (kind, len) = token(rest, c);
        tokens.push(Token { kind, range: at..at + len });
        at += len;
    }
    tokens
}

fn token(rest: &str, c: char) -> (Kind, usize) {
    if let Some(found) = text(rest) {
        return found;
    }
    if c.is_ascii_alphabetic() || c == '_' {
        return (Kind::Word, prefix(rest, |c| c.is_ascii_alphanumeric() || c == '_'));
    }
    let digit_after_dot = c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
    if c.is_ascii_digit() || digit_after_dot {
        return (Kind::Number, number(rest));
    }
    if c == '`' {
        let len = rest[1..].find(['`', '\n']).map_or(rest.len(), |end| end + 2);
        return (Kind::Quoted, len);
    }
    if let Some(op) = OPERATORS.iter().find(|op| rest.starts_with(**op)) {
        // `a ?.5 : b` and `[?x]` share a spelling with optional syntax only where CEL reads them so too.
        return (Kind::Op, op.len());
    }
    (Kind::Unknown, c.len_utf8())
}

fn prefix(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|c: char| !belongs(c)).unwrap_or(rest.len())
}

fn number(rest: &str) -> usize {
    if let Some(digits) = rest.strip_prefix("0x") {
        return 2 + prefix(digits, |c| c.is_ascii_hexdigit() || c == 'u' || c == 'U');
    }
    let mut len = prefix(rest, |c| c.is_ascii_digit());
    if rest[len..].starts_with('.') && rest[len + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        len += 1 + prefix(&rest[len + 1..], |c| c.is_ascii_digit());
    }
    if rest[len..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[len + 1..].starts_with(['+', '-']));
        let digits = prefix(&rest[len + 1 + sign..], |c| c.is_ascii_digit());
        if digits > 0 {
            len += 1 + sign + digits;
        }
    }
    if rest[len..].starts_with(['u', 'U']) {
        len += 1;
    }
    len
}

/// A string or bytes literal at the start of `rest`.
fn text(rest: &str) -> Option<(Kind, usize)> {
    let start = prefix(rest, |c| matches!(c, 'r' | 'R' | 'b' | 'B'));
    let flags = &rest[..start];
    if start > 2 || (start == 2 && flags.eq_ignore_ascii_case("rr") | flags.eq_ignore_ascii_case("bb")) {
        return None;
    }
    let raw = flags.contains(['r', 'R']);
    let body = &rest[start..];
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| body.starts_with(quote))?;
    let mut at = quote.len();
    loop {
        let left = &body[at..];
        let Some(c) = left.chars().next() else {
            return Some((Kind::OpenText, start + body.len()));
        };
        if left.starts_with(quote) {
            return Some((Kind::Text, start + at + quote.len()));
        }
        if quote.len() == 1 && (c == '\n' || c == '\r') {
            return Some((Kind::OpenText, start + at));
        }
        at += c.len_utf8();
        if c == '\\' && !raw {
            at += body[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
}

/// For each token that opens or closes a bracket, the index of its partner.
pub(super) fn partners(tokens: &[Token], source: &str) -> Vec<Option<usize>> {
    let mut partners = vec![None; tokens.len()];
    let mut open = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if token.kind != Kind::Op {
            continue;
        }
        match token.text(source) {
            "(" | "[" | "[?" | "{" => open.push(index),
            ")" | "]" | "}" => {
                if let Some(start) = open.pop() {
                    partners[start] = Some(index);
                    partners[index] = Some(start);
                }
            }
            _ => {}
        }
    }
    partners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        scan(source).iter().map(|token| token.text(source)).collect()
    }

    #[test]
    fn operators_are_as_long_as_they_can_be() {
        assert_eq!(texts("a.?b[?0]>=1.5e3&&!c"), ["a", ".?", "b", "[?", "0", "]", ">=", "1.5e3", "&&", "!", "c"]);
    }

    #[test]
    fn strings_may_hold_quotes_and_brackets() {
        assert_eq!(texts(r#"'a\'(' + r"\" + """x"y""""#), [r"'a\'('", "+", r#"r"\""#, "+", r#""""x"y""""#]);
    }

    #[test]
    fn an_open_string_ends_with_its_line() {
        let tokens = scan("'abc\n + 1");
        assert_eq!((tokens[0].kind, tokens[0].range.clone()), (Kind::OpenText, 0..4));
    }

    #[test]
    fn comments_are_skipped() {
        assert_eq!(texts("a // b ' c\n+ d"), ["a", "+", "d"]);
    }
}
