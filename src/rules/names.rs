//! Names: what the API server takes as an object's name, and what CEL takes as an identifier.

use super::Gvk;

/// Words that CEL keeps for itself.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Names that mean something in every expression of a rule file.
const TAKEN: &[&str] = &["self", "variables", "resources", "resource"];

/// Why a text cannot be an identifier in a rule file's expressions; `None` if it can.
pub fn identifier(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("it is empty".to_owned());
    }
    if let Some(c) = name.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '_') {
        return Some(format!("expressions could not read it, because of `{c}`"));
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return Some("it begins with a digit".to_owned());
    }
    if name.len() > 63 {
        return Some(format!("it has {} characters, more than 63", name.len()));
    }
    if RESERVED.contains(&name) {
        return Some("it is a word of CEL".to_owned());
    }
    TAKEN.contains(&name).then(|| "it has a meaning of its own in rule files".to_owned())
}

/// Whether a name is one that CEL or rule files keep for themselves.
pub fn is_taken(name: &str) -> bool {
    RESERVED.contains(&name) || TAKEN.contains(&name)
}

/// `dns-servers` → `dnsServers`, where that makes an identifier.
pub fn camel_case(name: &str) -> Option<String> {
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let mut camel = parts.next()?.to_owned();
    for part in parts {
        let mut chars = part.chars();
        camel.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        camel.extend(chars);
    }
    (camel != name && identifier(&camel).is_none()).then_some(camel)
}

/// Group, version and kind, if they can be ones.
pub fn gvk(api_version: &str, kind: &str) -> Option<Gvk> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let group_fits = group.is_empty() != api_version.contains('/') && (group.is_empty() || subdomain(group).is_none());
    (group_fits && label(version).is_none() && is_kind(kind)).then(|| Gvk {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
    })
}

/// Whether a text can be a kind.
pub fn is_kind(kind: &str) -> bool {
    kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.len() <= 63
        && kind.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Why an object of this kind cannot have this name; `None` if it can. Kinds that are not known are held to the rule
/// that most kinds and every custom resource follow: a DNS subdomain.
pub fn of_object(gvk: &Gvk, name: &str) -> Option<String> {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Service") => service(name),
        ("", "Namespace") => label(name),
        ("rbac.authorization.k8s.io", _) => path_segment(name),
        // The controller adds a suffix of 11 characters to make a Job's name.
        ("batch", "CronJob") => too_long(name, 52).or_else(|| subdomain(name)),
        _ => subdomain(name),
    }
}

/// RFC 1123: a DNS label of at most 63 characters.
pub fn label(name: &str) -> Option<String> {
    too_long(name, 63).or_else(|| label_characters(name))
}

/// RFC 1123: DNS labels with dots between, at most 253 characters.
pub fn subdomain(name: &str) -> Option<String> {
    too_long(name, 253).or_else(|| {
        if name.is_empty() {
            return Some("it is empty".to_owned());
        }
        name.split('.').find_map(|part| {
            if part.is_empty() { Some("it has an empty part beside a `.`".to_owned()) } else { label_characters(part) }
        })
    })
}

/// RFC 1035: as a DNS label, and the first character a letter.
fn service(name: &str) -> Option<String> {
    label(name).or_else(|| {
        name.starts_with(|c: char| c.is_ascii_digit())
            .then(|| "it begins with a digit, and a Service's name begins with a letter".to_owned())
    })
}

fn path_segment(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("it is empty".to_owned());
    }
    if name == "." || name == ".." || name.contains(['/', '%']) {
        return Some("it may not be `.` or `..` or contain `/` or `%`".to_owned());
    }
    None
}

fn too_long(name: &str, most: usize) -> Option<String> {
    (name.len() > most).then(|| format!("it has {} characters, more than {most}", name.len()))
}

fn label_characters(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("it is empty".to_owned());
    }
    if let Some(c) = name.chars().find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'))) {
        let why = if c.is_ascii_uppercase() {
            "only small letters are allowed"
        } else {
            "only small letters, digits and `-` are allowed"
        };
        return Some(format!("it contains `{c}`, and {why}"));
    }
    if name.contains('.') {
        return Some("it contains `.`".to_owned());
    }
    let ends = |c: char| c == '-';
    (name.starts_with(ends) || name.ends_with(ends)).then(|| "it begins or ends with `-`".to_owned())
}
