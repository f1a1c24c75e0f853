//! Writes what rules give into a test file, and leaves everything else in it as it is, comments included.

use serde_json::{Value, json};

use super::rule_test::Test;
use crate::diagnostic::Span;
use crate::yaml_text;

/// The text with the `expect` of each test replaced. `None` for a test leaves it alone. Works from the end, so that
/// earlier places stay true.
pub fn rewrite(text: &str, tests: &[(&Test, Option<Value>)]) -> Result<String, String> {
    let mut text = text.to_owned();
    for (test, update) in tests.iter().rev() {
        let Some(update) = update else { continue };
        let (indent, start, end) = match test.expect_span {
            Some(key) => place_of(&text, key)
                .map(|indent| (indent, line_start(&text, key.start), block_end(&text, key.start, indent + 1))),
            None => place_of(&text, test.span).map(|indent| {
                let end = block_end(&text, test.span.start, indent);
                (indent, end, end)
            }),
        }
        .ok_or_else(|| {
            format!(
                "the test `{}` is written in one line; give each of its keys a line of its own to update it",
                test.name
            )
        })?;
        let block: String = yaml_text::document(&json!({"expect": update}))
            .lines()
            .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{}{line}\n", " ".repeat(indent)) })
            .collect();
        // The test's first key may be `expect`, after the dash of the list.
        let dash = text.get(start..start + indent).filter(|head| !head.trim().is_empty()).map(str::to_owned);
        let block = match dash {
            Some(dash) => format!("{dash}{}", block.get(indent..).unwrap_or_default()),
            None => block,
        };
        text.replace_range(start..end, &block);
    }
    Ok(text)
}

fn line_start(text: &str, offset: usize) -> usize {
    text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |line| line + 1)
}

/// The column of a key, where nothing but spaces and dashes stands before it on its line.
fn place_of(text: &str, key: Span) -> Option<usize> {
    let head = text.get(line_start(text, key.start)..key.start)?;
    head.chars().all(|c| c == ' ' || c == '-').then_some(head.len())
}

/// The end of the block that begins at `offset`: the first later line that is indented by less than `indent`. Empty lines
/// and comments before it are not part of the block.
fn block_end(text: &str, offset: usize, indent: usize) -> usize {
    let first = text.get(offset..).and_then(|rest| rest.find('\n')).map_or(text.len(), |line| offset + line + 1);
    let mut end = first;
    let mut at = first;
    for line in text.get(first..).unwrap_or_default().split_inclusive('\n') {
        at += line.len();
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if line.len() - line.trim_start_matches(' ').len() < indent {
            break;
        }
        end = at;
    }
    end
}
