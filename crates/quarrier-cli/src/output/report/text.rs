//! Text for the page: what comes from input made harmless, numbers made readable.

pub(super) use quarrier_report::{escape, escape_cut};

/// A whole number with its thousands apart: `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `count` and the noun in its number: `1 finding`, `2 findings`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", count(number))
}

/// Three significant digits.
pub(super) fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// The largest of the powers of `base` that `value` reaches, with its place in `names`.
fn scaled<'n>(value: f64, base: f64, names: &[&'n str]) -> (f64, &'n str) {
    let mut unit = 1.0;
    let mut place = 0;
    while place + 1 < names.len() && value >= unit * base {
        unit *= base;
        place += 1;
    }
    (unit, names.get(place).copied().unwrap_or_default())
}

/// Factor and name of the unit in which a rate is told: decimal, as makers of disks do.
pub(super) fn rate_unit(bytes_per_second: f64) -> (f64, &'static str) {
    scaled(bytes_per_second, 1e3, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"])
}

/// A rate with its unit: `3.42 GB/s`.
pub(super) fn rate(bytes_per_second: f64) -> String {
    let (unit, name) = rate_unit(bytes_per_second);
    format!("{} {name}", significant(bytes_per_second / unit))
}

/// A size with its unit: `1.50 GiB`.
pub(super) fn bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return counted(bytes, "byte");
    }
    let (unit, name) = byte_unit(bytes as f64);
    format!("{} {name}", significant(bytes as f64 / unit))
}

/// Factor and name of the binary unit that fits `bytes`.
pub(super) fn byte_unit(bytes: f64) -> (f64, &'static str) {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// A stretch of time with its unit: `12.3 ms`, `4 min 05 s`.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s <= 0.0 => "0 s".to_string(),
        s if s < 1e-3 => format!("{} µs", significant(s * 1e6)),
        s if s < 1.0 => format!("{} ms", significant(s * 1e3)),
        s if s < 120.0 => format!("{} s", significant(s)),
        s if s < 7200.0 => format!("{} min {:02} s", s as u64 / 60, s as u64 % 60),
        s => format!("{} h {:02} min", s as u64 / 3600, s as u64 / 60 % 60),
    }
}

/// A share as percent: `7.4 %`.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.1 => "&lt; 0.1 %".to_string(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}
