//! The roofline: the rate that a kernel can reach, by its operations per byte.
//!
//! Slopes are the rates at which levels of memory deliver bytes, roofs the rates at which the cores
//! compute. A kernel with `x` operations per byte reaches at most the lowest of both over `x`.

use maud::{Markup, Render, html};
use quarrier_report::Colour;
use quarrier_report::chart::{Axis, Chart, Point, Side, Tick};
use quarrier_report::number;
use quarrier_report::page::{Key, legend, section as card};

use crate::reading::{Reading, Unit};
use crate::report::{Ceilings, Report, quantity, words};

/// Height of the drawing in pixels, and of a label.
const HEIGHT_PX: u32 = 380;
const LABEL_PX: f64 = 13.0;

/// The rate of a level of memory, or of one kind of arithmetic.
struct Rate<'r> {
    name: String,
    reading: &'r Reading,
    colour: Colour,
}

impl Rate<'_> {
    fn label(&self) -> String {
        format!("{}: {}", self.name, quantity::value(self.reading.value, self.reading.unit))
    }
}

/// The section, where both memory and arithmetic were measured.
pub(super) fn section(report: &Report) -> Markup {
    let ceilings = Ceilings::of(report);
    let levels = ceilings.levels().into_iter().enumerate().map(|(place, level)| Rate {
        name: level.name,
        reading: level.reading,
        colour: Colour::series(place),
    });
    let slopes: Vec<Rate<'_>> = levels.collect();
    let roofs = ceilings.kinds().into_iter().enumerate().filter_map(|(place, kind)| {
        let reading = ceilings.arithmetic(kind)?;
        let with = reading.parameters.text("isa").unwrap_or_default();
        let name = format!("{kind} {with}").trim_end().to_string();
        Some(Rate { name, reading, colour: Colour::series(slopes.len() + place) })
    });
    let roofs: Vec<Rate<'_>> = roofs.collect();
    let Some(drawing) = roofline(&slopes, &roofs) else { return html! {} };
    let key = |rate: &Rate<'_>, what: &str| {
        let value = quantity::value(rate.reading.value, rate.reading.unit);
        let words = words::parameters(rate.reading);
        (Some(Key::Series(rate.colour)), html! { (what) " " (value) ", " (words) })
    };
    let keys = slopes.iter().map(|rate| key(rate, &rate.name));
    let keys = keys.chain(roofs.iter().map(|rate| key(rate, "arithmetic")));
    let content = html! {
        p.under {
            "What a kernel can reach at most, by how many operations it does on each byte: left of \
             a knee memory limits it, right of it arithmetic."
        }
        (legend(&keys.collect::<Vec<_>>()))
        (drawing)
        p.under.across { "operations on each byte" }
    };
    card("roofline", "Roofline", &content)
}

/// The drawing; `None` without a slope and a roof.
fn roofline(slopes: &[Rate<'_>], roofs: &[Rate<'_>]) -> Option<Markup> {
    let ends = |rates: &[Rate<'_>]| {
        let values = rates.iter().map(|rate| rate.reading.value);
        values.fold((f64::INFINITY, 0.0f64), |(least, most), v| (least.min(v), most.max(v)))
    };
    let (rates, tops) = (ends(slopes), ends(roofs));
    if !(rates.1 > 0.0 && tops.1 > 0.0 && rates.0.is_finite() && tops.0.is_finite()) {
        return None;
    }
    // From an eighth of the leftmost knee to eight times the rightmost.
    let (first, last) =
        ((tops.0 / rates.1 / 8.0).log2().floor(), (tops.1 / rates.0 * 4.0).log2().ceil());
    let powers =
        (first as i32..=last as i32).filter(|power| (last - first) < 14.0 || power % 2 == 0);
    let ticks = powers.map(|power| Tick { value: 2f64.powi(power), label: fraction(power) });
    let x = Axis::logarithmic(2f64.powf(first), 2f64.powf(last), ticks.collect());
    let label = |value, most| quantity::tick(value, most, Unit::FlopPerSecond);
    let y = Axis::decades(rates.0 * x.ends().0 / 2.0, tops.1 * 1.6, label);
    let name = "Roofline: operations a second over operations a byte";
    let mut chart = Chart::new(name, HEIGHT_PX, &x, &y);
    let mut steepest_first: Vec<&Rate<'_>> = slopes.iter().collect();
    steepest_first.sort_by(|a, b| b.reading.value.total_cmp(&a.reading.value));
    for (place, slope) in steepest_first.into_iter().enumerate() {
        draw_slope(&mut chart, (&x, &y), (slope, tops.1, place));
    }
    let mut lowest_first: Vec<&Rate<'_>> = roofs.iter().collect();
    lowest_first.sort_by(|a, b| a.reading.value.total_cmp(&b.reading.value));
    let mut above = f64::INFINITY;
    for roof in lowest_first {
        above = draw_roof(&mut chart, &x, roof, (rates.1, above));
    }
    Some(chart.render())
}

/// A line without error bars between two places.
fn draw(chart: &mut Chart<'_>, rate: &Rate<'_>, ends: [(f64, f64); 2]) {
    let points = ends.map(|(at, value)| Point {
        at,
        value,
        spread: (value, value),
        is_hollow: false,
        title: rate.label(),
    });
    chart.line(rate.colour, &points);
}

/// Draws a slope, from the left edge or the bottom up to the highest roof, with its name on it: each
/// further up than that of the steeper one before, since slopes lie close to each other.
fn draw_slope(
    chart: &mut Chart<'_>,
    (x, y): (&Axis, &Axis),
    (slope, top, place): (&Rate<'_>, f64, usize),
) {
    let rate = slope.reading.value;
    let from = x.ends().0.max(y.ends().0 / rate);
    let to = (top / rate).min(x.ends().1);
    draw(chart, slope, [(from, from * rate), (to, to * rate)]);
    let share = (0.15 * (place + 1) as f64).min(0.9);
    let at = from * (to / from).powf(share);
    chart.text((at, at * rate), Side::On, &slope.name);
}

/// Draws a roof from where the steepest slope meets it, with its name at the right; returns the height
/// of the name, so that the next one does not overlap it.
fn draw_roof(
    chart: &mut Chart<'_>,
    x: &Axis,
    roof: &Rate<'_>,
    (steepest, above): (f64, f64),
) -> f64 {
    let value = roof.reading.value;
    let end = x.ends().1;
    draw(chart, roof, [((value / steepest).max(x.ends().0), value), (end, value)]);
    let line = chart.down_px(value);
    if above - line < LABEL_PX {
        return above;
    }
    chart.text((end, value), Side::Left, &roof.label());
    line
}

/// 2 to the `power` as people write it: `1/8`, `16`.
fn fraction(power: i32) -> String {
    let value = number::number(2f64.powi(power.abs()));
    if power < 0 { format!("1/{value}") } else { value }
}
