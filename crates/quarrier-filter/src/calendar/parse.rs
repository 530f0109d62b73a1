//! Parses dates, times and intervals.

use super::{DAY_NS, HOUR_NS, MINUTE_NS, Part, SECOND_NS, day, join};

/// The fields of an interval, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// The most significant field.
    pub first: Part,
    /// The least significant field; equal to the first if there is only one.
    pub last: Part,
}

/// Parses `2024-02-29`, with optional blanks around it.
pub fn parse_date(text: &str) -> Option<i32> {
    let mut rest = text.trim_matches(' ');
    let found = take_date(&mut rest)?;
    rest.is_empty().then_some(found)
}

/// Parses `12:34`, `12:34:56` or `12:34:56.789` into nanoseconds from midnight, with optional
/// blanks around it. Digits after the ninth decimal are dropped.
pub fn parse_time(text: &str) -> Option<i64> {
    let mut rest = text.trim_matches(' ');
    let found = take_time(&mut rest)?;
    rest.is_empty().then_some(found)
}

/// Parses `2024-02-29 12:34:56.789`, also with `T` in between and with `Z` or an offset like
/// `+01:00` at the end (the default is UTC), or only a date.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let mut rest = text.trim_matches(' ');
    let day = take_date(&mut rest)?;
    if rest.is_empty() {
        return join(day, 0);
    }
    rest = rest.strip_prefix([' ', 'T', 't'])?;
    let time = take_time(&mut rest)?;
    let offset = take_offset(rest)?;
    join(day, time - offset)
}

fn take_date(rest: &mut &str) -> Option<i32> {
    let year = digits(rest, 4, 4)?;
    skip(rest, '-')?;
    let month = digits(rest, 1, 2)?;
    skip(rest, '-')?;
    let of_month = digits(rest, 1, 2)?;
    day(year, month, of_month)
}

fn take_time(rest: &mut &str) -> Option<i64> {
    let hour = digits(rest, 1, 2).filter(|hour| *hour < 24)?;
    skip(rest, ':')?;
    let minute = digits(rest, 1, 2).filter(|minute| *minute < 60)?;
    let mut second_ns = 0;
    if skip(rest, ':').is_some() {
        second_ns = take_seconds(rest, 2).filter(|ns| *ns < MINUTE_NS)?;
    }
    Some(hour * HOUR_NS + minute * MINUTE_NS + second_ns)
}

/// Parses `56` or `56.789` into nanoseconds.
fn take_seconds(rest: &mut &str, digits_max: usize) -> Option<i64> {
    let mut found = digits(rest, 1, digits_max)?.checked_mul(SECOND_NS)?;
    if skip(rest, '.').is_some() {
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (decimals, left) = rest.split_at(count);
        *rest = left;
        let kept = &decimals[..count.min(9)];
        if !kept.is_empty() {
            found =
                found.checked_add(kept.parse::<i64>().ok()? * 10_i64.pow(9 - kept.len() as u32))?;
        }
    }
    Some(found)
}

fn take_offset(rest: &str) -> Option<i64> {
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    if rest.is_empty() || rest.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if rest.starts_with('-') { -1 } else { 1 };
    let mut rest = rest.strip_prefix(['+', '-'])?;
    let hours = digits(&mut rest, 2, 2).filter(|hours| *hours < 24)?;
    let mut minutes = 0;
    if !rest.is_empty() {
        rest = rest.strip_prefix(':').unwrap_or(rest);
        minutes = digits(&mut rest, 2, 2).filter(|minutes| *minutes < 60)?;
    }
    rest.is_empty().then_some(sign * (hours * HOUR_NS + minutes * MINUTE_NS))
}

/// Parses the string of an interval into months and nanoseconds: `1-2` for YEAR TO MONTH, `3
/// 04:05:06.789` for DAY TO SECOND, `90` for any single field.
pub fn parse_interval(text: &str, fields: Fields) -> Option<(i64, i64)> {
    let text = text.trim_matches(' ');
    let (sign, mut rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (if text.starts_with('-') { -1 } else { 1 }, rest),
        None => (1, text),
    };
    let is_months = fields.last <= Part::Month;
    let (mut months, mut nanoseconds) = (0_i64, 0_i64);
    for part in PARTS.into_iter().filter(|part| (fields.first..=fields.last).contains(part)) {
        let is_first = part == fields.first;
        if !is_first {
            skip(&mut rest, before(part))?;
        }
        if part == Part::Second {
            let found = take_seconds(&mut rest, if is_first { 18 } else { 2 })?;
            let found = Some(found).filter(|ns| is_first || *ns < MINUTE_NS)?;
            nanoseconds = nanoseconds.checked_add(found)?;
            continue;
        }
        let count = digits(&mut rest, 1, if is_first { 18 } else { 2 })?;
        if !is_first && count > most(part) {
            return None;
        }
        match part {
            Part::Year => months = count.checked_mul(12)?,
            Part::Month => months = months.checked_add(count)?,
            _ => nanoseconds = nanoseconds.checked_add(count.checked_mul(length_ns(part))?)?,
        }
    }
    debug_assert!(if is_months { nanoseconds == 0 } else { months == 0 });
    rest.is_empty().then_some((sign * months, sign * nanoseconds))
}

const PARTS: [Part; 6] =
    [Part::Year, Part::Month, Part::Day, Part::Hour, Part::Minute, Part::Second];

/// Returns the separator before this field, unless it is the first.
fn before(part: Part) -> char {
    match part {
        Part::Year | Part::Month => '-',
        Part::Day | Part::Hour => ' ',
        Part::Minute | Part::Second => ':',
    }
}

/// Returns the greatest value of a field that is not the first.
fn most(part: Part) -> i64 {
    match part {
        Part::Month => 11,
        Part::Hour => 23,
        _ => 59,
    }
}

fn length_ns(part: Part) -> i64 {
    match part {
        Part::Hour => HOUR_NS,
        Part::Minute => MINUTE_NS,
        Part::Second => SECOND_NS,
        _ => DAY_NS,
    }
}

/// Parses a number of `least` to `most` ASCII digits.
fn digits(rest: &mut &str, least: usize, most: usize) -> Option<i64> {
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    if !(least..=most).contains(&count) {
        return None;
    }
    let (number, left) = rest.split_at(count);
    *rest = left;
    number.parse().ok()
}

fn skip(rest: &mut &str, mark: char) -> Option<()> {
    *rest = rest.strip_prefix(mark)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_read_strictly() {
        assert_eq!(parse_date("1970-01-02"), Some(1));
        assert_eq!(parse_date(" 1970-1-2 "), Some(1));
        for wrong in ["1970-02-30", "1970-13-01", "70-01-01", "1970-01-01x", "1970-01", "", "é"] {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
        assert_eq!(parse_time("00:01"), Some(MINUTE_NS));
        assert_eq!(parse_time("23:59:59.5"), Some(DAY_NS - SECOND_NS / 2));
        for wrong in ["24:00", "0:60", "0:0:60", "1", "1:2:3:4", "0:0:1.x"] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
        assert_eq!(parse_timestamp("1970-01-01T00:00:01Z"), Some(SECOND_NS));
        assert_eq!(parse_timestamp("1970-01-01 01:00:01.000000001+01:00"), Some(SECOND_NS + 1));
        assert_eq!(parse_timestamp("1970-01-02"), Some(DAY_NS));
        for wrong in ["1970-01-01X00:00", "1500-01-01 00:00", "1970-01-01 1:0+1", "1970-01-01 x"] {
            assert_eq!(parse_timestamp(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn intervals_have_the_fields_they_name() {
        let read = |text, first, last| parse_interval(text, Fields { first, last });
        assert_eq!(read("1-2", Part::Year, Part::Month), Some((14, 0)));
        assert_eq!(read("-1-2", Part::Year, Part::Month), Some((-14, 0)));
        assert_eq!(read("90", Part::Day, Part::Day), Some((0, 90 * DAY_NS)));
        assert_eq!(
            read("3 04:05:06.5", Part::Day, Part::Second),
            Some((0, 3 * DAY_NS + 4 * HOUR_NS + 5 * MINUTE_NS + 6 * SECOND_NS + SECOND_NS / 2))
        );
        assert_eq!(read("100:59", Part::Hour, Part::Minute).map(|f| f.1 / MINUTE_NS), Some(6059));
        for (wrong, first, last) in [
            ("1-12", Part::Year, Part::Month),
            ("1", Part::Year, Part::Month),
            ("1 2", Part::Day, Part::Day),
            ("1:60", Part::Hour, Part::Minute),
            ("999999999999999999", Part::Day, Part::Day),
            ("", Part::Day, Part::Day),
        ] {
            assert_eq!(read(wrong, first, last), None, "{wrong}");
        }
    }
}
