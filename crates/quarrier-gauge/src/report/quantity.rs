//! Formats values for people.

use quarrier_report::number::{large_prefix, number, short, significant, small_prefix};

use crate::reading::Unit;

/// Formats a value with its unit and three digits: `58.5 GFLOP/s`, `14.2 ns`.
pub fn value(value: f64, unit: Unit) -> String {
    if unit == Unit::OpPerSecond && (1000.0..1e6).contains(&value) {
        return format!("{} op/s", number(value.round()));
    }
    let (factor, prefix) = prefix_of(value, unit);
    format!("{} {prefix}{}", significant(value / factor), unit.name())
}

/// Formats a clock: `3.81 GHz`.
pub(crate) fn clock(hertz: f64) -> String {
    let (factor, prefix) = large_prefix(hertz);
    format!("{} {prefix}Hz", significant(hertz / factor))
}

/// Formats a mark of an axis that ends at `most`: `20 GB/s`, with no more digits than needed.
pub(crate) fn tick(value: f64, most: f64, unit: Unit) -> String {
    let (factor, prefix) = prefix_of(most, unit);
    format!("{} {prefix}{}", short(value / factor), unit.name())
}

/// Names the unit of an axis: `bytes a second`.
pub(crate) fn counted_in(unit: Unit) -> &'static str {
    match unit {
        Unit::OpPerSecond => "operations a second",
        Unit::FlopPerSecond => "floating-point operations a second",
        Unit::BytesPerSecond => "bytes a second",
        Unit::Seconds => "time",
    }
}

fn prefix_of(value: f64, unit: Unit) -> (f64, &'static str) {
    if unit == Unit::Seconds { small_prefix(value) } else { large_prefix(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits_and_a_unit() {
        for (number, unit, text) in [
            (58.5e9, Unit::FlopPerSecond, "58.5 GFLOP/s"),
            (999.96e9, Unit::BytesPerSecond, "1.00 TB/s"),
            (15_800.4, Unit::OpPerSecond, "15,800 op/s"),
            (14.2e-9, Unit::Seconds, "14.2 ns"),
            (2500.0, Unit::Seconds, "2500 s"),
            (0.0, Unit::BytesPerSecond, "0.00 B/s"),
            (0.25, Unit::BytesPerSecond, "0.25 B/s"),
            (f64::NAN, Unit::Seconds, "– s"),
        ] {
            assert_eq!(value(number, unit), text);
        }
        assert_eq!(clock(3.81e9), "3.81 GHz");
        assert_eq!(tick(20e9, 44e9, Unit::BytesPerSecond), "20 GB/s");
    }
}
