//! URLs, split and checked as Go's `net/url` does it, which Kubernetes uses. (The `url` crate follows the browsers' standard,
//! which repairs what Go refuses.)

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;

use cel::Value;
use cel::objects::{Key, Map, Opaque};

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::value::{list, opaque, shorten, text};

pub(super) static LIBRARY: Library = Library { name: "url", kubernetes: true, entries: ENTRIES };

/// A URL as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// As it was written, with the scheme in small letters.
    text: String,
    scheme: String,
    /// What follows the scheme when it is not a path: `mailto:` has one.
    rest: String,
    user: String,
    host: String,
    path: String,
    query: String,
}

impl Opaque for Url {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.URL"
    }
}

const ENTRIES: &[Entry] = &[
    entry(
        "url",
        &["url(string) -> kubernetes.URL"],
        "The URL that the text is: an absolute one, or an absolute path.",
        &[("url('https://example.com:80/path').getHost()", "'example.com:80'")],
        |args| {
            args.count(1)?;
            let source = args.string(0)?;
            args.budget.bytes(source.len())?;
            parse(source)
                .map(opaque)
                .map_err(|why| Failure::new(format!("`{}` is not an absolute URL or path: {why}", shorten(source))))
        },
    ),
    entry(
        "isURL",
        &["isURL(string) -> bool"],
        "Whether the text is an absolute URL or an absolute path.",
        &[("isURL('https://example.com/')", "true"), ("isURL('/path')", "true"), ("isURL('example.com')", "false")],
        |args| {
            args.count(1)?;
            let source = args.string(0)?;
            args.budget.bytes(source.len())?;
            Ok(Value::Bool(is_request_uri(source)))
        },
    ),
    entry(
        "getScheme",
        &["<kubernetes.URL>.getScheme() -> string"],
        "The scheme; empty if there is none.",
        &[("url('https://example.com/').getScheme()", "'https'"), ("url('/path').getScheme()", "''")],
        |args| part(args, |url| url.scheme.clone()),
    ),
    entry(
        "getHost",
        &["<kubernetes.URL>.getHost() -> string"],
        "The host with its port; an IPv6 address is in brackets.",
        &[("url('https://[::1]:80/').getHost()", "'[::1]:80'")],
        |args| part(args, |url| url.host.clone()),
    ),
    entry(
        "getHostname",
        &["<kubernetes.URL>.getHostname() -> string"],
        "The host without port and brackets.",
        &[("url('https://[::1]:80/').getHostname()", "'::1'")],
        |args| part(args, |url| url.host_and_port().0.to_owned()),
    ),
    entry(
        "getPort",
        &["<kubernetes.URL>.getPort() -> string"],
        "The port; empty if there is none.",
        &[("url('https://example.com:80/').getPort()", "'80'")],
        |args| part(args, |url| url.host_and_port().1.to_owned()),
    ),
    entry(
        "getEscapedPath",
        &["<kubernetes.URL>.getEscapedPath() -> string"],
        "The path, with what needs it percent-encoded.",
        &[("url('https://example.com/a b').getEscapedPath()", "'/a%20b'")],
        |args| part(args, Url::escaped_path),
    ),
    entry(
        "getQuery",
        &["<kubernetes.URL>.getQuery() -> map<string, list<string>>"],
        "The parameters behind the `?`, decoded, each with its values.",
        &[("url('https://example.com/?a=1&a=2&b').getQuery()", "{'a': ['1', '2'], 'b': ['']}")],
        query,
    ),
];

fn part(args: &Args<'_>, part: fn(&Url) -> String) -> Result<Value, Failure> {
    args.count(1)?;
    let url = args.of::<Url>(0)?;
    args.budget.bytes(url.path.len() * 3 + url.host.len())?;
    Ok(text(part(url)))
}

fn query(args: &Args<'_>) -> Result<Value, Failure> {
    args.count(1)?;
    let query = &args.of::<Url>(0)?.query;
    args.budget.bytes(query.len())?;
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        args.budget.elements(2)?;
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |part: &str| unescape(&part.replace('+', " "));
        if let (Some(name), Some(value)) = (decode(name), decode(value)) {
            found.entry(name).or_default().push(text(value));
        }
    }
    let map: HashMap<Key, Value> = found.into_iter().map(|(name, values)| (Key::from(name), list(values))).collect();
    Ok(Value::Map(Map { map: Arc::new(map) }))
}

/// Whether the text is what may follow the verb of an HTTP request: an absolute URL or path.
pub(super) fn is_request_uri(source: &str) -> bool {
    split(source, true).is_ok()
}

/// The URL that a text is, or why it is none.
fn parse(source: &str) -> Result<Url, String> {
    split(source, true)?;
    let (before, fragment) = source.split_once('#').unwrap_or((source, ""));
    unescape(fragment).ok_or("the fragment has a wrong percent-encoding")?;
    let url = split(before, false)?;
    let text = if fragment.is_empty() { url.text } else { format!("{}#{fragment}", url.text) };
    Ok(Url { text, ..url })
}

fn split(source: &str, request: bool) -> Result<Url, String> {
    if source.chars().any(|c| c.is_ascii_control()) {
        return Err("it holds a control character".to_owned());
    }
    if source.is_empty() && request {
        return Err("it is empty".to_owned());
    }
    let (scheme, rest) = scheme(source)?;
    let mut url = Url {
        text: format!("{}{}", scheme.to_ascii_lowercase(), &source[scheme.len()..]),
        scheme: scheme.to_ascii_lowercase(),
        rest: String::new(),
        user: String::new(),
        host: String::new(),
        path: String::new(),
        query: String::new(),
    };
    if source == "*" {
        source.clone_into(&mut url.path);
        return Ok(url);
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    query.clone_into(&mut url.query);
    let mut path = rest;
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            rest.clone_into(&mut url.rest);
            return Ok(url);
        }
        if request {
            return Err("it has neither a scheme nor a `/` at its beginning".to_owned());
        }
    }
    let has_authority = !scheme.is_empty() || (!request && !rest.starts_with("///"));
    if has_authority && let Some(authority) = rest.strip_prefix("//") {
        let end = authority.find('/').unwrap_or(authority.len());
        path = &authority[end..];
        let (user, host) = authority[..end].rsplit_once('@').unwrap_or(("", &authority[..end]));
        check_user(user)?;
        check_host(host)?;
        user.clone_into(&mut url.user);
        url.host = unescape(host).ok_or("the host has a wrong percent-encoding")?;
    }
    unescape_lossy(path).ok_or("the path has a wrong percent-encoding")?;
    path.clone_into(&mut url.path);
    Ok(url)
}

/// The scheme and what follows its colon; an empty scheme when there is none.
fn scheme(source: &str) -> Result<(&str, &str), String> {
    for (at, c) in source.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at > 0 => return Ok((&source[..at], &source[at + 1..])),
            ':' => return Err("the scheme before `:` is missing".to_owned()),
            _ => break,
        }
    }
    Ok(("", source))
}

fn check_user(user: &str) -> Result<(), String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if user.chars().all(valid) && unescape_lossy(user).is_some() {
        Ok(())
    } else {
        Err("the user before `@` is not valid".to_owned())
    }
}

fn check_host(host: &str) -> Result<(), String> {
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("the `[` of the host is never closed")?;
        &host[end + 1..]
    } else {
        // Without brackets a second colon cannot be told from an IPv6 address.
        match (host.find(':'), host.rfind(':')) {
            (Some(first), Some(last)) if first != last => return Err("the host has too many colons".to_owned()),
            (_, last) => last.map_or("", |at| &host[at..]),
        }
    };
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err("the port is not a number".to_owned());
    }
    let valid = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c);
    if host.chars().all(valid) { Ok(()) } else { Err("the host has a character that hosts cannot have".to_owned()) }
}

/// Undoes percent-encoding; `None` when it is wrong or the result is no text.
fn unescape(source: &str) -> Option<String> {
    String::from_utf8(unescape_lossy(source)?).ok()
}

fn unescape_lossy(source: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(source.len());
    let mut rest = source.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    Some(bytes)
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Url {
    /// Host and port; the brackets of an IPv6 address are left out.
    fn host_and_port(&self) -> (&str, &str) {
        let host = self.host.as_str();
        let (host, port) = match host.rsplit_once(':') {
            Some((before, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (before, port),
            _ => (host, ""),
        };
        (host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port)
    }

    fn escaped_path(&self) -> String {
        let valid = |c: char| c.is_ascii_alphanumeric() || "!$&'()*+,;=:@[]-_.~/%".contains(c);
        if self.path == "*" || self.path.chars().all(valid) {
            return self.path.clone();
        }
        let mut escaped = String::with_capacity(self.path.len());
        for byte in unescape_lossy(&self.path).unwrap_or_default() {
            if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
                escaped.push(char::from(byte));
            } else {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
        escaped
    }
}
