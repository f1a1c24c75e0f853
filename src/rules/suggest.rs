//! «Did you mean»: the name that a misspelt one was most likely meant to be; and other help with words.

/// The most similar of some names, if one is similar enough that a person would have meant it. A name that differs only
/// in upper and lower case always is.
pub fn did_you_mean<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    let allowed = match wrong.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    };
    names
        .into_iter()
        .filter(|name| *name != wrong && wrong.len() < 200)
        .filter_map(|name| {
            let candidate = name.to_lowercase();
            let distance = strsim::damerau_levenshtein(&lower, &candidate);
            // `port` for `ports`, `dns` for `dnsServers`: a beginning is a likelier slip than as many wrong letters.
            let begins = lower.len() >= 3 && (candidate.starts_with(&lower) || lower.starts_with(&candidate));
            let shorter = lower.chars().count().min(candidate.chars().count());
            let near = distance <= allowed && distance * 2 <= shorter.max(2);
            (near || begins).then_some((distance, name))
        })
        .min()
        .map(|(_, name)| name)
}

/// A word with its article: `a Service`, `an Ingress`; backticks before the word are looked through.
pub fn with_article(word: &str) -> String {
    let vowel = word.trim_start_matches('`').starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']);
    format!("{} {word}", if vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_another_word_finds_none() {
        let names = ["cidr", "gateway", "dnsServers", "ports", "subnets"];
        assert_eq!(did_you_mean("cdir", names), Some("cidr"));
        assert_eq!(did_you_mean("gatway", names), Some("gateway"));
        assert_eq!(did_you_mean("dnsservers", names), Some("dnsServers"));
        assert_eq!(did_you_mean("dns", names), Some("dnsServers"));
        assert_eq!(did_you_mean("port", names), Some("ports"));
        assert_eq!(did_you_mean("replicas", names), None);
        assert_eq!(did_you_mean("", names), None);
    }
}
