//! Schemas: what fields an object of a kind has, of what type, and which of them must be there.
//!
//! They come from a CRD ([`crd`]), from the kinds built in ([`builtin`]) or from a server's `OpenAPI`, all through
//! [`openapi`]; `check` asks them about expressions and manifests, [`instance`] checks a whole object.

pub mod builtin;
pub mod crd;
pub mod instance;
pub mod openapi;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::Gvk;
use super::types::Type;

/// What may stand at one place of an object.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// The JSON type and what is inside.
    pub shape: Shape,
    /// `null` is allowed.
    pub nullable: bool,
    /// Whether the API server fills the field in when it is absent.
    pub has_default: bool,
    /// The only values allowed; empty when all are.
    pub allowed: Vec<Value>,
    /// `format`: `int32`, `date-time`, `ipv4`, …
    pub format: Option<String>,
    /// A regular expression that the text must match somewhere.
    pub pattern: Option<String>,
    /// A regular expression that the text must not match anywhere (`not: {pattern}`).
    pub forbidden: Option<String>,
    /// Formats of which the text must have one (`anyOf: [{format}, …]`); empty when it need not.
    pub formats: Vec<String>,
    /// Bounds of numbers, lengths and sizes.
    pub bounds: Bounds,
    /// How server-side apply merges the list.
    pub list: ListKind,
}

/// The JSON type of a [`Schema`].
#[derive(Debug, Clone, Default)]
pub enum Shape {
    /// Free-form: nothing is known.
    #[default]
    Any,
    /// `boolean`
    Bool,
    /// `integer`
    Int,
    /// `number`
    Number,
    /// `string`
    String,
    /// A number or a text: ports, quantities.
    IntOrString,
    /// `array`
    List(Node),
    /// `object` with `additionalProperties`.
    Map(Node),
    /// `object` with `properties`.
    Object(Fields),
}

/// The declared fields of an object.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// By name.
    pub known: BTreeMap<String, Node>,
    /// Those that must be there.
    pub required: BTreeSet<String>,
    /// Those that the API server's answers always have, although nobody need write them: it fills them in.
    pub always: BTreeSet<String>,
    /// Other fields are kept and of any type (`x-kubernetes-preserve-unknown-fields`).
    pub open: bool,
}

/// `minimum`, `maxLength` and their like; `None` where there is no bound.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the names are those of JSON Schema")]
pub struct Bounds {
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub unique_items: bool,
}

/// `x-kubernetes-list-type`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ListKind {
    /// The list is one value: whoever sets it owns all of it. Also what a list without a word is.
    #[default]
    Atomic,
    /// Each value is owned by itself.
    Set,
    /// Each element is owned by itself and found by these of its fields.
    Map(Vec<String>),
}

/// A schema inside another: there, or a name to look up (schemas may contain themselves).
#[derive(Debug, Clone)]
pub enum Node {
    /// Written at the place.
    Here(Arc<Schema>),
    /// A definition of a library.
    Named(Arc<Library>, Arc<str>),
}

impl Node {
    /// The schema itself. A name that the library lacks gives a free-form one.
    pub fn get(&self) -> Arc<Schema> {
        match self {
            Self::Here(schema) => Arc::clone(schema),
            Self::Named(library, name) => library.get(name).unwrap_or_default(),
        }
    }
}

impl PartialEq for Schema {
    /// Equal as far as the checker cares: the same fields in the same shape, without following names.
    fn eq(&self, other: &Self) -> bool {
        match (&self.shape, &other.shape) {
            (Shape::Object(a), Shape::Object(b)) => {
                a.known.len() == b.known.len()
                    && a.required == b.required
                    && a.known.iter().zip(&b.known).all(|((an, a), (bn, b))| an == bn && a.is(b))
            }
            (Shape::List(a), Shape::List(b)) | (Shape::Map(a), Shape::Map(b)) => a.is(b),
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

impl Fields {
    /// Whether an object that the API server gives has the field in any case.
    pub fn is_sure(&self, name: &str) -> bool {
        self.required.contains(name) || self.always.contains(name)
    }
}

impl Node {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(_, a), Self::Named(_, b)) => a == b,
            (Self::Here(a), Self::Here(b)) => a == b,
            _ => false,
        }
    }
}

/// How many lists and maps of each other a type is followed into: a definition may contain itself.
const DEPTH: u8 = 16;

impl Schema {
    /// A schema of a shape and nothing else.
    pub fn of(shape: Shape) -> Self {
        Self { shape, ..Self::default() }
    }

    /// The type that an expression reading such a value has.
    ///
    /// Unlike in Kubernetes' own CEL, texts with the format `date-time`, `duration` or `byte` stay texts: objects are
    /// evaluated as the JSON that they are, see the reference on differences.
    pub fn value_type(self: &Arc<Self>) -> Type {
        self.type_within(DEPTH)
    }

    fn type_within(self: &Arc<Self>, depth: u8) -> Type {
        match &self.shape {
            _ if self.nullable || depth == 0 => Type::Dyn,
            // JSON does not tell 1 from 1.0, and the value that arrives is an int for one and a double for the other.
            Shape::Any | Shape::Number => Type::Dyn,
            Shape::Bool => Type::Bool,
            Shape::Int => Type::Int,
            Shape::String => Type::String,
            Shape::IntOrString => Type::IntOrString,
            Shape::List(items) => Type::list(items.get().type_within(depth - 1)),
            Shape::Map(values) => Type::string_map(values.get().type_within(depth - 1)),
            Shape::Object(fields) if fields.known.is_empty() => Type::Dyn,
            Shape::Object(_) => Type::Object(Arc::clone(self)),
        }
    }

    /// The declared fields, when it is an object with fields.
    pub fn fields(&self) -> Option<&Fields> {
        match &self.shape {
            Shape::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The schema of a field, of a map's value, or a free-form one where unknown fields are kept.
    pub fn field(&self, name: &str) -> Option<Arc<Self>> {
        match &self.shape {
            Shape::Object(fields) => match fields.known.get(name) {
                Some(node) => Some(node.get()),
                None => fields.open.then(Arc::default),
            },
            Shape::Map(values) => Some(values.get()),
            Shape::Any => Some(Arc::default()),
            _ => None,
        }
    }

    /// The schema at a path of fields, from here.
    pub fn at(self: &Arc<Self>, path: &[&str]) -> Option<Arc<Self>> {
        path.iter().try_fold(Arc::clone(self), |schema, name| schema.field(name))
    }

    /// Said to a person: `string`, `list<string>`, `object`, `map<string, string>`.
    pub fn describe(self: &Arc<Self>) -> String {
        match &self.shape {
            Shape::Any => "anything".to_owned(),
            Shape::Number => "number".to_owned(),
            Shape::IntOrString if self.format.as_deref() == Some("quantity") => "quantity".to_owned(),
            Shape::List(items) => format!("list<{}>", items.get().describe()),
            Shape::Map(values) => format!("map<string, {}>", values.get().describe()),
            Shape::Object(_) => "object".to_owned(),
            _ => Arc::new(Self { nullable: false, ..(**self).clone() }).value_type().to_string(),
        }
    }

    /// The allowed values as a person writes them: `` `TCP`, `UDP` ``. `None` when all are allowed.
    pub fn allowed_list(&self) -> Option<String> {
        if self.allowed.is_empty() {
            return None;
        }
        let written = |value: &Value| match value {
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        let values = self.allowed.iter().filter(|value| **value != Value::String(String::new()));
        Some(values.map(written).collect::<Vec<_>>().join(", "))
    }
}

/// Named schemas, parsed when they are first asked for.
#[derive(Debug, Default)]
pub struct Library {
    texts: HashMap<Arc<str>, Text>,
    parsed: Mutex<HashMap<Arc<str>, Arc<Schema>>>,
}

/// A definition before it is parsed.
#[derive(Debug, Clone)]
pub enum Text {
    /// JSON text that the program carries.
    Static(&'static str),
    /// A parsed document, such as a server's.
    Json(Arc<Value>),
}

impl Library {
    /// A library of definitions.
    pub fn new(texts: impl IntoIterator<Item = (Arc<str>, Text)>) -> Arc<Self> {
        Arc::new(Self { texts: texts.into_iter().collect(), parsed: Mutex::default() })
    }

    /// The schema of a name.
    pub fn get(self: &Arc<Self>, name: &str) -> Option<Arc<Schema>> {
        let parsed = || self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = parsed().get(name) {
            return Some(Arc::clone(schema));
        }
        let (name, text) = self.texts.get_key_value(name)?;
        let schema = match text {
            Text::Static(text) => openapi::schema(&serde_json::from_str(text).unwrap_or_default(), Some(self)),
            Text::Json(value) => openapi::schema(value, Some(self)),
        };
        let schema = Arc::new(schema);
        parsed().insert(Arc::clone(name), Arc::clone(&schema));
        Some(schema)
    }
}

/// Whether objects of a kind live in a namespace. A Network is namespaced and can own nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the two words of Kubernetes")]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// What is known of a kind.
#[derive(Debug, Clone)]
pub struct KindSchema {
    /// Where its objects live.
    pub scope: Scope,
    /// Its fields; `None` where only the scope is known.
    pub schema: Option<Arc<Schema>>,
}

/// Where the checker learns about kinds: built in, from CRD files, from a server.
pub trait KindSchemas {
    /// What is known of a kind; `None` when nothing is.
    fn kind(&self, gvk: &Gvk) -> Option<KindSchema>;

    /// Every kind that is known, for «did you mean».
    fn known(&self) -> Vec<Gvk>;
}

/// Several sources; the first that knows a kind answers.
pub struct Layered<'a>(pub Vec<&'a dyn KindSchemas>);

impl KindSchemas for Layered<'_> {
    fn kind(&self, gvk: &Gvk) -> Option<KindSchema> {
        self.0.iter().find_map(|source| source.kind(gvk))
    }

    fn known(&self) -> Vec<Gvk> {
        self.0.iter().flat_map(|source| source.known()).collect()
    }
}
