//! The roofline: what a kernel can reach, by how much it computes a byte.
//!
//! Slopes are the rates at which a level of memory gives bytes, roofs what the cores compute. A
//! kernel that computes `x` operations a byte reaches at most the lowest of both over `x`.

use plotters::style::text_anchor::{HPos, VPos};

use super::frame::{self, Drawn, FINE, Failure, Tips};
use super::scale::{Scale, Tick};
use super::theme::{Colour, INK};
use crate::reading::Unit;
use crate::report::quantity;

/// A rate of bytes.
#[derive(Debug, Clone)]
pub(in crate::report::html) struct Slope {
    pub(in crate::report::html) name: String,
    pub(in crate::report::html) bytes_per_second: f64,
    pub(in crate::report::html) colour: Colour,
}

/// A rate of operations.
#[derive(Debug, Clone)]
pub(in crate::report::html) struct Roof {
    pub(in crate::report::html) name: String,
    pub(in crate::report::html) per_second: f64,
    pub(in crate::report::html) colour: Colour,
}

/// All of a machine.
#[derive(Debug, Clone)]
pub(in crate::report::html) struct Roofs {
    pub(in crate::report::html) slopes: Vec<Slope>,
    pub(in crate::report::html) roofs: Vec<Roof>,
}

const SIZE: (i32, i32) = (1080, 440);
const LEFT_PX: i32 = 96;

/// The SVG; `None` without a slope and a roof.
pub(in crate::report::html) fn roofline(roofs: &Roofs) -> Option<String> {
    let rates = |of: &mut dyn Iterator<Item = f64>| {
        of.fold((f64::INFINITY, 0.0f64), |(least, most), v| (least.min(v), most.max(v)))
    };
    let slopes = rates(&mut roofs.slopes.iter().map(|slope| slope.bytes_per_second));
    let tops = rates(&mut roofs.roofs.iter().map(|roof| roof.per_second));
    if !(slopes.1 > 0.0 && tops.1 > 0.0 && slopes.0.is_finite() && tops.0.is_finite()) {
        return None;
    }
    // From an eighth of the leftmost knee to eight times the rightmost.
    let (first, last) =
        ((tops.0 / slopes.1 / 8.0).log2().floor(), (tops.1 / slopes.0 * 4.0).log2().ceil());
    let ticks =
        (first as i32..=last as i32).filter(|power| (last - first) < 14.0 || power % 2 == 0);
    let ticks = ticks.map(|power| Tick { value: 2f64.powi(power), label: fraction(power) });
    let x = Scale::logarithmic(2f64.powf(first), 2f64.powf(last), ticks.collect());
    let y = Scale::decades(slopes.0 * x.ends().0 / 2.0, tops.1 * 1.6, Unit::FlopPerSecond);
    Some(frame::drawing(
        SIZE,
        "Roofline: operations a second over operations a byte",
        |area, tips| {
            let mut chart = frame::chart(area, &x, &y, LEFT_PX)?;
            let mut steepest_first: Vec<&Slope> = roofs.slopes.iter().collect();
            steepest_first.sort_by(|a, b| b.bytes_per_second.total_cmp(&a.bytes_per_second));
            for (place, slope) in steepest_first.into_iter().enumerate() {
                draw_slope(area, &mut chart, (&x, &y), (slope, tops.1, place), tips)?;
            }
            let mut above = i32::MAX;
            let mut sorted: Vec<&Roof> = roofs.roofs.iter().collect();
            sorted.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
            for roof in sorted {
                above = draw_roof(area, &mut chart, &x, roof, (slopes.1, above), tips)?;
            }
            Ok(())
        },
    ))
}

/// A slope, from the left edge or the bottom up to the highest roof, with its name on it: each
/// further up than that of the steeper one before, since slopes lie close to each other.
fn draw_slope(
    area: &frame::Area<'_>,
    chart: &mut frame::Chart<'_, '_>,
    (x, y): (&Scale, &Scale),
    (slope, top, place): (&Slope, f64, usize),
    tips: &mut Tips,
) -> Drawn {
    let rate = slope.bytes_per_second;
    let from = x.ends().0.max(y.ends().0 / rate);
    let to = (top / rate).min(x.ends().1);
    let ends = [(from, from * rate), (to, to * rate)];
    frame::path(chart, ends.to_vec(), frame::stroke(slope.colour, 2.0))?;
    let told = format!("{}: {}", slope.name, quantity::value(rate, Unit::BytesPerSecond));
    let [foot, head] = ends.map(|end| chart.backend_coord(&end));
    tips.add(foot, &told);
    tips.add(head, &told);
    let share = (0.15 * (place + 1) as f64).min(0.9);
    let along = |from: i32, to: i32| from + (f64::from(to - from) * share).round() as i32;
    let style = frame::label(INK, HPos::Center, VPos::Center);
    frame::write(area, &slope.name, (along(foot.0, head.0), along(foot.1, head.1)), style)?;
    Ok(())
}

/// A roof from where the steepest slope meets it, with its name at the right; gives the height of
/// the name, so that the next does not lie on it.
fn draw_roof(
    area: &frame::Area<'_>,
    chart: &mut frame::Chart<'_, '_>,
    x: &Scale,
    roof: &Roof,
    (steepest, above): (f64, i32),
    tips: &mut Tips,
) -> Result<i32, Failure> {
    let from = (roof.per_second / steepest).max(x.ends().0);
    let ends = [(from, roof.per_second), (x.ends().1, roof.per_second)];
    frame::path(chart, ends.to_vec(), frame::stroke(roof.colour, 2.0))?;
    let end = chart.backend_coord(&ends[1]);
    let told = format!("{}: {}", roof.name, quantity::value(roof.per_second, Unit::FlopPerSecond));
    tips.add(end, &told);
    tips.add(chart.backend_coord(&ends[0]), &told);
    let line = end.1 - 3 * FINE;
    if above - line >= 13 * FINE {
        let style = frame::label(INK, HPos::Right, VPos::Bottom);
        frame::write(area, &told, (end.0 - 4 * FINE, line), style)?;
        return Ok(line);
    }
    Ok(above)
}

/// 2 to the `power` as people write it: `1/8`, `16`.
fn fraction(power: i32) -> String {
    if power < 0 {
        format!("1/{}", quantity::count(2f64.powi(-power)))
    } else {
        quantity::count(2f64.powi(power))
    }
}
