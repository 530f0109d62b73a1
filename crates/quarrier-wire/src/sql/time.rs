//! Intervals in text.

/// Parses `250ms`, `1s`, `2 min`, `1h`, or a number of milliseconds without a unit; None for
/// anything else.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let digits =
        text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == ' ');
    let number: u64 = digits.parse().ok()?;
    let unit = match text[digits.len()..].trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(unit)
}
