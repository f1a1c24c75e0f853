//! What an expression can name, what is known of each, and which optional fields are known to be there.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::rules::schema::Schema;
use crate::rules::types::Type;

/// What is known of the value of an expression.
#[derive(Debug, Clone)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// The field it was read from.
    pub path: Option<Path>,
    /// The schema of that field: allowed values, items.
    pub schema: Option<Arc<Schema>>,
    /// Fields that every element of this list has, although the schema calls them optional.
    pub elements: Vec<Path>,
    /// For a condition: what is there when it is true, and when it is false.
    pub implies: Option<Rc<(Facts, Facts)>>,
}

impl Value {
    /// A value of a type and nothing more.
    pub fn of(ty: Type) -> Self {
        Self { ty, path: None, schema: None, elements: Vec::new(), implies: None }
    }

    /// A value read from a place with a schema, such as `self`.
    pub fn root(name: &str, schema: &Arc<Schema>) -> Self {
        let path = Some(Path::root(name));
        Self { path, schema: Some(Arc::clone(schema)), ..Self::of(schema.value_type()) }
    }
}

/// Where a value was read from: the root and the fields, as one comparable text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(String);

/// Between the steps of a path: a character that no name has.
const STEP: char = '\0';

impl Path {
    /// The path of a variable.
    pub fn root(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The variable of a macro that it begins at.
    pub fn macro_variable(&self) -> Option<&str> {
        let (name, number) = self.0.split(STEP).next()?.split_once('#')?;
        (number != "item").then_some(name)
    }

    /// The path of a field or an element.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self(format!("{}{STEP}{name}", self.0))
    }

    /// This path and all that it goes through.
    fn steps(&self) -> impl Iterator<Item = Self> + '_ {
        let cuts = self.0.match_indices(STEP).map(|(index, _)| index).chain([self.0.len()]);
        cuts.map(|end| Self(self.0[..end].to_owned()))
    }

    /// The part below another path; `None` when it is not below.
    pub fn below(&self, root: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(&root.0)?;
        rest.starts_with(STEP).then(|| Self(rest.to_owned()))
    }

    /// A path that was cut by [`below`](Self::below), put on another root.
    #[must_use]
    pub fn on(&self, root: &Self) -> Self {
        Self(format!("{}{}", root.0, self.0))
    }
}

/// Paths that are known to be there, and conditions that are known to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts(BTreeSet<Path>);

impl Facts {
    /// Notes that a path is there, and so is all that it goes through.
    pub fn insert(&mut self, path: &Path) {
        self.0.extend(path.steps());
    }

    /// Notes that a path is there once what is above it is.
    pub fn insert_alone(&mut self, path: Path) {
        self.0.insert(path);
    }

    /// Whether a path is known to be there.
    pub fn contains(&self, path: &Path) -> bool {
        self.0.contains(path)
    }

    /// Notes that a condition, by its text, holds.
    pub fn insert_condition(&mut self, text: &str) {
        self.0.insert(Path(condition(text)));
    }

    /// Whether a condition is known to hold.
    pub fn holds(&self, text: &str) -> bool {
        self.0.contains(&Path(condition(text)))
    }

    /// What is known when both are known.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// What is known when only one of them is, and not which.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self(self.0.into_iter().filter(|path| other.0.contains(path)).collect())
    }

    /// The known paths.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.0.iter()
    }
}

/// A condition as a fact: its text without blanks, in a form that no path has.
fn condition(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    format!("{STEP}{plain}")
}

/// A member of `variables` or `resources`.
#[derive(Debug, Clone)]
pub struct Member {
    /// What is known of it.
    pub value: Value,
    /// The condition without which it is not there, said in messages.
    pub only_when: Option<String>,
    /// Optional fields that a variable reads unguarded: variables are evaluated when they are used, so who uses it may be
    /// the one that guards.
    pub needs: BTreeSet<Path>,
}

/// The names that an expression may use.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Variables: `self`, the variables of macros, …
    pub names: BTreeMap<String, Value>,
    /// The members of `variables` and `resources`, where these may be used.
    pub spaces: BTreeMap<&'static str, Rc<BTreeMap<String, Member>>>,
    /// What is known to be there.
    pub facts: Facts,
}

impl Scope {
    /// The scope with one more name.
    #[must_use]
    pub fn with(&self, name: &str, value: Value) -> Self {
        let mut scope = self.clone();
        scope.names.insert(name.to_owned(), value);
        scope
    }

    /// The scope where more is known.
    #[must_use]
    pub fn knowing(&self, facts: &Facts) -> Self {
        Self { facts: self.facts.clone().and(facts), ..self.clone() }
    }
}
