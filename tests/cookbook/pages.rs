//! `rules/README.md` and `rules/cookbook/README.md`: the parts that are made from the code or from the recipes' files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use network_operator::rules::fields::{Object, RULE_SET, Shape};
use network_operator::rules::functions::{FunctionDoc, functions, known_differences};

use super::{keep, recipe, recipes, repository};

#[test]
fn the_reference_has_every_field_and_every_function() {
    let path = repository().join("rules/README.md");
    let page = fs::read_to_string(&path).unwrap();
    let page = replaced(&page, "fields", &fields());
    let page = replaced(&page, "functions", &function_tables());
    keep(&path, &replaced(&page, "differences", &differences()));
}

#[test]
fn the_reference_explains_every_reason_of_a_condition() {
    let page = fs::read_to_string(repository().join("rules/README.md")).unwrap();
    let mut reasons = BTreeSet::new();
    for file in ["src/status.rs", "src/api_error.rs"] {
        let text = fs::read_to_string(repository().join(file)).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap().to_owned();
        let quoted = code.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        reasons.extend(quoted.into_iter().filter(|text| is_reason(text)));
    }
    assert!(reasons.len() > 15, "{reasons:?}");
    let missing: Vec<_> = reasons.iter().filter(|reason| !page.contains(&format!("`{reason}`"))).collect();
    assert!(missing.is_empty(), "the reference does not explain {missing:?}");
}

/// Whether a text of the code is a reason: capital words without spaces, and no name of something else.
fn is_reason(text: &str) -> bool {
    let words = text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(|c| c.is_ascii_alphabetic());
    let small = text.chars().any(|c| c.is_ascii_lowercase());
    let other = ["Ready", "Stalled", "True", "False", "Status", "Failure", "AlreadyExists", "FieldManagerConflict"];
    words && small && !other.contains(&text)
}

#[test]
fn the_cookbook_shows_the_recipes_as_they_are() {
    let path = repository().join("rules/cookbook/README.md");
    let page = fs::read_to_string(&path).unwrap();
    for recipe in recipe::all() {
        let marker = format!("<!-- {}/rules.yaml -->", recipe.name());
        assert_eq!(page.matches(&marker).count(), 1, "{marker} is not in the page once");
    }
    keep(&path, &with_files(&page));
}

#[test]
fn the_rules_that_the_pages_show_are_free_of_faults() {
    let mut shown = 0;
    for name in ["README.md", "MIGRATING.md"] {
        let page = fs::read_to_string(repository().join("rules").join(name)).unwrap();
        for block in page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            if block.contains("kind: RuleSet\n") {
                recipes::free_of_faults(name, block);
                shown += 1;
            }
        }
        for block in page.split("<!-- checked -->\n```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let spec = block.trim_end().replace('\n', "\n  ");
            recipes::free_of_faults(name, &format!("{}  {spec}\n", head("shown")));
            shown += 1;
        }
    }
    assert!(shown > 4);
}

#[test]
fn the_commands_that_the_pages_show_succeed() {
    let mut run = 0;
    for name in ["README.md", "cookbook/README.md"] {
        let page = fs::read_to_string(repository().join("rules").join(name)).unwrap();
        for command in page.lines().filter_map(|line| line.strip_prefix("$ network-operator ")) {
            let output = Command::new(env!("CARGO_BIN_EXE_network-operator"))
                .args(command.split(' '))
                .current_dir(repository())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: {command}: {said}");
            run += 1;
        }
    }
    assert!(run > 3);
}

#[test]
fn links_between_the_pages_lead_somewhere() {
    for name in ["README.md", "MIGRATING.md", "cookbook/README.md"] {
        let path = repository().join("rules").join(name);
        let page = fs::read_to_string(&path).unwrap();
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{name}: {link} leads nowhere");
            if !anchor.is_empty() {
                let there = anchors(&fs::read_to_string(&target).unwrap());
                assert!(there.contains(anchor), "{name}: {link}: there is no such heading");
            }
        }
    }
}

/// The names under which a page's headings can be linked to, as the usual renderers make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
        .collect()
}

/// The page with the text between `<!-- begin: NAME -->` and `<!-- end: NAME -->` replaced.
fn replaced(page: &str, name: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- begin: {name} -->"), format!("<!-- end: {name} -->"));
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the page has no `{begin}`"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("the page has no `{end}`"));
    format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim())
}

/// The page with each code block that follows `<!-- FOLDER/FILE -->` replaced by that file.
fn with_files(page: &str) -> String {
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let named = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        let Some(file) = named.filter(|name| name.contains('/')) else { continue };
        assert_eq!(lines.next(), Some("```yaml"), "a code block follows `{line}`");
        lines.by_ref().find(|line| *line == "```").unwrap_or_else(|| panic!("the block after `{line}` has no end"));
        let content = fs::read_to_string(repository().join("rules/cookbook").join(file)).unwrap();
        writeln!(text, "```yaml\n{}\n```", without_head(file, &content).trim_end()).unwrap();
    }
    text
}

/// A rule file without the five lines that they all begin with.
fn without_head<'a>(file: &str, content: &'a str) -> &'a str {
    if !file.ends_with("/rules.yaml") {
        return content;
    }
    let name = file.split_once('-').and_then(|(_, name)| name.strip_suffix("/rules.yaml")).unwrap();
    let head = head(name);
    content.strip_prefix(&head).unwrap_or_else(|| panic!("{file} does not begin with\n{head}"))
}

/// How every rule file here begins.
fn head(name: &str) -> String {
    format!(
        "apiVersion: rules.samplecrd.k8s.io/v1alpha1\nkind: RuleSet\nmetadata: {{name: {name}}}\nspec:\n  for: {{apiVersion: samplecrd.k8s.io/v1, kind: Network}}\n"
    )
}

fn fields() -> String {
    let mut tables = Vec::new();
    table_of(&RULE_SET, "a whole document", &mut tables);
    tables.join("\n\n")
}

/// A table for an object, and for every object inside it that is not shown yet.
fn table_of(object: &Object, place: &str, tables: &mut Vec<String>) {
    let mut table = format!("**{place}**\n\n| field | what stands there | what it is for |\n|---|---|---|\n");
    for field in object.fields {
        let needed = if field.required { " (required)" } else { "" };
        writeln!(table, "| `{}`{needed} | {} | {} |", field.name, shape(field.shape), cell(field.doc)).unwrap();
    }
    tables.push(table.trim_end().to_owned());
    for field in object.fields {
        let inner = if place == "a whole document" { field.name.to_owned() } else { format!("{place}.{}", field.name) };
        match field.shape {
            Shape::Object(object) => table_of(object, &inner, tables),
            Shape::List(object) => table_of(object, &format!("{inner}[]"), tables),
            Shape::ForEach(object) => table_of(object, &format!("{inner}, the long form"), tables),
            _ => {}
        }
    }
}

fn shape(shape: Shape) -> String {
    match shape {
        Shape::Constant(text) => format!("`{text}`"),
        Shape::Text => "text".to_owned(),
        Shape::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Shape::Expression => "CEL".to_owned(),
        Shape::Expressions => "CEL, or a list of it".to_owned(),
        Shape::NamedExpressions => "`NAME: CEL`, …".to_owned(),
        Shape::Pointer => "JSON Pointer".to_owned(),
        Shape::Manifest => "YAML with `${CEL}`, a mapping".to_owned(),
        Shape::Tree => "YAML with `${CEL}`".to_owned(),
        Shape::ForEach(_) => "`NAME: CEL`, or the long form".to_owned(),
        Shape::Object(_) => "mapping".to_owned(),
        Shape::List(_) => "list".to_owned(),
    }
}

fn function_tables() -> String {
    let mut text = String::new();
    let mut library = "";
    for doc in functions() {
        if doc.library != library {
            library = doc.library;
            let whose = if doc.kubernetes { "" } else { ": ours" };
            write!(text, "\n### {library}{whose}\n\n| function | what it does | example |\n|---|---|---|\n").unwrap();
        }
        let examples = doc.examples.iter().map(|(expression, result)| match *result {
            "true" => code(expression),
            result => code(&format!("{expression} == {result}")),
        });
        let examples: Vec<_> = examples.collect();
        writeln!(text, "| {} | {} | {} |", signatures(doc), cell(doc.doc), examples.join("<br>")).unwrap();
    }
    text
}

fn differences() -> String {
    let mut text = "| what differs | why | for instance |\n|---|---|---|\n".to_owned();
    for difference in known_differences() {
        let function = match difference.function {
            "" => String::new(),
            name => format!("`{name}`: "),
        };
        let examples: Vec<_> = difference.examples.iter().map(|example| code(example)).collect();
        let (what, reason) = (cell(difference.what), cell(difference.reason));
        writeln!(text, "| {function}{what} | {reason} | {} |", examples.join("<br>")).unwrap();
    }
    text
}

/// One line for each signature; those that differ only in one type are one line.
fn signatures(doc: &FunctionDoc) -> String {
    const ORDERED: [&str; 8] = ["int", "uint", "double", "bool", "string", "bytes", "duration", "timestamp"];
    let types: Vec<&str> = doc
        .signatures
        .iter()
        .filter_map(|signature| ORDERED.into_iter().find(|name| signature.starts_with(&format!("<list<{name}>>"))))
        .collect();
    let general: BTreeSet<String> = doc
        .signatures
        .iter()
        .zip(&types)
        .map(|(signature, name)| {
            let (receiver, rest) = signature.split_once(">>").unwrap_or((signature, ""));
            let rest = rest
                .strip_suffix(name)
                .map_or_else(|| rest.replace(&format!("<{name}>"), "<T>"), |rest| format!("{rest}T"));
            format!("{}>>{rest}", receiver.replace(name, "T"))
        })
        .collect();
    match general.first().filter(|_| types.len() > 2 && types.len() == doc.signatures.len() && general.len() == 1) {
        Some(general) => format!("{}<br>T: {}", code(general), types.join(", ")),
        None => doc.signatures.iter().map(|signature| code(signature)).collect::<Vec<_>>().join("<br>"),
    }
}

/// Code inside a table's cell.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

/// Text inside a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
