//! Days, times and spans of time: the Gregorian calendar, carried back to the year 1.

mod parse;
pub use parse::{Fields, parse_date, parse_interval, parse_time, parse_timestamp};

mod show;
pub use show::{show_date, show_interval, show_time, show_timestamp};

/// Nanoseconds of a second.
pub const SECOND_NS: i64 = 1_000_000_000;
/// Nanoseconds of a minute.
pub const MINUTE_NS: i64 = 60 * SECOND_NS;
/// Nanoseconds of an hour.
pub const HOUR_NS: i64 = 60 * MINUTE_NS;
/// Nanoseconds of a day, every one of which has 24 hours.
pub const DAY_NS: i64 = 24 * HOUR_NS;

/// 0001-01-01 in days from 1970-01-01.
const FIRST_DAY: i64 = -719_162;
/// 9999-12-31 in days from 1970-01-01.
const LAST_DAY: i64 = 2_932_896;

/// A part of a date, a time or a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The year.
    Year,
    /// Of the year, from 1; of a span of time, 0 to 11.
    Month,
    /// Of the month, from 1; of a span of time, all days.
    Day,
    /// Of the day, 0 to 23.
    Hour,
    /// Of the hour, 0 to 59.
    Minute,
    /// Of the minute, with what is left behind the point.
    Second,
}

/// The day of a date, counted from 1970-01-01. None where there is no such day from the year 1
/// to the year 9999.
pub fn day(year: i64, month: i64, day: i64) -> Option<i32> {
    if !(1..=9_999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    if !(1..=days_of_month(year, month)).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the day that leap years add is the last one; 400 years
    // have 146,097 days.
    let year = if month > 2 { year } else { year - 1 };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    i32::try_from(era * 146_097 + days - 719_468).ok()
}

/// Year, month and day of a day counted from 1970-01-01.
pub fn date(day: i32) -> (i64, i64, i64) {
    let days = i64::from(day) + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let years = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (years + era * 400 + i64::from(month <= 2), month, day)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The same day of another month, or that month's last where it has no such day. None beyond
/// the years 1 to 9999.
pub fn add_months(day: i32, months: i64) -> Option<i32> {
    let (year, month, of_month) = date(day);
    let all = (year * 12 + month - 1).checked_add(months)?;
    let (year, month) = (all.div_euclid(12), all.rem_euclid(12) + 1);
    if !(1..=9_999).contains(&year) {
        return None;
    }
    self::day(year, month, of_month.min(days_of_month(year, month)))
}

/// As [`add_months`] for a point in time.
pub fn add_months_to_timestamp(timestamp: i64, months: i64) -> Option<i64> {
    let (day, time) = split(timestamp);
    join(add_months(day, months)?, time)
}

/// A later day. None beyond the years 1 to 9999.
pub fn add_days(day: i32, days: i64) -> Option<i32> {
    let sum = i64::from(day).checked_add(days)?;
    (FIRST_DAY..=LAST_DAY).contains(&sum).then_some(sum as i32)
}

/// Day and time of day of a point in time.
pub fn split(timestamp: i64) -> (i32, i64) {
    (timestamp.div_euclid(DAY_NS) as i32, timestamp.rem_euclid(DAY_NS))
}

/// The point in time of a day and a time of day. None before 1677-09-21 and behind 2262-04-11,
/// about, the ends of 64 bits of nanoseconds.
pub fn join(day: i32, time: i64) -> Option<i64> {
    i64::try_from(i128::from(day) * i128::from(DAY_NS) + i128::from(time)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_calendar_has_one_number() {
        let mut expected = FIRST_DAY as i32;
        for year in 1..=9_999 {
            for month in 1..=12 {
                for of_month in 1..=days_of_month(year, month) {
                    assert_eq!(day(year, month, of_month), Some(expected));
                    assert_eq!(date(expected), (year, month, of_month));
                    expected += 1;
                }
                assert_eq!(day(year, month, days_of_month(year, month) + 1), None);
            }
        }
        assert_eq!(i64::from(expected - 1), LAST_DAY);
        assert_eq!(day(1970, 1, 1), Some(0));
    }

    #[test]
    fn a_month_later_is_the_same_day_or_the_months_last() {
        let later = |y, m, d, months| add_months(day(y, m, d).unwrap(), months).map(date);
        assert_eq!(later(2020, 1, 31, 1), Some((2020, 2, 29)));
        assert_eq!(later(2020, 2, 29, 12), Some((2021, 2, 28)));
        assert_eq!(later(2020, 3, 31, -1), Some((2020, 2, 29)));
        assert_eq!(later(2020, 1, 15, -13), Some((2018, 12, 15)));
        assert_eq!(later(9999, 12, 1, 1), None);
        assert_eq!(later(1, 1, 1, -1), None);
        assert_eq!(later(1, 1, 1, i64::MIN), None);
    }
}
