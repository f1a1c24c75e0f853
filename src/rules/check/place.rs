//! Whether the value of an expression may stand where it is put: a field of a manifest, an element, text.

use std::sync::Arc;

use serde_json::Value as Json;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::call::default;
use super::expression::{Checked, Checker};
use super::scope::{Scope, Value};
use crate::diagnostic::Diagnostic;
use crate::rules::schema::instance::violations_of;
use crate::rules::schema::{Schema, Shape};
use crate::rules::suggest::did_you_mean;
use crate::rules::types::Type;

/// How deep object types are compared with each other; deeper they are taken on trust.
const DEPTH: u8 = 8;

impl Checker<'_> {
    /// The whole expression, whose value goes to a place with a schema: `what` names the place, `data.cidr`.
    pub fn place(mut self, scope: &Scope, schema: &Arc<Schema>, what: &str) -> Checked {
        let value = self.put(self.source.expr.ast(), scope, schema, what);
        self.done(value)
    }

    /// The whole expression, whose value becomes a part of a text.
    pub fn text_part(mut self, scope: &Scope) -> Checked {
        let tree = self.source.expr.ast();
        let value = self.infer(tree, scope);
        self.want_text(tree, &value);
        self.done(value)
    }

    fn want_text(&mut self, node: &IdedExpr, value: &Value) {
        let ty = &value.ty;
        if ty.is_unknown() || ty.is_number() || matches!(ty, Type::String | Type::Bool | Type::IntOrString) {
            return;
        }
        let message = format!("`{ty}` cannot be a part of a text");
        let fault = Diagnostic::error("not-text", message, self.at(node)).label(format!("`{ty}`"));
        let text = self.text(node);
        self.found.push(match ty {
            Type::Optional(inner) => {
                fault.help(format!("say what an absent value means: `{text}.orValue({})`", default(inner)))
            }
            Type::List(element) if matches!(**element, Type::String) => {
                fault.help(format!("join the elements: `{text}.join(', ')`"))
            }
            Type::Opaque(_) | Type::Timestamp | Type::Duration | Type::Bytes => {
                fault.help(format!("convert it: `string({text})`"))
            }
            _ => fault,
        });
    }

    /// A node whose value goes to a place. Literals and branches are judged part by part, so that carets are exact.
    pub(super) fn put(&mut self, node: &IdedExpr, scope: &Scope, schema: &Arc<Schema>, what: &str) -> Value {
        match &node.expr {
            Expr::Call(CallExpr { func_name, target: None, args })
                if func_name == operators::CONDITIONAL && !args.iter().any(|part| self.extents.is_made(node, part)) =>
            {
                let [condition, yes, no] = args.as_slice() else { return self.infer(node, scope) };
                let (then, otherwise) = self.choose(condition, scope);
                let yes = self.put(yes, &then, schema, what);
                let no = self.put(no, &otherwise, schema, what);
                Value::of(yes.ty.join(&no.ty))
            }
            Expr::List(list) if matches!(schema.shape, Shape::List(_)) => {
                let Shape::List(items) = &schema.shape else { return Value::of(Type::Error) };
                let items = items.get();
                let mut element = Type::Never;
                for (index, item) in list.elements.iter().enumerate() {
                    let value = self.put(item, scope, &items, &format!("{what}[{index}]"));
                    element = element.join(value.ty.unwrapped());
                }
                Value::of(Type::list(element))
            }
            Expr::Comprehension(_) if matches!(schema.shape, Shape::List(_)) => {
                let Shape::List(items) = &schema.shape else { return Value::of(Type::Error) };
                if let Some(value) = self.put_mapped(node, scope, &items.get(), what) {
                    return value;
                }
                let value = self.infer(node, scope);
                self.judge(node, &value, schema, what);
                value
            }
            Expr::Map(map) if matches!(schema.shape, Shape::Object(_) | Shape::Map(_)) => {
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    let key = self.infer(&entry.key, scope);
                    let Expr::Literal(LiteralValue::String(name)) = &entry.key.expr else {
                        if !key.ty.may_equal(&Type::String) {
                            let message = format!("a field's name is `string`, this is `{}`", key.ty);
                            self.found.push(Diagnostic::error("wrong-type", message, self.at(&entry.key)));
                        }
                        self.infer(&entry.value, scope);
                        continue;
                    };
                    let inside = format!("{what}.{}", name.inner());
                    if let Some(field) = schema.field(name.inner()) {
                        self.put(&entry.value, scope, &field, &inside);
                    } else {
                        self.unknown_key(&entry.key, name.inner(), schema, what);
                        self.infer(&entry.value, scope);
                    }
                }
                self.missing_keys(node, map, schema, what);
                Value::of(Type::string_map(Type::Dyn))
            }
            _ => {
                let value = self.infer(node, scope);
                self.judge(node, &value, schema, what);
                value
            }
        }
    }

    fn unknown_key(&mut self, key: &IdedExpr, name: &str, schema: &Schema, what: &str) {
        let message = format!("`{what}` has no field `{name}`");
        let fault = Diagnostic::error("unknown-field", message, self.at(key));
        let names = schema.fields().into_iter().flat_map(|fields| fields.known.keys().map(String::as_str));
        self.found.push(match did_you_mean(name, names) {
            Some(similar) => fault.help(format!("did you mean `{similar}`?")),
            None => fault,
        });
    }

    fn missing_keys(&mut self, node: &IdedExpr, map: &cel::common::ast::MapExpr, schema: &Schema, what: &str) {
        let mut given = Vec::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return };
            // A key that is computed may be any of the required ones.
            let Expr::Literal(LiteralValue::String(name)) = &entry.key.expr else { return };
            given.push(name.inner());
        }
        let Some(fields) = schema.fields() else { return };
        for name in fields.required.iter().filter(|name| !given.contains(&name.as_str())) {
            let message = format!("`{what}` needs the field `{name}`");
            self.found.push(Diagnostic::error("missing-field", message, self.at(node)));
        }
    }

    fn judge(&mut self, node: &IdedExpr, value: &Value, schema: &Arc<Schema>, what: &str) {
        let ty = value.ty.unwrapped();
        if matches!(ty, Type::Null) && !schema.nullable {
            let message = format!("`{what}` would be null, which is never sent");
            let fault = Diagnostic::error("null-value", message, self.at(node));
            self.found.push(fault.help("to leave the key out: `optional.none()`"));
            return;
        }
        if !fits(ty, schema, DEPTH) {
            let wanted = schema.describe();
            let message = format!("`{what}` must be `{wanted}`, this is `{ty}`");
            let fault = Diagnostic::error("wrong-type", message, self.at(node)).label(format!("`{ty}`"));
            let fault = self.suggest_conversion(fault, node, &value.ty, schema);
            self.found.push(fault);
            return;
        }
        if let (Expr::Literal(LiteralValue::String(text)), Some(list)) = (&node.expr, schema.allowed_list())
            && !schema.allowed.iter().any(|allowed| allowed == text.inner())
        {
            let message = format!("`{what}` cannot be `{}`", text.inner());
            let fault = Diagnostic::error("not-allowed", message, self.at(node));
            let similar = did_you_mean(text.inner(), schema.allowed.iter().filter_map(|allowed| allowed.as_str()));
            self.found.push(match similar {
                Some(similar) => fault.help(format!("did you mean `{similar}`?")).help(format!("it is one of {list}")),
                None => fault.help(format!("it is one of {list}")),
            });
            return;
        }
        let constant = match &node.expr {
            Expr::Literal(LiteralValue::String(text)) => Json::from(text.inner()),
            Expr::Literal(LiteralValue::Int(number)) => Json::from(*number.inner()),
            _ => return,
        };
        for violation in violations_of(&constant, schema, &format!("`{what}`")) {
            let fault = Diagnostic::error(violation.code, violation.message, self.at(node));
            self.found.push(violation.help.into_iter().fold(fault, Diagnostic::help));
        }
    }

    fn suggest_conversion(&self, fault: Diagnostic, node: &IdedExpr, ty: &Type, schema: &Arc<Schema>) -> Diagnostic {
        let text = self.text(node);
        let inner = ty.unwrapped();
        let wrap = |conversion: &str| match ty {
            Type::Optional(_) => format!("{text}.optMap(x, {conversion}(x))"),
            _ => format!("{conversion}({text})"),
        };
        match (&schema.shape, inner) {
            (Shape::String | Shape::IntOrString, Type::List(element)) if matches!(**element, Type::String) => {
                fault.help(format!("join the elements: `{text}.join(',')`"))
            }
            (Shape::String, Type::Map(..) | Type::Object(_) | Type::List(_)) => {
                fault.help(format!("name the field that is meant, or write it as JSON: `{}`", wrap("toJson")))
            }
            (Shape::List(_), _) if matches!(&schema.shape, Shape::List(items) if fits(inner, &items.get(), DEPTH)) => {
                fault.help(format!("a list of one: `[{text}]`"))
            }
            _ => {
                let wanted = schema.value_type();
                let help = match ty {
                    Type::Optional(_) => self
                        .library
                        .conversion(inner, &wanted)
                        .map(|conversion| format!("convert it: `{}`", wrap(conversion))),
                    _ => self.convert(node, inner, &wanted),
                };
                match help {
                    Some(help) => fault.help(help),
                    None => fault,
                }
            }
        }
    }
}

/// Whether a value of a type may stand where a schema wants its own.
pub(super) fn fits(ty: &Type, schema: &Arc<Schema>, depth: u8) -> bool {
    if ty.is_unknown() || depth == 0 || matches!(ty, Type::Param(_)) {
        return true;
    }
    if let Type::Optional(inner) = ty {
        return fits(inner, schema, depth);
    }
    // What no JSON can hold.
    if matches!(ty, Type::Opaque(_) | Type::Timestamp | Type::Duration | Type::Bytes | Type::Type) {
        return false;
    }
    match &schema.shape {
        Shape::Any => true,
        Shape::Bool => matches!(ty, Type::Bool),
        Shape::Int => matches!(ty, Type::Int | Type::Uint | Type::IntOrString),
        Shape::Number => ty.is_number() || matches!(ty, Type::IntOrString),
        Shape::String => matches!(ty, Type::String | Type::IntOrString),
        Shape::IntOrString => matches!(ty, Type::Int | Type::Uint | Type::String | Type::IntOrString | Type::Double),
        Shape::List(items) => matches!(ty, Type::List(element) if fits(element, &items.get(), depth - 1)),
        Shape::Map(values) => match ty {
            Type::Map(key, value) => key.may_equal(&Type::String) && fits(value, &values.get(), depth - 1),
            Type::Object(source) => source.fields().is_none_or(|fields| {
                let values = values.get();
                fields.known.values().all(|field| fits(&field.get().value_type(), &values, depth - 1))
            }),
            _ => false,
        },
        Shape::Object(wanted) => match ty {
            Type::Map(key, value) => {
                // Which field a key names is not known here: all are tried, so not far down.
                let some = wanted.known.values().any(|field| fits(value, &field.get(), depth / 2));
                key.may_equal(&Type::String) && (some || wanted.open || wanted.known.is_empty())
            }
            Type::Object(source) => source.fields().is_none_or(|fields| {
                Arc::ptr_eq(source, schema)
                    || fields.known.iter().all(|(name, field)| match wanted.known.get(name) {
                        Some(target) => fits(&field.get().value_type(), &target.get(), depth - 1),
                        None => wanted.open,
                    })
            }),
            _ => false,
        },
    }
}
