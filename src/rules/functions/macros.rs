//! Macros: calls that the parser turns into loops. The standard ones and `sortBy` come with the `cel` crate; the ones with
//! two loop variables are here, expanding as Kubernetes' own do.

use std::sync::LazyLock;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, operators};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{Env, extensions};

use super::{Entry, Library};
use crate::rules::expr::MAP_INSERT;

pub(super) static LIBRARY: Library = Library { name: "macros", kubernetes: true, entries: ENTRIES };

const fn documented(
    name: &'static str,
    signatures: &'static [&'static str],
    doc: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Entry {
    Entry { name, signatures, doc, examples, function: None }
}

const ENTRIES: &[Entry] = &[
    documented(
        "has",
        &["has(object.field) -> bool"],
        "Whether the object has the field.",
        &[("has({'a': 1}.a)", "true"), ("has({'a': 1}.b)", "false")],
    ),
    documented(
        "all",
        &[
            "<list<A>>.all(x, x > 0) -> bool",
            "<list<A>>.all(index, x, x > 0) -> bool",
            "<map<A, B>>.all(key, value, value > 0) -> bool",
        ],
        "Whether the condition holds for every element (or key), or for every index and element, or key and value.",
        &[("[1, 2].all(x, x > 0)", "true"), ("{'a': 1}.all(k, v, v > 1)", "false")],
    ),
    documented(
        "exists",
        &[
            "<list<A>>.exists(x, x > 0) -> bool",
            "<list<A>>.exists(index, x, x > 0) -> bool",
            "<map<A, B>>.exists(key, value, value > 0) -> bool",
        ],
        "Whether the condition holds for at least one.",
        &[("[1, 2].exists(x, x > 1)", "true")],
    ),
    documented(
        "exists_one",
        &[
            "<list<A>>.exists_one(x, x > 0) -> bool",
            "<list<A>>.exists_one(index, x, x > 0) -> bool",
            "<map<A, B>>.exists_one(key, value, value > 0) -> bool",
        ],
        "Whether the condition holds for exactly one. Also written `existsOne`.",
        &[("[1, 2].exists_one(x, x > 1)", "true"), ("[2, 2].existsOne(i, x, x > 1)", "false")],
    ),
    documented(
        "map",
        &["<list<A>>.map(x, x + 1) -> list<B>", "<list<A>>.map(x, x > 0, x + 1) -> list<B>"],
        "The list of what the expression gives for each element (or key, in sorted order), of those alone for which the condition holds.",
        &[
            ("[1, 2].map(x, x * 10)", "[10, 20]"),
            ("{'a': 1}.map(k, k)", "['a']"),
            ("[1, 2].map(x, x > 1, x * 10)", "[20]"),
        ],
    ),
    documented(
        "filter",
        &["<list<A>>.filter(x, x > 0) -> list<A>"],
        "The elements (or keys, in sorted order) for which the condition holds.",
        &[("[1, 2, 3].filter(x, x > 1)", "[2, 3]")],
    ),
    documented(
        "transformList",
        &[
            "<list<A>>.transformList(index, x, x + 1) -> list<B>",
            "<list<A>>.transformList(index, x, x > 0, x + 1) -> list<B>",
            "<map<A, B>>.transformList(key, value, key + value) -> list<C>",
        ],
        "The list of what the expression gives for each index and element, or key and value (in the keys' order).",
        &[
            ("{'a': 2}.transformList(k, v, k + string(v))", "['a2']"),
            ("['x', 'y'].transformList(i, x, i > 0, x)", "['y']"),
        ],
    ),
    documented(
        "transformMap",
        &[
            "<map<A, B>>.transformMap(key, value, value + 1) -> map<A, C>",
            "<map<A, B>>.transformMap(key, value, value > 0, value + 1) -> map<A, C>",
            "<list<A>>.transformMap(index, x, x + 1) -> map<int, B>",
        ],
        "The map with the same keys (a list's are its indexes) and what the expression gives as values.",
        &[("{'a': 1}.transformMap(k, v, v + 1)", "{'a': 2}")],
    ),
    documented(
        "transformMapEntry",
        &[
            "<map<A, B>>.transformMapEntry(key, value, {value: key}) -> map<C, D>",
            "<map<A, B>>.transformMapEntry(key, value, value > 0, {value: key}) -> map<C, D>",
            "<list<A>>.transformMapEntry(index, x, {x: index}) -> map<C, D>",
        ],
        "The map of all entries that the expression gives; a key that comes twice is an error.",
        &[("{'a': 'b'}.transformMapEntry(k, v, {v: k})", "{'b': 'a'}")],
    ),
    documented(
        "sortBy",
        &["<list<A>>.sortBy(x, x.name) -> list<A>"],
        "The elements sorted by what the expression gives for each.",
        &[("[{'n': 2}, {'n': 1}].sortBy(x, x.n)", "[{'n': 1}, {'n': 2}]")],
    ),
    documented(
        "optMap",
        &["<optional<A>>.optMap(x, x + 1) -> optional<B>"],
        "The optional of what the expression makes of the value, if there is one.",
        &[("{'a': 1}.?a.optMap(x, x + 1).value()", "2"), ("{}.?a.optMap(x, x + 1).hasValue()", "false")],
    ),
    documented(
        "optFlatMap",
        &["<optional<A>>.optFlatMap(x, x.?field) -> optional<B>"],
        "What the expression, itself an optional, makes of the value, if there is one.",
        &[("{'a': {'b': 1}}.?a.optFlatMap(x, x.?b).value()", "1")],
    ),
];

/// The parser's environment, with every macro. Nothing is evaluated in it.
pub(in crate::rules) fn environment() -> &'static Env {
    static ENVIRONMENT: LazyLock<Env> = LazyLock::new(|| {
        let mut env = Env::stdlib();
        // Registration fails for duplicates only; a test sees to it that there are none.
        let mut complete = env.add_extension(extensions::lists).is_ok();
        for name in ["all", "exists", "exists_one", "existsOne", "transformList", "transformMap", "transformMapEntry"] {
            complete &= env.add_macro(two_variables(name, 3)).is_ok();
            if name.starts_with("transform") {
                complete &= env.add_macro(two_variables(name, 4)).is_ok();
            }
        }
        debug_assert!(complete, "a macro is registered twice");
        env
    });
    &ENVIRONMENT
}

fn two_variables(name: &'static str, count: usize) -> Macro {
    Macro::receiver(name, count, move |helper, target, args| {
        let mut parts = std::mem::take(args).into_iter();
        let (Some(range), Some(first), Some(second)) = (target.take(), parts.next(), parts.next()) else {
            return Ok(None);
        };
        let first = variable(helper, &first)?;
        let second = variable(helper, &second)?;
        if first == second {
            return Err(helper.new_error(range.id, "the two loop variables have the same name"));
        }
        let rest: Vec<IdedExpr> = parts.collect();
        let Some(body) = Body::of(helper, name, first.as_str(), rest) else { return Ok(None) };
        let comprehension = ComprehensionExpr {
            iter_range: range,
            iter_var: first,
            iter_var2: Some(second),
            accu_var: ACCUMULATOR.to_owned(),
            accu_init: body.init,
            loop_cond: body.condition,
            loop_step: body.step,
            result: body.result,
        };
        Ok(Some(helper.next_expr(Expr::Comprehension(Box::new(comprehension)))))
    })
}

const ACCUMULATOR: &str = "@result";

fn variable(helper: &MacroExprHelper<'_>, expr: &IdedExpr) -> Result<String, ParseError> {
    match &expr.expr {
        Expr::Ident(name) if !name.starts_with('.') => Ok(name.clone()),
        _ => Err(helper.new_error(expr.id, "argument must be a simple name")),
    }
}

/// The parts of a loop that differ from macro to macro.
struct Body {
    init: IdedExpr,
    condition: IdedExpr,
    step: IdedExpr,
    result: IdedExpr,
}

impl Body {
    fn of(helper: &mut MacroExprHelper<'_>, name: &str, key: &str, rest: Vec<IdedExpr>) -> Option<Self> {
        let mut rest = rest.into_iter();
        let one = rest.next()?;
        let (filter, value) = match rest.next() {
            Some(value) => (Some(one), value),
            None => (None, one),
        };
        let forever = boolean(helper, true);
        Some(match name {
            "all" => {
                let accumulated = accumulator(helper);
                let condition = call(helper, operators::NOT_STRICTLY_FALSE, vec![accumulated]);
                let accumulated = accumulator(helper);
                let step = call(helper, operators::LOGICAL_AND, vec![accumulated, value]);
                Self { init: boolean(helper, true), condition, step, result: accumulator(helper) }
            }
            "exists" => {
                let accumulated = accumulator(helper);
                let negated = call(helper, operators::LOGICAL_NOT, vec![accumulated]);
                let condition = call(helper, operators::NOT_STRICTLY_FALSE, vec![negated]);
                let accumulated = accumulator(helper);
                let step = call(helper, operators::LOGICAL_OR, vec![accumulated, value]);
                Self { init: boolean(helper, false), condition, step, result: accumulator(helper) }
            }
            "exists_one" | "existsOne" => {
                let (accumulated, one) = (accumulator(helper), integer(helper, 1));
                let more = call(helper, operators::ADD, vec![accumulated, one]);
                let step = only_if(helper, Some(value), more);
                let (accumulated, one) = (accumulator(helper), integer(helper, 1));
                let result = call(helper, operators::EQUALS, vec![accumulated, one]);
                Self { init: integer(helper, 0), condition: forever, step, result }
            }
            "transformList" => {
                let item = helper.next_expr(Expr::List(ListExpr::new(vec![value])));
                let accumulated = accumulator(helper);
                let more = call(helper, operators::ADD, vec![accumulated, item]);
                let step = only_if(helper, filter, more);
                let init = helper.next_expr(Expr::List(ListExpr::new(Vec::new())));
                Self { init, condition: forever, step, result: accumulator(helper) }
            }
            _ => {
                let mut args = vec![accumulator(helper)];
                if name == "transformMap" {
                    args.push(helper.next_expr(Expr::Ident(key.to_owned())));
                }
                args.push(value);
                let more = call(helper, MAP_INSERT, args);
                let step = only_if(helper, filter, more);
                let init = helper.next_expr(Expr::Map(MapExpr { entries: Vec::new() }));
                Self { init, condition: forever, step, result: accumulator(helper) }
            }
        })
    }
}

fn accumulator(helper: &mut MacroExprHelper<'_>) -> IdedExpr {
    helper.next_expr(Expr::Ident(ACCUMULATOR.to_owned()))
}

fn boolean(helper: &mut MacroExprHelper<'_>, value: bool) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Boolean(value.into())))
}

fn integer(helper: &mut MacroExprHelper<'_>, value: i64) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Int(value.into())))
}

fn call(helper: &mut MacroExprHelper<'_>, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    helper.next_expr(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
}

fn only_if(helper: &mut MacroExprHelper<'_>, condition: Option<IdedExpr>, step: IdedExpr) -> IdedExpr {
    match condition {
        Some(condition) => {
            let accumulated = accumulator(helper);
            call(helper, operators::CONDITIONAL, vec![condition, step, accumulated])
        }
        None => step,
    }
}
