//! CEL expressions: parsed once, evaluated for every parent. The grammar and the syntax tree are the `cel` crate's; what is
//! ours is the evaluator (bounded, deterministic, with the answers that Kubernetes gives), the exact source ranges, and
//! messages for people who do not know CEL.
//!
//! ```text
//! source ──lexer──▶ limits and likely mistakes ──cel──▶ syntax tree ──plan──▶ nodes ──eval──▶ value
//! ```

use std::collections::BTreeSet;
use std::ops::Range;

use cel::IdedExpr;

pub mod budget;
mod eval;
mod json;
mod lexer;
pub(crate) mod operators;
mod plan;
mod ranges;
mod reads;
mod scope;
mod syntax;
pub(crate) mod value;

use budget::{Budget, Failure, MAX_NESTING};
use eval::{Fault, Frame, Why};

pub use json::{from_json, to_json};
pub use plan::unescape;
use ranges::Ranges;
pub use scope::{Lazy, Scope};

/// The accumulator's operation that `transformMap` and `transformMapEntry` expand to; no one can write it.
pub(super) const MAP_INSERT: &str = plan::MAP_INSERT;

/// A CEL value. Cheap to clone: texts, lists and maps are shared.
pub type CelValue = cel::Value;

/// An expression: what was written, its syntax tree, and the plan by which it is evaluated.
#[derive(Debug)]
pub struct Expr {
    source: String,
    ast: IdedExpr,
    ranges: Ranges,
    plan: plan::Node,
    /// Whether the expression makes lists, maps or optionals, and so can nest them.
    builds: bool,
}

/// A fault in how an expression is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprFault {
    /// One line, no full stop.
    pub message: String,
    /// The bytes of the source that it is about.
    pub range: Range<usize>,
    /// What to write instead.
    pub help: Option<String>,
}

/// A failure while evaluating an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalFault {
    /// One line, no full stop. Never holds more than a short piece of a value.
    pub message: String,
    /// The bytes of the source that failed: the smallest sub-expression.
    pub range: Option<Range<usize>>,
}

impl Expr {
    /// Parses an expression. Never panics, whatever the text; faults come in source order.
    pub fn parse(source: &str) -> Result<Expr, Vec<ExprFault>> {
        // The limit on the length holds before anything reads all of it.
        let tokens = if source.len() > budget::MAX_SOURCE { Vec::new() } else { lexer::scan(source) };
        let mistakes = syntax::mistakes(source, &tokens);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let (ast, info) = syntax::parse(source, &tokens)?;
        let ranges = Ranges::of(&ast, &info, source, &tokens);
        let plan = plan::plan(&ast);
        // Every such value is made by a bracket, or by a call.
        let builds = source.contains(['[', '{', '(']);
        Ok(Expr { source: source.to_owned(), ast, ranges, plan, builds })
    }

    /// The text that was parsed.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The syntax tree, macros expanded.
    pub fn ast(&self) -> &IdedExpr {
        &self.ast
    }

    /// The bytes of the source that the node of that id stands for. For what a macro expands to, the macro's call.
    pub fn range_of(&self, id: u64) -> Option<Range<usize>> {
        self.ranges.get(id)
    }

    /// The names that the expression takes from its scope: no loop variables, no functions, no types.
    pub fn free_identifiers(&self) -> BTreeSet<String> {
        reads::free_identifiers(&self.ast)
    }

    /// What the expression reads, as chains of fields from a free name on: `self.spec.cidr` is `["self", "spec", "cidr"]`.
    /// Optional selections, `has()` and indexes by a literal text continue a chain; anything else ends it.
    pub fn reads(&self) -> Vec<Vec<String>> {
        reads::reads(&self.ast)
    }

    /// Evaluates the expression. Bounded in time and memory, see [`budget`].
    pub fn eval(&self, scope: &Scope<'_>) -> Result<CelValue, EvalFault> {
        let budget = Budget::default();
        let value = Frame::new(scope, &budget).eval(&self.plan).map_err(|fault| self.explain(&fault))?;
        if self.builds {
            let limit = |message| EvalFault { message, range: Some(0..self.source.len()) };
            match value::nests_within(&value, MAX_NESTING, &budget) {
                Ok(true) | Err(Failure::NoOverload) => {}
                Ok(false) => return Err(limit(format!("the value nests deeper than {MAX_NESTING} levels"))),
                Err(Failure::Limit(message) | Failure::Message(message)) => return Err(limit(message)),
            }
        }
        Ok(value)
    }

    /// The text of a node, on one line.
    fn text_of(&self, id: u64) -> String {
        let text = self.range_of(id).and_then(|range| self.source.get(range)).unwrap_or(&self.source);
        value::shorten(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn explain(&self, fault: &Fault) -> EvalFault {
        let message = match &fault.why {
            Why::Message(message) | Why::Limit(message) => message.clone(),
            Why::NoField { operand, field } => format!("`{}` has no field `{field}`", self.text_of(*operand)),
            Why::NoKey { operand, key } => {
                format!("`{}` has no key `{}`", self.text_of(*operand), value::shorten(key))
            }
            Why::NotAnObject { operand, type_name, field } => {
                format!("`{}` is {}, it has no field `{field}`", self.text_of(*operand), article(type_name))
            }
            Why::OutOfRange { operand, index, size } => {
                let elements = if *size == 1 { "element" } else { "elements" };
                format!("`{}` has {size} {elements}, there is no index {index}", self.text_of(*operand))
            }
            Why::WrongType { operand, type_name, wanted } => {
                format!("`{}` is {}, not {}", self.text_of(*operand), article(type_name), article(wanted))
            }
        };
        EvalFault { message, range: self.range_of(fault.id) }
    }
}

/// The type's name with its article.
fn article(type_name: &str) -> String {
    match type_name {
        "null" => "null".to_owned(),
        "bytes" => "a bytes value".to_owned(),
        name if name.starts_with(['a', 'e', 'i', 'o', 'I']) => format!("an {name}"),
        name => format!("a {name}"),
    }
}

#[cfg(test)]
mod tests;
