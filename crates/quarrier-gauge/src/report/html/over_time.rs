//! The chart of a long run: its rate over time.

use maud::{Markup, html};
use quarrier_report::Colour;
use quarrier_report::chart::{Axis, Chart, Point};
use quarrier_report::page::figure;

use super::area::spread;
use super::mark;
use crate::reading::{Reading, Timeline};
use crate::report::{over_time, quantity, words};

/// Height of the drawing in pixels.
const HEIGHT_PX: u32 = 240;

/// Draws the rate of a long run. The dashed line is its value, the mark the time from which on it holds.
pub(super) fn chart(name: &str, reading: &Reading, timeline: &Timeline) -> Markup {
    let windows = over_time::windows(timeline);
    let x = Axis::time(over_time::seconds(timeline));
    let finite = windows.iter().map(|(_, rate)| *rate).filter(|rate| rate.is_finite());
    let most = finite.fold(0.0, f64::max);
    let y = Axis::heights(most, |value| quantity::tick(value, most, reading.unit));
    let over = format!("{} over time", quantity::counted_in(reading.unit));
    let label = format!("{name}: {over}");
    let mut chart = Chart::new(&label, HEIGHT_PX, &x, &y);
    let points: Vec<Point> = windows.iter().map(|&window| point(window, reading)).collect();
    chart.line(Colour::BLUE, &points);
    chart.level(reading.value);
    if let Some(after) = timeline.steady_after_seconds.filter(|after| *after > 0.0) {
        chart.marks(&[(after, "steady")]);
    }
    let value = quantity::value(reading.value, reading.unit);
    let caption = html! {
        h3 { (name) }
        p.under { (over) ", " (words::parameters(reading)) }
        p.under {
            (value) " " (spread(reading)) (mark(reading)) "; "
            (over_time::summary(reading, timeline))
        }
    };
    figure(true, &caption, html! { (chart) })
}

fn point((at, rate): (f64, f64), reading: &Reading) -> Point {
    let title = format!("{at:.1} s: {}", quantity::value(rate, reading.unit));
    Point { at, value: rate, spread: (rate, rate), is_hollow: false, title }
}
