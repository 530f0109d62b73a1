//! Numbers as people read them.

use crate::reading::Unit;

/// Names of powers of 1000, from 10⁻¹² on.
const PREFIXES: [(&str, f64); 9] = [
    ("p", 1e-12),
    ("n", 1e-9),
    ("µ", 1e-6),
    ("m", 1e-3),
    ("", 1.0),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
];

/// A value with its unit, three digits of it: `58.5 GFLOP/s`, `14.2 ns`.
pub fn value(value: f64, unit: Unit) -> String {
    if unit == Unit::OpPerSecond && value.is_finite() && (1000.0..1e6).contains(&value) {
        return format!("{} op/s", count(value.round()));
    }
    let (prefix, factor) = prefix_of(value, unit);
    format!("{} {prefix}{}", significant(value / factor), unit.name())
}

/// A clock: `3.81 GHz`.
pub(crate) fn clock(hertz: f64) -> String {
    let (prefix, factor) = prefix_of(hertz, Unit::OpPerSecond);
    format!("{} {prefix}Hz", significant(hertz / factor))
}

/// A mark of an axis that ends at `most`: `20 GB/s`, with no more digits than needed.
pub(crate) fn tick(value: f64, most: f64, unit: Unit) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let (prefix, factor) = prefix_of(most, unit);
    let mut digits = format!("{:.3}", value / factor);
    digits.truncate(digits.trim_end_matches('0').trim_end_matches('.').len());
    format!("{digits} {prefix}{}", unit.name()).trim_end().to_string()
}

/// A size in bytes: `64 KiB`.
pub fn size(bytes: f64) -> String {
    // A number that is not round is exact, or it would look like its neighbour.
    if bytes < 1_048_576.0 && bytes % 1024.0 != 0.0 && bytes.fract() == 0.0 {
        return format!("{} B", count(bytes));
    }
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes;
    let mut place = 0;
    while value >= 1024.0 && place + 1 < UNITS.len() {
        value /= 1024.0;
        place += 1;
    }
    let digits = if value.fract() == 0.0 { format!("{value:.0}") } else { significant(value) };
    format!("{digits} {}", UNITS[place])
}

/// A number with its thousands apart: `15,800`.
pub fn count(number: f64) -> String {
    if number.fract() != 0.0 || number.abs() >= 1e15 || !number.is_finite() {
        return significant(number);
    }
    let digits = format!("{:.0}", number.abs());
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if number < 0.0 {
        out.push('−');
    }
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What an axis counts: `bytes a second`.
pub(crate) fn counted_in(unit: Unit) -> &'static str {
    match unit {
        Unit::OpPerSecond => "operations a second",
        Unit::FlopPerSecond => "floating-point operations a second",
        Unit::BytesPerSecond => "bytes a second",
        Unit::Seconds => "time",
    }
}

/// A share as percent: `7.4 %`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p.abs() < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// Three significant digits.
pub(crate) fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_string();
    }
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

fn prefix_of(value: f64, unit: Unit) -> (&'static str, f64) {
    let has_prefix = value.is_finite() && value != 0.0;
    let most = if unit == Unit::Seconds { 1.0 } else { f64::INFINITY };
    let least = if unit == Unit::Seconds { 0.0 } else { 1.0 };
    let fits = PREFIXES.iter().rev().find(|(_, factor)| {
        has_prefix && (least..=most).contains(factor) && value.abs() >= factor * 0.9995
    });
    fits.copied().unwrap_or(("", 1.0))
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
        assert_eq!(size(65536.0), "64 KiB");
        assert_eq!(size(65507.0), "65,507 B");
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(percent(0.074), "7.4 %");
    }
}
