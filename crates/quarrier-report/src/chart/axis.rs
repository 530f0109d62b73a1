//! Axes: the position of a value, and the tick marks.

use crate::number;

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// The position, in the axis's own unit.
    pub value: f64,
    /// The label.
    pub label: String,
}

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic; all values are above 0.
    Logarithmic,
    /// Logarithmic in the value plus one, so that 0 has a position.
    Counts,
}

/// An axis of finite length, for any input.
#[derive(Debug, Clone)]
pub struct Axis {
    from: f64,
    to: f64,
    scale: Scale,
    ticks: Vec<Tick>,
}

/// Heights whose ratio exceeds this are drawn on a logarithmic scale.
const RATIO_OF_LINEAR: f64 = 40.0;
/// Maximum number of tick marks of an axis.
const TICKS_MAX: usize = 8;
/// The margin beside the outermost point, as a share of the axis.
const AIR: f64 = 0.03;
/// The height that a label needs, as a share of the chart.
const LABEL_HEIGHT: f64 = 0.12;
/// Maximum end of an axis.
const END_MAX: f64 = 1e100;

impl Axis {
    /// A linear axis with these tick marks.
    pub fn linear(from: f64, to: f64, ticks: Vec<Tick>) -> Self {
        let is_sane = from.abs() <= END_MAX && to.abs() <= END_MAX && from < to;
        let (from, to) = if is_sane { (from, to) } else { (0.0, 1.0) };
        Axis::kept(from, to, Scale::Linear, ticks)
    }

    /// A time axis from 0 to `seconds`.
    pub fn time(seconds: f64) -> Self {
        let seconds = positive(seconds);
        let (unit, name) = time_unit(seconds);
        let step = round_step(seconds / unit / 11.0);
        let ticks = steps(seconds / unit, step).map(|value| Tick {
            value: value * unit,
            label: if value == 0.0 {
                "0".into()
            } else {
                format!("{} {name}", number::short(value))
            },
        });
        Axis::linear(0.0, seconds, ticks.collect())
    }

    /// An axis of offsets from 0 to `length_bytes`, with ticks a power of two apart.
    pub fn offsets(length_bytes: u64) -> Self {
        let step = length_bytes.div_ceil(8).max(1).checked_next_power_of_two().unwrap_or(1 << 63);
        let ticks = steps(length_bytes as f64, step as f64);
        let ticks = ticks.map(|value| Tick { value, label: byte_label(value) });
        Axis::linear(0.0, length_bytes.max(1) as f64, ticks.collect())
    }

    /// An axis of heights from 0 to a little above `most`; `label` formats a tick.
    pub fn heights(most: f64, label: impl Fn(f64) -> String) -> Self {
        let most = positive(most);
        let ticks = steps(most * 1.06, round_step(most / 6.0));
        let ticks = ticks.map(|value| Tick { value, label: zero_or(value, &label) });
        Axis::linear(0.0, most * 1.06, ticks.collect())
    }

    /// An axis of counts from 0 to a little above `most`, with ticks at integers.
    pub fn whole_heights(most: f64) -> Self {
        let most = positive(most).max(1.0);
        let ticks = steps(most, round_step(most / 5.0).max(1.0));
        let ticks = ticks.map(|value| Tick { value, label: large(value) });
        Axis::linear(0.0, most * 1.08, ticks.collect())
    }

    /// An axis of heights from `least` to `most`: linear from 0, or logarithmic if they differ much.
    /// `label` formats a tick of an axis that ends at its second argument.
    pub fn values(least: f64, most: f64, label: impl Fn(f64, f64) -> String) -> Self {
        let (least, most) = drawable(least, most);
        if most / least > RATIO_OF_LINEAR {
            return Axis::decades(least, most, label);
        }
        Axis::heights(most, |value| label(value, most))
    }

    /// A logarithmic axis in powers of ten; `label` formats a tick of an axis that ends at its second
    /// argument.
    pub fn decades(least: f64, most: f64, label: impl Fn(f64, f64) -> String) -> Self {
        let (least, most) = drawable(least, most);
        let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        let every = (last - first).max(1).div_euclid(TICKS_MAX as i32) + 1;
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        // Few powers are too few ticks.
        let factors: &[f64] = if most / least < 300.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let ticks = powers.flat_map(|power| factors.iter().map(move |f| f * 10f64.powi(power)));
        let ticks = ticks.map(|value| Tick { value, label: label(value, value) });
        Axis::logarithmic(least, most, ticks.collect())
    }

    /// A logarithmic axis of sizes in bytes, in powers of two.
    pub fn sizes(least: f64, most: f64) -> Self {
        let (least, most) = drawable(least.max(1.0), most.max(1.0));
        let (first, last) = (least.log2().floor() as i32, most.log2().ceil() as i32);
        let every = ((last - first) / TICKS_MAX as i32 + 1).min(10);
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        let ticks = powers.map(|power| 2f64.powi(power));
        let ticks = ticks.map(|value| Tick { value, label: byte_label(value) });
        Axis::logarithmic(least, most, ticks.collect())
    }

    /// A logarithmic axis with ticks at `values`, such as numbers of threads.
    pub fn at(values: &[f64]) -> Self {
        let mut sorted: Vec<f64> =
            values.iter().copied().filter(|v| *v > 0.0 && v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let ends = (sorted.first().copied(), sorted.last().copied());
        let (least, most) = drawable(ends.0.unwrap_or(0.0), ends.1.unwrap_or(0.0));
        let apart = (most / least).powf(0.06).max(1.0 + 1e-9);
        let mut ticks: Vec<Tick> = Vec::new();
        for value in sorted {
            if ticks.last().is_none_or(|last| value / last.value >= apart) {
                ticks.push(Tick { value, label: number::number(value) });
            }
        }
        Axis::logarithmic(least, most, ticks)
    }

    /// A logarithmic axis with these tick marks.
    pub fn logarithmic(least: f64, most: f64, ticks: Vec<Tick>) -> Self {
        let (least, most) = drawable(least, most);
        let air = (most / least).powf(AIR).max(1.02);
        Axis::kept(least / air, most * air, Scale::Logarithmic, ticks)
    }

    /// A logarithmic axis of counts from 0 to `most`, with ticks at 0 and powers of ten.
    pub fn counts(most: f64) -> Self {
        let most = positive(most).max(1.0);
        let mut axis = Axis::kept(0.0, most * 1.15, Scale::Counts, Vec::new());
        axis.ticks.push(Tick { value: 0.0, label: "0".to_string() });
        for value in (0..20).map(|power| 10f64.powi(power)).take_while(|value| *value <= most) {
            let below = axis.ticks.last().map_or(0.0, |tick| axis.share(tick.value));
            if axis.share(value) - below > LABEL_HEIGHT {
                axis.ticks.push(Tick { value, label: large(value) });
            }
        }
        axis
    }

    fn kept(from: f64, to: f64, scale: Scale, mut ticks: Vec<Tick>) -> Self {
        ticks.retain(|tick| (from..=to).contains(&tick.value));
        Axis { from, to, scale, ticks }
    }

    /// The first and last value of the axis.
    pub fn ends(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    /// Whether `value` lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// The tick marks, in order.
    pub fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// The position of `value` along the axis, from 0 to 1. Values beyond an end are clamped to it, and
    /// NaN to the start.
    pub fn share(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.from } else { value.clamp(self.from, self.to) };
        match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Logarithmic => (value / self.from).ln() / (self.to / self.from).ln(),
            Scale::Counts => value.ln_1p() / self.to.ln_1p(),
        }
    }

    /// The value at `share` of the axis.
    pub fn value(&self, share: f64) -> f64 {
        match self.scale {
            Scale::Linear => self.from + (self.to - self.from) * share,
            Scale::Logarithmic => self.from * (self.to / self.from).powf(share),
            Scale::Counts => (self.to.ln_1p() * share).exp_m1(),
        }
    }
}

/// A length that can be drawn.
fn positive(value: f64) -> f64 {
    if value > 1e-100 && value.is_finite() { value.min(END_MAX / 10.0) } else { 1.0 }
}

/// A range that can be drawn for any input: positive, finite, not empty.
fn drawable(least: f64, most: f64) -> (f64, f64) {
    let most = positive(most);
    let is_near = least.is_finite() && least > most * 1e-30;
    let least = if is_near { least.min(most) } else { most / 10.0 };
    if most / least < 1.0 + 1e-9 { (most / 1.5, most * 1.5) } else { (least, most) }
}

/// The time unit for a duration: its length in seconds, and its name.
fn time_unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        s if s < 1.5e-3 => (1e-6, "µs"),
        s if s < 1.5 => (1e-3, "ms"),
        s if s < 180.0 => (1.0, "s"),
        s if s < 3.0 * 3600.0 => (60.0, "min"),
        _ => (3600.0, "h"),
    }
}

/// 0, `step`, 2 `step` … up to `end`; empty if the arguments cannot be drawn.
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

fn zero_or(value: f64, label: impl Fn(f64) -> String) -> String {
    if value == 0.0 { "0".to_string() } else { label(value) }
}

fn byte_label(value: f64) -> String {
    let (unit, name) = number::binary_unit(value);
    zero_or(value, |value| format!("{} {name}", number::short(value / unit)))
}

/// An integer in few characters: `250`, `15,000`, `2.5 M`.
fn large(value: f64) -> String {
    let (factor, prefix) = number::large_prefix(value);
    match value {
        v if v < 1e6 => number::number(v),
        v => format!("{} {prefix}", number::short(v / factor)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks().iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn marks_are_round() {
        let rate = |value: f64, _| number::rate(value);
        assert_eq!(labels(&Axis::time(2.55)), ["0", "0.5 s", "1 s", "1.5 s", "2 s", "2.5 s"]);
        let offsets = Axis::offsets(3 << 29);
        let expected = ["0", "256 MiB", "512 MiB", "768 MiB", "1 GiB", "1.25 GiB", "1.5 GiB"];
        assert_eq!((labels(&offsets), offsets.share((3u64 << 29) as f64)), (expected.into(), 1.0));
        assert_eq!(labels(&Axis::heights(3.4, number::short)), ["0", "1", "2", "3"]);
        assert_eq!(labels(&Axis::whole_heights(1.0)), ["0", "1"]);
        let counts = ["0", "10", "100", "1,000", "10,000", "100,000", "1 M"];
        assert_eq!(labels(&Axis::counts(2e6)), counts);
        let linear = ["0", "10.0 GB/s", "20.0 GB/s", "30.0 GB/s", "40.0 GB/s"];
        assert_eq!(labels(&Axis::values(8e9, 44e9, rate)), linear);
        let ratios = ["10.0 B/s", "100 B/s", "1.00 kB/s"];
        assert_eq!(labels(&Axis::values(5.0, 2000.0, rate)), ratios);
        assert_eq!(labels(&Axis::decades(30e9, 180e9, rate)), ["50.0 GB/s", "100 GB/s"]);
        let sizes = Axis::sizes(4096.0, (1u64 << 30) as f64);
        assert_eq!(labels(&sizes)[..3], ["4 KiB", "32 KiB", "256 KiB"]);
        assert_eq!(labels(&Axis::at(&[4.0, 1.0, 2.0])), ["1", "2", "4"]);
    }

    #[test]
    fn an_axis_can_be_drawn_for_any_values() {
        let odd = [0.0, 1.0, -1.0, 1e-300, 1e300, f64::MAX, f64::INFINITY, f64::NAN, f64::MIN];
        for least in odd {
            for most in odd {
                let label = |_, _| String::new();
                for axis in [
                    Axis::linear(least, most, Vec::new()),
                    Axis::time(most),
                    Axis::offsets(most as u64),
                    Axis::heights(most, number::short),
                    Axis::whole_heights(most),
                    Axis::values(least, most, label),
                    Axis::decades(least, most, label),
                    Axis::sizes(least, most),
                    Axis::at(&[least, most]),
                    Axis::logarithmic(least, most, Vec::new()),
                    Axis::counts(most),
                ] {
                    assert!(axis.from < axis.to && axis.from.is_finite(), "{axis:?}");
                    assert!(axis.ticks.len() <= 101, "{axis:?}");
                    for value in odd {
                        let share = axis.share(value);
                        assert!((0.0..=1.0).contains(&share), "{axis:?} {value} {share}");
                    }
                    assert!(axis.value(0.5).is_finite());
                }
            }
        }
    }
}
