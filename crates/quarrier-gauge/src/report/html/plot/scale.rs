//! Axes: where a value lies, and which values are marked.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::reading::Unit;
use crate::report::quantity;

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report::html) struct Tick {
    pub(in crate::report::html) value: f64,
    pub(in crate::report::html) label: String,
}

/// An axis of numbers, in equal steps or in equal ratios.
#[derive(Debug, Clone)]
pub(in crate::report::html) struct Scale {
    from: f64,
    to: f64,
    is_logarithmic: bool,
    ticks: Vec<Tick>,
}

/// Heights that differ by more than this are drawn in equal ratios.
const RATIO_OF_LINEAR: f64 = 40.0;
/// The most marks of an axis.
const TICKS_MOST: usize = 8;
/// What stands free beside the outermost point, as a share of the axis.
const AIR: f64 = 0.03;

impl Scale {
    /// An axis of `unit` for heights from `least` to `most`; equal steps begin at 0.
    pub(in crate::report::html) fn of_values(least: f64, most: f64, unit: Unit) -> Self {
        let (least, most) = drawable(least, most);
        if most / least > RATIO_OF_LINEAR {
            return Scale::decades(least, most, unit);
        }
        let step = round_step(most / 7.0);
        let ticks = (0..=2 * TICKS_MOST as u32).map(|n| f64::from(n) * step);
        let ticks = ticks
            .take_while(|value| *value <= most * 1.06)
            .map(|value| Tick { value, label: quantity::tick(value, most, unit) });
        Scale { from: 0.0, to: most * 1.06, is_logarithmic: false, ticks: ticks.collect() }
    }

    /// An axis in powers of ten.
    pub(in crate::report::html) fn decades(least: f64, most: f64, unit: Unit) -> Self {
        let (least, most) = drawable(least, most);
        let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        let every = (last - first).max(1).div_euclid(TICKS_MOST as i32) + 1;
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        // Few powers are too few marks.
        let factors: &[f64] = if most / least < 300.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let ticks = powers.flat_map(|power| factors.iter().map(move |f| f * 10f64.powi(power)));
        let ticks = ticks.map(|value| Tick { value, label: quantity::tick(value, value, unit) });
        Scale::logarithmic(least, most, ticks.collect())
    }

    /// An axis of sizes in bytes, in powers of two.
    pub(in crate::report::html) fn of_bytes(least: f64, most: f64) -> Self {
        let (least, most) = drawable(least.max(1.0), most.max(1.0));
        let (first, last) = (least.log2().floor() as i32, most.log2().ceil() as i32);
        let every = ((last - first) / TICKS_MOST as i32 + 1).min(10);
        let ticks = (first..=last).filter(|power| power.rem_euclid(every) == 0).map(|power| {
            let value = 2f64.powi(power);
            Tick { value, label: quantity::size(value) }
        });
        Scale::logarithmic(least, most, ticks.collect())
    }

    /// An axis of numbers such as threads, in equal ratios, marked where there are values.
    pub(in crate::report::html) fn of_counts(values: &[f64]) -> Self {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        let (least, most) = drawable(least, most);
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| *v > 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let apart = (most / least).powf(0.06);
        let mut ticks: Vec<Tick> = Vec::new();
        for value in sorted {
            if ticks.last().is_none_or(|last| value / last.value >= apart.max(1.0 + 1e-9)) {
                ticks.push(Tick { value, label: quantity::count(value) });
            }
        }
        Scale::logarithmic(least, most, ticks)
    }

    /// An axis in equal ratios with these marks.
    pub(in crate::report::html) fn logarithmic(least: f64, most: f64, ticks: Vec<Tick>) -> Self {
        let air = (most / least).powf(AIR).max(1.02);
        let (from, to) = (least / air, most * air);
        let ticks = ticks.into_iter().filter(|tick| (from..=to).contains(&tick.value)).collect();
        Scale { from, to, is_logarithmic: true, ticks }
    }

    /// An axis in equal steps without marks.
    pub(in crate::report::html) fn bare(from: f64, to: f64) -> Self {
        Scale { from, to, is_logarithmic: false, ticks: Vec::new() }
    }

    /// Where the axis ends.
    pub(in crate::report::html) fn ends(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    /// `value`, or the end of the axis that it lies beyond.
    pub(in crate::report::html) fn clamp(&self, value: f64) -> f64 {
        if value.is_nan() { self.from } else { value.clamp(self.from, self.to) }
    }

    /// Whether `value` lies on the axis.
    pub(in crate::report::html) fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    fn share(&self, value: f64) -> f64 {
        let value = self.clamp(value);
        if self.is_logarithmic {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (self.share(*value) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|tick| tick.value).collect()
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|tick| tick.value == *value);
        tick.map(|tick| tick.label.clone()).unwrap_or_default()
    }
}

/// A span that can be drawn, whatever was measured: positive, finite, not empty.
fn drawable(least: f64, most: f64) -> (f64, f64) {
    let most = if most.is_finite() && most > 1e-100 { most.min(1e100) } else { 1.0 };
    let least =
        if least.is_finite() && least > most * 1e-30 { least.min(most) } else { most / 10.0 };
    if most / least < 1.0 + 1e-9 { (most / 1.5, most * 1.5) } else { (least, most) }
}

/// The smallest of 1, 2, 5, 10 … that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|factor| factor * power);
    step.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn marks_are_round() {
        let rates = Scale::of_values(8e9, 44e9, Unit::BytesPerSecond);
        assert_eq!(labels(&rates), ["0", "10 GB/s", "20 GB/s", "30 GB/s", "40 GB/s"]);
        let times = Scale::of_values(1e-9, 500e-9, Unit::Seconds);
        assert_eq!(labels(&times), ["1 ns", "10 ns", "100 ns"]);
        let few = Scale::decades(30e9, 180e9, Unit::FlopPerSecond);
        assert_eq!(labels(&few), ["50 GFLOP/s", "100 GFLOP/s"]);
        let sizes = Scale::of_bytes(4096.0, (1u64 << 30) as f64);
        assert_eq!(labels(&sizes)[..3], ["4 KiB", "32 KiB", "256 KiB"]);
        assert_eq!(labels(&Scale::of_counts(&[1.0, 2.0, 4.0])), ["1", "2", "4"]);
    }

    #[test]
    fn an_axis_can_be_drawn_whatever_was_measured() {
        for (least, most) in
            [(0.0, 0.0), (f64::NAN, f64::NAN), (-1.0, f64::INFINITY), (1.0, 1.0), (1e-300, 1e300)]
        {
            for scale in [
                Scale::of_values(least, most, Unit::Seconds),
                Scale::decades(least, most, Unit::FlopPerSecond),
                Scale::of_bytes(least, most),
                Scale::of_counts(&[least, most]),
            ] {
                assert!(scale.from < scale.to && scale.from.is_finite(), "{scale:?}");
                assert!(scale.ticks.len() <= 120, "{scale:?}");
                for value in [least, most, 0.0, f64::NAN, -3.0] {
                    let at = scale.map(&value, (0, 1000));
                    assert!((0..=1000).contains(&at), "{scale:?} {value} {at}");
                }
            }
        }
    }
}
