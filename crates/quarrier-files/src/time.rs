//! Timestamps as rows show them.

use quarrier_core::civil;

/// Formats nanoseconds since 1970 as `2019-07-04T10:20:30Z`, with as many decimals as needed.
pub fn format_time(time: i64) -> String {
    let mut text = String::with_capacity("2019-07-04T10:20:30.123456789Z".len());
    write_time(time, &mut text);
    text
}

/// Appends a time as [`format_time`] formats it.
pub fn write_time(time: i64, text: &mut String) {
    let (day, of_day) = civil::split(time);
    // Writing to a string cannot fail.
    let _ = civil::write_date(day.into(), text);
    text.push('T');
    let _ = civil::write_time(of_day, text);
    text.push('Z');
}

#[cfg(test)]
mod tests {
    use super::format_time;

    #[test]
    fn times_have_the_digits_that_say_something() {
        assert_eq!(format_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_time(1_562_235_630_120_000_000), "2019-07-04T10:20:30.12Z");
        assert_eq!(format_time(-1_000_000_000), "1969-12-31T23:59:59Z");
    }
}
