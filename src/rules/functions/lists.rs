//! Lists: sums, extremes, positions, order, and parts.

use std::cmp::Ordering;

use cel::Value;

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::budget::Budget;
use crate::rules::expr::operators::{add, int};
use crate::rules::expr::value::{equal, list, order, type_name};

pub(super) static LIBRARY: Library = Library { name: "lists", kubernetes: true, entries: ENTRIES };

const ENTRIES: &[Entry] = &[
    entry(
        "isSorted",
        &[
            "<list<int>>.isSorted() -> bool",
            "<list<uint>>.isSorted() -> bool",
            "<list<double>>.isSorted() -> bool",
            "<list<bool>>.isSorted() -> bool",
            "<list<string>>.isSorted() -> bool",
            "<list<bytes>>.isSorted() -> bool",
            "<list<duration>>.isSorted() -> bool",
            "<list<timestamp>>.isSorted() -> bool",
        ],
        "Whether no element is smaller than the one before it.",
        &[("[1, 2, 2].isSorted()", "true"), ("['b', 'a'].isSorted()", "false")],
        is_sorted,
    ),
    entry(
        "sum",
        &[
            "<list<int>>.sum() -> int",
            "<list<uint>>.sum() -> uint",
            "<list<double>>.sum() -> double",
            "<list<duration>>.sum() -> duration",
        ],
        "The sum of the elements; 0 of none.",
        &[("[1, 2, 3].sum()", "6"), ("[duration('1m'), duration('1s')].sum()", "duration('61s')")],
        sum,
    ),
    entry(
        "min",
        &[
            "<list<int>>.min() -> int",
            "<list<uint>>.min() -> uint",
            "<list<double>>.min() -> double",
            "<list<bool>>.min() -> bool",
            "<list<string>>.min() -> string",
            "<list<bytes>>.min() -> bytes",
            "<list<duration>>.min() -> duration",
            "<list<timestamp>>.min() -> timestamp",
        ],
        "The smallest element; an error of an empty list.",
        &[("[3, 1, 2].min()", "1")],
        |args| extreme(args, Ordering::Greater),
    ),
    entry(
        "max",
        &[
            "<list<int>>.max() -> int",
            "<list<uint>>.max() -> uint",
            "<list<double>>.max() -> double",
            "<list<bool>>.max() -> bool",
            "<list<string>>.max() -> string",
            "<list<bytes>>.max() -> bytes",
            "<list<duration>>.max() -> duration",
            "<list<timestamp>>.max() -> timestamp",
        ],
        "The largest element; an error of an empty list.",
        &[("['a', 'c', 'b'].max()", "'c'")],
        |args| extreme(args, Ordering::Less),
    ),
    entry(
        "indexOf",
        &["<list<A>>.indexOf(A) -> int"],
        "The position of the first element that is equal, or -1.",
        &[("['a', 'b', 'b'].indexOf('b')", "1"), ("[1].indexOf(2)", "-1")],
        |args| position(args, false),
    ),
    entry(
        "lastIndexOf",
        &["<list<A>>.lastIndexOf(A) -> int"],
        "The position of the last element that is equal, or -1.",
        &[("['a', 'b', 'b'].lastIndexOf('b')", "2")],
        |args| position(args, true),
    ),
    entry(
        "slice",
        &["<list<A>>.slice(int, int) -> list<A>"],
        "The elements from the first position up to, but without, the second.",
        &[("[1, 2, 3, 4].slice(1, 3)", "[2, 3]")],
        slice,
    ),
    entry(
        "flatten",
        &["<list<list<A>>>.flatten() -> list<A>", "<list<dyn>>.flatten(int) -> list<dyn>"],
        "The list with the elements of the lists in it, one level deep or as many as given.",
        &[("[[1], [2, 3]].flatten()", "[1, 2, 3]"), ("[[[1], [2]], [[3]]].flatten(2)", "[1, 2, 3]")],
        flatten,
    ),
    entry(
        "sort",
        &[
            "<list<int>>.sort() -> list<int>",
            "<list<uint>>.sort() -> list<uint>",
            "<list<double>>.sort() -> list<double>",
            "<list<bool>>.sort() -> list<bool>",
            "<list<string>>.sort() -> list<string>",
            "<list<bytes>>.sort() -> list<bytes>",
            "<list<duration>>.sort() -> list<duration>",
            "<list<timestamp>>.sort() -> list<timestamp>",
        ],
        "The elements in ascending order; texts by their code points.",
        &[("['b', 'a', 'C'].sort()", "['C', 'a', 'b']")],
        |args| {
            args.count(1)?;
            let items = args.list(0)?;
            sorted(items, items, args.budget)
        },
    ),
    entry(
        "reverse",
        &["<list<A>>.reverse() -> list<A>"],
        "The elements in the opposite order.",
        &[("[1, 2, 3].reverse()", "[3, 2, 1]")],
        |args| {
            args.count(1)?;
            let items = args.list(0)?;
            args.budget.elements(items.len())?;
            Ok(list(items.iter().rev().cloned().collect()))
        },
    ),
    entry(
        "distinct",
        &["<list<A>>.distinct() -> list<A>"],
        "The elements without those that are equal to an earlier one.",
        &[("[2, 1, 2].distinct()", "[2, 1]")],
        distinct,
    ),
    entry(
        "lists.range",
        &["lists.range(int) -> list<int>"],
        "The list of the numbers from 0 up to, but without, the given one.",
        &[("lists.range(3)", "[0, 1, 2]"), ("lists.range(-1)", "[]")],
        |args| {
            args.count(1)?;
            let count = usize::try_from(args.int(0)?.max(0)).unwrap_or(usize::MAX);
            args.budget.elements(count)?;
            Ok(list((0..count).map(int).collect()))
        },
    ),
];

/// What the parser expands `sortBy` to.
pub(super) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

/// The code of [`SORT_BY_KEYS`].
pub(super) fn sort_by_keys(args: &Args<'_>) -> Result<Value, Failure> {
    args.count(2)?;
    sorted(args.list(0)?, args.list(1)?, args.budget)
}

/// The items in the order of their keys, which must all be of one type that has an order. Equal keys keep their places.
fn sorted(items: &[Value], keys: &[Value], budget: &Budget) -> Result<Value, Failure> {
    // n log n comparisons.
    budget.steps(keys.len().saturating_mul(usize::BITS as usize - keys.len().leading_zeros() as usize))?;
    budget.elements(items.len())?;
    if let Some(first) = keys.first() {
        if order(first, first).is_none() {
            return Err(Failure::new(format!("{} has no order, so it cannot be sorted", type_name(first))));
        }
        if keys.iter().any(|key| type_name(key) != type_name(first)) {
            return Err(Failure::new("the elements to sort must be of one type"));
        }
    }
    let mut pairs: Vec<(&Value, &Value)> = keys.iter().zip(items).collect();
    // NaN has no order; a total one keeps the sort from being arbitrary.
    pairs.sort_by(|(a, _), (b, _)| match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).unwrap_or_else(|| a.total_cmp(b)),
        _ => order(a, b).flatten().unwrap_or(Ordering::Equal),
    });
    Ok(list(pairs.into_iter().map(|(_, item)| item.clone()).collect()))
}

fn is_sorted(args: &Args<'_>) -> Result<Value, Failure> {
    args.count(1)?;
    let items = args.list(0)?;
    args.budget.steps(items.len())?;
    for pair in items.windows(2) {
        match order(&pair[0], &pair[1]) {
            None => return Err(Failure::NoOverload),
            Some(Some(Ordering::Greater)) => return Ok(Value::Bool(false)),
            Some(_) => {}
        }
    }
    Ok(Value::Bool(true))
}

fn sum(args: &Args<'_>) -> Result<Value, Failure> {
    args.count(1)?;
    let items = args.list(0)?;
    args.budget.steps(items.len())?;
    let Some((first, rest)) = items.split_first() else { return Ok(Value::Int(0)) };
    if !matches!(first, Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Duration(_)) {
        return Err(Failure::NoOverload);
    }
    rest.iter().try_fold(first.clone(), |sum, item| add(&sum, item, args.budget))
}

/// The element that no other one replaces; the other replaces it when `worse` is how it orders against the other.
fn extreme(args: &Args<'_>, worse: Ordering) -> Result<Value, Failure> {
    args.count(1)?;
    let items = args.list(0)?;
    args.budget.steps(items.len())?;
    let Some((mut best, rest)) = items.split_first() else {
        return Err(Failure::new("an empty list has neither a smallest nor a largest element"));
    };
    if order(best, best).is_none() {
        return Err(Failure::NoOverload);
    }
    for item in rest {
        match order(best, item) {
            None => return Err(Failure::NoOverload),
            Some(found) if found == Some(worse) => best = item,
            Some(_) => {}
        }
    }
    Ok(best.clone())
}

fn position(args: &Args<'_>, last: bool) -> Result<Value, Failure> {
    args.count(2)?;
    let (items, wanted) = (args.list(0)?, args.value(1)?);
    let mut found = None;
    for (at, item) in items.iter().enumerate() {
        if equal(item, wanted, args.budget)? {
            found = Some(at);
            if !last {
                break;
            }
        }
    }
    Ok(found.map_or(Value::Int(-1), int))
}

fn slice(args: &Args<'_>) -> Result<Value, Failure> {
    args.count(3)?;
    let (items, start, end) = (args.list(0)?, args.int(1)?, args.int(2)?);
    let part =
        usize::try_from(start).ok().zip(usize::try_from(end).ok()).and_then(|(start, end)| items.get(start..end));
    match part {
        Some(part) => {
            args.budget.elements(part.len())?;
            Ok(list(part.to_vec()))
        }
        None => Err(Failure::new(format!("there is no part from {start} to {end} in a list of {}", items.len()))),
    }
}

fn flatten(args: &Args<'_>) -> Result<Value, Failure> {
    let depth = match args.values.len() {
        1 => 1,
        2 => args.int(1)?,
        _ => return Err(Failure::NoOverload),
    };
    if depth < 0 {
        return Err(Failure::new("the number of levels must not be negative"));
    }
    let mut flat = Vec::new();
    flatten_into(args.list(0)?, depth, &mut flat, args.budget)?;
    Ok(list(flat))
}

fn flatten_into(items: &[Value], depth: i64, flat: &mut Vec<Value>, budget: &Budget) -> Result<(), Failure> {
    for item in items {
        match item {
            Value::List(inner) if depth > 0 => flatten_into(inner, depth - 1, flat, budget)?,
            other => {
                budget.elements(1)?;
                flat.push(other.clone());
            }
        }
    }
    Ok(())
}

fn distinct(args: &Args<'_>) -> Result<Value, Failure> {
    args.count(1)?;
    let mut unique: Vec<Value> = Vec::new();
    for item in args.list(0)?.iter() {
        let mut seen = false;
        for other in &unique {
            if equal(item, other, args.budget)? {
                seen = true;
                break;
            }
        }
        if !seen {
            args.budget.elements(1)?;
            unique.push(item.clone());
        }
    }
    Ok(list(unique))
}
