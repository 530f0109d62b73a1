//! Additional code pages in which to search for literals.

use std::fmt;

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, IBM866, ISO_8859_2, ISO_8859_3, ISO_8859_4,
    ISO_8859_5, ISO_8859_6, ISO_8859_7, ISO_8859_8, ISO_8859_8_I, ISO_8859_10, ISO_8859_13,
    ISO_8859_14, ISO_8859_15, ISO_8859_16, KOI8_R, KOI8_U, MACINTOSH, SHIFT_JIS, UTF_8, UTF_16BE,
    UTF_16LE, WINDOWS_874, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253, WINDOWS_1254,
    WINDOWS_1255, WINDOWS_1256, WINDOWS_1257, WINDOWS_1258, X_MAC_CYRILLIC,
};

/// Encodings that are stateless (a character has the same bytes everywhere) and supersets of ASCII.
static ALL: [&Encoding; 35] = [
    BIG5,
    EUC_JP,
    EUC_KR,
    GB18030,
    GBK,
    IBM866,
    ISO_8859_2,
    ISO_8859_3,
    ISO_8859_4,
    ISO_8859_5,
    ISO_8859_6,
    ISO_8859_7,
    ISO_8859_8,
    ISO_8859_8_I,
    ISO_8859_10,
    ISO_8859_13,
    ISO_8859_14,
    ISO_8859_15,
    ISO_8859_16,
    KOI8_R,
    KOI8_U,
    MACINTOSH,
    SHIFT_JIS,
    WINDOWS_874,
    WINDOWS_1250,
    WINDOWS_1251,
    WINDOWS_1252,
    WINDOWS_1253,
    WINDOWS_1254,
    WINDOWS_1255,
    WINDOWS_1256,
    WINDOWS_1257,
    WINDOWS_1258,
    X_MAC_CYRILLIC,
    UTF_8,
];

const UTF16_LE: u64 = 1 << 62;
const UTF16_BE: u64 = 1 << 63;

/// A set of encodings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Encodings {
    bits: u64,
}

impl Encodings {
    /// Parses a comma-separated list of encodings by their names on the web (`cp1251,shift_jis`).
    ///
    /// # Errors
    /// Returns a message for an unknown name, or for an encoding that is not stateless.
    pub fn parse(list: &str) -> Result<Self, String> {
        let mut encodings = Encodings::default();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let known = Encoding::for_label(name.as_bytes());
            let place = ALL.iter().position(|one| known == Some(*one));
            encodings.bits |= match (known, place) {
                (Some(encoding), _) if encoding == UTF_16LE => UTF16_LE,
                (Some(encoding), _) if encoding == UTF_16BE => UTF16_BE,
                (_, Some(place)) => 1 << place,
                (Some(encoding), None) => {
                    return Err(format!(
                        "the encoding '{name}' ({}) is not searched: its characters have no \
                         fixed bytes",
                        encoding.name()
                    ));
                }
                (None, None) => {
                    return Err(format!(
                        "no encoding '{name}'; there are, for example: cp1251, cp1252, iso-8859-2, \
                         koi8-r, ibm866, shift_jis, euc-jp, gbk, big5, euc-kr, utf-16le, utf-16be"
                    ));
                }
            };
        }
        Ok(encodings)
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }

    pub(crate) fn has_utf16_le(self) -> bool {
        self.bits & UTF16_LE != 0
    }

    pub(crate) fn has_utf16_be(self) -> bool {
        self.bits & UTF16_BE != 0
    }

    /// All but UTF-16.
    pub(crate) fn code_pages(self) -> impl Iterator<Item = CodePage> {
        let all = ALL.iter().enumerate();
        all.filter(move |(place, _)| self.bits & 1 << place != 0).map(|(_, one)| CodePage(one))
    }
}

impl fmt::Display for Encodings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&str> = self.code_pages().map(|page| page.0.name()).collect();
        names.extend(self.has_utf16_le().then_some("UTF-16LE"));
        names.extend(self.has_utf16_be().then_some("UTF-16BE"));
        f.write_str(&names.join(","))
    }
}

/// One of the encodings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodePage(&'static Encoding);

impl CodePage {
    /// Returns the bytes of a character, if the encoding has it.
    pub(crate) fn encode(self, character: char) -> Option<Vec<u8>> {
        let mut utf8 = [0; 4];
        let (bytes, _, is_lossy) = self.0.encode(character.encode_utf8(&mut utf8));
        (!is_lossy).then(|| bytes.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_known_by_their_names() {
        let encodings = Encodings::parse("cp1251, Shift_JIS,utf-16be,latin1").unwrap();
        assert_eq!(encodings.to_string(), "Shift_JIS,windows-1251,windows-1252,UTF-16BE");
        assert!(Encodings::parse("").unwrap().is_empty());
        assert!(Encodings::parse("cp1251,nonsense").unwrap_err().contains("'nonsense'"));
        assert!(Encodings::parse("iso-2022-jp").unwrap_err().contains("no fixed bytes"));
    }

    #[test]
    fn ascii_is_ascii_in_all_and_a_character_that_is_missing_has_no_bytes() {
        for page in ALL.map(CodePage) {
            for byte in 0..0x80u8 {
                assert_eq!(page.encode(byte as char), Some(vec![byte]), "{page:?}");
            }
        }
        let page = CodePage(WINDOWS_1251);
        assert_eq!([page.encode('д'), page.encode('日')], [Some(vec![0xE4]), None]);
        assert_eq!(CodePage(SHIFT_JIS).encode('日'), Some(vec![0x93, 0xFA]));
    }
}
