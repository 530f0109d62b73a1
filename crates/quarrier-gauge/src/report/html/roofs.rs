//! The roofline: the rate that a kernel can reach, by its operations per byte.
//!
//! Slopes are the read rates of memory levels, roofs the rates of arithmetic. A kernel with `x`
//! operations per byte reaches at most the lowest of both over `x`.

use maud::{Markup, Render, html};
use quarrier_report::Colour;
use quarrier_report::chart::{Axis, Chart, Point, Side, Tick};
use quarrier_report::number::{self, counted};
use quarrier_report::page::{Key, legend, section as card};

use super::{disturbance, mark};
use crate::reading::{Reading, Unit};
use crate::report::{Ceilings, Report, parameter_count as count, quantity, words};

/// Height of the drawing, and of a label, in pixels.
const HEIGHT_PX: u32 = 380;
const LABEL_PX: f64 = 13.0;

/// The rate of a memory level, or of one type of arithmetic.
struct Rate<'r> {
    name: String,
    reading: &'r Reading,
    colour: Colour,
}

impl Rate<'_> {
    fn label(&self) -> String {
        format!("{}: {}", self.name, quantity::value(self.reading.value, self.reading.unit))
    }

    /// The tooltip.
    fn title(&self) -> String {
        match self.reading.disturbed {
            true => format!("{} · {}", self.label(), disturbance(self.reading)),
            false => self.label(),
        }
    }
}

/// Renders the section, if both memory and arithmetic were measured with the same number of threads.
pub(super) fn section(report: &Report) -> Markup {
    let ceilings = Ceilings::of(report);
    let Some(threads) = ceilings.common_threads() else { return html! {} };
    let levels = ceilings.levels(threads).into_iter().enumerate().map(|(place, level)| Rate {
        name: level.name,
        reading: level.reading,
        colour: Colour::series(place),
    });
    let slopes: Vec<Rate<'_>> = levels.collect();
    let kinds = ceilings.kinds();
    let roofs = kinds.iter().enumerate().filter_map(|(place, kind)| {
        let chains = ceilings.chains(kind).filter(|chain| count(chain, "threads") == threads);
        let reading = chains.max_by(|a, b| a.value.total_cmp(&b.value))?;
        let with = reading.parameters.text("isa").unwrap_or_default();
        let name = format!("{kind} {with}").trim_end().to_string();
        Some(Rate { name, reading, colour: Colour::series(slopes.len() + place) })
    });
    let roofs: Vec<Rate<'_>> = roofs.collect();
    let peaks = kinds.iter().filter_map(|kind| ceilings.theoretical(kind, threads));
    let peaks: Vec<&Reading> = peaks.collect();
    let Some(drawing) = roofline(&slopes, &roofs, &peaks) else { return html! {} };
    let content = html! {
        p.under {
            "The maximum rate of a kernel on " (counted(threads, "thread")) ", by its operations \
             per byte: left of a knee memory limits it, right of it arithmetic does. Lines are \
             measured rates."
        }
        (keys(&slopes, &roofs, &peaks))
        (drawing)
        p.under.across { "operations per byte" }
    };
    card("roofline", "Roofline", &content)
}

/// The legend.
fn keys(slopes: &[Rate<'_>], roofs: &[Rate<'_>], peaks: &[&Reading]) -> Markup {
    let entry = |what: &str, reading: &Reading| {
        let value = quantity::value(reading.value, reading.unit);
        html! { (what) " " (value) ", " (words::parameters(reading)) (mark(reading)) }
    };
    let key =
        |rate: &Rate<'_>, what: &str| (Some(Key::Series(rate.colour)), entry(what, rate.reading));
    let mut keys: Vec<(Option<Key>, Markup)> =
        slopes.iter().map(|rate| key(rate, &rate.name)).collect();
    keys.extend(roofs.iter().map(|rate| key(rate, "arithmetic")));
    let peak = |reading: &&Reading| (Some(Key::Dashes), entry("theoretical peak", reading));
    keys.extend(peaks.iter().map(peak));
    if slopes.iter().chain(roofs).any(|rate| rate.reading.disturbed) {
        keys.push((Some(Key::Hollow), html! { "disturbed" }));
    }
    legend(&keys)
}

/// The drawing; `None` without a slope and a roof.
fn roofline(slopes: &[Rate<'_>], roofs: &[Rate<'_>], peaks: &[&Reading]) -> Option<Markup> {
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
    let highest = peaks.iter().map(|peak| peak.value).fold(tops.1, f64::max);
    let y = Axis::decades(rates.0 * x.ends().0 / 2.0, highest * 1.6, label);
    let name = "Roofline: operations per second over operations per byte";
    let mut chart = Chart::new(name, HEIGHT_PX, &x, &y);
    for peak in peaks {
        chart.level(peak.value);
    }
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

/// A line without error bars between two points.
fn draw(chart: &mut Chart<'_>, rate: &Rate<'_>, ends: [(f64, f64); 2]) {
    let points = ends.map(|(at, value)| Point {
        at,
        value,
        spread: (value, value),
        is_hollow: rate.reading.disturbed,
        title: rate.title(),
    });
    chart.line(rate.colour, &points);
}

/// Draws a slope, from the left edge or the bottom up to the highest roof, with its name on it. Each
/// name is further up than that of the preceding, steeper slope, since slopes lie close to each other.
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

/// Draws a roof from its intersection with the steepest slope, with its name at the right; returns the
/// height of the name, so that the next one does not overlap it.
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

/// Formats 2 to the `power` for people: `1/8`, `16`.
fn fraction(power: i32) -> String {
    let value = number::number(2f64.powi(power.abs()));
    if power < 0 { format!("1/{value}") } else { value }
}
