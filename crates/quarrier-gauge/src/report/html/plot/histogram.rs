//! How often a request took how long.

use plotters::element::{PathElement, Polygon};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};

use super::frame::{self, FINE};
use super::scale::Scale;
use super::theme::{Colour, INK, SOFT};
use crate::reading::Unit;

/// One distribution.
#[derive(Debug, Clone)]
pub(in crate::report::html) struct Histogram<'h> {
    /// For who cannot see it.
    pub(in crate::report::html) name: &'h str,
    pub(in crate::report::html) colour: Colour,
    /// Upper end of each bucket in seconds, and how many fell into it; in order.
    pub(in crate::report::html) buckets: &'h [(f64, u64)],
    /// Places with a name: p50, p99.
    pub(in crate::report::html) marks: &'h [(f64, &'h str)],
    /// The axis of times, the same for drawings that are compared.
    pub(in crate::report::html) ends: (f64, f64),
    /// Whether it has the page's whole width.
    pub(in crate::report::html) is_wide: bool,
}

/// Half of a page's width, and all of it.
const SIZE: (i32, i32) = (540, 140);
const WIDE: (i32, i32) = (1080, 160);
const LEFT_PX: i32 = 16;
/// Bars over the whole axis.
const BARS: usize = 72;

/// The SVG.
pub(in crate::report::html) fn histogram(drawn: &Histogram<'_>) -> String {
    let x = Scale::decades(drawn.ends.0, drawn.ends.1, Unit::Seconds);
    let bars = bars(drawn.buckets, x.ends());
    let most = bars.iter().copied().max().unwrap_or(0).max(1) as f64;
    let y = Scale::bare(0.0, most * 1.05);
    frame::drawing(if drawn.is_wide { WIDE } else { SIZE }, drawn.name, |area, _| {
        let mut chart = frame::chart(area, &x, &y, LEFT_PX)?;
        let edge = |bar: usize| edge(bar, x.ends());
        let mut outline = vec![(edge(0), 0.0)];
        for (bar, &count) in bars.iter().enumerate() {
            let height = shown(count, most);
            outline.extend([(edge(bar), height), (edge(bar + 1), height)]);
        }
        outline.push((edge(BARS), 0.0));
        let fill = drawn.colour.rgb().mix(0.35).filled();
        chart.draw_series(std::iter::once(Polygon::new(outline.clone(), fill)))?;
        let style = frame::stroke(drawn.colour, 1.5);
        chart.draw_series(std::iter::once(PathElement::new(outline, style)))?;
        let mut free_from = 0;
        for &(at, name) in drawn.marks.iter().filter(|(at, _)| x.holds(*at)) {
            let (foot, head) =
                (chart.backend_coord(&(at, 0.0)), chart.backend_coord(&(at, most * 1.05)));
            frame::dashes(area, (foot, head), frame::stroke(SOFT, 1.0))?;
            let half = frame::width_of(name) / 2;
            if head.0 - half >= free_from {
                let style = frame::label(INK, HPos::Center, VPos::Bottom);
                frame::write(area, name, (head.0, head.1 - 3 * FINE), style)?;
                free_from = head.0 + half + 4 * FINE;
            }
        }
        Ok(())
    })
}

/// A height that shows one request beside a million: at least a fiftieth of the drawing.
fn shown(count: u64, most: f64) -> f64 {
    if count == 0 { 0.0 } else { (count as f64).max(most / 50.0) }
}

/// Where bar `bar` begins.
fn edge(bar: usize, (from, to): (f64, f64)) -> f64 {
    from * (to / from).powf(bar as f64 / BARS as f64)
}

/// The buckets, each counted where its end lies on the axis.
fn bars(buckets: &[(f64, u64)], (from, to): (f64, f64)) -> Vec<u64> {
    let mut bars = vec![0u64; BARS];
    for &(end, count) in buckets.iter().filter(|(end, _)| *end > 0.0 && end.is_finite()) {
        let share = (end / from).ln() / (to / from).ln();
        let bar = ((share * BARS as f64) as usize).min(BARS - 1);
        bars[bar] = bars[bar].saturating_add(count);
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_in_one_bar() {
        let buckets = [(1e-6, 5), (2e-6, 7), (1e-3, 1), (50.0, 1)];
        let bars = bars(&buckets, (1e-6, 1e-3));
        assert_eq!(bars.iter().sum::<u64>(), 14);
        assert_eq!((bars[0], bars[BARS - 1]), (5, 2));
    }
}
