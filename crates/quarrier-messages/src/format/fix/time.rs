//! Dates and timestamps in FIX's format.

use quarrier_core::civil::{self, DAY_NS, SECOND_NS};

use crate::build::digits;

/// Parses `YYYYMMDD` into days from 1970-01-01.
pub(super) fn date(text: &[u8]) -> Option<i32> {
    if text.len() != 8 {
        return None;
    }
    let (year, month, day) = (digits(&text[..4])?, digits(&text[4..6])?, digits(&text[6..])?);
    civil::day(year, month, day)
}

/// Parses `YYYYMMDD-HH:MM:SS` into nanoseconds from 1970-01-01 00:00:00 UTC. `:SS` is optional
/// before a time zone; the seconds may have nine decimals (more, if they are 0); the time zone is
/// `Z`, `+hh`, `+hh:mm` or absent. Second 60, a leap second, is second 0 of the next minute.
pub(super) fn timestamp(text: &[u8]) -> Option<i64> {
    if text.len() < 14 || text[8] != b'-' || text[11] != b':' {
        return None;
    }
    let days = i64::from(date(&text[..8])?);
    let (hour, minute) = (digits(&text[9..11])?, digits(&text[12..14])?);
    let mut rest = &text[14..];
    let second = match rest {
        [b':', tens, ones, more @ ..] => {
            rest = more;
            digits(&[*tens, *ones])?
        }
        [] => return None,
        _ => 0,
    };
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let nanoseconds = fraction(&mut rest)?;
    let seconds =
        days * (DAY_NS / SECOND_NS) + hour * 3600 + minute * 60 + second - zone_seconds(rest)?;
    seconds.checked_mul(SECOND_NS)?.checked_add(nanoseconds)
}

/// Parses `.sss` at the start of `rest` into nanoseconds, and moves `rest` past it.
fn fraction(rest: &mut &[u8]) -> Option<i64> {
    let [b'.', after @ ..] = *rest else { return Some(0) };
    let count = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (part, more) = after.split_at(count);
    let (part, beyond) = part.split_at(count.min(9));
    if part.is_empty() || beyond.iter().any(|&byte| byte != b'0') {
        return None;
    }
    *rest = more;
    Some(digits(part)? * 10i64.pow(9 - part.len() as u32))
}

/// Returns the offset of a zone from UTC, in seconds east.
fn zone_seconds(zone: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match zone {
        [] | [b'Z'] => return Some(0),
        [sign, a, b] => (*sign, [*a, *b], *b"00"),
        [sign, a, b, b':', c, d] => (*sign, [*a, *b], [*c, *d]),
        _ => return None,
    };
    let seconds = digits(&hours)? * 3600 + digits(&minutes)? * 60;
    match sign {
        _ if seconds > 15 * 3600 => None,
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{date, timestamp};

    #[test]
    fn days_have_eight_digits() {
        assert_eq!(date(b"19700101"), Some(0));
        assert_eq!(date(b"20240229"), Some(19_782));
        for wrong in ["20230229", "19000229", "20231301", "20230001", "20230100", "2023-1-1", ""] {
            assert_eq!(date(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn timestamps_have_fractions_zones_and_leap_seconds() {
        let cases = [
            ("19700101-00:00:01", Some(1_000_000_000)),
            ("19700101-00:00:00.5", Some(500_000_000)),
            ("19700101-00:00:00.123456789", Some(123_456_789)),
            ("19700101-00:00:00.123456789000", Some(123_456_789)),
            ("19700101-00:00:00.1234567891", None),
            ("19691231-23:59:60", Some(0)),
            ("19700101-02:00+02", Some(0)),
            ("19700101-00:00:00Z", Some(0)),
            ("19691231-18:30:00-05:30", Some(0)),
            ("19700101-00:00", None),
            ("19700101-24:00:00", None),
            ("19700101-00:60:00", None),
            ("19700101-00:00:61", None),
            ("19700101-00:00:00.", None),
            ("19700101-00:00:00+16", None),
            ("19700101T00:00:00", None),
            ("99991231-00:00:00", None),
        ];
        for (text, expected) in cases {
            assert_eq!(timestamp(text.as_bytes()), expected, "{text}");
        }
    }
}
