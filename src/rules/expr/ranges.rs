//! Where each node of a syntax tree stands. The parser notes one token per node (an operator, an opening bracket), counted
//! in characters; here that becomes the byte range of the whole sub-expression.

use std::collections::HashMap;
use std::ops::Range;

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, SourceInfo, operators};

use super::lexer::{Kind, Token, partners};

/// Byte ranges by node id.
#[derive(Debug)]
pub(super) struct Ranges(HashMap<u64, Range<usize>>);

impl Ranges {
    /// Works out the range of every node.
    pub fn of(ast: &IdedExpr, info: &SourceInfo, source: &str, tokens: &[Token]) -> Self {
        let mut bytes: Vec<usize> = source.char_indices().map(|(at, _)| at).collect();
        bytes.push(source.len());
        let by_start = tokens.iter().enumerate().map(|(index, token)| (token.range.start, index)).collect();
        let partners = partners(tokens, source);
        let mut finder = Finder { info, source, tokens, bytes, by_start, partners, found: HashMap::new() };
        finder.visit(ast, &(0..source.len()));
        Self(finder.found)
    }

    /// The range of a node.
    pub fn get(&self, id: u64) -> Option<Range<usize>> {
        self.0.get(&id).cloned()
    }
}

struct Finder<'s> {
    info: &'s SourceInfo,
    source: &'s str,
    tokens: &'s [Token],
    /// Character position → byte position.
    bytes: Vec<usize>,
    by_start: HashMap<usize, usize>,
    partners: Vec<Option<usize>>,
    found: HashMap<u64, Range<usize>>,
}

impl Finder<'_> {
    /// The index of the token that the parser noted for a node.
    fn token(&self, id: u64) -> Option<usize> {
        let (start, _) = self.info.offset_for(id)?;
        let byte = *self.bytes.get(start as usize)?;
        self.by_start.get(&byte).copied()
    }

    fn text(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| token.text(self.source))
    }

    /// From the token to its closing partner.
    fn bracket(&self, index: usize) -> Range<usize> {
        let start = self.tokens[index].range.clone();
        match self.partners.get(index).copied().flatten() {
            Some(partner) => start.start..self.tokens[partner].range.end,
            None => start,
        }
    }

    /// The call whose opening parenthesis this is, from its (namespaced) name on.
    fn call(&self, open: usize) -> Range<usize> {
        let mut first = open;
        while let Some(before) = first.checked_sub(1)
            && (self.tokens[before].kind == Kind::Word || self.text(before) == ".")
        {
            first = before;
        }
        self.tokens[first].range.start..self.bracket(open).end
    }

    /// The range with the parentheses around it, when it has some.
    fn grouped(&self, mut range: Range<usize>) -> Range<usize> {
        loop {
            let Some(first) = self.by_start.get(&range.start).copied() else { return range };
            let Some(open) = first.checked_sub(1).filter(|open| self.text(*open) == "(") else { return range };
            let group = self.bracket(open);
            let inner_end = self.partners[open].and_then(|close| self.tokens.get(close.checked_sub(1)?));
            let is_call = open
                .checked_sub(1)
                .is_some_and(|before| self.tokens[before].kind == Kind::Word && self.text(before) != "in");
            if is_call || inner_end.is_none_or(|token| token.range.end != range.end) {
                return range;
            }
            range = group;
        }
    }

    fn visit(&mut self, expr: &IdedExpr, around: &Range<usize>) -> Range<usize> {
        let token = self.token(expr.id);
        // What a macro expands to carries the macro's opening parenthesis; no written node but a call does.
        let synthetic = token.is_none_or(|token| self.text(token) == "(");
        let own = token.map_or_else(|| around.clone(), |token| self.tokens[token].range.clone());
        let range = match &expr.expr {
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified if synthetic => around.clone(),
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => self.leaf(token, own),
            Expr::Select(select) => {
                let call = token.filter(|_| synthetic).map(|open| self.call(open));
                let operand = self.visit(&select.operand, call.as_ref().unwrap_or(around));
                match (call, token) {
                    (Some(call), _) => call,
                    (None, Some(dot)) => {
                        self.grouped(operand).start..self.tokens.get(dot + 1).map_or(own.end, |name| name.range.end)
                    }
                    (None, None) => around.clone(),
                }
            }
            Expr::Call(call) => self.visit_call(expr, &call.func_name, call.target.as_deref(), &call.args, around),
            Expr::List(list) => {
                let whole = if synthetic { around.clone() } else { token.map_or(own, |open| self.bracket(open)) };
                for item in &list.elements {
                    self.visit(item, &whole);
                }
                whole
            }
            Expr::Map(map) => {
                let whole = if synthetic { around.clone() } else { token.map_or(own, |open| self.bracket(open)) };
                for entry in &map.entries {
                    self.entry(&entry.expr, &whole);
                }
                whole
            }
            Expr::Struct(message) => {
                let whole = token.map_or(own, |open| self.call(open));
                for entry in &message.entries {
                    self.entry(&entry.expr, &whole);
                }
                whole
            }
            Expr::Comprehension(comprehension) => {
                let mut whole = token.map_or_else(|| around.clone(), |open| self.bracket(open));
                let parts = [&comprehension.iter_range, &comprehension.accu_init];
                let written = |part: &&IdedExpr| self.token(part.id).is_some_and(|index| Some(index) != token);
                let (written, expanded): (Vec<_>, Vec<_>) = parts.into_iter().partition(written);
                for part in written {
                    let part = self.visit(part, around);
                    whole.start = whole.start.min(self.grouped(part).start);
                }
                let inner = [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result];
                for part in expanded.into_iter().chain(inner) {
                    self.visit(part, &whole);
                }
                whole
            }
        };
        self.found.insert(expr.id, range.clone());
        range
    }

    /// A literal or name, with the sign or the dot before it.
    fn leaf(&self, token: Option<usize>, own: Range<usize>) -> Range<usize> {
        let before = token.and_then(|token| token.checked_sub(1));
        match before.map(|before| self.text(before)) {
            Some("-") if before.is_some_and(|before| self.starts_operand(before)) && self.is_number(token) => {
                self.tokens[before.unwrap_or_default()].range.start..own.end
            }
            _ => own,
        }
    }

    fn is_number(&self, token: Option<usize>) -> bool {
        token.is_some_and(|token| self.tokens[token].kind == Kind::Number)
    }

    /// Whether the token stands where an operand begins, so that `-` is a sign.
    fn starts_operand(&self, token: usize) -> bool {
        let Some(before) = token.checked_sub(1) else { return true };
        match self.tokens[before].kind {
            Kind::Word => self.text(before) == "in",
            Kind::Op => !matches!(self.text(before), ")" | "]" | "}"),
            _ => false,
        }
    }

    fn visit_call(
        &mut self,
        expr: &IdedExpr,
        name: &str,
        target: Option<&IdedExpr>,
        args: &[IdedExpr],
        around: &Range<usize>,
    ) -> Range<usize> {
        let token = self.token(expr.id);
        let Some(index) = token else {
            for part in target.into_iter().chain(args) {
                self.visit(part, around);
            }
            return around.clone();
        };
        let text = self.text(index).to_owned();
        let is_operator = name.contains(['_', '@']) && !name.starts_with(|c: char| c.is_ascii_alphabetic());
        let synthetic = text == "(" && (is_operator || name.contains('@') || self.expanded(index, name));
        let inner = if synthetic { around.clone() } else { 0..0 };
        let mut parts: Vec<Range<usize>> = Vec::new();
        for part in target.into_iter().chain(args) {
            let around = if synthetic { &inner } else { around };
            parts.push(self.visit(part, around));
        }
        if synthetic {
            return around.clone();
        }
        let own = self.tokens[index].range.clone();
        match name {
            operators::INDEX | operators::OPT_INDEX => {
                let start = parts.first().map_or(own.start, |operand| self.grouped(operand.clone()).start);
                start..self.bracket(index).end
            }
            operators::OPT_SELECT => {
                let start = parts.first().map_or(own.start, |operand| self.grouped(operand.clone()).start);
                let end = self.tokens.get(index + 1).map_or(own.end, |name| name.range.end);
                // The field's literal is not written as one; it stands where the field does.
                if let Some(field) = args.get(1) {
                    self.found.insert(field.id, own.start..end);
                }
                start..end
            }
            _ if text == "(" => match parts.first() {
                Some(receiver) if target.is_some() => self.grouped(receiver.clone()).start..self.bracket(index).end,
                _ => self.call(index),
            },
            _ => {
                let mut whole = own;
                for part in parts {
                    let part = self.grouped(part);
                    whole = whole.start.min(part.start)..whole.end.max(part.end);
                }
                whole
            }
        }
    }

    /// Whether the function's name is not what is written before the parenthesis: a macro's expansion put it there.
    fn expanded(&self, open: usize, name: &str) -> bool {
        let written = open.checked_sub(1).map_or("", |before| self.text(before));
        name.rsplit('.').next() != Some(written)
    }

    fn entry(&mut self, entry: &EntryExpr, whole: &Range<usize>) {
        match entry {
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key, whole);
                self.visit(&entry.value, whole);
            }
            EntryExpr::StructField(field) => {
                self.visit(&field.value, whole);
            }
        }
    }
}
