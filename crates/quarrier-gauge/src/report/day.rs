//! Formats the time of a report.

use quarrier_core::civil;

/// Formats seconds since 1970 as `2026-11-22 07:39 UTC`.
pub(crate) fn utc(seconds: u64) -> String {
    // No report is from after the year 9999.
    let seconds = seconds.min(253_402_300_799) as i64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil::date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3600, rest / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, day) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_795_333_150, "2026-11-22 07:39 UTC"),
            (u64::MAX, "9999-12-31 23:59 UTC"),
        ] {
            assert_eq!(utc(seconds), day);
        }
    }
}
