//! Matches in text form.

use std::fmt::Write;

use super::{Form, Kind, Pattern};

impl Pattern {
    /// Appends a match of this pattern, or its first bytes, to `out` as text: UTF-8 unchanged, a
    /// UTF-16 match decoded, every other byte as `\xNN`.
    pub fn show_match(&self, found: &[u8], out: &mut String) {
        match self.decode_match(found) {
            Some(text) => out.push_str(&text),
            None => push_escaped(found, out),
        }
    }

    /// Decodes the match if the pattern matched in UTF-16: the text of a literal, or a match of a
    /// regex over UTF-16.
    #[must_use]
    pub fn decode_match(&self, found: &[u8]) -> Option<String> {
        if let Some(order) = self.wide {
            return decoded(found, |bytes| order.unit(bytes));
        }
        let text = match &self.kind {
            Kind::Literal { bytes, form, .. } if *form != Form::Plain || bytes != found => {
                std::str::from_utf8(bytes).ok()?
            }
            Kind::Literal { .. } | Kind::Masked { .. } | Kind::Program(_) | Kind::Regex(_) => {
                return None;
            }
        };
        [u16::from_le_bytes, u16::from_be_bytes]
            .into_iter()
            .find_map(|unit| decoded(found, unit).filter(|decoded| begins_alike(text, decoded)))
    }
}

/// Decodes bytes as UTF-16.
fn decoded(found: &[u8], unit: impl Fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = found.as_chunks::<2>();
    let units = pairs.iter().map(|pair| unit(*pair));
    let decoded: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
    rest.is_empty().then_some(decoded)
}

/// Whether `text` begins with `start`, ignoring case.
fn begins_alike(text: &str, start: &str) -> bool {
    let mut characters = text.chars();
    !start.is_empty()
        && start.chars().all(|b| {
            characters.next().is_some_and(|a| {
                a == b
                    || a.to_lowercase().eq(b.to_lowercase())
                    || a.to_uppercase().eq(b.to_uppercase())
            })
        })
}

/// Appends UTF-8 unchanged, and every other byte as `\xNN`.
fn push_escaped(bytes: &[u8], out: &mut String) {
    for part in bytes.utf8_chunks() {
        out.push_str(part.valid());
        for byte in part.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pattern: &Pattern, found: &[u8]) -> String {
        let mut out = String::new();
        pattern.show_match(found, &mut out);
        out
    }

    fn wide(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn utf8_is_unchanged_and_other_bytes_are_escaped() {
        let regex = Pattern::regex("a.*").unwrap();
        assert_eq!(shown(&regex, "aé\n".as_bytes()), "aé\n");
        assert_eq!(shown(&regex, b"a\xFFb\xC3"), "a\\xffb\\xc3");
        assert_eq!(shown(&regex, b"a\0b\0"), "a\0b\0", "a regex is not text in UTF-16");
        let wide = Pattern::regex_utf16("a.*").unwrap();
        assert_eq!(shown(&wide, b"a\0\xE9\0"), "aé");
        assert_eq!(shown(&wide, b"a\0b"), "a\0b", "cut off");
        let big = Pattern::regex_utf16be("a.*").unwrap();
        assert_eq!(shown(&big, b"\0a\x01\x61"), "a\u{161}");
    }

    #[test]
    fn matches_in_utf16_are_decoded_in_either_case() {
        for text in ["Straße", "да", "a"] {
            let literal = Pattern::literal(text).unwrap();
            assert_eq!(shown(&literal, text.as_bytes()), text);
            let upper: String = text.chars().flat_map(char::to_uppercase).collect();
            let same_length = upper.chars().count() == text.chars().count();
            for found in [text, &upper].into_iter().filter(|f| *f == text || same_length) {
                assert_eq!(shown(&literal, &wide(found, u16::to_le_bytes)), found);
                assert_eq!(shown(&literal, &wide(found, u16::to_be_bytes)), found);
            }
        }
        let only_wide = Pattern::utf16("ab").unwrap();
        assert_eq!(shown(&only_wide, b"a\0b\0"), "ab");
    }

    #[test]
    fn the_first_part_of_a_long_match_in_utf16_is_decoded() {
        let long = "long text".repeat(1000);
        let found = wide(&long, u16::to_le_bytes);
        assert_eq!(shown(&Pattern::literal(&long).unwrap(), &found[..4096]), long[..2048]);
    }
}
