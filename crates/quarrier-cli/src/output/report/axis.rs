//! Axes: round ticks in the unit that fits.

use super::text;

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Place on the axis, 0 to 1.
    pub(super) at: f64,
    pub(super) label: String,
}

/// The unit that a stretch of time is told in: seconds in it, its name.
pub(super) fn time_unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        s if s < 1.5e-3 => (1e-6, "µs"),
        s if s < 1.5 => (1e-3, "ms"),
        s if s < 180.0 => (1.0, "s"),
        s if s < 3.0 * 3600.0 => (60.0, "min"),
        _ => (3600.0, "h"),
    }
}

/// Ticks of a time axis from 0 to `seconds`.
pub(super) fn time_ticks(seconds: f64) -> Vec<Tick> {
    let (unit, name) = time_unit(seconds);
    let end = seconds / unit;
    let step = round_step(end / 11.0);
    steps(end, step).map(|value| tick(value / end, &decimal(value, step), name)).collect()
}

/// Ticks of an axis from 0 to `length_bytes`, a power of two apart.
pub(super) fn byte_ticks(length_bytes: u64) -> Vec<Tick> {
    let end = length_bytes as f64;
    let step = length_bytes.div_ceil(8).max(1).checked_next_power_of_two().unwrap_or(1 << 63);
    let label = |value: f64| {
        let (unit, name) = text::byte_unit(value);
        let mut number = format!("{:.3}", value / unit);
        number.truncate(number.trim_end_matches('0').trim_end_matches('.').len());
        (number, name)
    };
    steps(end, step as f64)
        .map(|value| {
            let (number, name) = label(value);
            tick(value / end, &number, name)
        })
        .collect()
}

/// An axis from 0 that ends a little above `most` (in units of its labels), for heights.
pub(super) struct Height {
    pub(super) end: f64,
    pub(super) ticks: Vec<Tick>,
}

/// Heights for values up to `most`; `whole`: ticks only at whole numbers.
pub(super) fn height(most: f64, whole: bool) -> Height {
    let most = if most > 0.0 { most } else { 1.0 };
    let step = round_step(most / 5.0);
    let step = if whole { step.max(1.0) } else { step };
    let end = most * 1.08;
    let label = |value: f64| if whole { large(value) } else { decimal(value, step) };
    let ticks = steps(end, step).map(|value| Tick { at: value / end, label: label(value) });
    Height { end, ticks: ticks.collect() }
}

/// Heights on a logarithmic scale: 0, and powers of ten up to `most`, as far as there is room.
pub(super) fn logarithmic(most: f64) -> Vec<Tick> {
    let powers = (0..20).map(|power| 10f64.powi(power)).take_while(|value| *value <= most);
    let mut ticks = vec![Tick { at: 0.0, label: "0".to_string() }];
    for value in powers {
        let at = log_share(value, most);
        if ticks.last().is_none_or(|last| at - last.at > LABEL_HEIGHT) {
            ticks.push(Tick { at, label: large(value) });
        }
    }
    ticks
}

/// What a label needs of the height of a plot.
const LABEL_HEIGHT: f64 = 0.12;

/// Where `value` lies between 0 and `most` on a logarithmic scale that begins at 0.
pub(super) fn log_share(value: f64, most: f64) -> f64 {
    value.ln_1p() / (most * 1.15).ln_1p()
}

fn tick(at: f64, number: &str, unit: &str) -> Tick {
    let label = if number == "0" { "0".to_string() } else { format!("{number} {unit}") };
    Tick { at, label }
}

/// 0, `step`, 2 `step` … up to `end`; nothing where these are no numbers to draw.
fn steps(end: f64, step: f64) -> impl Iterator<Item = f64> {
    let last = end / step * (1.0 + 1e-9);
    let count = if last.is_finite() && last >= 0.0 { last.min(100.0) as u32 + 1 } else { 0 };
    (0..count).map(move |n| f64::from(n) * step)
}

/// The smallest of 1, 2, 5, 10 … that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|factor| factor * power);
    step.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(power * 10.0)
}

/// `value` with as many decimals as `step` has.
fn decimal(value: f64, step: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let decimals = (-step.log10()).ceil().clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

/// A whole number in few characters: `250`, `15,000`, `2.5 M`.
fn large(value: f64) -> String {
    match value {
        v if v < 1e6 => text::count(v as u64),
        v => {
            let (unit, name) = if v < 1e9 { (1e6, "M") } else { (1e9, "G") };
            let number = format!("{:.1}", v / unit);
            format!("{} {name}", number.trim_end_matches(".0"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        let ticks = time_ticks(2.55);
        assert_eq!(labels(&ticks), ["0", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "2.5 s"]);
        let ticks = byte_ticks(3 << 29);
        let expected = ["0", "256 MiB", "512 MiB", "768 MiB", "1 GiB", "1.25 GiB", "1.5 GiB"];
        assert_eq!(labels(&ticks), expected);
        assert_eq!(ticks.last().map(|tick| tick.at), Some(1.0));
        assert_eq!(labels(&height(3.4, false).ticks), ["0", "1", "2", "3"]);
        assert_eq!(labels(&height(1.0, true).ticks), ["0", "1"]);
        assert_eq!(
            labels(&logarithmic(2e6)),
            ["0", "10", "100", "1,000", "10,000", "100,000", "1 M"]
        );
    }

    #[test]
    fn extreme_axes_stay_finite() {
        for seconds in [0.0, 1e-9, 1e-300, 1e9, f64::MAX] {
            assert!(time_ticks(seconds).len() <= 101, "{seconds}");
        }
        for bytes in [0, 1, 7, 513, u64::MAX] {
            assert!((1..=10).contains(&byte_ticks(bytes).len()) || bytes == 0, "{bytes}");
        }
        assert!(!height(0.0, true).ticks.is_empty());
    }
}
