//! Timestamps and durations: construction, parts, and the texts that Kubernetes gives them.

use std::str::FromStr;

use cel::Value;
use chrono::{DateTime, Datelike, FixedOffset, SecondsFormat, TimeDelta, TimeZone, Timelike, Utc};

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::value::shorten;

pub(super) static LIBRARY: Library = Library { name: "time", kubernetes: true, entries: ENTRIES };

/// A part of a timestamp, read in UTC or in the time zone given.
macro_rules! part {
    ($name:literal, $doc:literal, $examples:expr, $part:expr) => {
        entry(
            $name,
            &[concat!("<timestamp>.", $name, "() -> int"), concat!("<timestamp>.", $name, "(string) -> int")],
            $doc,
            $examples,
            |args| part(args, $part),
        )
    };
}

/// A part of a timestamp that a duration has too.
macro_rules! part_or_span {
    ($name:literal, $doc:literal, $examples:expr, $part:expr, $span:expr) => {
        entry(
            $name,
            &[
                concat!("<timestamp>.", $name, "() -> int"),
                concat!("<timestamp>.", $name, "(string) -> int"),
                concat!("<duration>.", $name, "() -> int"),
            ],
            $doc,
            $examples,
            |args| span(args, $span).unwrap_or_else(|| part(args, $part)),
        )
    };
}

const ENTRIES: &[Entry] = &[
    entry(
        "timestamp",
        &["timestamp(string) -> timestamp", "timestamp(int) -> timestamp", "timestamp(timestamp) -> timestamp"],
        "The moment that an RFC 3339 text, or a number of seconds since 1970, stands for.",
        &[("timestamp('2024-02-29T12:00:00Z').getDate()", "29"), ("timestamp(0)", "timestamp('1970-01-01T00:00:00Z')")],
        to_timestamp,
    ),
    entry(
        "duration",
        &["duration(string) -> duration", "duration(duration) -> duration"],
        "A span of time such as `1h30m`, `-2.5s` or `100ms`; units are h, m, s, ms, us and ns.",
        &[("string(duration('1h30m'))", "'5400s'")],
        to_duration,
    ),
    part!(
        "getFullYear",
        "The year, in UTC or in the time zone given (`'Europe/Paris'`, `'+02:00'`).",
        &[("timestamp('2024-02-29T00:00:00Z').getFullYear()", "2024")],
        |at| i64::from(at.year())
    ),
    part!("getMonth", "The month, January being 0.", &[("timestamp('2024-02-29T00:00:00Z').getMonth()", "1")], |at| {
        i64::from(at.month0())
    }),
    part!(
        "getDayOfYear",
        "The day of the year, the first being 0.",
        &[("timestamp('2024-02-01T00:00:00Z').getDayOfYear()", "31")],
        |at| i64::from(at.ordinal0())
    ),
    part!(
        "getDayOfMonth",
        "The day of the month, the first being 0.",
        &[("timestamp('2024-02-01T00:00:00Z').getDayOfMonth()", "0")],
        |at| i64::from(at.day0())
    ),
    part!(
        "getDate",
        "The day of the month, the first being 1.",
        &[("timestamp('2024-02-01T00:00:00Z').getDate()", "1")],
        |at| i64::from(at.day())
    ),
    part!(
        "getDayOfWeek",
        "The day of the week, Sunday being 0.",
        &[("timestamp('2024-02-01T00:00:00Z').getDayOfWeek()", "4")],
        |at| i64::from(at.weekday().num_days_from_sunday())
    ),
    part_or_span!(
        "getHours",
        "The hour of a moment, or a duration in whole hours.",
        &[("duration('90m').getHours()", "1"), ("timestamp('2024-02-01T03:00:00Z').getHours('+02:00')", "5"),],
        |at| i64::from(at.hour()),
        TimeDelta::num_hours
    ),
    part_or_span!(
        "getMinutes",
        "The minute of a moment, or a duration in whole minutes.",
        &[("duration('90m').getMinutes()", "90")],
        |at| i64::from(at.minute()),
        TimeDelta::num_minutes
    ),
    part_or_span!(
        "getSeconds",
        "The second of a moment, or a duration in whole seconds.",
        &[("duration('90m').getSeconds()", "5400")],
        |at| i64::from(at.second()),
        TimeDelta::num_seconds
    ),
    part_or_span!(
        "getMilliseconds",
        "The millisecond of a moment, or a duration in whole milliseconds.",
        &[("timestamp('2024-02-01T03:00:00.123Z').getMilliseconds()", "123")],
        |at| i64::from(at.nanosecond() / 1_000_000),
        TimeDelta::num_milliseconds
    ),
];

fn part(args: &Args<'_>, part: fn(DateTime<FixedOffset>) -> i64) -> Result<Value, Failure> {
    let Value::Timestamp(at) = args.value(0)? else { return Err(Failure::NoOverload) };
    let at = match args.values.len() {
        1 => at.with_timezone(&Utc).fixed_offset(),
        2 => in_zone(*at, args.string(1)?)?,
        _ => return Err(Failure::NoOverload),
    };
    Ok(Value::Int(part(at)))
}

fn span(args: &Args<'_>, part: fn(&TimeDelta) -> i64) -> Option<Result<Value, Failure>> {
    match args.values {
        [Value::Duration(by)] => Some(Ok(Value::Int(part(by)))),
        _ => None,
    }
}

fn in_zone(at: DateTime<FixedOffset>, zone: &str) -> Result<DateTime<FixedOffset>, Failure> {
    let unknown = || Failure::new(format!("there is no time zone `{}`", shorten(zone)));
    let Some((hours, minutes)) = zone.split_once(':') else {
        let zone = if zone.is_empty() { "UTC" } else { zone };
        let zone = chrono_tz::Tz::from_str(zone).map_err(|_| unknown())?;
        return Ok(at.with_timezone(&zone).fixed_offset());
    };
    let hours: i32 = hours.parse().map_err(|_| unknown())?;
    let minutes: i32 = minutes.parse().map_err(|_| unknown())?;
    let minutes = if zone.starts_with('-') { minutes.checked_neg() } else { Some(minutes) };
    let seconds = minutes.and_then(|minutes| hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60));
    let offset = seconds.and_then(FixedOffset::east_opt).ok_or_else(unknown)?;
    Ok(at.with_timezone(&offset))
}

/// The first and the last second that a timestamp can be: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A timestamp in the range that CEL has.
pub(crate) fn timestamp(at: Option<DateTime<FixedOffset>>) -> Result<Value, Failure> {
    at.filter(|at| SECONDS.contains(&at.timestamp()))
        .map(Value::Timestamp)
        .ok_or_else(|| Failure::new("the timestamp is outside the years 1 to 9999"))
}

/// The sum of two durations; a duration holds as many nanoseconds as an int.
pub(crate) fn duration_sum(a: Option<TimeDelta>, b: Option<TimeDelta>) -> Result<Value, Failure> {
    let sum = a.zip(b).and_then(|(a, b)| a.checked_add(&b));
    sum.filter(|sum| sum.num_nanoseconds().is_some())
        .map(Value::Duration)
        .ok_or_else(|| Failure::new("the duration is too long: the longest is about 292 years"))
}

fn to_timestamp(args: &Args<'_>) -> Result<Value, Failure> {
    match args.values {
        [Value::Timestamp(at)] => Ok(Value::Timestamp(*at)),
        [Value::Int(seconds)] => timestamp(Utc.timestamp_opt(*seconds, 0).single().map(|at| at.fixed_offset())),
        [Value::String(source)] => {
            let invalid = || {
                Failure::new(format!(
                    "`{}` is not an RFC 3339 timestamp such as `2024-02-29T12:00:00Z`",
                    shorten(source)
                ))
            };
            // The crate also takes a space or small letters, which Kubernetes refuses.
            if source.get(10..11) != Some("T") || source.contains(['t', 'z']) {
                return Err(invalid());
            }
            let at = DateTime::parse_from_rfc3339(source).map_err(|_| invalid())?;
            // The crate understands leap seconds; Kubernetes does not.
            if at.nanosecond() >= 1_000_000_000 {
                return Err(invalid());
            }
            timestamp(Some(at))
        }
        _ => Err(Failure::NoOverload),
    }
}

fn to_duration(args: &Args<'_>) -> Result<Value, Failure> {
    match args.values {
        [Value::Duration(by)] => Ok(Value::Duration(*by)),
        [Value::String(source)] => match parse_duration(source) {
            Some(nanoseconds) => Ok(Value::Duration(TimeDelta::nanoseconds(nanoseconds))),
            None => Err(Failure::new(format!("`{}` is not a duration such as `1h30m` or `2.5s`", shorten(source)))),
        },
        _ => Err(Failure::NoOverload),
    }
}

/// Go's `time.ParseDuration`, which Kubernetes uses: nanoseconds of a signed sequence of decimals with units.
fn parse_duration(source: &str) -> Option<i64> {
    let (negative, mut rest) = match source.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, source.strip_prefix('+').unwrap_or(source)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (whole, after) = rest.split_at(digits);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let unit_len = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_len);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()?.into() };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        // More digits than nanoseconds of an hour have cannot change the result.
        let fraction = fraction.get(..fraction.len().min(16)).unwrap_or_default();
        if !fraction.is_empty() {
            let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
            total = total.checked_add(fraction.parse::<i128>().ok()?.checked_mul(unit)? / scale)?;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// The text of a timestamp, as `string()` gives it.
pub(crate) fn timestamp_text(at: &DateTime<FixedOffset>) -> String {
    let text = at.to_rfc3339_opts(SecondsFormat::Nanos, true);
    // As many digits of the second as are needed.
    match text.split_once('.') {
        Some((before, after)) => {
            let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            let (digits, zone) = after.split_at(digits);
            let digits = digits.trim_end_matches('0');
            if digits.is_empty() { format!("{before}{zone}") } else { format!("{before}.{digits}{zone}") }
        }
        None => text,
    }
}

/// The text of a duration, as `string()` gives it: seconds, with as many decimals as a double of them needs.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn duration_text(by: &TimeDelta) -> String {
    let seconds = by.num_seconds() as f64 + f64::from(by.subsec_nanos()) / 1e9;
    format!("{seconds}s")
}
