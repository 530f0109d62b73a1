//! Maps formats to encodings of the log, and parses the header of CSV batches.

use std::sync::Arc;

use memchr::memchr;

use crate::format::csv::Csv;
use crate::format::fix::Dictionary;
use crate::format::xml::{Xml, XmlPlace};
use crate::log::Encoding;
use crate::{Format, Result};

/// Returns the log's encoding of a format.
///
/// # Errors
/// [`Error::Store`](crate::Error::Store) for columnar formats.
pub(super) fn encoding_of(format: &Format, name: &str) -> Result<Encoding> {
    Ok(match format {
        Format::Json => Encoding::Json,
        Format::Fix(_) => Encoding::Fix,
        Format::Nvfix(_) => Encoding::NvFix,
        Format::Csv(_) => Encoding::Csv,
        Format::Xml(_) => Encoding::Xml,
        Format::Arrow | Format::Parquet => {
            let reason = format!(
                "{} is a columnar format, and the log stores messages: convert it to JSON lines or CSV",
                format.name()
            );
            return Err(crate::Error::Store { place: name.to_string(), reason });
        }
    })
}

/// Returns the format that reads messages of the log. For CSV, `header` precedes the messages.
pub(super) fn format_of(encoding: Encoding, header: &[u8]) -> Option<Format> {
    let dictionary = || Arc::new(Dictionary::builtin());
    Some(match encoding {
        Encoding::Json => Format::Json,
        Encoding::Fix => Format::Fix(dictionary()),
        Encoding::NvFix => Format::Nvfix(dictionary()),
        Encoding::Csv => {
            let delimiter = header_of(header).map(|(_, delimiter)| delimiter);
            Format::Csv(Csv { delimiter, has_header: true })
        }
        Encoding::Xml => Format::Xml(Xml { place: Some(XmlPlace::Outermost), ..Xml::default() }),
        _ => return None,
    })
}

/// Returns the name for users of an encoding's format.
pub(super) fn name_of(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Json => "json",
        Encoding::Fix => "fix",
        Encoding::NvFix => "nvfix",
        Encoding::Csv => "csv",
        Encoding::Xml => "xml",
        _ => "rows",
    }
}

/// Returns whether messages must be extracted from their surroundings, since an element around all of them is
/// not a message.
pub(super) fn is_apart(encoding: Encoding) -> bool {
    encoding == Encoding::Xml
}

/// Returns the length of the header at the start of `bytes`, and its delimiter; None unless the header has
/// the form that the log writes: names in quotes.
pub(super) fn header_of(bytes: &[u8]) -> Option<(usize, u8)> {
    let (mut at, mut delimiter) = (0, b',');
    loop {
        if bytes.get(at) != Some(&b'"') {
            return None;
        }
        at += 1;
        loop {
            at += memchr(b'"', bytes.get(at..)?)? + 1;
            match bytes.get(at) {
                Some(b'"') => at += 1,
                _ => break,
            }
        }
        match bytes.get(at)? {
            b'\n' => return Some((at + 1, delimiter)),
            other => delimiter = *other,
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_ends_after_its_last_name() {
        for (text, expected) in [
            ("\"a\"\n1\n", Some((4, b','))),
            ("\"a\";\"b\"\"\n;\"\nrest", Some((12, b';'))),
            ("a,b\n", None),
            ("\"a\",\"b", None),
            ("\"a\"", None),
            ("", None),
        ] {
            assert_eq!(header_of(text.as_bytes()), expected, "{text:?}");
        }
    }
}
