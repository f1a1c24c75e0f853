//! Quantities: `500m`, `1Gi`, `1e3`. A quantity is held as Kubernetes holds it, a decimal or, while it fits, a 64-bit
//! number with a power of ten, because that decides what `isInteger` and `asInteger` answer.

use std::cmp::Ordering;

use cel::Value;
use cel::objects::Opaque;

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::value::{opaque, shorten};

pub(super) static LIBRARY: Library = Library { name: "quantity", kubernetes: true, entries: ENTRIES };

/// A quantity: `number × 10^scale`.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    number: i128,
    scale: i32,
    /// Whether Kubernetes keeps it as a 64-bit number.
    small: bool,
    notation: Notation,
}

/// The kind of suffix that a quantity is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// `k`, `M`, `m`, …
    Decimal,
    /// `Ki`, `Mi`, …
    Binary,
    /// `e3`
    Exponent,
}

impl Opaque for Quantity {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.Quantity"
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

const ENTRIES: &[Entry] = &[
    entry(
        "quantity",
        &["quantity(string) -> kubernetes.Quantity"],
        "The quantity that the text is: a decimal with a suffix of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an \
         exponent.",
        &[("quantity('1k') == quantity('1000')", "true"), ("quantity('1Gi').asInteger()", "1073741824")],
        |args| {
            args.count(1)?;
            parsed(args.string(0)?).map(opaque)
        },
    ),
    entry(
        "isQuantity",
        &["isQuantity(string) -> bool"],
        "Whether the text is a quantity.",
        &[("isQuantity('1.5Gi')", "true"), ("isQuantity('1.5 Gi')", "false")],
        |args| {
            args.count(1)?;
            Ok(Value::Bool(Quantity::parse(args.string(0)?).is_some()))
        },
    ),
    entry(
        "isInteger",
        &["<kubernetes.Quantity>.isInteger() -> bool"],
        "Whether `asInteger` can answer.",
        &[("quantity('1k').isInteger()", "true"), ("quantity('500m').isInteger()", "false")],
        |args| {
            args.count(1)?;
            Ok(Value::Bool(args.of::<Quantity>(0)?.as_integer().is_some()))
        },
    ),
    entry(
        "asInteger",
        &["<kubernetes.Quantity>.asInteger() -> int"],
        "The quantity as an int; an error where it is none.",
        &[("quantity('50k').asInteger()", "50000")],
        |args| {
            args.count(1)?;
            let integer = args.of::<Quantity>(0)?.as_integer();
            integer.map(Value::Int).ok_or_else(|| Failure::new("the quantity is not an integer of 64 bits"))
        },
    ),
    entry(
        "asApproximateFloat",
        &["<kubernetes.Quantity>.asApproximateFloat() -> double"],
        "The quantity as a double.",
        &[("quantity('500m').asApproximateFloat()", "0.5")],
        |args| {
            args.count(1)?;
            Ok(Value::Float(args.of::<Quantity>(0)?.as_float()))
        },
    ),
    entry(
        "sign",
        &["sign(kubernetes.Quantity) -> int"],
        "1 when it is positive, -1 when it is negative, else 0.",
        &[("sign(quantity('-1'))", "-1")],
        |args| {
            args.count(1)?;
            Ok(Value::Int(args.of::<Quantity>(0)?.number.signum().try_into().unwrap_or(0)))
        },
    ),
    entry(
        "add",
        &[
            "<kubernetes.Quantity>.add(kubernetes.Quantity) -> kubernetes.Quantity",
            "<kubernetes.Quantity>.add(int) -> kubernetes.Quantity",
        ],
        "The sum.",
        &[
            ("quantity('1k').add(quantity('1')) == quantity('1001')", "true"),
            ("quantity('1k').add(1).asInteger()", "1001"),
        ],
        |args| sum(args, 1),
    ),
    entry(
        "sub",
        &[
            "<kubernetes.Quantity>.sub(kubernetes.Quantity) -> kubernetes.Quantity",
            "<kubernetes.Quantity>.sub(int) -> kubernetes.Quantity",
        ],
        "The difference.",
        &[("quantity('1k').sub(1).asInteger()", "999")],
        |args| sum(args, -1),
    ),
    entry(
        "isGreaterThan",
        &["<kubernetes.Quantity>.isGreaterThan(kubernetes.Quantity) -> bool"],
        "Whether it is greater than the other one.",
        &[("quantity('200M').isGreaterThan(quantity('0.1G'))", "true")],
        |args| compared(args, |order| Value::Bool(order == Ordering::Greater)),
    ),
    entry(
        "isLessThan",
        &["<kubernetes.Quantity>.isLessThan(kubernetes.Quantity) -> bool"],
        "Whether it is less than the other one.",
        &[("quantity('1M').isLessThan(quantity('1Mi'))", "true")],
        |args| compared(args, |order| Value::Bool(order == Ordering::Less)),
    ),
    entry(
        "compareTo",
        &["<kubernetes.Quantity>.compareTo(kubernetes.Quantity) -> int"],
        "0 when the two are equal, 1 when this one is greater, -1 when it is less.",
        &[("quantity('1000m').compareTo(quantity('1'))", "0")],
        |args| compared(args, |order| Value::Int(order as i64)),
    ),
];

fn parsed(source: &str) -> Result<Quantity, Failure> {
    Quantity::parse(source)
        .ok_or_else(|| Failure::new(format!("`{}` is not a quantity such as `500m` or `1Gi`", shorten(source))))
}

fn compared(args: &Args<'_>, answer: fn(Ordering) -> Value) -> Result<Value, Failure> {
    args.count(2)?;
    Ok(answer(args.of::<Quantity>(0)?.compare(args.of::<Quantity>(1)?)))
}

fn sum(args: &Args<'_>, sign: i128) -> Result<Value, Failure> {
    args.count(2)?;
    let other = match args.value(1)? {
        Value::Int(i) => Quantity { number: i128::from(*i), scale: 0, small: true, notation: Notation::Exponent },
        _ => *args.of::<Quantity>(1)?,
    };
    let sum = args.of::<Quantity>(0)?.plus(&other, sign);
    sum.map(opaque).ok_or_else(|| Failure::new("the sum of the quantities is too large"))
}

fn power_of_ten(exponent: i32) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

impl Quantity {
    /// The quantity that a text is. Digits beyond a billionth are rounded up.
    pub(super) fn parse(source: &str) -> Option<Self> {
        let (negative, unsigned) = match source.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, source.strip_prefix('+').unwrap_or(source)),
        };
        let significant = unsigned.trim_start_matches('0');
        if significant.is_empty() {
            // `+` and `-` alone are zero to Kubernetes too.
            return (!source.is_empty()).then_some(Self {
                number: 0,
                scale: 0,
                small: true,
                notation: Notation::Decimal,
            });
        }
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (whole, rest) = significant.split_at(digits(significant));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        let unit = Unit::parse(suffix)?;
        let whole = if whole.is_empty() { "0" } else { whole };
        let sign = if negative { -1 } else { 1 };
        Self::small(whole, fraction, unit, sign).or_else(|| Self::large(whole, fraction, unit, sign))
    }

    /// The fast form, where Kubernetes takes it.
    fn small(whole: &str, fraction: &str, unit: Unit, sign: i128) -> Option<Self> {
        let (len, decimals) = (i32::try_from(whole.len()).ok()?, i32::try_from(fraction.len()).ok()?);
        let (scale, multiplier, room) = match unit {
            Unit::Decimal(exponent) | Unit::Exponent(exponent) => (exponent, 1, 18 - len - decimals),
            Unit::Binary(exponent) if decimals == 0 => {
                (0, 1_i64.checked_shl(exponent)?, 15 - len - i32::try_from(exponent).ok()? * 3 / 10 - 1)
            }
            Unit::Binary(_) => return None,
        };
        let scale = scale.checked_sub(decimals)?;
        if room < 0 || scale < -9 {
            return None;
        }
        let number: i64 = format!("{whole}{fraction}").parse().ok()?;
        Some(Self {
            number: i128::from(number.checked_mul(multiplier)?) * sign,
            scale,
            small: true,
            notation: unit.notation(),
        })
    }

    fn large(whole: &str, fraction: &str, unit: Unit, sign: i128) -> Option<Self> {
        let mut number: i128 = format!("{whole}{fraction}").parse().ok()?;
        let mut scale = i32::try_from(fraction.len()).ok()?.checked_neg()?;
        match unit {
            Unit::Decimal(exponent) | Unit::Exponent(exponent) => scale = scale.checked_add(exponent)?,
            Unit::Binary(exponent) => number = number.checked_mul(1_i128.checked_shl(exponent)?)?,
        }
        if scale < -9 {
            let divisor = power_of_ten(-9 - scale);
            number = divisor.map_or(i128::from(number > 0), |divisor| (number + divisor - 1).div_euclid(divisor));
            scale = -9;
        }
        let notation = unit.notation();
        let mut quantity = Self { number, scale, small: false, notation };
        let limit = Self { number: i128::from(i64::MAX), scale: 0, small: false, notation };
        if matches!(unit, Unit::Binary(_)) && quantity.compare(&limit) == Ordering::Greater {
            quantity = limit;
        }
        quantity.number *= sign;
        Some(quantity)
    }

    fn as_integer(&self) -> Option<i64> {
        if !self.small || self.scale < 0 {
            return None;
        }
        i64::try_from(self.number.checked_mul(power_of_ten(self.scale)?)?).ok()
    }

    #[allow(clippy::cast_precision_loss)]
    fn as_float(&self) -> f64 {
        if self.scale == 0 { self.number as f64 } else { self.number as f64 * 10_f64.powi(self.scale) }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let (a, b) = (self.number, other.number);
        if self.scale < other.scale {
            return other.compare(self).reverse();
        }
        // Numbers too large to align are larger than any that are not, on their side of zero.
        match power_of_ten(self.scale - other.scale).and_then(|factor| a.checked_mul(factor)) {
            Some(a) => a.cmp(&b),
            None => a.cmp(&0).then(Ordering::Less),
        }
    }

    fn plus(&self, other: &Self, sign: i128) -> Option<Self> {
        let scale = self.scale.min(other.scale);
        let align = |quantity: &Self| quantity.number.checked_mul(power_of_ten(quantity.scale - scale)?);
        let number = match (self.number, other.number) {
            (_, 0) => return Some(*self),
            (0, _) => return Some(Self { number: other.number.checked_mul(sign)?, ..*other }),
            _ => align(self)?.checked_add(align(other)?.checked_mul(sign)?)?,
        };
        let fits = |quantity: &Self| align(quantity).is_some_and(|number| i64::try_from(number).is_ok());
        let small = self.small && other.small && fits(self) && fits(other) && i64::try_from(number).is_ok();
        Some(Self { number, scale, small, notation: self.notation })
    }
}

impl std::fmt::Display for Quantity {
    /// The canonical form: a whole number and the largest suffix of the kind that the quantity was written with.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.number == 0 {
            return f.write_str("0");
        }
        let whole = if self.scale >= 0 {
            power_of_ten(self.scale).and_then(|factor| self.number.checked_mul(factor))
        } else {
            power_of_ten(-self.scale).filter(|factor| self.number % factor == 0).map(|factor| self.number / factor)
        };
        if self.notation == Notation::Binary
            && let Some(mut whole) = whole.filter(|whole| whole.unsigned_abs() >= 1024)
        {
            let mut suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].into_iter().peekable();
            while whole % 1024 == 0 && suffixes.len() > 1 {
                whole /= 1024;
                suffixes.next();
            }
            return write!(f, "{whole}{}", suffixes.peek().unwrap_or(&""));
        }
        let (mut number, mut exponent) = (self.number, self.scale);
        while number % 10 == 0 {
            number /= 10;
            exponent += 1;
        }
        // Whole thousands: what is beyond them goes back into the number.
        let beyond = exponent.rem_euclid(3);
        number = number.saturating_mul(power_of_ten(beyond).unwrap_or(1));
        exponent -= beyond;
        let suffix = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        match usize::try_from(exponent / 3 + 3).ok().and_then(|index| suffix.get(index)) {
            Some(suffix) if self.notation != Notation::Exponent || exponent == 0 => write!(f, "{number}{suffix}"),
            _ => write!(f, "{number}e{exponent}"),
        }
    }
}

/// What a quantity's suffix multiplies by: a power of ten or of two.
#[derive(Clone, Copy)]
enum Unit {
    Decimal(i32),
    Binary(u32),
    /// A power of ten, written as an exponent.
    Exponent(i32),
}

impl Unit {
    fn parse(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            other => Self::Exponent(other.strip_prefix(['e', 'E'])?.parse().ok()?),
        })
    }

    fn notation(self) -> Notation {
        match self {
            Self::Decimal(_) => Notation::Decimal,
            Self::Binary(_) => Notation::Binary,
            Self::Exponent(_) => Notation::Exponent,
        }
    }
}
