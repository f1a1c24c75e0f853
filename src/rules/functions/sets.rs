//! Lists as sets: order and repetition do not count.

use cel::Value;

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::value::equal;

pub(super) static LIBRARY: Library = Library { name: "sets", kubernetes: true, entries: ENTRIES };

const ENTRIES: &[Entry] = &[
    entry(
        "sets.contains",
        &["sets.contains(list<A>, list<A>) -> bool"],
        "Whether every element of the second list is in the first.",
        &[("sets.contains([1, 2, 3], [3, 1])", "true"), ("sets.contains([], [])", "true")],
        |args| {
            args.count(2)?;
            contains(args, 0, 1).map(Value::Bool)
        },
    ),
    entry(
        "sets.equivalent",
        &["sets.equivalent(list<A>, list<A>) -> bool"],
        "Whether each list holds every element of the other.",
        &[("sets.equivalent([1, 1, 2], [2, 1])", "true")],
        |args| {
            args.count(2)?;
            Ok(Value::Bool(contains(args, 0, 1)? && contains(args, 1, 0)?))
        },
    ),
    entry(
        "sets.intersects",
        &["sets.intersects(list<A>, list<A>) -> bool"],
        "Whether some element is in both lists.",
        &[("sets.intersects([1, 2], [2, 3])", "true"), ("sets.intersects([1], [])", "false")],
        |args| {
            args.count(2)?;
            for item in args.list(0)?.iter() {
                if is_in(args, 1, item)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        },
    ),
];

fn is_in(args: &Args<'_>, list: usize, item: &Value) -> Result<bool, Failure> {
    for other in args.list(list)?.iter() {
        if equal(item, other, args.budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains(args: &Args<'_>, list: usize, part: usize) -> Result<bool, Failure> {
    args.list(list)?;
    for item in args.list(part)?.iter() {
        if !is_in(args, list, item)? {
            return Ok(false);
        }
    }
    Ok(true)
}
