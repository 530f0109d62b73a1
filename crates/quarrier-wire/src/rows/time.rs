//! Writes dates, times and intervals as PostgreSQL does.

use std::fmt::Write;

use arrow_buffer::IntervalMonthDayNano;
use quarrier_core::civil;

/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's epoch.
pub(super) const EPOCH_DAYS: i64 = 10_957;
/// The same in microseconds.
pub(super) const EPOCH_US: i64 = EPOCH_DAYS * DAY_US;
/// Microseconds per day.
pub(super) const DAY_US: i64 = 86_400_000_000;

/// Converts `count` parts of a second to microseconds, rounded down; `None` if they exceed 64 bits.
pub(super) fn micros(count: i64, per_second: i64) -> Option<i64> {
    match per_second {
        1_000_000_000 => Some(count.div_euclid(1_000)),
        parts => count.checked_mul(1_000_000 / parts),
    }
}

/// Appends text to bytes.
struct Text<'a>(&'a mut Vec<u8>);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Writes a date: `2024-02-29`, with ` BC` after years before the first.
pub(super) fn date(day: i64, out: &mut Vec<u8>) {
    if day_of(day, out) {
        out.extend_from_slice(b" BC");
    }
}

/// Writes a date without ` BC`; returns whether that must follow.
fn day_of(day: i64, out: &mut Vec<u8>) -> bool {
    let (year, month, of_month) = civil::date(day);
    let is_before = year <= 0;
    let year = if is_before { 1 - year } else { year };
    // A write to memory cannot fail.
    let _ = write!(Text(out), "{year:04}-{month:02}-{of_month:02}");
    is_before
}

/// Writes the time of a nanosecond of the day: `12:34:56.5`.
pub(super) fn time(nanos: i64, out: &mut Vec<u8>) {
    let _ = civil::write_time(nanos - nanos % 1_000, &mut Text(out));
}

/// Writes the timestamp of a microsecond: `2024-02-29 12:34:56.5`, with `+00` if it has a zone.
pub(super) fn timestamp(micros: i64, has_zone: bool, out: &mut Vec<u8>) {
    let is_before = day_of(micros.div_euclid(DAY_US), out);
    out.push(b' ');
    time(micros.rem_euclid(DAY_US) * 1_000, out);
    if has_zone {
        out.extend_from_slice(b"+00");
    }
    if is_before {
        out.extend_from_slice(b" BC");
    }
}

/// Writes a timestamp given in parts of a second, to the last digit: `2024-02-29T12:34:56.5`.
pub(super) fn iso(count: i64, per_second: i64, has_zone: bool, out: &mut Vec<u8>) {
    let (seconds, part) = (count.div_euclid(per_second), count.rem_euclid(per_second));
    let _ = civil::write_date(seconds.div_euclid(86_400), &mut Text(out));
    out.push(b'T');
    let nanos = seconds.rem_euclid(86_400) * 1_000_000_000 + part * (1_000_000_000 / per_second);
    let _ = civil::write_time(nanos, &mut Text(out));
    if has_zone {
        out.push(b'Z');
    }
}

/// Writes an interval: `1 year 2 mons 3 days 04:05:06.7`.
pub(super) fn interval(interval: IntervalMonthDayNano, out: &mut Vec<u8>) {
    let start = out.len();
    let mut part = |count: i64, one: &str, many: &str| {
        if count != 0 {
            let space = if out.len() > start { " " } else { "" };
            let unit = if count == 1 { one } else { many };
            let _ = write!(Text(out), "{space}{count} {unit}");
        }
    };
    let months = i64::from(interval.months);
    part(months / 12, "year", "years");
    part(months % 12, "mon", "mons");
    part(i64::from(interval.days), "day", "days");
    let nanos = interval.nanoseconds;
    if nanos != 0 || out.len() == start {
        if out.len() > start {
            out.push(b' ');
        }
        if nanos < 0 {
            out.push(b'-');
        }
        let size = i64::try_from(nanos.unsigned_abs()).unwrap_or(i64::MAX);
        time(size, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn timestamps_are_written_like_postgres() {
        assert_eq!(text(|out| timestamp(0, false, out)), "1970-01-01 00:00:00");
        assert_eq!(text(|out| timestamp(-1, true, out)), "1969-12-31 23:59:59.999999+00");
        assert_eq!(text(|out| iso(1_500, 1_000, true, out)), "1970-01-01T00:00:01.5Z");
        assert_eq!(text(|out| date(-719_528, out)), "0001-01-01 BC");
        assert_eq!(micros(-1, 1_000_000_000), Some(-1));
        assert_eq!(micros(i64::MAX, 1), None);
    }

    #[test]
    fn intervals_are_written_like_postgres() {
        let shown = |months, days, nanos| {
            text(|out| interval(IntervalMonthDayNano::new(months, days, nanos), out))
        };
        assert_eq!(shown(14, 3, 3_600_500_000_000), "1 year 2 mons 3 days 01:00:00.5");
        assert_eq!(shown(0, 0, 0), "00:00:00");
        assert_eq!(shown(0, 0, -1_000_000_000), "-00:00:01");
    }
}
