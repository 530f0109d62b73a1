//! Days, times and intervals: the Gregorian calendar, carried back to the year 1.

mod parse;
pub use parse::{Fields, parse_date, parse_interval, parse_time, parse_timestamp};

mod show;
pub use show::{show_date, show_interval, show_time, show_timestamp};

pub use quarrier_core::civil::{DAY_NS, HOUR_NS, MINUTE_NS, SECOND_NS, join, split};

use quarrier_core::civil::{self, days_of_month};

/// 0001-01-01 in days from 1970-01-01.
const FIRST_DAY: i64 = -719_162;
/// 9999-12-31 in days from 1970-01-01.
const LAST_DAY: i64 = 2_932_896;

/// A field of a date, a time or an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The year.
    Year,
    /// The month of a year, from 1; in intervals, 0 to 11.
    Month,
    /// The day of a month, from 1; in intervals, all days.
    Day,
    /// The hour of a day, 0 to 23.
    Hour,
    /// The minute of an hour, 0 to 59.
    Minute,
    /// The second of a minute, including the fraction.
    Second,
}

/// Returns the day of a date, counted from 1970-01-01. `None` if there is no such date in the years
/// 1 to 9999.
pub fn day(year: i64, month: i64, day: i64) -> Option<i32> {
    civil::day(year, month, day).filter(|_| (1..=9_999).contains(&year))
}

/// Returns year, month and day of a day counted from 1970-01-01.
pub fn date(day: i32) -> (i64, i64, i64) {
    civil::date(day.into())
}

/// Returns the same day of another month, or that month's last day if it has no such day. `None`
/// outside the years 1 to 9999.
pub fn add_months(day: i32, months: i64) -> Option<i32> {
    let (year, month, of_month) = date(day);
    let all = (year * 12 + month - 1).checked_add(months)?;
    let (year, month) = (all.div_euclid(12), all.rem_euclid(12) + 1);
    if !(1..=9_999).contains(&year) {
        return None;
    }
    self::day(year, month, of_month.min(days_of_month(year, month)))
}

/// Does what [`add_months`] does, for a timestamp.
pub fn add_months_to_timestamp(timestamp: i64, months: i64) -> Option<i64> {
    let (day, time) = split(timestamp);
    join(add_months(day, months)?, time)
}

/// Returns the day `days` later. `None` outside the years 1 to 9999.
pub fn add_days(day: i32, days: i64) -> Option<i32> {
    let sum = i64::from(day).checked_add(days)?;
    (FIRST_DAY..=LAST_DAY).contains(&sum).then_some(sum as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_end_with_the_years_1_and_9999() {
        let ends = [day(1, 1, 1), day(9_999, 12, 31)].map(|day| day.map(i64::from));
        assert_eq!(ends, [Some(FIRST_DAY), Some(LAST_DAY)]);
        assert_eq!([day(0, 12, 31), day(10_000, 1, 1), day(2023, 2, 29)], [None; 3]);
        assert_eq!(date(FIRST_DAY as i32), (1, 1, 1));
        assert_eq!([add_days(FIRST_DAY as i32, -1), add_days(LAST_DAY as i32, 1)], [None; 2]);
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
