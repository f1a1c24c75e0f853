//! Semantic versions.

use std::cmp::Ordering;

use cel::Value;
use cel::objects::Opaque;

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::value::{opaque, shorten};

pub(super) static LIBRARY: Library = Library { name: "semver", kubernetes: true, entries: ENTRIES };

/// A version as a value.
#[derive(Debug, Clone)]
pub struct Version(semver::Version);

impl Opaque for Version {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.Semver"
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl Version {
    /// By precedence: what follows a `+` does not count.
    fn compare(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

const ENTRIES: &[Entry] = &[
    entry(
        "semver",
        &["semver(string) -> kubernetes.Semver", "semver(string, bool) -> kubernetes.Semver"],
        "The version that the text is; with `true`, also one with a `v` before it, with fewer parts or with leading zeros.",
        &[("semver('1.2.3').minor()", "2"), ("semver('v1.2', true).patch()", "0")],
        |args| {
            parse(args)?.map(opaque).ok_or_else(|| {
                let source = args.string(0).unwrap_or_default();
                Failure::new(format!("`{}` is not a semantic version such as `1.2.3`", shorten(source)))
            })
        },
    ),
    entry(
        "isSemver",
        &["isSemver(string) -> bool", "isSemver(string, bool) -> bool"],
        "Whether the text is a version.",
        &[("isSemver('1.2.3-rc.1')", "true"), ("isSemver('v1.2')", "false"), ("isSemver('v1.2', true)", "true")],
        |args| Ok(Value::Bool(parse(args)?.is_some())),
    ),
    entry(
        "major",
        &["<kubernetes.Semver>.major() -> int"],
        "The first number.",
        &[("semver('1.2.3').major()", "1")],
        |args| number(args, |version| version.major),
    ),
    entry(
        "minor",
        &["<kubernetes.Semver>.minor() -> int"],
        "The second number.",
        &[("semver('1.2.3').minor()", "2")],
        |args| number(args, |version| version.minor),
    ),
    entry(
        "patch",
        &["<kubernetes.Semver>.patch() -> int"],
        "The third number.",
        &[("semver('1.2.3').patch()", "3")],
        |args| number(args, |version| version.patch),
    ),
    entry(
        "isGreaterThan",
        &["<kubernetes.Semver>.isGreaterThan(kubernetes.Semver) -> bool"],
        "Whether it is a later version than the other one.",
        &[("semver('1.10.0').isGreaterThan(semver('1.9.0'))", "true")],
        |args| compared(args, |order| Value::Bool(order == Ordering::Greater)),
    ),
    entry(
        "isLessThan",
        &["<kubernetes.Semver>.isLessThan(kubernetes.Semver) -> bool"],
        "Whether it is an earlier version than the other one.",
        &[("semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", "true")],
        |args| compared(args, |order| Value::Bool(order == Ordering::Less)),
    ),
    entry(
        "compareTo",
        &["<kubernetes.Semver>.compareTo(kubernetes.Semver) -> int"],
        "0 when the two are equal, 1 when this one is later, -1 when it is earlier.",
        &[("semver('1.0.0').compareTo(semver('1.0.0+build'))", "0")],
        |args| compared(args, |order| Value::Int(order as i64)),
    ),
];

fn number(args: &Args<'_>, part: fn(&semver::Version) -> u64) -> Result<Value, Failure> {
    args.count(1)?;
    Ok(Value::Int(i64::try_from(part(&args.of::<Version>(0)?.0)).unwrap_or(i64::MAX)))
}

fn compared(args: &Args<'_>, answer: fn(Ordering) -> Value) -> Result<Value, Failure> {
    args.count(2)?;
    Ok(answer(args.of::<Version>(0)?.compare(args.of::<Version>(1)?)))
}

fn parse(args: &Args<'_>) -> Result<Option<Version>, Failure> {
    let source = args.string(0)?;
    let lenient = match args.values {
        [_] => false,
        [_, Value::Bool(lenient)] => *lenient,
        _ => return Err(Failure::NoOverload),
    };
    let source = if lenient { normalized(source) } else { Some(source.to_owned()) };
    Ok(source.and_then(|source| semver::Version::parse(&source).ok()).map(Version))
}

/// The strict form of a lenient version.
fn normalized(source: &str) -> Option<String> {
    let source = source.strip_prefix('v').unwrap_or(source);
    let mut parts: Vec<String> = source
        .splitn(3, '.')
        .map(|part| match part.trim_start_matches('0') {
            _ if part.len() <= 1 => part.to_owned(),
            trimmed if trimmed.starts_with(|c: char| c.is_ascii_digit()) => trimmed.to_owned(),
            trimmed => format!("0{trimmed}"),
        })
        .collect();
    if parts.len() < 3 && parts.last()?.contains(['+', '-']) {
        return None;
    }
    parts.resize(3, "0".to_owned());
    Some(parts.join("."))
}
