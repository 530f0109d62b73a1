//! What all drawings share: size, axes, grid, and how the SVG is made part of the page.

use plotters::coord::Shift;
use plotters::element::PathElement;
use plotters::prelude::{
    Cartesian2d, ChartBuilder, ChartContext, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea,
    IntoFont, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, ShapeStyle, TRANSPARENT, TextStyle};

use super::scale::Scale;
use super::theme::{AXIS, Colour, GRID, SOFT};
use crate::report::put;
use crate::report::text;

/// Units of the drawing in a pixel of the page: the library places everything at whole units.
pub(super) const FINE: i32 = 8;
/// Size of a label in pixels.
const LABEL_PX: i32 = 12;

pub(super) type Backend<'s> = SVGBackend<'s>;
pub(super) type Area<'s> = DrawingArea<Backend<'s>, Shift>;
pub(super) type Chart<'a, 's> = ChartContext<'a, Backend<'s>, Cartesian2d<Scale, Scale>>;
pub(super) type Failure = DrawingAreaErrorKind<std::io::Error>;
pub(super) type Drawn = Result<(), Failure>;

/// A line of `px` pixels.
pub(super) fn stroke(colour: Colour, px: f64) -> ShapeStyle {
    colour.rgb().stroke_width((px * f64::from(FINE)).round() as u32)
}

/// Text of the usual size.
pub(super) fn label(colour: Colour, across: HPos, down: VPos) -> TextStyle<'static> {
    ("sans-serif", LABEL_PX * FINE).into_font().color(&colour.rgb()).pos(Pos::new(across, down))
}

/// An SVG of this size, told as `name` to who cannot see it.
pub(super) fn drawing(
    (width, height): (i32, i32),
    name: &str,
    draw: impl FnOnce(&Area<'_>, &mut Tips) -> Drawn,
) -> String {
    let mut svg = String::new();
    let mut tips = Tips::default();
    let size = ((width * FINE) as u32, (height * FINE) as u32);
    let drawn = {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&area, &mut tips).and_then(|()| area.present())
    };
    let mut out = String::with_capacity(svg.len());
    if let Err(error) = drawn {
        let reason = text::escape(&error.to_string());
        put!(out, "<p class=\"none\">This could not be drawn: {reason}</p>");
        return out;
    }
    // In a page, an SVG takes its size from the style and needs no name space.
    let inner = svg.find("<svg").and_then(|at| svg[at..].find('>').map(|end| at + end + 1));
    let inner = svg.get(inner.unwrap_or(0)..).unwrap_or_default();
    let inner = inner.trim_end().trim_end_matches("</svg>");
    put!(out, "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\"", size.0, size.1);
    put!(out, " aria-label=\"{}\">{inner}{}</svg>", text::escape(name), tips.0);
    out
}

/// Axes with labels, and a grid behind what is drawn.
pub(super) fn chart<'a, 's>(
    area: &'a Area<'s>,
    x: &Scale,
    y: &Scale,
    left_px: i32,
) -> Result<Chart<'a, 's>, Failure> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(18 * FINE)
        .margin_right(14 * FINE)
        .x_label_area_size(26 * FINE)
        .y_label_area_size(left_px * FINE)
        .build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .bold_line_style(stroke(GRID, 1.0))
        .light_line_style(TRANSPARENT)
        .axis_style(stroke(AXIS, 1.0))
        .set_all_tick_mark_size(4 * FINE)
        .x_label_style(label(SOFT, HPos::Center, VPos::Top))
        .y_label_style(label(SOFT, HPos::Right, VPos::Center))
        .draw()?;
    Ok(chart)
}

/// A line through points, cut where the axes end.
pub(super) fn path(chart: &mut Chart<'_, '_>, points: Vec<(f64, f64)>, style: ShapeStyle) -> Drawn {
    if points.len() > 1 {
        chart.draw_series(std::iter::once(PathElement::new(points, style)))?;
    }
    Ok(())
}

/// A line of dashes between two points.
pub(super) fn dashes(
    area: &Area<'_>,
    (from, to): ((i32, i32), (i32, i32)),
    style: ShapeStyle,
) -> Drawn {
    let (across, down) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let length = across.hypot(down);
    let (dash, gap) = (f64::from(4 * FINE), f64::from(4 * FINE));
    let at = |way: f64| {
        let share = (way / length).min(1.0);
        (from.0 + (across * share).round() as i32, from.1 + (down * share).round() as i32)
    };
    let mut way = 0.0;
    while length > 0.0 && way < length {
        area.draw(&PathElement::new(vec![at(way), at(way + dash)], style))?;
        way += dash + gap;
    }
    Ok(())
}

/// Words at a place of the drawing.
pub(super) fn write(area: &Area<'_>, words: &str, at: (i32, i32), style: TextStyle<'_>) -> Drawn {
    // The library escapes what SVG does.
    area.draw(&Text::new(quarrier_report::visible(words).into_owned(), at, style))
}

/// How wide `text` is about, in units of the drawing: for labels that must not lie on each other.
pub(super) fn width_of(text: &str) -> i32 {
    quarrier_report::width(&quarrier_report::visible(text)) as i32 * LABEL_PX * FINE * 11 / 20
}

/// What a pointer is told, over invisible circles on top of everything.
#[derive(Debug, Default)]
pub(super) struct Tips(String);

impl Tips {
    pub(super) fn add(&mut self, (x, y): (i32, i32), told: &str) {
        let radius = 7 * FINE;
        put!(self.0, "<circle class=\"tip\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\">");
        put!(self.0, "<title>{}</title></circle>", text::escape(told));
    }
}
