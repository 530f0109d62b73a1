//! The bounds of a table, as users write them.

use std::time::Duration;

use quarrier_core::size::parse_size;
use quarrier_messages::log::Retention;

use crate::{Error, Result};

/// The units of time, in seconds, longest first.
const UNITS: [(&str, u64); 5] =
    [("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];

/// Reads the bounds of a table: an age such as `7 days`, a size such as `10 GB` (of the messages in the log), both
/// with a comma between them, or `off`. Units of time are seconds, minutes, hours, days and weeks; units of size
/// are those of all options.
///
/// ```
/// use std::time::Duration;
/// use quarrier::kept::{retention_from, retention_text};
///
/// let week = retention_from("7 days, 10 GB")?;
/// assert_eq!(week.age_max, Some(Duration::from_secs(604_800)));
/// assert_eq!(week.bytes_max, Some(10_000_000_000));
/// assert_eq!(retention_text(&retention_from("90 minutes")?), "90 minutes");
/// assert_eq!(retention_text(&retention_from("off")?), "off");
/// assert!(retention_from("a while").is_err());
/// # Ok::<(), quarrier::Error>(())
/// ```
///
/// # Errors
/// [`Error::Request`] for anything else.
pub fn retention_from(text: &str) -> Result<Retention> {
    let wrong = || {
        Error::Request(format!(
            "'{text}' is not a retention: write an age such as '7 days', a size such as '10 GB', both \
             as '7 days, 10 GB', or 'off'"
        ))
    };
    let mut retention = Retention::default();
    if text.trim() == "off" {
        return Ok(retention);
    }
    for part in text.split(',').map(str::trim) {
        let is_new = match (age(part), bytes(part)) {
            (Some(age), _) => retention.age_max.replace(age).is_none(),
            (None, Some(bytes)) => retention.bytes_max.replace(bytes).is_none(),
            (None, None) => false,
        };
        if !is_new {
            return Err(wrong());
        }
    }
    Ok(retention)
}

/// Writes bounds as [`retention_from`] reads them.
pub fn retention_text(retention: &Retention) -> String {
    let age = retention.age_max.map(|age| {
        let seconds = age.as_secs();
        let unit = UNITS.iter().find(|(_, unit)| seconds.is_multiple_of(*unit) && seconds > 0);
        let (name, unit) = unit.copied().unwrap_or(("second", 1));
        let count = seconds / unit;
        format!("{count} {name}{}", if count == 1 { "" } else { "s" })
    });
    let bytes = retention.bytes_max.map(|bytes| format!("{bytes} B"));
    let parts: Vec<String> = age.into_iter().chain(bytes).collect();
    if parts.is_empty() { "off".to_string() } else { parts.join(", ") }
}

fn age(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit.strip_suffix('s').unwrap_or(&unit);
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    Some(Duration::from_secs(number.checked_mul(*seconds)?))
}

fn bytes(text: &str) -> Option<u64> {
    // A number alone may be meant as days.
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    parse_size(text).ok().filter(|bytes| has_unit && *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_as_they_are_written() {
        for (text, age, bytes_max, written) in [
            ("off", None, None, "off"),
            ("7 days", Some(604_800), None, "1 week"),
            ("1day", Some(86_400), None, "1 day"),
            ("90 Minutes", Some(5_400), None, "90 minutes"),
            ("36 hours", Some(129_600), None, "36 hours"),
            ("61 seconds", Some(61), None, "61 seconds"),
            ("10 GB", None, Some(10_000_000_000), "10000000000 B"),
            ("1G, 2 weeks", Some(1_209_600), Some(1 << 30), "2 weeks, 1073741824 B"),
        ] {
            let retention = retention_from(text).unwrap();
            assert_eq!(retention.age_max, age.map(Duration::from_secs), "{text}");
            assert_eq!(retention.bytes_max, bytes_max, "{text}");
            assert_eq!(retention_text(&retention), written, "{text}");
            assert_eq!(retention_from(written).unwrap(), retention, "{text}");
        }
        for wrong in
            ["", "7", "days", "0 days", "7 days, 8 days", "7 years", "-1 day", "1 day,", "x GB"]
        {
            let error = retention_from(wrong).unwrap_err().to_string();
            assert!(error.contains("'7 days, 10 GB'"), "{wrong}: {error}");
        }
    }
}
