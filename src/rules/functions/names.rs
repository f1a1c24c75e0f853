//! Names that Kubernetes accepts, whatever they are made from: our own.

use std::hash::Hasher;

use cel::Value;
use siphasher::sip::SipHasher24;

use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::value::text;

pub(super) static LIBRARY: Library = Library { name: "names", kubernetes: false, entries: ENTRIES };

const ENTRIES: &[Entry] = &[entry(
    "dnsLabel",
    &["dnsLabel(string) -> string", "dnsLabel(string, int) -> string"],
    "The text as a DNS label: small letters, digits and `-`, at most 63 characters or as many as given (10 to 63). A text \
     that is one already stays as it is; any other gets a suffix made from the whole text, so that different texts give \
     different labels, and the same text always the same one.",
    &[
        ("dnsLabel('web-1')", "'web-1'"),
        ("dnsLabel('My.Network').startsWith('my-network-')", "true"),
        ("dnsLabel('a.b') == dnsLabel('a-b')", "false"),
        ("dnsLabel('a-rather-long-name', 12).size() <= 12", "true"),
    ],
    dns_label,
)];

/// The longest DNS label.
const MAX_LABEL: usize = 63;
/// The length of the suffix, its dash included.
const SUFFIX: usize = 9;

fn dns_label(args: &Args<'_>) -> Result<Value, Failure> {
    let source = args.string(0)?;
    let limit = match args.values.len() {
        1 => MAX_LABEL,
        2 => match usize::try_from(args.int(1)?) {
            Ok(limit) if (SUFFIX + 1..=MAX_LABEL).contains(&limit) => limit,
            _ => return Err(Failure::new(format!("a label's length must be from {} to {MAX_LABEL}", SUFFIX + 1))),
        },
        _ => return Err(Failure::NoOverload),
    };
    args.budget.bytes(source.len())?;
    if source.is_empty() {
        return Err(Failure::new("an empty text cannot become a label"));
    }
    Ok(text(label(source, limit)))
}

/// The label of at most `limit` characters for a text.
pub(crate) fn label(source: &str, limit: usize) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = source.len() <= limit
        && source.chars().all(|c| allowed(c) || c == '-')
        && source.starts_with(allowed)
        && source.ends_with(allowed);
    if valid {
        return source.to_owned();
    }
    let replaced: String =
        source.chars().map(|c| c.to_ascii_lowercase()).map(|c| if allowed(c) { c } else { '-' }).collect();
    let kept: String = replaced.trim_matches('-').chars().take(limit - SUFFIX).collect();
    let kept = kept.trim_end_matches('-');
    let suffix = suffix(source);
    // A text without any letter or digit leaves nothing but its suffix, which begins with a letter.
    if kept.is_empty() { suffix } else { format!("{kept}-{suffix}") }
}

/// Eight characters that depend on every byte of the text. No vowels, so no words; the first one is a letter.
fn suffix(source: &str) -> String {
    const ALPHABET: &[u8; 32] = b"bcdfghjkmnpqrstvwxz2456789bcdfgh";
    let mut hasher = SipHasher24::new();
    hasher.write(source.as_bytes());
    let hash = hasher.finish();
    (0..SUFFIX - 1)
        .map(|position| {
            let digit = usize::try_from(hash >> (position * 5) & 31).unwrap_or(0);
            // The first 19 characters of the alphabet are letters.
            char::from(ALPHABET[if position == 0 { digit % 19 } else { digit }])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_valid_stable_and_as_short_as_asked() {
        assert_eq!(label("demo", 63), "demo");
        let long = label(&format!("{}-end", "x".repeat(253)), 63);
        assert_eq!(long.len(), 63);
        assert_ne!(long, label(&format!("{}-eng", "x".repeat(253)), 63));
        assert_eq!(label("Demo.Net", 63), label("Demo.Net", 63));
        for source in ["---", "é", "a.", ".a", "UPPER", "a_b", "-a", &"a-".repeat(60)] {
            for limit in [10, 15, 63] {
                let label = label(source, limit);
                assert!(label.len() <= limit && !label.starts_with('-') && !label.ends_with('-'), "{label}");
                assert!(label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{label}");
            }
        }
    }

    #[test]
    fn the_suffix_never_changes_between_releases() {
        assert_eq!(suffix("Demo.Net"), "c8qnxvmg");
    }
}
