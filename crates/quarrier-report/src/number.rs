//! Numbers for people: three digits, a unit, thousands separators.

/// Names of powers of 1000, from 10⁻¹² on.
const PREFIXES: [(f64, &str); 9] = [
    (1e-12, "p"),
    (1e-9, "n"),
    (1e-6, "µ"),
    (1e-3, "m"),
    (1.0, ""),
    (1e3, "k"),
    (1e6, "M"),
    (1e9, "G"),
    (1e12, "T"),
];

/// Names of powers of 1024.
const BINARY: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Formats an integer with thousands separators: `1,234,567`.
pub fn count(number: u64) -> String {
    apart(&number.to_string())
}

/// Formats a count and its noun in singular or plural: `1 finding`, `2 findings`.
pub fn counted(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", count(number))
}

/// Formats any number: with thousands separators if it is whole (`15,800`), else with three significant
/// digits.
pub fn number(value: f64) -> String {
    if value.fract() != 0.0 || value.abs() >= 1e15 || !value.is_finite() {
        return significant(value);
    }
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{}", apart(&format!("{:.0}", value.abs())))
}

fn apart(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats three significant digits; a dash for NaN.
pub fn significant(value: f64) -> String {
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

/// Formats at most three decimals, without trailing zeros: `2.5`, `20`.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_string();
    }
    let mut digits = format!("{value:.3}");
    digits.truncate(digits.trim_end_matches('0').trim_end_matches('.').len());
    digits
}

/// The factor and prefix for a value of 1 or more: (10⁹, `G`).
pub fn large_prefix(value: f64) -> (f64, &'static str) {
    prefix(value, 1.0, f64::INFINITY)
}

/// The factor and prefix for a value in a unit without multiples, such as seconds: (10⁻³, `m`).
pub fn small_prefix(value: f64) -> (f64, &'static str) {
    prefix(value, 0.0, 1.0)
}

fn prefix(value: f64, least: f64, most: f64) -> (f64, &'static str) {
    // Values that would round to 1000 take the next unit.
    let fits = PREFIXES.iter().rev().find(|(factor, _)| {
        (least..=most).contains(factor) && value.abs() >= factor * 0.9995 && value.is_finite()
    });
    fits.filter(|_| value != 0.0).copied().unwrap_or((1.0, ""))
}

/// Formats a rate in bytes per second, in powers of 1000 like vendors of drives and memory: `3.42
/// GB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    let (factor, prefix) = large_prefix(bytes_per_second);
    format!("{} {prefix}B/s", significant(bytes_per_second / factor))
}

/// Formats a size in powers of 1024: `64 KiB`, `1.50 GiB`.
pub fn bytes(bytes: u64) -> String {
    let (factor, name) = binary_unit(bytes as f64);
    let value = bytes as f64 / factor;
    if value.fract() == 0.0 {
        return format!("{value:.0} {name}");
    }
    format!("{} {name}", significant(value))
}

/// Formats a size that distinguishes close values, such as a parameter: exact below 1 MiB (`65,507 B`),
/// else like [`bytes`](fn@bytes).
pub fn exact_bytes(value: f64) -> String {
    if value < 1_048_576.0 && value % 1024.0 != 0.0 && value.fract() == 0.0 {
        return format!("{} B", number(value));
    }
    bytes(value.max(0.0) as u64)
}

/// The factor and name of the power of 1024 for `bytes`.
pub fn binary_unit(bytes: f64) -> (f64, &'static str) {
    let mut factor = 1.0;
    let mut name = BINARY[0];
    for next in &BINARY[1..] {
        if bytes >= factor * 1024.0 {
            (factor, name) = (factor * 1024.0, next);
        }
    }
    (factor, name)
}

/// Formats a duration with its unit: `12.3 ms`, `4 min 05 s`.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s <= 0.0 => "0 s".to_string(),
        s if s < 1e-3 => format!("{} µs", significant(s * 1e6)),
        s if s < 1.0 => format!("{} ms", significant(s * 1e3)),
        s if s < 120.0 => format!("{} s", significant(s)),
        s if s < 7200.0 => format!("{} min {:02} s", s as u64 / 60, s as u64 % 60),
        s => format!("{} h {:02} min", count(s as u64 / 3600), s as u64 / 60 % 60),
    }
}

/// Formats a share in percent: `7.4 %`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => "–".to_string(),
        p if p > 0.0 && p < 0.1 => "< 0.1 %".to_string(),
        p if p.abs() < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_thousands_apart() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!((count(value), number(value as f64)), (text.into(), text.into()));
        }
        assert_eq!((number(-4200.0), number(0.5)), ("−4,200".into(), "0.50".into()));
        assert_eq!((counted(1, "file"), counted(0, "file")), ("1 file".into(), "0 files".into()));
    }

    #[test]
    fn sizes_and_rates_have_three_digits_and_a_unit() {
        for (value, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (65536, "64 KiB"),
            (3 << 29, "1.50 GiB"),
            (1_000_000, "977 KiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(bytes(value), text);
        }
        assert_eq!(
            (exact_bytes(65507.0), exact_bytes(1e7)),
            ("65,507 B".into(), "9.54 MiB".into())
        );
        for (value, text) in [
            (3.4167e9, "3.42 GB/s"),
            (999.96e9, "1.00 TB/s"),
            (0.25, "0.25 B/s"),
            (0.0, "0.00 B/s"),
            (f64::NAN, "– B/s"),
        ] {
            assert_eq!(rate(value), text);
        }
    }

    #[test]
    fn times_and_shares_are_short() {
        for (value, text) in [
            (-1.0, "0 s"),
            (2.5e-6, "2.50 µs"),
            (0.0123, "12.3 ms"),
            (2.0, "2.00 s"),
            (245.0, "4 min 05 s"),
            (7260.0, "2 h 01 min"),
        ] {
            assert_eq!(seconds(value), text);
        }
        for (share, text) in
            [(0.0, "0.0 %"), (0.0004, "< 0.1 %"), (0.074, "7.4 %"), (0.5, "50 %"), (f64::NAN, "–")]
        {
            assert_eq!(percent(share), text);
        }
        assert_eq!(
            (short(2.5), short(20.0), short(f64::NAN)),
            ("2.5".into(), "20".into(), "–".into())
        );
    }
}
