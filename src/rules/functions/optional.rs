//! Optional values: what `.?field`, `[?index]` and `optMap` give.

use cel::Value;

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::value::{as_optional, optional};

pub(super) static LIBRARY: Library = Library { name: "optional", kubernetes: true, entries: ENTRIES };

const ENTRIES: &[Entry] = &[
    entry(
        "optional.of",
        &["optional.of(A) -> optional<A>"],
        "An optional that holds the value.",
        &[("optional.of(1).value()", "1")],
        |args| {
            args.count(1)?;
            Ok(optional(Some(args.value(0)?.clone())))
        },
    ),
    entry(
        "optional.none",
        &["optional.none() -> optional<A>"],
        "An optional without a value: as a manifest's value it leaves the key out.",
        &[("optional.none().hasValue()", "false")],
        |args| {
            args.count(0)?;
            Ok(optional(None))
        },
    ),
    entry(
        "optional.ofNonZeroValue",
        &["optional.ofNonZeroValue(A) -> optional<A>"],
        "An optional that holds the value unless it is zero, empty, false or null.",
        &[("optional.ofNonZeroValue('').hasValue()", "false"), ("optional.ofNonZeroValue('a').value()", "'a'")],
        |args| {
            args.count(1)?;
            let value = args.value(0)?;
            let zero = value.is_zero() || matches!(as_optional(value), Some(None));
            Ok(optional(if zero { None } else { Some(value.clone()) }))
        },
    ),
    entry(
        "hasValue",
        &["<optional<A>>.hasValue() -> bool"],
        "Whether the optional holds a value.",
        &[("{'a': 1}.?a.hasValue()", "true")],
        |args| {
            args.count(1)?;
            Ok(Value::Bool(of(args, 0)?.is_some()))
        },
    ),
    entry(
        "value",
        &["<optional<A>>.value() -> A"],
        "The value that the optional holds; an error if it holds none.",
        &[("{'a': 1}.?a.value()", "1")],
        |args| {
            args.count(1)?;
            of(args, 0)?.cloned().ok_or_else(|| Failure::new("the optional holds no value"))
        },
    ),
    entry(
        "or",
        &["<optional<A>>.or(optional<A>) -> optional<A>"],
        "The optional itself if it holds a value, else the other one.",
        &[("{}.?a.or({'b': 2}.?b).value()", "2")],
        |args| {
            args.count(2)?;
            of(args, 1)?;
            Ok(args.value(usize::from(of(args, 0)?.is_none()))?.clone())
        },
    ),
    entry(
        "orValue",
        &["<optional<A>>.orValue(A) -> A"],
        "The value that the optional holds, or the given one.",
        &[("{}.?a.orValue('none')", "'none'")],
        |args| {
            args.count(2)?;
            of(args, 0)?.map_or_else(|| args.value(1).cloned(), |value| Ok(value.clone()))
        },
    ),
];

fn of<'a>(args: &Args<'a>, index: usize) -> Result<Option<&'a Value>, Failure> {
    as_optional(args.value(index)?).ok_or(Failure::NoOverload)
}
