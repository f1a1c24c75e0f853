//! Calls of functions: which of the ways to call one fits, and if none does, what is in the way.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::expression::{Checker, Goes};
use super::library::Library;
use super::scope::{Scope, Value};
use crate::diagnostic::Diagnostic;
use crate::rules::functions::known_differences;
use crate::rules::suggest::did_you_mean;
use crate::rules::types::Type;
use crate::rules::types::signature::{Bindings, Signature, accepts, apply, without_parameters};

impl Checker<'_> {
    /// A call: an operator, or a function by its name.
    pub(super) fn call(&mut self, node: &IdedExpr, call: &CallExpr, scope: &Scope) -> Value {
        if let Some(value) = self.operator(node, call, scope) {
            return value;
        }
        // Made by a macro, not written by a person.
        if call.func_name.contains('@') {
            for part in call.target.as_deref().into_iter().chain(&call.args) {
                self.infer(part, scope);
            }
            return Value::of(Type::Dyn);
        }
        let namespace = call.target.as_deref().and_then(|target| self.namespace(target, scope));
        let (name, target) = match namespace {
            Some(namespace) => (format!("{namespace}.{}", call.func_name), None),
            None => (call.func_name.clone(), call.target.as_deref()),
        };
        let mut opened = None;
        let receiver = target.map(|target| {
            let value = self.infer(target, scope);
            let ty = value.ty.clone();
            opened = (name == "value" && call.args.is_empty()).then_some(value);
            (target, ty)
        });
        // `x.value()` is the field that x is.
        if let Some(value) = opened.filter(|value| matches!(value.ty, Type::Optional(_))) {
            return Value { ty: value.ty.unwrapped().clone(), ..value };
        }
        let arguments: Vec<(&IdedExpr, Type)> =
            call.args.iter().map(|argument| (argument, self.infer_argument(argument, &name, scope))).collect();
        self.known_difference(node, &name, &arguments);
        Value::of(self.resolve(node, &name, receiver.as_ref(), &arguments))
    }

    /// A function that answers differently in Kubernetes, in an expression that could as well stand in a CRD.
    fn known_difference(&mut self, node: &IdedExpr, name: &str, arguments: &[(&IdedExpr, Type)]) {
        if self.goes != Goes::Validation {
            return;
        }
        // Texts are the one thing that `double` reads differently.
        let concerned = name != "double" || matches!(arguments, [(_, Type::String)]);
        let difference = known_differences().iter().find(|difference| !name.is_empty() && difference.function == name);
        if let Some(difference) = difference.filter(|_| concerned) {
            let message = format!("`{name}` does not answer quite as in Kubernetes");
            let fault = Diagnostic::warning("kubernetes-differs", message, self.at_name(node));
            self.found.push(fault.help(difference.what).help(format!("because {}", difference.reason)));
        }
    }

    /// The arguments of what is no macro because it was written wrongly (`x.map(y)`) may name variables that do not exist.
    fn infer_argument(&mut self, argument: &IdedExpr, name: &str, scope: &Scope) -> Type {
        if self.library.overloads(name, true).is_empty()
            && self.library.overloads(name, false).is_empty()
            && Library::macro_form(name).is_some()
        {
            return Type::Error;
        }
        self.infer(argument, scope).ty
    }

    /// `math` of `math.greatest(…)`: names that are no variable and that functions have before their dot.
    fn namespace(&self, target: &IdedExpr, scope: &Scope) -> Option<String> {
        let name = match &target.expr {
            Expr::Ident(name) if !scope.names.contains_key(name) && !scope.spaces.contains_key(name.as_str()) => {
                name.clone()
            }
            Expr::Select(select) if !select.test => {
                format!("{}.{}", self.namespace(&select.operand, scope)?, select.field)
            }
            _ => return None,
        };
        self.library.is_namespace(&name).then_some(name)
    }

    fn resolve(
        &mut self,
        node: &IdedExpr,
        name: &str,
        receiver: Option<&(&IdedExpr, Type)>,
        arguments: &[(&IdedExpr, Type)],
    ) -> Type {
        let overloads = self.library.overloads(name, receiver.is_some());
        if overloads.is_empty() {
            self.unknown_function(node, name, receiver);
            return Type::Error;
        }
        // What the call fits, from the receiver on; kept with the bindings of their type parameters.
        let mut fitting: Vec<(&Signature, Bindings)> = overloads.iter().map(|one| (*one, Bindings::new())).collect();
        if let Some((target, ty)) = receiver {
            let wanted = |one: &Signature| one.receiver.clone().unwrap_or(Type::Dyn);
            fitting.retain_mut(|(one, bindings)| accepts(&wanted(one), ty, bindings));
            if fitting.is_empty() {
                let owners: Vec<Type> = overloads.iter().map(|one| wanted(one)).collect();
                self.wrong_receiver(node, name, target, ty, &owners);
                return result_of(&overloads);
            }
        }
        let of_count: Vec<_> = fitting.iter().filter(|(one, _)| one.takes(arguments.len())).cloned().collect();
        if of_count.is_empty() {
            let signatures: Vec<&Signature> = fitting.iter().map(|(one, _)| *one).collect();
            self.wrong_count(node, name, arguments.len(), &signatures);
            return result_of(&signatures);
        }
        fitting = of_count;
        for (index, (argument, ty)) in arguments.iter().enumerate() {
            let wanted = |one: &Signature| one.parameter(index).cloned().unwrap_or(Type::Dyn);
            let before: Vec<Type> = fitting.iter().map(|(one, bindings)| apply(&wanted(one), bindings)).collect();
            let signatures: Vec<&Signature> = fitting.iter().map(|(one, _)| *one).collect();
            fitting.retain_mut(|(one, bindings)| accepts(&wanted(one), ty, bindings));
            if fitting.is_empty() {
                self.wrong_argument(name, index, arguments.len(), (argument, ty), &before);
                return result_of(&signatures);
            }
        }
        let results =
            fitting.iter().map(|(one, bindings)| without_parameters(&apply(&one.result, bindings), &Type::Never));
        results.reduce(|a, b| if a.same(&b) { a } else { Type::Dyn }).unwrap_or(Type::Dyn)
    }

    fn unknown_function(&mut self, node: &IdedExpr, name: &str, receiver: Option<&(&IdedExpr, Type)>) {
        let at = self.at_name(node);
        // Called on the wrong side of the dot.
        let other = self.library.overloads(name, receiver.is_none());
        if let Some(signature) = other.first() {
            let message = match receiver {
                Some(_) => format!("`{name}` is not called on a value"),
                None => format!("`{name}` is called on a value"),
            };
            let fault = Diagnostic::error("unknown-function", message, at);
            let fault = match receiver {
                Some((target, _)) => fault.help(format!("write `{name}({})`", self.text(target))),
                None => fault.help(format!("it is `{signature}`")),
            };
            self.found.push(fault);
            return;
        }
        if let Some(form) = Library::macro_form(name) {
            let message = format!("`{name}` is not written like that");
            let fault = Diagnostic::error("macro-form", message, self.at(node));
            self.found.push(fault.help(format!("write `{form}`")));
            return;
        }
        if matches!(receiver, Some((_, Type::Error))) {
            return;
        }
        let fault = Diagnostic::error("unknown-function", format!("unknown function `{name}`"), at);
        let candidates = self.library.names().filter(|known| {
            // A method is meant by a method, where both are known.
            receiver.is_none()
                || !self.library.overloads(known, true).is_empty()
                || Library::macro_form(known).is_some()
        });
        let foreign = foreign(name);
        self.found.push(match did_you_mean(name, candidates) {
            Some(similar) => fault.help(format!("did you mean `{similar}`?")),
            None if foreign.is_some() => fault.help(foreign.unwrap_or_default()),
            None => fault,
        });
    }

    fn wrong_receiver(&mut self, node: &IdedExpr, name: &str, target: &IdedExpr, ty: &Type, owners: &[Type]) {
        let written = self.extents.text(self.extents.name(node));
        if written != name && name == "value" {
            // The other half of a macro's expansion, said already.
            return;
        }
        if written != name && Library::macro_form(written).is_some() {
            let message = format!("`{written}` is for optionals, this is `{ty}`");
            let fault = Diagnostic::error("wrong-receiver", message, self.at_name(node));
            self.found.push(fault.help("use the value as it is, or read the field with `.?` if it may be absent"));
            return;
        }
        let message = format!("`{name}` is not defined for `{ty}`, but for {}", listed(owners));
        let fault = Diagnostic::error("wrong-receiver", message, self.at_name(node));
        let fault = fault.related(self.at(target), format!("this is `{ty}`"));
        let text = self.text(target);
        let conversion = owners.iter().find_map(|owner| self.library.conversion(ty, owner));
        self.found.push(match (conversion, ty) {
            (_, Type::Optional(inner)) if owners.iter().any(|owner| accepts(owner, inner, &mut Bindings::new())) => {
                let alternative = format!("or keep it optional: `{text}.optMap(x, x.{name}(…))`");
                fault
                    .help(format!("say what an absent value means: `{text}.orValue({})`", default(inner)))
                    .help(alternative)
            }
            (Some(conversion), _) => fault.help(format!("convert it first: `{conversion}({text}).{name}(…)`")),
            _ => fault,
        });
    }

    fn wrong_count(&mut self, node: &IdedExpr, name: &str, given: usize, signatures: &[&Signature]) {
        let mut counts: Vec<usize> = signatures.iter().map(|one| one.parameters.len()).collect();
        counts.sort_unstable();
        counts.dedup();
        let wanted = counts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        let plural = if counts == [1] { "" } else { "s" };
        let given = if given == 0 { "none".to_owned() } else { given.to_string() };
        let verb = if given == "1" || given == "none" { "is" } else { "are" };
        let message = format!("`{name}` takes {wanted} argument{plural}, {given} {verb} given");
        let mut fault = Diagnostic::error("wrong-argument-count", message, self.at_name(node));
        for signature in signatures.iter().take(4) {
            fault = fault.help(format!("it is `{signature}`"));
        }
        self.found.push(fault);
    }

    fn wrong_argument(
        &mut self,
        name: &str,
        index: usize,
        count: usize,
        (node, ty): (&IdedExpr, &Type),
        wanted: &[Type],
    ) {
        let which = if count == 1 { "its argument".to_owned() } else { format!("argument {}", index + 1) };
        let message = format!("`{name}` wants {} as {which}, this is `{ty}`", listed(wanted));
        let fault = Diagnostic::error("wrong-argument-type", message, self.at(node)).label(format!("`{ty}`"));
        let text = self.text(node);
        let conversion = wanted.iter().find_map(|wanted| self.convert(node, ty, wanted));
        self.found.push(match (conversion, ty) {
            (_, Type::Optional(inner)) if wanted.iter().any(|wanted| accepts(wanted, inner, &mut Bindings::new())) => {
                fault.help(format!("say what an absent value means: `{text}.orValue({})`", default(inner)))
            }
            (Some(help), _) => fault.help(help),
            _ => fault,
        });
    }

    /// How a value of one type is made into another: a literal is written differently, others are converted.
    pub(super) fn convert(&self, node: &IdedExpr, from: &Type, to: &Type) -> Option<String> {
        let text = self.text(node);
        match (&node.expr, to) {
            (
                Expr::Literal(LiteralValue::Int(_) | LiteralValue::Double(_) | LiteralValue::Boolean(_)),
                Type::String,
            ) => Some(format!("write it in quotes: `'{text}'`")),
            (Expr::Literal(LiteralValue::Int(_)), Type::Double) => Some(format!("write it as a double: `{text}.0`")),
            (Expr::Literal(LiteralValue::String(literal)), Type::Int | Type::Double) => {
                let is_number = literal.inner().parse::<f64>().is_ok();
                is_number.then(|| format!("write it without quotes: `{}`", literal.inner()))
            }
            (Expr::Literal(LiteralValue::String(literal)), Type::Bool) => {
                let is_bool = matches!(literal.inner(), "true" | "false");
                is_bool.then(|| format!("write it without quotes: `{}`", literal.inner()))
            }
            _ => self.library.conversion(from, to).map(|conversion| format!("convert it: `{conversion}({text})`")),
        }
    }
}

/// What a faulty call would have given, if all its overloads agree.
fn result_of(signatures: &[&Signature]) -> Type {
    let results = signatures.iter().map(|one| without_parameters(&one.result, &Type::Error));
    results.reduce(|a, b| if a.same(&b) { a } else { Type::Error }).unwrap_or(Type::Error)
}

/// A value that says «nothing» for a type, to show in a fix.
pub(super) fn default(ty: &Type) -> &'static str {
    match ty {
        Type::String | Type::IntOrString => "''",
        Type::Int => "0",
        Type::Uint => "0u",
        Type::Double => "0.0",
        Type::Bool => "false",
        Type::List(_) => "[]",
        Type::Map(..) | Type::Object(_) => "{}",
        _ => "…",
    }
}

/// `` `string` or `list<dyn>` ``
pub(super) fn listed(types: &[Type]) -> String {
    let mut names: Vec<String> = types.iter().map(|ty| format!("`{ty}`")).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    match names.as_slice() {
        [.., _] if names.len() > 1 => {
            let last = names.pop().unwrap_or_default();
            format!("{} or {last}", names.join(", "))
        }
        _ => names.join(""),
    }
}

/// What functions of other template languages are here.
fn foreign(name: &str) -> Option<String> {
    let (here, why) = match name {
        "len" | "length" | "count" => ("size(x)", "the length"),
        "default" | "coalesce" | "getOrDefault" => ("x.?field.orValue(…)", "a default"),
        "toString" | "str" | "to_string" | "toText" => ("string(x)", "text of a value"),
        "toInt" | "atoi" | "parseInt" | "to_int" => ("int(x)", "a number from text"),
        "concat" | "append" => ("a + b", "joining two lists or texts"),
        "includes" => ("x.contains(y), or y in list", "asking for a part"),
        "any" | "some" => ("list.exists(x, condition)", "asking whether one element fits"),
        "every" => ("list.all(x, condition)", "asking whether all elements fit"),
        "toLowerCase" | "lower" | "toLower" => ("x.lowerAscii()", "small letters"),
        "toUpperCase" | "upper" | "toUpper" => ("x.upperAscii()", "capital letters"),
        "printf" | "sprintf" => ("'%s'.format([x])", "formatting"),
        "if" | "ternary" => ("condition ? a : b", "a choice"),
        _ => return None,
    };
    Some(format!("{why} is `{here}` in CEL"))
}
