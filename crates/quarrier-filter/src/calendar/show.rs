//! Formats dates, times and intervals.

use quarrier_core::civil::{write_date, write_time};

use super::{DAY_NS, split};

/// Formats as `2024-02-29`.
pub fn show_date(day: i32) -> String {
    written(|text| write_date(day.into(), text))
}

/// Formats as `12:34:56`, with decimals up to the last that is not zero.
pub fn show_time(time: i64) -> String {
    written(|text| write_time(time, text))
}

/// Formats as `2024-02-29 12:34:56`, with decimals up to the last that is not zero.
pub fn show_timestamp(timestamp: i64) -> String {
    let (day, time) = split(timestamp);
    format!("{} {}", show_date(day), show_time(time))
}

fn written(write: impl FnOnce(&mut String) -> std::fmt::Result) -> String {
    let mut text = String::new();
    let done = write(&mut text);
    debug_assert!(done.is_ok(), "a String takes everything");
    text
}

/// Formats as `1-2` if there are months, otherwise as `3 04:05:06`.
pub fn show_interval(months: i64, nanoseconds: i64) -> String {
    let sign = if months < 0 || nanoseconds < 0 { "-" } else { "" };
    if months != 0 {
        let months = months.unsigned_abs();
        return format!("{sign}{}-{}", months / 12, months % 12);
    }
    let ns = nanoseconds.unsigned_abs();
    let (days, time) = (ns / DAY_NS as u64, (ns % DAY_NS as u64) as i64);
    format!("{sign}{days} {}", show_time(time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{SECOND_NS, parse_time, parse_timestamp};

    #[test]
    fn formatted_values_round_trip() {
        for ns in [0, 1, -1, 1_234_567_890_123_456_789, i64::MAX, i64::MIN] {
            assert_eq!(parse_timestamp(&show_timestamp(ns)), Some(ns));
        }
        assert_eq!(show_time(parse_time("01:02:03.040").unwrap()), "01:02:03.04");
        assert_eq!(show_interval(-14, 0), "-1-2");
        assert_eq!(show_interval(0, DAY_NS + SECOND_NS), "1 00:00:01");
    }
}
