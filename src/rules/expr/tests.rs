//! Tests of parsing and evaluation as a whole.

use super::*;
use serde_json::json;

fn eval(source: &str) -> Result<CelValue, EvalFault> {
    let mut scope = Scope::new();
    scope.set(
        "self",
        from_json(&json!({
            "metadata": {"name": "demo", "labels": {"app": "x"}},
            "spec": {"cidr": "10.0.0.0/8", "ports": [80, 443], "foo-bar": 1, "nothing": null},
        })),
    );
    Expr::parse(source).map_err(|faults| EvalFault { message: faults[0].message.clone(), range: None })?.eval(&scope)
}

fn json_of(source: &str) -> serde_json::Value {
    to_json(&eval(source).unwrap()).unwrap().unwrap()
}

/// The message, and the text under the caret.
fn fault(source: &str) -> (String, String) {
    let fault = eval(source).unwrap_err();
    (fault.message, source[fault.range.unwrap()].to_owned())
}

#[test]
fn fields_operators_and_conditions_are_evaluated() {
    assert_eq!(json_of("self.spec.cidr + '!'"), json!("10.0.0.0/8!"));
    assert_eq!(json_of("size(self.spec.ports) > 1 ? self.spec.ports[1] : 0"), json!(443));
    assert_eq!(json_of("[1, 2.5, {'a': [true]}]"), json!([1, 2.5, {"a": [true]}]));
    assert_eq!(json_of("self.spec.foo__dash__bar"), json!(1));
}

#[test]
fn optional_syntax_is_understood() {
    assert_eq!(json_of("self.spec.?mtu.orValue(1500)"), json!(1500));
    assert_eq!(json_of("[?self.spec.?mtu, 1]"), json!([1]));
    assert_eq!(json_of("{?'mtu': self.spec.?mtu, 'a': 1}"), json!({"a": 1}));
    assert_eq!(json_of("self.?spec.cidr.value()"), json!("10.0.0.0/8"));
    assert_eq!(json_of("self.spec.ports[?9].hasValue()"), json!(false));
    assert_eq!(to_json(&eval("self.spec.?mtu").unwrap()), Ok(None));
}

#[test]
fn loops_go_through_map_keys_in_order() {
    assert_eq!(json_of("{'b': 1, 'a': 2, 'c': 3}.map(k, k)"), json!(["a", "b", "c"]));
    assert_eq!(json_of("{'b': 1, 'a': 2}.transformList(k, v, v)"), json!([2, 1]));
    assert_eq!(json_of("['x', 'y'].transformMap(i, v, i > 0, v)"), json!({"1": "y"}));
}

#[test]
fn an_error_that_another_operand_overrules_is_none() {
    assert_eq!(json_of("1 / 0 > 0 || true"), json!(true));
    assert_eq!(json_of("[0, 1].exists(x, 1 / x > 0)"), json!(true));
    assert_eq!(json_of("[0, 1].all(x, 1 / x > 1)"), json!(false));
    assert!(eval("[0, 1].all(x, 1 / x > 0)").is_err());
}

#[test]
fn an_absent_field_is_named_with_its_object() {
    assert_eq!(
        fault("1 + self.spec.gatway.size()"),
        ("`self.spec` has no field `gatway`".into(), "self.spec.gatway".into())
    );
    assert_eq!(fault("self.metadata.labels['b'] == ''").0, "`self.metadata.labels` has no key `b`");
    assert_eq!(fault("[self.spec.ports[2]]").1, "self.spec.ports[2]");
    assert_eq!(fault("self.spec.nothing.x").0, "`self.spec.nothing` is null, it has no field `x`");
    assert_eq!(fault("true && self.spec.cidr").0, "`self.spec.cidr` is a string, not a bool");
    assert_eq!(fault("nothing").0, "there is no variable `nothing` here");
}

#[test]
fn a_wrong_argument_is_told_with_what_the_function_takes() {
    let (message, place) = fault("'a' + size(1)");
    assert_eq!(place, "size(1)");
    assert!(message.starts_with("there is no `size(int)`, only `size(string) -> int`"), "{message}");
    assert_eq!(fault("1 + 'a'").0, "`+` does not work on int and string");
    assert_eq!(fault("nope(1)").0, "there is no function `nope`");
}

#[test]
fn ranges_cover_whole_sub_expressions() {
    for (source, part) in [
        ("('é' + x.y)[0] == 1", "('é' + x.y)[0] == 1"),
        ("f(a, b.c(1)) + 2", "f(a, b.c(1)) + 2"),
        ("x.map(y, y + 1)", "x.map(y, y + 1)"),
        ("has(a.b)", "has(a.b)"),
        ("a.?b", "a.?b"),
        ("-1", "-1"),
        ("optional.of(1)", "optional.of(1)"),
        ("{'a': 1}", "{'a': 1}"),
        ("(a + b).c(d)", "(a + b).c(d)"),
    ] {
        let expr = Expr::parse(source).unwrap();
        assert_eq!(&source[expr.range_of(expr.ast().id).unwrap()], part);
    }
}

#[test]
fn reads_are_the_chains_from_free_names() {
    let reads =
        |source: &str| Expr::parse(source).unwrap().reads().iter().map(|chain| chain.join(".")).collect::<Vec<_>>();
    assert_eq!(
        reads("self.spec.cidr + resources.gateway.spec.?clusterIP.orValue('')"),
        ["resources.gateway.spec.clusterIP", "self.spec.cidr"]
    );
    assert_eq!(reads("has(self.spec.x) ? self['a b'] : self.items[0].name"), ["self.a b", "self.items", "self.spec.x"]);
    assert_eq!(reads("self.spec.ports.map(p, p.name + q)"), ["q", "self.spec.ports"]);
    assert_eq!(reads("resources.?gw.optMap(g, g.spec)"), ["resources.gw"]);
    assert_eq!(reads("type(x) == string && optional.none().hasValue()"), ["x"]);
}

#[test]
fn mistakes_are_explained_without_jargon() {
    let fault = |source: &str| {
        let fault = Expr::parse(source).unwrap_err().remove(0);
        let place = source[fault.range.clone()].to_owned();
        (fault.message, place, fault.help.unwrap_or_default())
    };
    let contains = |source: &str, message: &str, place: &str, help: &str| {
        let (m, p, h) = fault(source);
        assert!(m.contains(message) && p == place && h.contains(help), "{source}: {m} | {p} | {h}");
    };
    contains("a = b", "`=` is not an operator", "=", "`==`");
    contains("a === b", "one `=` too many", "=", "`==`");
    contains("a & b", "`&`", "&", "`&&`");
    contains("a | b", "`|`", "|", "`||`");
    contains("a and b", "`and`", "and", "`&&`");
    contains("not a", "`not`", "not", "`!`");
    contains("x not in [1]", "`not in`", "not", "!(x in list)");
    contains("${a}", "inside one already", "$", "");
    contains("'abc", "no closing quote", "'", "close it");
    contains("f(a", "never closed", "(", "add `)`");
    contains("f(a]", "expected `)`", "]", "");
    contains("a)", "closes nothing", ")", "");
    contains("if a", "reserved", "if", "? this : that");
    contains("a b", "expected an operator between `a` and `b`", "b", "");
    contains("'a' 'b'", "expected an operator", "'b'", "`+`");
    contains("1 +", "ends too early", "+", "");
    contains("1 + * 2", "expected a value after `+`, found `*`", "*", "");
    contains("a.'b'", "expected a field name", "'b'", "object['key']");
    contains("", "empty", "", "");
    contains("has(a)", "takes a field", "a", "'key' in object");
    contains("[1].map(x.y, 1)", "plain name", ".", "");
    contains("99999999999999999999", "64 bits", "99999999999999999999", "");
    contains(r"'a\d'", "escape", r"\d", r"`\\`");
    contains("True", "not a word", "True", "`true`");
    contains("“a”", "quote", "“", "'");
}

#[test]
fn no_expression_is_too_deep_for_the_stack() {
    for source in [
        "(".repeat(5000) + "1" + &")".repeat(5000),
        "!".repeat(5000) + "true",
        "1".to_owned() + &"+1".repeat(8000),
        "a".to_owned() + &".a".repeat(8000),
        "true?".repeat(4000) + "1",
    ] {
        assert!(Expr::parse(&source).is_err());
    }
    let long = "a.b.c == 'x' && ".repeat(400) + "true";
    assert!(Expr::parse(&long).is_ok());
}

#[test]
fn loops_and_growth_are_bounded() {
    let twenty = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]";
    let mut nested = "true".to_owned();
    for variable in ["a", "b", "c", "d", "e", "f"] {
        nested = format!("{twenty}.all({variable}, {nested})");
    }
    let fault = eval(&format!("false && false || {nested}")).unwrap_err();
    assert!(fault.message.contains("1000000 evaluation steps"), "{}", fault.message);
    let mut doubled = "'0123456789'".to_owned();
    for _ in 0..40 {
        doubled = format!("[{doubled}].map(x, x + x)[0]");
    }
    assert!(eval(&doubled).unwrap_err().message.contains("16 MiB"));
}
