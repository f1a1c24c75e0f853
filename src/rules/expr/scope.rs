//! The variables of an evaluation, in scopes that lie around one another.

use cel::Value;

/// The variables that an expression can use.
#[derive(Debug, Default)]
pub struct Scope<'p> {
    outer: Option<&'p Scope<'p>>,
    variables: Vec<(String, Value)>,
    lazy: Option<(&'static str, &'p dyn Lazy)>,
}

/// The fields of a variable that are computed when they are read. `NAME.field` asks for one; the variable as a whole has
/// no value.
pub trait Lazy: std::fmt::Debug {
    /// The field's value, `None` if there is no such field, or what is said of an expression that reads it.
    fn field(&self, name: &str) -> Option<Result<Value, String>>;
    /// Whether there is such a field.
    fn has(&self, name: &str) -> bool;
}

impl<'p> Scope<'p> {
    /// A scope without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable of this scope.
    pub fn set(&mut self, name: impl Into<String>, value: Value) {
        let name = name.into();
        match self.variables.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.variables.push((name, value)),
        }
    }

    /// A scope with this one's variables, to which more can be added without changing this one.
    #[must_use]
    pub fn child(&'p self) -> Self {
        Self { outer: Some(self), variables: Vec::new(), lazy: None }
    }

    /// Sets a variable whose fields are computed when they are read.
    pub fn set_lazy(&mut self, name: &'static str, fields: &'p dyn Lazy) {
        self.lazy = Some((name, fields));
    }

    /// The fields of a variable that are computed when they are read.
    pub(super) fn lazy(&self, name: &str) -> Option<&'p dyn Lazy> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some((_, fields)) = here.lazy.filter(|(known, _)| *known == name) {
                return Some(fields);
            }
            scope = here.outer;
        }
        None
    }

    /// A variable of this scope or of one around it.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some((_, value)) = here.variables.iter().find(|(known, _)| known == name) {
                return Some(value);
            }
            scope = here.outer;
        }
        None
    }
}
