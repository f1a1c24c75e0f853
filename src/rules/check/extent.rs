//! Which characters of an expression a message is about: all of a node, or the name in it.
//!
//! [`Expr::range_of`] knows where a node is; a caret under `self.spec.cdir` belongs under `cdir` alone, and under the
//! function's name in a call, so the names are found here, from the tokens of the text.

use std::ops::Range;

use cel::common::ast::{CallExpr, Expr as Tree, IdedExpr, operators};

use crate::rules::expr::Expr;

/// The tokens of an expression, and which brackets belong together.
#[derive(Debug)]
pub struct Extents<'a> {
    expr: &'a Expr,
    tokens: Vec<Range<usize>>,
    /// For each bracket token, its partner.
    partner: Vec<Option<usize>>,
}

impl<'a> Extents<'a> {
    /// Reads the tokens of an expression.
    pub fn new(expr: &'a Expr) -> Self {
        let text = expr.source();
        let tokens = tokens(text);
        let mut partner = vec![None; tokens.len()];
        let mut open = Vec::new();
        for (index, token) in tokens.iter().enumerate() {
            match text.get(token.clone()).unwrap_or_default() {
                "(" | "[" | "{" => open.push(index),
                ")" | "]" | "}" => {
                    if let Some(start) = open.pop() {
                        partner[start] = Some(index);
                        partner[index] = Some(start);
                    }
                }
                _ => {}
            }
        }
        Self { expr, tokens, partner }
    }

    /// All of a node.
    pub fn of(&self, node: &IdedExpr) -> Range<usize> {
        self.expr.range_of(node.id).unwrap_or(0..self.expr.source().len())
    }

    /// The field name of a selection or `has()`, the function name of a call or macro; all of anything else.
    pub fn name(&self, node: &IdedExpr) -> Range<usize> {
        let whole = self.of(node);
        let end = self.tokens.partition_point(|token| token.start < whole.end);
        let Some(last) = end.checked_sub(1).filter(|last| self.tokens[*last].start >= whole.start) else {
            return whole;
        };
        let is_field = match &node.expr {
            Tree::Select(_) => true,
            Tree::Call(CallExpr { func_name, .. }) => func_name == operators::OPT_SELECT,
            _ => false,
        };
        let name = if is_field {
            (0..=last).rev().find(|index| self.is_word(*index))
        } else {
            let open = self.partner[last].filter(|_| self.text(self.tokens[last].clone()) == ")");
            open.and_then(|open| open.checked_sub(1)).filter(|before| self.is_word(*before))
        };
        name.map(|index| self.tokens[index].clone()).filter(|name| name.start >= whole.start).unwrap_or(whole)
    }

    /// Whether a node was not written but made by a macro: such a node has the range of what it is made from.
    pub fn is_made(&self, node: &IdedExpr, part: &IdedExpr) -> bool {
        self.of(node) == self.of(part)
    }

    /// The text of some bytes.
    pub fn text(&self, range: Range<usize>) -> &'a str {
        self.expr.source().get(range).unwrap_or_default()
    }

    fn is_word(&self, index: usize) -> bool {
        self.text(self.tokens[index].clone()).starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '`')
    }
}

/// Cuts a text into words, texts, brackets and single signs. Blanks and comments are dropped.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if let Some(length) = text_literal(rest) {
            length
        } else if c == '`' {
            rest[1..].find('`').map_or(rest.len(), |end| end + 2)
        } else if c.is_alphanumeric() || c == '_' {
            rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
        } else {
            c.len_utf8()
        };
        out.push(at..at + length);
        at += length;
    }
    out
}

/// The length of the text literal that begins here, prefixes and quotes included.
fn text_literal(rest: &str) -> Option<usize> {
    let prefix = rest
        .find(['"', '\''])
        .filter(|end| *end <= 2 && rest[..*end].chars().all(|c| matches!(c, 'r' | 'R' | 'b' | 'B')))?;
    let raw = rest[..prefix].contains(['r', 'R']);
    let body = &rest[prefix..];
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| body.starts_with(quote))?;
    let mut at = quote.len();
    while at < body.len() {
        if body[at..].starts_with(quote) {
            return Some(prefix + at + quote.len());
        }
        let c = body[at..].chars().next()?;
        at += c.len_utf8();
        if c == '\\' && !raw {
            at += body[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    Some(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_a_node_is_found() {
        for (text, name) in [
            ("self.spec.cidr", "cidr"),
            ("self.spec.?cidr", "cidr"),
            ("has(self.spec.cidr)", "cidr"),
            ("cidr( 'é)' )", "cidr"),
            ("cidr(x).containsIP('(')", "containsIP"),
            ("[1].map(x, x)", "map"),
            ("a.?b.optMap(x, x)", "optMap"),
            ("math.greatest(1, 2)", "greatest"),
            ("'é' + b", "'é' + b"),
            ("a == (b)", "a == (b)"),
            ("-a", "-a"),
        ] {
            let expr = Expr::parse(text).unwrap();
            let extents = Extents::new(&expr);
            assert_eq!(&text[extents.name(expr.ast())], name, "{text}");
        }
    }

    #[test]
    fn any_text_can_be_cut_into_tokens() {
        for text in ["", "'", "\"\"\"", "r'\\", "b\"é", "`", "1.", "1.e", "//", "a//é\nb", "[(]", "\u{0}é", "''''"] {
            let _ = tokens(text);
        }
    }
}
