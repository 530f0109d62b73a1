//! Dates and times of day: the proleptic Gregorian calendar, in days and nanoseconds since
//! 1970-01-01.
//!
//! Howard Hinnant's algorithms. Years begin in March here, so that a leap day is the last day of
//! its year; 400 years have 146,097 days.

use std::fmt;

/// Nanoseconds of a second.
pub const SECOND_NS: i64 = 1_000_000_000;
/// Nanoseconds of a minute.
pub const MINUTE_NS: i64 = 60 * SECOND_NS;
/// Nanoseconds of an hour.
pub const HOUR_NS: i64 = 60 * MINUTE_NS;
/// Nanoseconds of a day: 24 hours, without leap seconds.
pub const DAY_NS: i64 = 24 * HOUR_NS;

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;
/// Days of 400 years.
const ERA: i64 = 146_097;
/// Bound on years: the day number of a later one does not fit 32 bits.
const YEAR_MAX: i64 = 6_000_000;

/// Returns the day of a date, counted from 1970-01-01; `None` if the date does not exist or its day
/// does not fit 32 bits.
#[inline]
pub fn day(year: i64, month: i64, day: i64) -> Option<i32> {
    if !(-YEAR_MAX..=YEAR_MAX).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    if !(1..=days_of_month(year, month)).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let days = era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    i32::try_from(days - EPOCH).ok()
}

/// Returns year, month and day of a day counted from 1970-01-01.
#[inline]
pub fn date(day: i64) -> (i64, i64, i64) {
    let days = day.saturating_add(EPOCH);
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the number of days of a month, 28 to 31.
#[inline]
pub fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Splits a timestamp into day and time of day.
#[inline]
pub fn split(timestamp: i64) -> (i32, i64) {
    (timestamp.div_euclid(DAY_NS) as i32, timestamp.rem_euclid(DAY_NS))
}

/// Returns the timestamp of a day and a time of day, which may be negative or exceed a day. `None`
/// if it does not fit 64 bits of nanoseconds: before about 1677-09-21 and after about 2262-04-11.
#[inline]
pub fn join(day: i32, time: i64) -> Option<i64> {
    // Both terms can be out of range although their sum is not.
    i64::try_from(i128::from(day) * i128::from(DAY_NS) + i128::from(time)).ok()
}

/// Returns the timestamp at which a day begins, if it fits 64 bits of nanoseconds.
#[inline]
pub fn midnight(day: i32) -> Option<i64> {
    i64::from(day).checked_mul(DAY_NS)
}

/// Writes a day as `2024-02-29`.
///
/// # Errors
/// The errors of `out`.
pub fn write_date(day: i64, out: &mut impl fmt::Write) -> fmt::Result {
    let (year, month, day) = date(day);
    if !(0..=9_999).contains(&year) {
        return write!(out, "{year:04}-{month:02}-{day:02}");
    }
    // A formatter of the standard library takes most of the time of a listing of files.
    let mut text = *b"0000-00-00";
    for (at, pair) in [(0, year / 100), (2, year % 100), (5, month), (8, day)] {
        text[at..at + 2].copy_from_slice(&two_digits(pair));
    }
    out.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
}

/// Writes a time that does not fit two digits for each part.
fn write_long_time(time: i64, out: &mut impl fmt::Write) -> fmt::Result {
    let (hour, minute) = (time / HOUR_NS, time / MINUTE_NS % 60);
    let (second, mut part) = (time / SECOND_NS % 60, time % SECOND_NS);
    write!(out, "{hour:02}:{minute:02}:{second:02}")?;
    let mut digits = 9;
    while digits > 0 && part % 10 == 0 {
        (part, digits) = (part / 10, digits - 1);
    }
    if digits > 0 { write!(out, ".{part:0digits$}") } else { Ok(()) }
}

/// Returns the digits of a number below 100.
#[inline]
fn two_digits(number: i64) -> [u8; 2] {
    [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]
}

/// Writes a time of day as `12:34:56`, with decimals up to the last that is not zero.
///
/// # Errors
/// The errors of `out`.
pub fn write_time(time: i64, out: &mut impl fmt::Write) -> fmt::Result {
    let (hour, minute) = (time / HOUR_NS, time / MINUTE_NS % 60);
    let (second, mut part) = (time / SECOND_NS % 60, time % SECOND_NS);
    if time < 0 || hour > 99 {
        return write_long_time(time, out);
    }
    let mut text = *b"00:00:00.000000000";
    for (at, pair) in [(0, hour), (3, minute), (6, second)] {
        text[at..at + 2].copy_from_slice(&two_digits(pair));
    }
    let mut length = 8;
    for at in (9..18).rev() {
        let digit = (part % 10) as u8;
        part /= 10;
        text[at] = b'0' + digit;
        if digit != 0 && length == 8 {
            length = at + 1;
        }
    }
    out.write_str(str::from_utf8(&text[..length]).map_err(|_| fmt::Error)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use chrono::{DateTime, Datelike, NaiveDate};

    use super::*;

    /// Returns year, month and day, by the oracle.
    fn expected(day: i64) -> Option<(i64, i64, i64)> {
        let from_year_one = i32::try_from(day + 719_163).ok()?;
        let date = NaiveDate::from_num_days_from_ce_opt(from_year_one)?;
        Some((date.year().into(), date.month().into(), date.day().into()))
    }

    fn check(number: i64) {
        let (year, month, of_month) = date(number);
        assert_eq!(Some((year, month, of_month)), expected(number), "day {number}");
        assert_eq!(day(year, month, of_month).map(i64::from), Some(number));
    }

    #[test]
    fn every_day_from_year_minus_100_to_10100_is_the_oracle_s() {
        let first = i64::from(day(-100, 1, 1).unwrap());
        let last = i64::from(day(10_100, 12, 31).unwrap());
        (first..=last).for_each(check);
    }

    #[test]
    fn days_as_far_as_the_oracle_goes_are_its_own() {
        let ends = [NaiveDate::MIN, NaiveDate::MAX]
            .map(|date| i64::from(date.num_days_from_ce()) - 719_163);
        (ends[0]..=ends[1]).step_by(997).chain(ends).for_each(check);
    }

    #[test]
    fn invalid_dates_have_no_day() {
        for year in [-4, 0, 1, 1900, 2000, 2023, 2024, 9999] {
            for month in -1..=14 {
                for of_month in -1..=33 {
                    let asked = (i32::try_from(year).unwrap(), month as u32, of_month as u32);
                    let date = NaiveDate::from_ymd_opt(asked.0, asked.1, asked.2);
                    assert_eq!(day(year, month, of_month).is_some(), date.is_some(), "{asked:?}");
                }
            }
        }
        for year in [i64::MIN, -YEAR_MAX, YEAR_MAX, i64::MAX] {
            assert_eq!(day(year, 1, 1), None);
        }
    }

    #[test]
    fn days_of_32_bits_end_where_their_numbers_do() {
        for number in [i32::MIN, i32::MAX] {
            let (year, month, of_month) = date(number.into());
            assert_eq!(day(year, month, of_month), Some(number));
            let beyond = date(i64::from(number) + i64::from(number.signum()));
            assert_eq!(day(beyond.0, beyond.1, beyond.2), None);
        }
    }

    #[test]
    fn times_of_day_are_written_as_long_ones_are() {
        for time in (0..DAY_NS).step_by(7_777_777_777_777).chain([0, 1, 999_999_999, DAY_NS - 1]) {
            for part in [0, 1, 120_000_000, 999_999_000] {
                let time = time - time % SECOND_NS + part;
                let (mut text, mut expected) = (String::new(), String::new());
                write_time(time, &mut text).unwrap();
                write_long_time(time, &mut expected).unwrap();
                assert_eq!(text, expected);
            }
        }
        let mut text = String::new();
        write_time(123 * HOUR_NS + 500_000_000, &mut text).unwrap();
        assert_eq!(text, "123:00:00.5");
    }

    #[test]
    fn points_in_time_are_split_joined_and_written_as_by_the_oracle() {
        let ends = [i64::MIN, i64::MIN + 1, -DAY_NS, -1, 0, 1, DAY_NS - 1, DAY_NS, i64::MAX];
        let many = (i64::MIN..=i64::MAX).step_by(1_234_567_890_123_457);
        for at in ends.into_iter().chain(many) {
            let (day, time) = split(at);
            assert_eq!(join(day, time), Some(at));
            assert_eq!(midnight(day), at.checked_sub(time));
            let mut text = String::new();
            write_date(day.into(), &mut text).unwrap();
            text.push(' ');
            write_time(time, &mut text).unwrap();
            let whole = DateTime::from_timestamp_nanos(at).format("%Y-%m-%d %H:%M:%S%.9f");
            let whole = whole.to_string();
            assert_eq!(text, whole.trim_end_matches('0').trim_end_matches('.'), "{at}");
        }
        assert_eq!(join(i32::MAX, 0), None);
        assert_eq!(midnight(i32::MIN), None);
    }
}
