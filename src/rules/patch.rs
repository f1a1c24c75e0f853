//! RFC 6902 operations on a rendered manifest: in order, all of them or none.

use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchErrorKind, PatchOperation, RemoveOperation, ReplaceOperation,
    TestOperation,
};
use serde_json::Value;

use super::Fault;
use super::compile::Patch;
use super::evaluate::World;
use super::expr::Scope;
use super::file::Op;

/// Applies the patches whose `when` holds. On a fault the manifest is as it was.
pub(super) fn apply(
    world: &World<'_>,
    patches: &[Patch],
    scope: &Scope<'_>,
    mut manifest: Value,
) -> Result<Value, Fault> {
    for patch in patches {
        if let Some(when) = &patch.when
            && !world.truth(when, scope, "when")?
        {
            continue;
        }
        let value = match &patch.value {
            None => None,
            Some(node) => match world.node(node, scope)? {
                Some(value) => Some(value),
                // An optional without a value: there is nothing to add, replace with or test for.
                None => continue,
            },
        };
        let operation = operation(patch, value)?;
        json_patch::patch(&mut manifest, std::slice::from_ref(&operation))
            .map_err(|error| Fault::new(explain(patch, &manifest, &operation, &error.kind), patch.at.clone()))?;
    }
    Ok(manifest)
}

fn operation(rule: &Patch, value: Option<Value>) -> Result<PatchOperation, Fault> {
    let pointer = |text: &str| {
        PointerBuf::parse(text.to_owned())
            .map_err(|_| Fault::new(format!("`{text}` is not a JSON Pointer"), rule.at.clone()))
    };
    let path = pointer(&rule.path)?;
    let from = pointer(rule.from.as_deref().unwrap_or_default())?;
    let value = value.unwrap_or_default();
    Ok(match rule.op {
        Op::Add => PatchOperation::Add(AddOperation { path, value }),
        Op::Remove => PatchOperation::Remove(RemoveOperation { path }),
        Op::Replace => PatchOperation::Replace(ReplaceOperation { path, value }),
        Op::Move => PatchOperation::Move(MoveOperation { from, path }),
        Op::Copy => PatchOperation::Copy(CopyOperation { from, path }),
        Op::Test => PatchOperation::Test(TestOperation { path, value }),
    })
}

fn explain(rule: &Patch, manifest: &Value, operation: &PatchOperation, kind: &PatchErrorKind) -> String {
    let op = rule.op.word();
    let path = rule.path.as_str();
    match kind {
        _ if rule.op == Op::Test => {
            let expected = match operation {
                PatchOperation::Test(test) => short(&test.value),
                _ => String::new(),
            };
            let found =
                manifest.pointer(path).map_or_else(|| "nothing".to_owned(), |found| format!("`{}`", short(found)));
            format!("the patch's `test` failed: `{path}` is {found}, not `{expected}`")
        }
        PatchErrorKind::CannotMoveInsideItself => {
            format!("the patch cannot move `{}` into itself", rule.from.as_deref().unwrap_or_default())
        }
        PatchErrorKind::InvalidFromPointer => {
            nothing_there(op, manifest, rule.from.as_deref().unwrap_or_default(), false)
        }
        _ => nothing_there(op, manifest, path, matches!(rule.op, Op::Add | Op::Move | Op::Copy)),
    }
}

/// How far the pointer leads, and where it ends.
fn nothing_there(op: &str, manifest: &Value, path: &str, adds: bool) -> String {
    let mut known = 0;
    for (end, _) in path.match_indices('/').skip(1).chain([(path.len(), "")]) {
        if path.get(..end).and_then(|prefix| manifest.pointer(prefix)).is_none() {
            break;
        }
        known = end;
    }
    let prefix = path.get(..known).unwrap_or_default();
    let place = if prefix.is_empty() { "the manifest".to_owned() } else { format!("`{prefix}`") };
    let next = path.get(known + 1..).unwrap_or_default().split('/').next().unwrap_or_default();
    match manifest.pointer(prefix) {
        Some(Value::Object(_)) if adds => {
            format!("the patch cannot {op} `{path}`: {place} has no `{next}` to put it into; add that first")
        }
        Some(Value::Object(_)) => format!("the patch cannot {op} `{path}`: {place} has no `{next}`"),
        Some(Value::Array(items)) => {
            let end = if adds { "; `-` is the end of the list" } else { "" };
            format!(
                "the patch cannot {op} `{path}`: {place} is a list of {} and has no item `{next}`{end}",
                items.len()
            )
        }
        _ => format!("the patch cannot {op} `{path}`: {place} is neither a mapping nor a list"),
    }
}

/// A value for a message: whole if short.
fn short(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.chars().count() <= MOST { text } else { text.chars().take(MOST).chain(['…']).collect() }
}
