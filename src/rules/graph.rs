//! Orders, cycles and depths. Nothing in here recurses: a file may hold a chain of thousands.

use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr as Ast};

/// Most cycles that are told at once.
const MAX_CYCLES: usize = 8;

/// The cycles of a graph, each once, beginning at its smallest node.
pub(super) fn cycles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut found = BTreeSet::new();
    let mut state = vec![0_u8; edges.len()];
    for start in 0..edges.len() {
        depth_first(start, edges, &mut state, &mut Vec::new(), &mut |_| {}, &mut |cycle: &[usize]| {
            let smallest = cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(i, _)| i);
            let mut cycle = cycle.to_vec();
            cycle.rotate_left(smallest);
            found.insert(cycle);
        });
    }
    found.into_iter().take(MAX_CYCLES).collect()
}

/// Every node once, after what it leads to.
pub(super) fn depth_first_order(edges: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(edges.len());
    let mut state = vec![0_u8; edges.len()];
    for start in 0..edges.len() {
        depth_first(start, edges, &mut state, &mut Vec::new(), &mut |index| order.push(index), &mut |_| {});
    }
    order
}

/// Visits what a node leads to, then the node. `state`: 0 new, 1 on the path, 2 done.
fn depth_first(
    start: usize,
    edges: &[Vec<usize>],
    state: &mut [u8],
    path: &mut Vec<usize>,
    done: &mut dyn FnMut(usize),
    cycle: &mut dyn FnMut(&[usize]),
) {
    // An explicit stack: a file may hold a chain of thousands.
    let mut stack = vec![(start, 0)];
    while let Some((node, next)) = stack.pop() {
        if next == 0 {
            if state.get(node).copied() != Some(0) {
                continue;
            }
            if let Some(state) = state.get_mut(node) {
                *state = 1;
            }
            path.push(node);
        }
        let targets = edges.get(node).map(Vec::as_slice).unwrap_or_default();
        if let Some(target) = targets.get(next) {
            stack.push((node, next + 1));
            match state.get(*target) {
                Some(0) => stack.push((*target, 0)),
                Some(1) => {
                    let from = path.iter().position(|on| on == target).unwrap_or_default();
                    cycle(path.get(from..).unwrap_or_default());
                }
                _ => {}
            }
        } else {
            if let Some(state) = state.get_mut(node) {
                *state = 2;
            }
            path.pop();
            done(node);
        }
    }
}

/// Levels of an expression's syntax tree.
pub(super) fn depth_of(root: &IdedExpr) -> usize {
    let mut deepest = 0;
    let mut open = vec![(root, 1)];
    while let Some((expr, depth)) = open.pop() {
        deepest = deepest.max(depth);
        let mut push = |expr| open.push((expr, depth + 1));
        match &expr.expr {
            Ast::Select(select) => push(&select.operand),
            Ast::Call(call) => {
                call.target.iter().for_each(|target| push(target));
                call.args.iter().for_each(push);
            }
            Ast::List(list) => list.elements.iter().for_each(push),
            Ast::Map(map) => map.entries.iter().for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => [&entry.key, &entry.value].into_iter().for_each(&mut push),
                EntryExpr::StructField(field) => push(&field.value),
            }),
            Ast::Struct(message) => message.entries.iter().for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => [&entry.key, &entry.value].into_iter().for_each(&mut push),
                EntryExpr::StructField(field) => push(&field.value),
            }),
            Ast::Comprehension(loops) => {
                [&loops.iter_range, &loops.accu_init, &loops.loop_cond, &loops.loop_step, &loops.result]
                    .into_iter()
                    .for_each(push);
            }
            Ast::Ident(_) | Ast::Literal(_) | Ast::Unspecified => {}
        }
    }
    deepest
}
