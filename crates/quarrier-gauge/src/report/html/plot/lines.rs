//! A sweep: lines over one parameter, with error bars.

use plotters::element::{Circle, PathElement};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};

use super::frame::{self, FINE, Tips};
use super::scale::Scale;
use super::theme::{BAD, CARD, Colour, INK, SOFT};

/// A point of a line.
#[derive(Debug, Clone)]
pub(in crate::report::html) struct Point {
    pub(in crate::report::html) at: f64,
    pub(in crate::report::html) value: f64,
    /// Ends of the error bar.
    pub(in crate::report::html) spread: (f64, f64),
    /// Whether it is not to be trusted; drawn hollow, in red.
    pub(in crate::report::html) is_disturbed: bool,
    /// What the pointer tells.
    pub(in crate::report::html) told: String,
}

/// A line, its points in the order of the axis.
#[derive(Debug, Clone)]
pub(in crate::report::html) struct Line {
    pub(in crate::report::html) colour: Colour,
    pub(in crate::report::html) points: Vec<Point>,
}

/// A place of the axis with a name, such as a cache's size.
#[derive(Debug, Clone)]
pub(in crate::report::html) struct Mark {
    pub(in crate::report::html) at: f64,
    pub(in crate::report::html) name: String,
}

/// A drawing of lines.
#[derive(Debug, Clone)]
pub(in crate::report::html) struct Lines<'l> {
    /// For who cannot see it.
    pub(in crate::report::html) name: &'l str,
    pub(in crate::report::html) x: Scale,
    pub(in crate::report::html) y: Scale,
    pub(in crate::report::html) lines: &'l [Line],
    pub(in crate::report::html) marks: &'l [Mark],
    /// Whether it has the page's whole width.
    pub(in crate::report::html) is_wide: bool,
}

/// Half of a page's width, and all of it.
const SIZE: (i32, i32) = (540, 300);
const WIDE: (i32, i32) = (1080, 320);
/// Room for the labels of the heights.
const LEFT_PX: i32 = 82;
/// Points of a line above which it is drawn without a dot for each.
const DOTS_MOST: usize = 40;

/// The SVG.
pub(in crate::report::html) fn lines(drawn: &Lines<'_>) -> String {
    frame::drawing(if drawn.is_wide { WIDE } else { SIZE }, drawn.name, |area, tips| {
        let mut chart = frame::chart(area, &drawn.x, &drawn.y, LEFT_PX)?;
        marks(area, &chart, drawn)?;
        // Spreads lie behind all lines, dots before them.
        for line in drawn.lines {
            spreads(&mut chart, drawn, line)?;
        }
        for line in drawn.lines {
            let points = line.points.iter().map(|p| (p.at, drawn.y.clamp(p.value)));
            frame::path(&mut chart, points.collect(), frame::stroke(line.colour, 2.0))?;
        }
        for line in drawn.lines {
            dots(&mut chart, drawn, line, tips)?;
        }
        Ok(())
    })
}

/// Dashed lines where something has its size.
fn marks(area: &frame::Area<'_>, chart: &frame::Chart<'_, '_>, drawn: &Lines<'_>) -> frame::Drawn {
    let (bottom, top) = drawn.y.ends();
    let mut free_from = 0;
    for mark in drawn.marks.iter().filter(|mark| drawn.x.holds(mark.at)) {
        let (foot, head) =
            (chart.backend_coord(&(mark.at, bottom)), chart.backend_coord(&(mark.at, top)));
        frame::dashes(area, (foot, head), frame::stroke(SOFT, 1.0))?;
        let half = frame::width_of(&mark.name) / 2;
        if head.0 - half >= free_from {
            let style = frame::label(INK, HPos::Center, VPos::Bottom);
            frame::write(area, &mark.name, (head.0, head.1 - 3 * FINE), style)?;
            free_from = head.0 + half + 6 * FINE;
        }
    }
    Ok(())
}

/// Error bars with their ends.
fn spreads(chart: &mut frame::Chart<'_, '_>, drawn: &Lines<'_>, line: &Line) -> frame::Drawn {
    let half = 3 * FINE;
    let style = frame::stroke(line.colour, 1.0);
    let area = chart.plotting_area().strip_coord_spec();
    let (left, top) = area.get_base_pixel();
    for point in &line.points {
        let place = |value: f64| {
            let (x, y) = chart.backend_coord(&(point.at, drawn.y.clamp(value)));
            (x - left, y - top)
        };
        let (low, high) = (place(point.spread.0), place(point.spread.1));
        if low.1 - high.1 < 2 * FINE {
            continue;
        }
        for path in [
            vec![low, high],
            vec![(low.0 - half, low.1), (low.0 + half, low.1)],
            vec![(high.0 - half, high.1), (high.0 + half, high.1)],
        ] {
            area.draw(&PathElement::new(path, style))?;
        }
    }
    Ok(())
}

fn dots(
    chart: &mut frame::Chart<'_, '_>,
    drawn: &Lines<'_>,
    line: &Line,
    tips: &mut Tips,
) -> frame::Drawn {
    let crowded = line.points.len() > DOTS_MOST;
    for point in &line.points {
        let place = (point.at, drawn.y.clamp(point.value));
        if point.is_disturbed {
            let ring = |px: i32, style| Circle::new(place, px * FINE / 2, style);
            chart.draw_series([ring(11, CARD.rgb().filled()), ring(9, frame::stroke(BAD, 2.0))])?;
        } else if !crowded {
            let dot = Circle::new(place, 7 * FINE / 2, line.colour.rgb().filled());
            chart.draw_series(std::iter::once(dot))?;
        }
        tips.add(chart.backend_coord(&place), &point.told);
    }
    Ok(())
}
