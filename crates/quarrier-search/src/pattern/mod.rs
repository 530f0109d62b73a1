//! Patterns, as users write them and as engines see them.

mod encodings;
mod expand;
mod file;
mod forms;
mod hex;
mod needle;
mod program;
mod shown;

pub use encodings::Encodings;
pub use file::{parse_file, parse_file_until};
pub(crate) use needle::{Needle, Needles};

use crate::error::{Error, Result};
use forms::BASE64_BYTES_MIN;
use hex::Hex;
use program::Program;

/// Maximum length of a literal or hex pattern in bytes.
pub const LENGTH_BYTES_MAX: usize = 1 << 16;

/// Maximum number of patterns in a set. Each takes about 300 bytes of memory.
pub const PATTERNS_MAX: usize = 1_000_000;

/// Makes the error for a set of more than [`PATTERNS_MAX`].
pub(crate) fn too_many() -> Error {
    Error::Set(format!("more than {PATTERNS_MAX} patterns; search for them in several runs"))
}

/// One pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The pattern as written by the user.
    pub text: String,
    /// The name given to it, if any.
    pub name: Option<String>,
    pub(crate) kind: Kind,
    /// The byte order of UTF-16, if this is a regex over text in it.
    pub(crate) wide: Option<Utf16>,
}

/// A byte order of UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Utf16 {
    Little,
    Big,
}

impl Utf16 {
    /// Decodes a unit.
    pub(crate) fn unit(self, bytes: [u8; 2]) -> u16 {
        match self {
            Utf16::Little => u16::from_le_bytes(bytes),
            Utf16::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Encodes a unit.
    pub(crate) fn bytes(self, unit: u16) -> [u8; 2] {
        match self {
            Utf16::Little => unit.to_le_bytes(),
            Utf16::Big => unit.to_be_bytes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes, in a form. The set's options may ignore the case of letters.
    Literal { bytes: Vec<u8>, form: Form, is_word: bool },
    /// Byte values under a mask: a text byte `t` matches when `t & mask == value`.
    Masked { value: Vec<u8>, mask: Vec<u8> },
    /// Hexadecimal with jumps, alternatives or negated bytes.
    Program(Program),
    /// A regex, as written.
    Regex(String),
}

/// The form in which the bytes of a literal occur in the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Unchanged, and in all further forms that the set's options request.
    Plain,
    Utf16Le,
    Utf16Be,
    /// Xored with any single byte.
    Xor,
    Base64,
}

impl Pattern {
    /// Makes a pattern of the UTF-8 bytes of `text`.
    ///
    /// # Errors
    /// If `text` is empty or longer than [`LENGTH_BYTES_MAX`].
    pub fn literal(text: &str) -> Result<Self> {
        Self::bytes(text.as_bytes(), text)
    }

    /// Makes a pattern of any bytes, displayed as `text`.
    ///
    /// # Errors
    /// As [`Pattern::literal`].
    pub fn bytes(bytes: &[u8], text: &str) -> Result<Self> {
        check_length(text, bytes.len())?;
        Ok(Self::formed(text, bytes, Form::Plain))
    }

    /// Parses a hexadecimal pattern: bytes and wildcards (`FF D8 ?? 4?`), negated bytes (`~00`),
    /// jumps over arbitrary bytes (`[4]`, `[4-6]`, `[4-]`), and alternatives (`(FF D8 | 89 50)`).
    /// Blanks between bytes are optional.
    ///
    /// A finding starts wherever a match begins and has the length of the shortest match there. An
    /// open jump extends at most as far as the longest match of a regex.
    ///
    /// # Errors
    /// An odd number of digits, other characters, no bytes, or wildcards only.
    pub fn hex(text: &str) -> Result<Self> {
        match hex::parse(text).map_err(|reason| Error::pattern(text, reason))? {
            Hex::Masked(bytes) => {
                check_length(text, bytes.len())?;
                if bytes.iter().all(|(_, mask)| *mask == 0) {
                    return Err(Error::pattern(
                        text,
                        "has wildcards only; it would match everywhere",
                    ));
                }
                let (value, mask) = bytes.into_iter().unzip();
                Ok(Self::new(text, Kind::Masked { value, mask }))
            }
            Hex::Program(program) => {
                if expand::prefixes(&program).is_none() {
                    return Err(Error::pattern(
                        text,
                        "begins with wildcards, or too many possibilities; begin it with bytes, or \
                         shorten its first jump",
                    ));
                }
                Ok(Self::new(text, Kind::Program(program)))
            }
        }
    }

    /// Makes a byte regex: `.` and classes match bytes, `\xFF` is the byte FF, `(?u)` turns on
    /// Unicode. It is compiled together with the set.
    ///
    /// # Errors
    /// If it is empty.
    pub fn regex(text: &str) -> Result<Self> {
        check_length(text, text.len())?;
        Ok(Self::new(text, Kind::Regex(text.to_string())))
    }

    /// Makes a regex over text in UTF-16LE, at any offset: `.`, classes, `\b`, and `^` and `$` of
    /// lines are about characters of Unicode. It is compiled together with the set.
    ///
    /// # Errors
    /// As [`Pattern::regex`].
    pub fn regex_utf16(text: &str) -> Result<Self> {
        Ok(Pattern { wide: Some(Utf16::Little), ..Self::regex(text)? })
    }

    /// Makes a regex as [`regex_utf16`](Self::regex_utf16) does, over text in UTF-16BE.
    ///
    /// # Errors
    /// As [`Pattern::regex`].
    pub fn regex_utf16be(text: &str) -> Result<Self> {
        Ok(Pattern { wide: Some(Utf16::Big), ..Self::regex(text)? })
    }

    /// Makes a pattern of only the UTF-16LE form of `text`.
    ///
    /// # Errors
    /// As [`Pattern::literal`].
    pub fn utf16(text: &str) -> Result<Self> {
        Self::wide(text, Form::Utf16Le)
    }

    /// Makes a pattern of only the UTF-16BE form of `text`.
    ///
    /// # Errors
    /// As [`Pattern::literal`].
    pub fn utf16be(text: &str) -> Result<Self> {
        Self::wide(text, Form::Utf16Be)
    }

    fn wide(text: &str, form: Form) -> Result<Self> {
        check_length(text, text.encode_utf16().count() * 2)?;
        Ok(Self::formed(text, text.as_bytes(), form))
    }

    /// Makes a pattern of `bytes`, displayed as `text`, xored with any single byte, including 0,
    /// which leaves the bytes unchanged.
    ///
    /// # Errors
    /// As [`Pattern::literal`].
    pub fn xor(bytes: &[u8], text: &str) -> Result<Self> {
        check_length(text, bytes.len())?;
        Ok(Self::formed(text, bytes, Form::Xor))
    }

    /// Makes a pattern of `bytes`, displayed as `text`, within any data encoded in base64, by the
    /// standard or the URL-safe alphabet. A finding includes every character that holds a bit of
    /// `bytes`.
    ///
    /// # Errors
    /// As [`Pattern::literal`], and for fewer than three bytes.
    pub fn base64(bytes: &[u8], text: &str) -> Result<Self> {
        check_length(text, bytes.len() * 4 / 3 + 2)?;
        if bytes.len() < BASE64_BYTES_MIN {
            let reason = format!("would match everywhere; use at least {BASE64_BYTES_MIN} bytes");
            return Err(Error::pattern(text, reason));
        }
        Ok(Self::formed(text, bytes, Form::Base64))
    }

    /// Returns the same pattern with a name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_string());
        self
    }

    /// Returns the same pattern restricted to whole words: no ASCII letter, digit or underscore may
    /// precede or follow it. Its text is unchanged.
    ///
    /// # Errors
    /// For hexadecimal, base64 and xor patterns, which have no notion of a word; for a regex that is
    /// too long.
    pub fn word(self) -> Result<Self> {
        let kind = match self.kind {
            Kind::Literal {
                bytes,
                form: form @ (Form::Plain | Form::Utf16Le | Form::Utf16Be),
                ..
            } => Kind::Literal { bytes, form, is_word: true },
            Kind::Regex(regex) => {
                // Without Unicode in both forms: words have the same letters in every encoding.
                let regex = format!(r"(?-u:\b{{start-half}})(?:{regex})(?-u:\b{{end-half}})");
                check_length(&self.text, regex.len())?;
                Kind::Regex(regex)
            }
            Kind::Literal { .. } | Kind::Masked { .. } | Kind::Program(_) => {
                return Err(Error::pattern(
                    &self.text,
                    "has no words; leave out -w, or this pattern",
                ));
            }
        };
        Ok(Pattern { kind, ..self })
    }

    /// Whether a match depends on the bytes before it.
    pub fn looks_back(&self) -> bool {
        matches!(self.kind, Kind::Regex(_) | Kind::Literal { is_word: true, .. })
    }

    /// Returns the name, or the pattern as written if it has none.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.text)
    }

    /// Whether this is a regex.
    pub fn is_regex(&self) -> bool {
        matches!(self.kind, Kind::Regex(_))
    }

    fn formed(text: &str, bytes: &[u8], form: Form) -> Self {
        Self::new(text, Kind::Literal { bytes: bytes.to_vec(), form, is_word: false })
    }

    fn new(text: &str, kind: Kind) -> Self {
        Pattern { text: text.to_string(), name: None, kind, wide: None }
    }
}

fn check_length(text: &str, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Err(Error::pattern(text, "is empty; it would match everywhere"));
    }
    if bytes > LENGTH_BYTES_MAX {
        let shown: String = text.chars().take(40).collect();
        return Err(Error::pattern(
            &format!("{shown}…"),
            format!("has {bytes} bytes; {LENGTH_BYTES_MAX} at most"),
        ));
    }
    Ok(())
}

/// Options that determine the meaning of a set's patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Ignore case: in literals by Unicode's simple case folding, where ASCII letters match each
    /// other only; in regexes by their own flags (`(?u)`).
    pub ignore_case: bool,
    /// Also search for literals in UTF-16LE.
    pub utf16: bool,
    /// Also search for literals in UTF-16BE.
    pub utf16be: bool,
    /// Also search for literals in these encodings, except where an encoding lacks one of the
    /// characters.
    pub encodings: Encodings,
    /// Also search for literals xored with any single byte.
    pub xor: bool,
    /// Also search for literals of three bytes or more in base64-encoded data.
    pub base64: bool,
    /// Maximum length of a match of a regex, or of a hexadecimal pattern with jumps, in bytes.
    pub regex_length_bytes_max: usize,
    /// Memory for the automata of all regexes: one half for their compiled form, the other for the
    /// states that each thread computes lazily. Each regex may take at least 4 MiB of the latter
    /// per thread: with less, some would compute the same states again and again.
    pub regex_memory_bytes_max: usize,
}

/// The default of [`Options::regex_memory_bytes_max`].
pub const REGEX_MEMORY_BYTES: usize = 512 << 20;

impl Options {
    /// Whether literals have forms besides their own bytes and UTF-16LE.
    pub(crate) fn has_more_forms(self) -> bool {
        self.utf16be || self.xor || self.base64 || !self.encodings.is_empty()
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ignore_case: false,
            utf16: false,
            utf16be: false,
            encodings: Encodings::default(),
            xor: false,
            base64: false,
            regex_length_bytes_max: 64 * 1024,
            regex_memory_bytes_max: REGEX_MEMORY_BYTES,
        }
    }
}
