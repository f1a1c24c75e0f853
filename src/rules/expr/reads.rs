//! What an expression takes from its scope.

use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, LiteralValue, operators};

use super::plan::qualified_name;
use crate::rules::functions;

/// See [`super::Expr::free_identifiers`].
pub(super) fn free_identifiers(expr: &IdedExpr) -> BTreeSet<String> {
    reads(expr).into_iter().filter_map(|chain| chain.into_iter().next()).collect()
}

/// See [`super::Expr::reads`].
pub(super) fn reads(expr: &IdedExpr) -> Vec<Vec<String>> {
    let mut reader = Reader { bound: Vec::new(), found: BTreeSet::new() };
    reader.visit(expr);
    reader.found.into_iter().collect()
}

struct Reader {
    bound: Vec<String>,
    found: BTreeSet<Vec<String>>,
}

impl Reader {
    /// The chain that an expression is, if it is nothing but a chain from a free name.
    fn chain(&mut self, expr: &IdedExpr) -> Option<Vec<String>> {
        match &expr.expr {
            Expr::Ident(name) => {
                let name = name.trim_start_matches('.');
                let free = !self.bound.iter().any(|bound| bound == name) && !name.starts_with('@');
                (free && functions::type_named(name).is_none()).then(|| vec![name.to_owned()])
            }
            Expr::Select(select) => {
                let mut chain = self.chain(&select.operand)?;
                chain.push(select.field.clone());
                Some(chain)
            }
            Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
                (operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT, [operand, key]) => {
                    let Expr::Literal(LiteralValue::String(key)) = &key.expr else { return None };
                    let mut chain = self.chain(operand)?;
                    chain.push(key.inner().to_owned());
                    Some(chain)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn visit(&mut self, expr: &IdedExpr) {
        if let Some(chain) = self.chain(expr) {
            if functions::type_named(&chain.join(".")).is_none() {
                self.found.insert(chain);
            }
            return;
        }
        match &expr.expr {
            Expr::Select(select) => self.visit(&select.operand),
            Expr::Call(call) => {
                if let Some(target) = &call.target {
                    let qualified = qualified_name(target).map(|target| format!("{target}.{}", call.func_name));
                    if !qualified.is_some_and(|name| functions::is_global(&name)) {
                        self.visit(target);
                    }
                }
                call.args.iter().for_each(|arg| self.visit(arg));
            }
            Expr::List(list) => list.elements.iter().for_each(|item| self.visit(item)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(message) => message.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Comprehension(comprehension) => {
                self.visit(&comprehension.iter_range);
                self.visit(&comprehension.accu_init);
                let outer = self.bound.len();
                self.bound.push(comprehension.accu_var.clone());
                self.bound.push(comprehension.iter_var.clone());
                self.bound.extend(comprehension.iter_var2.clone());
                self.visit(&comprehension.loop_cond);
                self.visit(&comprehension.loop_step);
                self.bound.truncate(outer + 1);
                self.visit(&comprehension.result);
                self.bound.truncate(outer);
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key);
                self.visit(&entry.value);
            }
            EntryExpr::StructField(field) => self.visit(&field.value),
        }
    }
}
