//! No text makes the expression parser or the evaluator panic, hang or run out of stack or memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::too_many_lines, reason = "the grammar of expressions is one list")]

use std::time::{Duration, Instant};

use network_operator::rules::expr::{Expr, Scope, from_json, to_json};
use proptest::prelude::*;
use serde_json::json;

/// Parses and evaluates; the caller only cares that this returns, and how long it takes.
fn run(source: &str) -> Duration {
    let start = Instant::now();
    if let Ok(expr) = Expr::parse(source) {
        let mut scope = Scope::new();
        scope.set(
            "self",
            from_json(&json!({"a": {"b": [1, "x", null, 2.5]}, "s": "text", "n": -9_223_372_036_854_775_808_i64})),
        );
        let _ = expr.reads();
        let _ = expr.free_identifiers();
        assert!(expr.range_of(expr.ast().id).is_none_or(|range| source.get(range).is_some()));
        match expr.eval(&scope) {
            Ok(value) => {
                let _ = to_json(&value);
            }
            Err(fault) => {
                assert!(fault.range.is_none_or(|range| source.get(range).is_some()), "{source}");
                assert!(fault.message.len() < 1500, "{}", fault.message);
            }
        }
    }
    start.elapsed()
}

/// Pieces that, put together at random, are often close to being an expression.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "self",
            "self.a.b",
            "self.n",
            "x",
            "1",
            "0",
            "-1",
            "1.5",
            "2u",
            "'a'",
            "\"é\"",
            "b'x'",
            "null",
            "true",
            "[1, 2]",
            "{'a': 1}",
            "9223372036854775807",
            "-9223372036854775808",
            "''",
            "'",
            "\"",
            "'''",
            "r'",
            "`a`",
            "😀",
        ])
        .prop_map(str::to_owned),
        prop::sample::select(vec![
            "+", "-", "*", "/", "%", "==", "!=", "<", "<=", " in ", "&&", "||", "!", "?", ":", "(", ")", "[", "]", "{",
            "}", ",", ".", ".?", "[?", "=", "&", "|", "${", "\\",
        ])
        .prop_map(str::to_owned),
        prop::sample::select(vec![
            ".map(x, x)",
            ".filter(x, x > 0)",
            ".all(x, x)",
            ".exists(x, y, x)",
            ".transformMap(k, v, v)",
            ".transformMapEntry(k, v, {v: k})",
            ".sortBy(x, x)",
            ".optMap(x, x)",
            ".size()",
            ".join(',')",
            ".split('')",
            ".replace('', 'ab')",
            ".matches('(a+)+$')",
            ".format([1])",
            ".flatten()",
            ".substring(1)",
            "size(",
            "string(",
            "int(",
            "uint(",
            "double(",
            "duration('1h')",
            "timestamp('2024-01-01T00:00:00Z')",
            "ip('::1')",
            "cidr('::/0')",
            ".subnet(128, -1)",
            "quantity('1Gi')",
            ".add(1)",
            "semver('1.2.3')",
            "url('http://a/b')",
            ".getQuery()",
            "format.named('uri')",
            "toYaml(",
            "toJson(",
            "dnsLabel(",
            "has(",
            "lists.range(100000000)",
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(source in any::<String>()) {
        prop_assert!(run(&source) < Duration::from_secs(10));
    }

    #[test]
    fn any_mixture_of_pieces_is_survived(pieces in prop::collection::vec(piece(), 1..14)) {
        prop_assert!(run(&pieces.concat()) < Duration::from_secs(10));
    }
}

/// An expression that is well-formed, whatever its types.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "self",
        "self.a",
        "self.a.b",
        "self.s",
        "self.n",
        "1",
        "-1",
        "0",
        "2u",
        "1.5",
        "'é😀'",
        "b'x'",
        "null",
        "true",
        "[]",
        "{}",
        "[3, 1, 2]",
        "{'b': 1, 'a': 2}",
        "duration('1h')",
        "timestamp('9999-12-31T23:59:59Z')",
        "optional.none()",
        "quantity('1Ei')",
        "cidr('10.0.0.0/8')",
        "ip('10.0.0.1')",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (two.clone(), prop::sample::select(vec!["+", "-", "*", "/", "%", "==", "<", ">=", "&&", "||", "in"]))
                .prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
            (two.clone(), prop::sample::select(vec!["map", "filter", "all", "exists", "exists_one", "sortBy"]))
                .prop_map(|((a, b), name)| format!("({a}).{name}(self, {b})")),
            (
                two.clone(),
                prop::sample::select(vec!["transformList", "transformMap", "transformMapEntry", "all", "existsOne"])
            )
                .prop_map(|((a, b), name)| format!("({a}).{name}(i, self, {b})")),
            (
                inner.clone(),
                prop::sample::select(vec![
                    "size",
                    "type",
                    "string",
                    "int",
                    "uint",
                    "double",
                    "bytes",
                    "bool",
                    "toJson",
                    "toYaml",
                    "dnsLabel",
                    "lists.range",
                    "optional.of",
                    "base64.encode"
                ])
            )
                .prop_map(|(a, name)| format!("{name}({a})")),
            (
                inner.clone(),
                prop::sample::select(vec![
                    "sort",
                    "reverse",
                    "distinct",
                    "flatten",
                    "sum",
                    "min",
                    "max",
                    "join",
                    "trim",
                    "hasValue",
                    "value",
                    "getHours",
                    "asInteger",
                    "firstUsable",
                    "size"
                ])
            )
                .prop_map(|(a, name)| format!("({a}).{name}()")),
            (
                two.clone(),
                prop::sample::select(vec![
                    "split",
                    "join",
                    "indexOf",
                    "replace",
                    "format",
                    "matches",
                    "findAll",
                    "orValue",
                    "add",
                    "nth",
                    "subnets",
                    "flatten",
                    "charAt",
                    "substring"
                ])
            )
                .prop_map(|((a, b), name)| format!("({a}).{name}({b})")),
            two.prop_map(|(a, b)| format!("[{a}, ?optional.of({b})]")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("{{'k': {a}, ?'o': ({b}).?x}}[?'k']")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn any_well_formed_expression_is_survived_and_answers_the_same_twice(source in expression()) {
        prop_assert!(run(&source) < Duration::from_secs(10));
        if let Ok(expr) = Expr::parse(&source) {
            let answer = || expr.eval(&Scope::new()).map(|value| to_json(&value));
            prop_assert_eq!(format!("{:?}", answer()), format!("{:?}", answer()));
        }
    }
}

/// Runs in a thread with the stack that worker threads have.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(work).unwrap().join().unwrap();
}

#[test]
fn the_deepest_expressions_fit_a_worker_threads_stack() {
    on_a_small_stack(|| {
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{1: ", "1", "}"),
            ("!", "true", ""),
            ("-", "self", ""),
            ("", "1", " + 1"),
            ("", "self", ".a"),
            ("", "self", "[0]"),
            ("false ? 1 : ", "2", ""),
            ("", "[1]", ".map(x, x)"),
            ("size(", "1", ")"),
            ("", "'a'", ".trim()"),
            ("[1].map(x, ", "1", ")"),
            ("", "optional.of(1)", ".optMap(x, x)"),
            ("self.?a.optMap(x, ", "1", ")"),
        ] {
            let mut deepest = 0;
            for depth in (1..200).step_by(7) {
                let source = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
                run(&source);
                if Expr::parse(&source).is_ok() {
                    deepest = depth;
                }
            }
            assert!(deepest >= 15, "{open}{middle}{close}: only {deepest} levels");
        }
    });
}

#[test]
fn hostile_expressions_are_stopped_in_time() {
    let nested = |inner: &str, levels: usize| {
        (0..levels).fold(inner.to_owned(), |inner, level| format!("lists.range(1000).map(x{level}, {inner})"))
    };
    for source in [
        nested("1", 6),
        "lists.range(1000000000)".to_owned(),
        "lists.range(60000).map(x, 'a').join(lists.range(10000).map(x, 'b').join())".to_owned(),
        "lists.range(30000).distinct().size()".to_owned(),
        "('a'.replace('', 'aaaaaaaaaa')".to_owned() + &".replace('a', 'aaaaaaaaaa')".repeat(12) + ").size()",
        "[1]".to_owned() + &".map(x, [x, x])".repeat(30) + &".flatten()".repeat(29) + ".size()",
        "[[1]".to_owned() + &".map(x, [x, x])".repeat(60) + "].map(a, a == a)",
        "toYaml([1]".to_owned() + &".map(x, [x, x])".repeat(40) + ")",
        "'%.99999999f'.format([1.0])".to_owned(),
        "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'.matches('(a*)*b')".to_owned(),
        "cidr('::/0').subnets(64)".to_owned(),
    ] {
        let start = Instant::now();
        let expr = Expr::parse(&source).unwrap_or_else(|faults| panic!("{source}: {faults:?}"));
        let _ = expr.eval(&Scope::new());
        assert!(start.elapsed() < Duration::from_secs(8), "{source}: {:?}", start.elapsed());
    }
}

#[test]
fn variables_that_build_on_one_another_cannot_nest_without_end() {
    on_a_small_stack(|| {
        let expr = Expr::parse(&format!("{}x{}", "[".repeat(30), "]".repeat(30))).unwrap();
        let mut scope = Scope::new();
        scope.set("x", from_json(&json!(1)));
        let fault = (0..10_000).find_map(|_| match expr.eval(&scope) {
            Ok(value) => {
                scope.set("x", value);
                None
            }
            Err(fault) => Some(fault.message),
        });
        assert_eq!(fault.as_deref(), Some("the value nests deeper than 100 levels"));
    });
}

#[test]
fn reading_long_texts_is_paid_for() {
    let source = "[lists.range(20000).map(x, '0123456789').join()].all(s, lists.range(100000).all(i, s == s))";
    let start = Instant::now();
    let fault = Expr::parse(source).unwrap().eval(&Scope::new()).unwrap_err();
    assert!(fault.message.contains("evaluation steps"), "{}", fault.message);
    assert!(start.elapsed() < Duration::from_secs(8));
}

#[test]
fn the_longest_expressions_are_read_in_time() {
    on_a_small_stack(|| {
        for source in [
            format!("[{}1]", "1, ".repeat(4000)),
            format!("{}true", "a || ".repeat(4000)),
            format!("{}true", "a.b.c == 'x' && ".repeat(900)),
            format!("{{{}'k': 1}}", "'a': 1, ".repeat(2000)),
            format!("f({}1)", "g(x, [1]), ".repeat(900)),
            format!("[{}1]", "x.map(y, y ? 1 : 2), ".repeat(500)),
            format!("[{}1]", "((((((((((1)))))))))), ".repeat(300)),
            format!("'{}'", "é".repeat(30_000)),
        ] {
            let start = Instant::now();
            let parsed = Expr::parse(&source).map(|expr| expr.reads().len());
            let shown: String = source.chars().take(20).collect();
            assert!(parsed.is_ok(), "{shown}: {parsed:?}");
            println!("{shown}: {:?}", start.elapsed());
            assert!(start.elapsed() < Duration::from_secs(8), "{shown}: {:?}", start.elapsed());
        }
    });
}
