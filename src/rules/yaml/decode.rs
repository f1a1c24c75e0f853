//! Bytes → text: encoding, byte order mark, size, characters that YAML does not allow.

use std::sync::Arc;

use super::MAX_BYTES;
use crate::diagnostic::{Diagnostic, SourceFile, Span};

/// The text of a file, or why it cannot be read as text. The file comes back in both cases, for messages.
pub fn decode(path: impl Into<String>, bytes: Vec<u8>) -> (Arc<SourceFile>, Option<Diagnostic>) {
    let path = path.into();
    if bytes.len() > MAX_BYTES {
        let size = bytes.len();
        let file = SourceFile::new(path, String::new());
        let fault = too_large(&file, size);
        return (file, Some(fault));
    }
    match String::from_utf8(bytes) {
        Ok(text) => {
            let file = SourceFile::new(path, text);
            let fault = check(&file);
            (file, fault)
        }
        Err(error) => {
            let bytes = error.as_bytes();
            let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
            let offset = error.utf8_error().valid_up_to();
            let byte = bytes.get(offset).copied().unwrap_or_default();
            // The broken byte becomes a replacement character, so that the line can be shown.
            let file = SourceFile::new(path, String::from_utf8_lossy(bytes).into_owned());
            let end = offset + char::REPLACEMENT_CHARACTER.len_utf8();
            let fault = Diagnostic::error(
                "invalid-utf8",
                if utf16 {
                    "the file is UTF-16, not UTF-8".to_owned()
                } else {
                    format!("the byte 0x{byte:02x} is not part of any UTF-8 character")
                },
                file.at(Span::new(offset, end)),
            )
            .help("save the file as UTF-8");
            (file, Some(fault))
        }
    }
}

/// What makes a text unfit for YAML before any syntax is looked at.
pub(super) fn check(file: &Arc<SourceFile>) -> Option<Diagnostic> {
    if file.text.len() > MAX_BYTES {
        return Some(too_large(file, file.text.len()));
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

fn too_large(file: &Arc<SourceFile>, size: usize) -> Diagnostic {
    Diagnostic::error(
        "file-too-large",
        format!("the file has {size} bytes, more than the {MAX_BYTES} that a rule file may have"),
        file.at(Span::new(0, 0)),
    )
    .help("split it into several files: a rule set is one document, and a folder may hold many")
}
