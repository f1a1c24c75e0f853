//! The texts of values that Kubernetes gives no text to, so that a manifest can hold what a rule computed: our own.

use super::quantity::Quantity;
use super::semver::Version;
use super::url::Url;
use super::{Entry, Library, entry};
use crate::rules::expr::value::text;

pub(super) static LIBRARY: Library = Library { name: "texts", kubernetes: false, entries: ENTRIES };

const ENTRIES: &[Entry] = &[
    entry(
        "string",
        &["string(kubernetes.Quantity) -> string"],
        "The quantity in its canonical form: no fraction, the largest suffix, of the kind that it was written with.",
        &[("string(quantity('1Gi').add(quantity('512Mi')))", "'1536Mi'"), ("string(quantity('1.5'))", "'1500m'")],
        |args| {
            args.count(1)?;
            Ok(text(args.of::<Quantity>(0)?.to_string()))
        },
    ),
    entry(
        "string",
        &["string(kubernetes.Semver) -> string"],
        "The version, without the `v`, all three numbers.",
        &[("string(semver('v1.2', true))", "'1.2.0'")],
        |args| {
            args.count(1)?;
            Ok(text(args.of::<Version>(0)?.to_string()))
        },
    ),
    entry(
        "string",
        &["string(kubernetes.URL) -> string"],
        "The URL.",
        &[("string(url('HTTPS://example.com/a'))", "'https://example.com/a'")],
        |args| {
            args.count(1)?;
            Ok(text(args.of::<Url>(0)?.to_string()))
        },
    ),
];
