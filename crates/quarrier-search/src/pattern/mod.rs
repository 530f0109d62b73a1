//! Patterns: what is searched for, as people write it and as engines see it.

mod file;
mod needle;
mod shown;

pub use file::{parse_file, parse_file_until};
pub(crate) use needle::{Needle, Needles};

use quarrier_core::hex::parse_masked;

use crate::error::{Error, Result};

/// The longest literal or hex pattern in bytes.
pub const LENGTH_BYTES_MAX: usize = 1 << 16;

/// The most patterns of a set: a pattern takes about 300 bytes of memory.
pub const PATTERNS_MAX: usize = 1_000_000;

/// What is wrong with a set of more than [`PATTERNS_MAX`].
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
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes; in letters, case may be ignored by the set's options.
    Literal(Vec<u8>),
    /// The UTF-16LE form of a text, only.
    Utf16(String),
    /// Byte values under a mask: a text byte `t` matches when `t & mask == value`.
    Masked { value: Vec<u8>, mask: Vec<u8> },
    /// A byte regex.
    Regex(String),
}

impl Pattern {
    /// The bytes of `text` in UTF-8.
    ///
    /// # Errors
    /// When it is empty or longer than [`LENGTH_BYTES_MAX`].
    pub fn literal(text: &str) -> Result<Self> {
        Self::bytes(text.as_bytes(), text)
    }

    /// Any bytes, shown as `text`.
    ///
    /// # Errors
    /// As [`Pattern::literal`].
    pub fn bytes(bytes: &[u8], text: &str) -> Result<Self> {
        check_length(text, bytes.len())?;
        Ok(Self::new(text, Kind::Literal(bytes.to_vec())))
    }

    /// Hexadecimal with wildcards: `FF D8 ?? 4?`. Blanks between bytes are optional.
    ///
    /// # Errors
    /// Odd digits, other characters, nothing, or wildcards only.
    pub fn hex(text: &str) -> Result<Self> {
        let bytes = parse_masked(text).map_err(|error| Error::pattern(text, error.to_string()))?;
        check_length(text, bytes.len())?;
        if bytes.iter().all(|(_, mask)| *mask == 0) {
            return Err(Error::pattern(text, "has wildcards only; it would match everywhere"));
        }
        let (value, mask) = bytes.into_iter().unzip();
        Ok(Self::new(text, Kind::Masked { value, mask }))
    }

    /// A byte regex: `.` and classes match bytes, `\xFF` is the byte FF, `(?u)` turns on
    /// Unicode. It is compiled when the set is.
    ///
    /// # Errors
    /// When it is empty.
    pub fn regex(text: &str) -> Result<Self> {
        check_length(text, text.len())?;
        Ok(Self::new(text, Kind::Regex(text.to_string())))
    }

    /// The UTF-16LE form of `text` only.
    ///
    /// # Errors
    /// As [`Pattern::literal`].
    pub fn utf16(text: &str) -> Result<Self> {
        check_length(text, text.encode_utf16().count() * 2)?;
        Ok(Self::new(text, Kind::Utf16(text.to_string())))
    }

    /// The same pattern with a name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_string());
        self
    }

    /// The same pattern, but only where no letter, digit or underscore stands before or after it. What
    /// it is called stays.
    ///
    /// # Errors
    /// For hexadecimal patterns and those in UTF-16, whose words nobody knows; where it is too long.
    pub fn word(self) -> Result<Self> {
        let inner = match &self.kind {
            Kind::Literal(bytes) => literal_regex(bytes),
            Kind::Regex(regex) => regex.clone(),
            Kind::Utf16(_) | Kind::Masked { .. } => {
                return Err(Error::pattern(
                    &self.text,
                    "has no words; leave out -w, or this pattern",
                ));
            }
        };
        let regex = format!(r"\b{{start-half}}(?:{inner})\b{{end-half}}");
        check_length(&self.text, regex.len())?;
        Ok(Pattern { kind: Kind::Regex(regex), ..self })
    }

    /// The name, or where there is none the pattern as written.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.text)
    }

    /// Whether this is a regex.
    pub fn is_regex(&self) -> bool {
        matches!(self.kind, Kind::Regex(_))
    }

    fn new(text: &str, kind: Kind) -> Self {
        Pattern { text: text.to_string(), name: None, kind }
    }
}

/// A regex that matches these bytes and nothing else.
fn literal_regex(bytes: &[u8]) -> String {
    let mut regex = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b' ' => regex.push(byte as char),
            other => regex.push_str(&format!(r"\x{other:02X}")),
        }
    }
    regex
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

/// How the patterns of a set are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// ASCII letters match in either case, in literals and regexes.
    pub ignore_case: bool,
    /// Literals are also searched for in UTF-16LE.
    pub utf16: bool,
    /// The longest match of a regex in bytes.
    pub regex_length_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { ignore_case: false, utf16: false, regex_length_bytes_max: 64 * 1024 }
    }
}
