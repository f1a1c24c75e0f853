//! The types of the checker: what a CEL expression can be, whether one fits where another is wanted, and how they are
//! said to a person.
//!
//! Types of fields come from [`schema`](super::schema), types of functions from their [`signature`]s; `check` brings
//! them together.

pub mod signature;

use std::fmt;
use std::sync::Arc;

use super::schema::Schema;

/// What a CEL expression evaluates to, as far as it can be known without evaluating it.
#[derive(Debug, Clone)]
pub enum Type {
    /// A fault was already reported here: fits everything, so that one fault makes one message.
    Error,
    /// No value at all: the element type of `[]`. Fits everything.
    Never,
    /// Anything; only known when the rule runs.
    Dyn,
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// 64-bit signed integer.
    Int,
    /// 64-bit unsigned integer (`1u`).
    Uint,
    /// 64-bit floating point number.
    Double,
    /// Text.
    String,
    /// Bytes (`b'…'`).
    Bytes,
    /// `duration('1h')`
    Duration,
    /// `timestamp('2026-01-01T00:00:00Z')`
    Timestamp,
    /// A type as a value: `type(x)`.
    Type,
    /// A field with `x-kubernetes-int-or-string`.
    IntOrString,
    /// A list of elements of one type.
    List(Arc<Type>),
    /// A map from key to value.
    Map(Arc<Type>, Arc<Type>),
    /// A value that may be absent: `a.?b`.
    Optional(Arc<Type>),
    /// An object whose fields a schema declares.
    Object(Arc<Schema>),
    /// A type of the Kubernetes libraries that only functions know: `CIDR`, `IP`, `Quantity`, `URL`, `Semver`.
    Opaque(Arc<str>),
    /// `variables` or `resources` as a whole: a map whose members have types of their own.
    Space(&'static str),
    /// A type parameter of a signature: `A`.
    Param(Arc<str>),
}

impl Type {
    /// `list<element>`
    pub fn list(element: Self) -> Self {
        Self::List(Arc::new(element))
    }

    /// `map<string, value>`
    pub fn string_map(value: Self) -> Self {
        Self::Map(Arc::new(Self::String), Arc::new(value))
    }

    /// `optional<value>`; optionals do not nest when fields are selected from them.
    #[must_use]
    pub fn optional(value: Self) -> Self {
        match value {
            Self::Optional(_) | Self::Error => value,
            _ => Self::Optional(Arc::new(value)),
        }
    }

    /// The type inside an optional, or the type itself.
    pub fn unwrapped(&self) -> &Self {
        match self {
            Self::Optional(inner) => inner,
            other => other,
        }
    }

    /// Whether nothing can be said of it: anything may be done with such a value.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Error | Self::Never | Self::Dyn | Self::Space(_))
    }

    /// Whether it is one of the three kinds of numbers.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// Whether `<`, `<=`, `>` and `>=` are defined for it.
    pub fn is_ordered(&self) -> bool {
        self.is_number()
            || matches!(
                self,
                Self::Bool | Self::String | Self::Bytes | Self::Duration | Self::Timestamp | Self::IntOrString
            )
    }

    /// Whether two types are the same; objects are the same when they come from the same place of a schema.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.same(b),
            (Self::Map(ak, av), Self::Map(bk, bv)) => ak.same(bk) && av.same(bv),
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::Opaque(a), Self::Opaque(b)) | (Self::Param(a), Self::Param(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other) && self.is_simple(),
        }
    }

    fn is_simple(&self) -> bool {
        !matches!(
            self,
            Self::List(_) | Self::Map(..) | Self::Optional(_) | Self::Object(_) | Self::Opaque(_) | Self::Param(_)
        )
    }

    /// The type of a value that is one of two: the branches of `?:`, the elements of a list.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Error, _) | (_, Self::Error) => Self::Error,
            (Self::Never, known) | (known, Self::Never) => known.clone(),
            (Self::List(a), Self::List(b)) => Self::list(a.join(b)),
            (Self::Optional(a), Self::Optional(b)) => Self::Optional(Arc::new(a.join(b))),
            (Self::Map(ak, av), Self::Map(bk, bv)) => Self::Map(Arc::new(ak.join(bk)), Arc::new(av.join(bv))),
            (a, b) if a.same(b) => a.clone(),
            (Self::IntOrString, Self::Int | Self::String) | (Self::Int | Self::String, Self::IntOrString) => {
                Self::IntOrString
            }
            _ => Self::Dyn,
        }
    }

    /// Whether a value of one type can ever equal a value of the other.
    pub fn may_equal(&self, other: &Self) -> bool {
        if self.is_unknown() || other.is_unknown() || (self.is_number() && other.is_number()) {
            return true;
        }
        match (self, other) {
            (Self::Param(_), _) | (_, Self::Param(_)) | (Self::Object(_), Self::Object(_)) => true,
            (Self::IntOrString, b) | (b, Self::IntOrString) => {
                b.is_number() || matches!(b, Self::String | Self::IntOrString)
            }
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.may_equal(b),
            (Self::Map(ak, av), Self::Map(bk, bv)) => ak.may_equal(bk) && av.may_equal(bv),
            (Self::Object(_), Self::Map(key, _)) | (Self::Map(key, _), Self::Object(_)) => key.may_equal(&Self::String),
            _ => self.same(other),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let simple = match self {
            Self::Error | Self::Dyn => "dyn",
            Self::Never => "nothing",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "duration",
            Self::Timestamp => "timestamp",
            Self::Type => "type",
            Self::IntOrString => "int or string",
            Self::Object(_) => "object",
            Self::Opaque(name) | Self::Param(name) => name,
            Self::Space(_) => "map",
            Self::List(element) if matches!(**element, Self::Never) => "list",
            Self::Map(_, value) if matches!(**value, Self::Never) => "map",
            Self::Optional(inner) if matches!(**inner, Self::Never) => "optional",
            Self::List(element) => return write!(f, "list<{element}>"),
            Self::Map(key, value) => return write!(f, "map<{key}, {value}>"),
            Self::Optional(inner) => return write!(f, "optional<{inner}>"),
        };
        f.write_str(simple)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_list_takes_the_type_of_what_it_is_joined_with() {
        let empty = Type::list(Type::Never);
        let names = Type::list(Type::String);
        assert_eq!(empty.join(&names).to_string(), "list<string>");
        assert_eq!(names.join(&empty).to_string(), "list<string>");
    }

    #[test]
    fn a_number_may_equal_any_number_and_never_a_text() {
        assert!(Type::Int.may_equal(&Type::Double));
        assert!(!Type::Int.may_equal(&Type::String));
        assert!(Type::IntOrString.may_equal(&Type::String));
        assert!(!Type::Optional(Arc::new(Type::Int)).may_equal(&Type::Int));
    }

    #[test]
    fn an_optional_of_an_optional_is_one_optional() {
        let once = Type::optional(Type::Int);
        assert_eq!(Type::optional(once).to_string(), "optional<int>");
    }
}
