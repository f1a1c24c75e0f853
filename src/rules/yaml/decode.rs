//! Is it text at all? Encoding, size, and characters that YAML does not allow, before any syntax is looked at.

use std::sync::Arc;

use super::MAX_BYTES;
use crate::diagnostic::{Diagnostic, SourceFile, Span};

/// What makes a file unfit for YAML.
pub(super) fn check(file: &Arc<SourceFile>) -> Option<Diagnostic> {
    if file.text.len() > MAX_BYTES {
        return Some(too_large(file, file.text.len()));
    }
    if let Some((offset, byte)) = file.not_utf8 {
        return Some(not_utf8(file, offset, byte));
    }
    let body = file.text.strip_prefix('\u{feff}').unwrap_or(&file.text);
    let start = file.text.len() - body.len();
    let (offset, c) = body.char_indices().find(|(_, c)| !printable(*c))?;
    let span = Span::new(start + offset, start + offset + c.len_utf8());
    Some(match c {
        '\0' => Diagnostic::error("nul-byte", "a NUL byte: this is not a text file", file.at(span))
            .help("write it as \"\\0\" inside double quotes if the value needs it"),
        c => Diagnostic::error(
            "control-character",
            format!("the control character U+{:04X} is not allowed in YAML", u32::from(c)),
            file.at(span),
        )
        .help(format!("write it as \"\\u{:04x}\" inside double quotes if the value needs it", u32::from(c))),
    })
}

/// YAML 1.2, production `c-printable`, plus the byte order mark that the scanner judges by its place.
fn printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

fn not_utf8(file: &Arc<SourceFile>, offset: usize, byte: u8) -> Diagnostic {
    // A byte order mark of UTF-16, in either order.
    let utf16 = offset == 0 && matches!(byte, 0xfe | 0xff);
    let message = if utf16 {
        "the file is UTF-16, not UTF-8".to_owned()
    } else {
        format!("the byte 0x{byte:02x} is not part of any UTF-8 character")
    };
    let end = offset + char::REPLACEMENT_CHARACTER.len_utf8();
    Diagnostic::error("invalid-utf8", message, file.at(Span::new(offset, end))).help("save the file as UTF-8")
}

fn too_large(file: &Arc<SourceFile>, size: usize) -> Diagnostic {
    Diagnostic::error(
        "file-too-large",
        format!("the file has {size} bytes, more than the {MAX_BYTES} that a rule file may have"),
        file.at(Span::new(0, 0)),
    )
    .help("split it into several files: a rule set is one document, and a folder may hold many")
}
