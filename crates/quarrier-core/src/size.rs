//! Parses sizes and offsets: one grammar for options, files and arguments.

use std::fmt;

/// Units in capitals, with their bytes. Single letters and `KiB` and the like are powers of 1024.
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("B", 1),
    ("K", 1 << 10),
    ("KIB", 1 << 10),
    ("KB", 1_000),
    ("M", 1 << 20),
    ("MIB", 1 << 20),
    ("MB", 1_000_000),
    ("G", 1 << 30),
    ("GIB", 1 << 30),
    ("GB", 1_000_000_000),
    ("T", 1 << 40),
    ("TIB", 1 << 40),
    ("TB", 1_000_000_000_000),
];

/// Why a string is not a size.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SizeError {
    /// The string does not have the form of a size.
    NotASize(String),
    /// The size does not fit 64 bits.
    TooLarge(String),
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeError::NotASize(text) => {
                write!(f, "'{text}' is not a size; write 4096, 0x1000, 4K (1024s) or 4KB (1000s)")
            }
            SizeError::TooLarge(text) => write!(f, "'{text}' does not fit 64 bits"),
        }
    }
}

impl std::error::Error for SizeError {}

impl From<SizeError> for String {
    fn from(error: SizeError) -> Self {
        error.to_string()
    }
}

/// Parses a size in bytes: `65536`, `0x10000`, `64K` or `64KiB` (K, M, G, T: powers of 1024),
/// `64KB` (powers of 1000). Units are case-insensitive, and may follow blanks.
///
/// ```
/// use quarrier_core::size::parse_size;
///
/// assert_eq!(parse_size("64 MiB")?, 64 << 20);
/// assert_eq!(parse_size("2kB")?, 2000);
/// # Ok::<(), quarrier_core::size::SizeError>(())
/// ```
///
/// # Errors
/// A string of another form, such as a fraction, or a size that does not fit 64 bits.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let not_a_size = || SizeError::NotASize(text.to_string());
    let too_large = || SizeError::TooLarge(text.to_string());
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let are_digits = !hex.is_empty() && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        return match u64::from_str_radix(hex, 16) {
            _ if !are_digits => Err(not_a_size()),
            parsed => parsed.map_err(|_| too_large()),
        };
    }
    let (digits, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = unit.trim_start();
    let factor = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let (Some((_, factor)), false) = (factor, digits.is_empty()) else { return Err(not_a_size()) };
    digits.parse().ok().and_then(|number: u64| number.checked_mul(*factor)).ok_or_else(too_large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_size_is_read_or_refused() {
        let bytes = [
            ("0", 0),
            ("4096", 4096),
            (" 4096 ", 4096),
            ("00017", 17),
            ("12B", 12),
            ("0x1F400", 128_000),
            ("0XffffFFFFffffFFFF", u64::MAX),
            ("4K", 4096),
            ("4 k", 4096),
            ("4KiB", 4096),
            ("4kib", 4096),
            ("4kB", 4000),
            ("4KB", 4000),
            ("64M", 64 << 20),
            ("2 MiB", 2 << 20),
            ("2mb", 2_000_000),
            ("1g", 1 << 30),
            ("1GiB", 1 << 30),
            ("1GB", 1_000_000_000),
            ("3T", 3 << 40),
            ("3TiB", 3 << 40),
            ("3TB", 3_000_000_000_000),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in bytes {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in
            ["", " ", "K", "1X", "1Ki", "-1", "+1", "1.5K", "1_000", "0x", "0xZZ", "0x+5", "١"]
        {
            assert_eq!(parse_size(text), Err(SizeError::NotASize(text.trim().into())), "{text}");
        }
        for text in ["18446744073709551616", "99999999999T", "0x10000000000000000"] {
            assert_eq!(parse_size(text), Err(SizeError::TooLarge(text.into())), "{text}");
        }
    }
}
