//! Dates and timestamps in ISO 8601, with the shape in which they were written.
//!
//! A column whose strings are all dates or timestamps gets that type. If another string comes
//! later, the earlier ones must be restored exactly, so the column records their shapes.

use std::fmt::Write;

use quarrier_core::civil::{self, DAY_NS, MINUTE_NS, SECOND_NS};

use super::Cell;

/// The shape of a date or timestamp: everything in its string except the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// The form in which [`Cell::write`] writes it; for values that were not strings.
    Plain,
    /// `2024-05-31`.
    Day,
    /// `2024-05-31T23:59:58.5Z`.
    Time {
        /// The separator of day and time: `T` or a blank.
        separator: u8,
        /// Number of decimals of the seconds, 0 to 9.
        digits: u8,
        zone: Zone,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Zone {
    /// No zone, which means UTC.
    Absent,
    /// `Z`.
    Utc,
    /// Minutes ahead of UTC, as `+05:30`.
    Ahead(i16),
}

/// The shapes of a column's rows, ascending: each applies from its row on. Empty if all are plain.
pub(crate) type Shapes = Vec<(u32, Shape)>;

impl<'a> Cell<'a> {
    /// Parses a date (`2024-05-31`) or timestamp (`2024-05-31T23:59:58.5+01:00`, with a blank or
    /// `T`, up to nine decimals of the seconds, `Z` or nothing for UTC) in ISO 8601; `None` for
    /// other strings, and for timestamps outside the range of 64 bits of nanoseconds.
    pub fn of_time(text: &str) -> Option<Cell<'a>> {
        timed(text).map(|(cell, _)| cell)
    }
}

/// Returns the value of a string and its shape: see [`Cell::of_time`].
#[inline]
pub(super) fn timed(text: &str) -> Option<(Cell<'static>, Shape)> {
    let bytes = text.as_bytes();
    if bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let days = day(bytes)?;
    if bytes.len() == 10 {
        return Some((Cell::Date(days), Shape::Day));
    }
    let separator = *bytes.get(10).filter(|byte| matches!(byte, b'T' | b' '))?;
    let time = bytes.get(11..19).filter(|time| time[2] == b':' && time[5] == b':')?;
    let (hour, minute, second) = (digits(&time[..2])?, digits(&time[3..5])?, digits(&time[6..])?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, digits, rest) = fraction(&bytes[19..])?;
    let zone = zone(rest)?;
    let ahead = if let Zone::Ahead(minutes) = zone { i64::from(minutes) } else { 0 };
    let of_day = ((hour * 60 + minute - ahead) * 60 + second) * SECOND_NS + fraction;
    let cell = Cell::Timestamp(civil::join(days, of_day)?);
    Some((cell, Shape::Time { separator, digits, zone }))
}

impl Shape {
    /// Appends `cell` in this shape.
    pub(crate) fn write(self, cell: Cell<'_>, out: &mut String) {
        match (self, cell) {
            (Shape::Time { separator, digits, zone }, Cell::Timestamp(nanoseconds)) => {
                let ahead = if let Zone::Ahead(minutes) = zone { minutes } else { 0 };
                let local = i128::from(nanoseconds) + i128::from(ahead) * i128::from(MINUTE_NS);
                write_time(local, separator, digits, out);
                match zone {
                    Zone::Absent => {}
                    Zone::Utc => out.push('Z'),
                    Zone::Ahead(minutes) => {
                        let sign = if minutes < 0 { '-' } else { '+' };
                        let minutes = minutes.unsigned_abs();
                        written(write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60));
                    }
                }
            }
            // The column had dates and became one of timestamps.
            (Shape::Day, Cell::Timestamp(nanoseconds)) => {
                Cell::Date(civil::split(nanoseconds).0).write(out);
            }
            (_, cell) => cell.write(out),
        }
    }
}

fn write_time(local: i128, separator: u8, digits: u8, out: &mut String) {
    let days = local.div_euclid(i128::from(DAY_NS)) as i64;
    let of_day = local.rem_euclid(i128::from(DAY_NS)) as i64;
    let (seconds, part) = (of_day / SECOND_NS, of_day % SECOND_NS);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let separator = char::from(separator);
    written(civil::write_date(days, out));
    written(write!(out, "{separator}{hour:02}:{minute:02}:{second:02}"));
    if digits > 0 {
        let width = usize::from(digits);
        let part = part / 10i64.pow(9 - u32::from(digits));
        written(write!(out, ".{part:0width$}"));
    }
}

fn written(done: std::fmt::Result) {
    debug_assert!(done.is_ok(), "a String takes everything");
}

/// Returns the day of `YYYY-MM-DD`, counted from 1970-01-01, from year 1 on.
#[inline]
fn day(bytes: &[u8]) -> Option<i32> {
    let (year, month, day) = (digits(&bytes[..4])?, digits(&bytes[5..7])?, digits(&bytes[8..10])?);
    civil::day(year, month, day).filter(|_| year > 0)
}

/// Parses at most 18 digits and nothing else.
pub(crate) fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |value, &byte| {
        byte.is_ascii_digit().then(|| 10 * value + i64::from(byte - b'0'))
    })
}

/// Returns the nanoseconds of a fraction, its number of decimals, and the rest of the bytes.
fn fraction(bytes: &[u8]) -> Option<(i64, u8, &[u8])> {
    let Some((b'.', rest)) = bytes.split_first() else { return Some((0, 0, bytes)) };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 || count > 9 {
        return None;
    }
    let value = digits(&rest[..count])? * 10i64.pow(9 - count as u32);
    Some((value, count as u8, &rest[count..]))
}

fn zone(bytes: &[u8]) -> Option<Zone> {
    match bytes {
        [] => Some(Zone::Absent),
        [b'Z'] => Some(Zone::Utc),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            let ahead = (hours * 60 + minutes) as i16;
            // `-00:00` means an unknown zone, and would be written as `+00:00`.
            let is_known = hours < 24 && minutes < 60 && (ahead != 0 || *sign == b'+');
            is_known.then_some(Zone::Ahead(if *sign == b'-' { -ahead } else { ahead }))
        }
        _ => None,
    }
}

/// Returns the shape of a row.
pub(crate) fn shape_of(shapes: &[(u32, Shape)], row: usize) -> Shape {
    let at = shapes.partition_point(|&(first, _)| first as usize <= row);
    at.checked_sub(1).map_or(Shape::Plain, |at| shapes[at].1)
}
