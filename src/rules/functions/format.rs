//! Named formats: what Kubernetes demands of names, labels, dates and the like, asked before Kubernetes refuses.

use std::sync::LazyLock;

use ::regex::Regex;
use cel::objects::Opaque;

use super::{Entry, Library, entry, url};
use crate::rules::expr::value::{list, opaque, optional, text};

pub(super) static LIBRARY: Library = Library { name: "format", kubernetes: true, entries: ENTRIES };

/// A format as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format(&'static str);

impl Opaque for Format {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.NamedFormat"
    }
}

/// A function without arguments that gives a format.
macro_rules! named {
    ($name:literal, $doc:literal, $valid:literal) => {
        entry(
            concat!("format.", $name),
            &[concat!("format.", $name, "() -> kubernetes.NamedFormat")],
            $doc,
            &[(concat!("format.", $name, "().validate('", $valid, "').hasValue()"), "false")],
            |args| {
                args.count(0)?;
                Ok(opaque(Format($name)))
            },
        )
    };
}

const ENTRIES: &[Entry] = &[
    entry(
        "validate",
        &["<kubernetes.NamedFormat>.validate(string) -> optional<list<string>>"],
        "What is wrong with the text, as a list of messages; none when it has the format.",
        &[
            ("format.dns1123Label().validate('my-name').hasValue()", "false"),
            ("format.dns1123Label().validate('My_Name').hasValue()", "true"),
        ],
        |args| {
            args.count(2)?;
            let source = args.string(1)?;
            args.budget.steps(source.len() / 16)?;
            let faults = args.of::<Format>(0)?.faults(source);
            let faults = faults.into_iter().map(text).collect::<Vec<_>>();
            Ok(optional(if faults.is_empty() { None } else { Some(list(faults)) }))
        },
    ),
    entry(
        "format.named",
        &["format.named(string) -> optional<kubernetes.NamedFormat>"],
        "The format of that name, if there is one.",
        &[("format.named('dns1123Label').hasValue()", "true"), ("format.named('other').hasValue()", "false")],
        |args| {
            args.count(1)?;
            let name = args.string(0)?;
            let known = NAMES.into_iter().find(|known| *known == name);
            Ok(optional(known.map(|name| opaque(Format(name)))))
        },
    ),
    named!(
        "dns1123Label",
        "A name of at most 63 small letters, digits and `-`, as most objects' names are.",
        "my-name"
    ),
    named!("dns1123Subdomain", "DNS labels with dots between them, at most 253 characters.", "example.com"),
    named!("dns1035Label", "A DNS label that begins with a letter, as a Service's name must be.", "my-name"),
    named!(
        "qualifiedName",
        "The key of a label: a name, perhaps with a DNS subdomain and `/` before it.",
        "example.com/name"
    ),
    named!("dns1123LabelPrefix", "What a DNS label can begin with: it may end in `-`.", "my-prefix-"),
    named!("dns1123SubdomainPrefix", "What a DNS subdomain can begin with: it may end in `-`.", "my.prefix-"),
    named!(
        "dns1035LabelPrefix",
        "What a DNS label that begins with a letter can begin with: it may end in `-`.",
        "my-prefix-"
    ),
    named!("labelValue", "The value of a label: at most 63 letters, digits, `-`, `_` and `.`, or nothing.", "my_value"),
    named!("uri", "An absolute URI, or an absolute path.", "https://example.com/path"),
    named!("uuid", "A UUID.", "123e4567-e89b-12d3-a456-426614174000"),
    named!("byte", "Base64.", "aGVsbG8="),
    named!("date", "A date: `2024-02-29`.", "2024-02-29"),
    named!("datetime", "A date and time: `2024-02-29T12:00:00Z`.", "2024-02-29T12:00:00Z"),
];

const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

impl Format {
    /// What is wrong with the text.
    fn faults(self, source: &str) -> Vec<String> {
        match self.0 {
            "dns1123Label" => dns_label(source),
            "dns1123LabelPrefix" => dns_label(&without_dash(source)),
            "dns1123Subdomain" => dns_subdomain(source),
            "dns1123SubdomainPrefix" => dns_subdomain(&without_dash(source)),
            "dns1035Label" => dns1035_label(source),
            "dns1035LabelPrefix" => dns1035_label(&without_dash(source)),
            "qualifiedName" => qualified_name(source),
            "labelValue" => {
                let mut faults = too_long(source, 63);
                if !source.is_empty() && !is_label_name(source) {
                    faults.push(NAME_CHARACTERS.to_owned());
                }
                faults
            }
            "uri" => unless(url::is_request_uri(source), "not an absolute URI or path"),
            "uuid" => unless(is_uuid(source), "not a UUID"),
            "byte" => unless(is_base64(source), "not base64"),
            "date" => unless(is_date(source), "not a date such as 2024-02-29"),
            _ => unless(is_date_time(source), "not a date and time such as 2024-02-29T12:00:00Z"),
        }
    }
}

const NAME_CHARACTERS: &str =
    "must consist of letters, digits, `-`, `_` and `.`, and begin and end with a letter or digit";

fn unless(valid: bool, fault: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![fault.to_owned()] }
}

fn too_long(source: &str, limit: usize) -> Vec<String> {
    unless(source.len() <= limit, &format!("must be no more than {limit} bytes"))
}

/// A prefix's last dash stands for what will follow it.
fn without_dash(source: &str) -> String {
    match source.strip_suffix('-') {
        // As Kubernetes does it: the character before the dash goes too.
        Some(rest) if !rest.is_empty() => {
            let kept: String = rest.chars().take(rest.chars().count() - 1).collect();
            format!("{kept}a")
        }
        _ => source.to_owned(),
    }
}

fn is_dns_label(label: &str) -> bool {
    let end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    label.starts_with(end) && label.ends_with(end) && label.chars().all(|c| end(c) || c == '-')
}

fn dns_label(source: &str) -> Vec<String> {
    let mut faults = too_long(source, 63);
    if !is_dns_label(source) {
        faults.push(if source.split('.').all(is_dns_label) {
            "must not contain dots".to_owned()
        } else {
            "must consist of small letters, digits and `-`, and begin and end with a letter or digit".to_owned()
        });
    }
    faults
}

fn dns_subdomain(source: &str) -> Vec<String> {
    let mut faults = too_long(source, 253);
    if !source.split('.').all(is_dns_label) {
        faults.push("must consist of small letters, digits, `-` and `.`, and every part must begin and end with a letter or digit".to_owned());
    }
    faults
}

fn dns1035_label(source: &str) -> Vec<String> {
    let mut faults = too_long(source, 63);
    if !(is_dns_label(source) && source.starts_with(|c: char| c.is_ascii_lowercase())) {
        faults.push(
            "must consist of small letters, digits and `-`, begin with a letter, and end with a letter or digit"
                .to_owned(),
        );
    }
    faults
}

fn is_label_name(name: &str) -> bool {
    let end = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(end) && name.ends_with(end) && name.chars().all(|c| end(c) || matches!(c, '-' | '_' | '.'))
}

fn qualified_name(source: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut parts = source.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                faults.push("the part before `/` must not be empty".to_owned());
            } else {
                faults.extend(dns_subdomain(prefix).into_iter().map(|fault| format!("the part before `/`: {fault}")));
            }
            name
        }
        (Some(name), None, _) => name,
        _ => return vec![format!("{NAME_CHARACTERS}, with at most one `/`")],
    };
    if name.is_empty() {
        faults.push("the name must not be empty".to_owned());
    } else {
        faults.extend(too_long(name, 63));
    }
    if !is_label_name(name) {
        faults.push(format!("the name {NAME_CHARACTERS}"));
    }
    faults
}

/// A pattern that is known to be valid; a broken one matches nothing.
fn is_match(regex: &LazyLock<Option<Regex>>, source: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(source))
}

fn is_uuid(source: &str) -> bool {
    static UUID: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("^(?i-u)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok());
    is_match(&UUID, source)
}

fn is_base64(source: &str) -> bool {
    let digits = source.trim_end_matches('=');
    !source.is_empty()
        && source.len().is_multiple_of(4)
        && source.len() - digits.len() <= 2
        && digits.chars().all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '/')
}

fn is_date(source: &str) -> bool {
    let digits =
        |range: std::ops::Range<usize>| source.get(range).is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()));
    source.len() == 10
        && digits(0..4)
        && digits(5..7)
        && digits(8..10)
        && chrono::NaiveDate::parse_from_str(source, "%Y-%m-%d").is_ok()
}

fn is_date_time(source: &str) -> bool {
    static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new("^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$").ok()
    });
    let lower = source.to_lowercase();
    let mut parts = lower.split('t');
    match (parts.next(), parts.next()) {
        (Some(date), Some(time)) => is_date(date) && is_match(&TIME, time),
        _ => false,
    }
}
