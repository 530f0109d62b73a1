//! Charts as SVG within the page: lines with error bars, areas, bars and lanes over one axis.
//!
//! A chart is as wide as its container, so it is readable on a phone and on a desktop: horizontal
//! positions are shares of the width, vertical ones are pixels, and so is all text. Colours are classes
//! of the page's style and have dark variants. Tooltips are `<title>` elements: a chart needs no
//! script.
//!
//! ```text
//!  values ─→ Axis ─→ Chart ─→ <svg>      Bar ─→ bars, bar, interval
//! ```

mod axis;
mod bar;

pub use axis::{Axis, Tick};
pub use bar::{Bar, bar, bars, interval};

use std::fmt::Write;

use maud::{Markup, PreEscaped, Render, html};

use crate::Colour;
use crate::page::cut;

/// The width of stretched elements, in their own units.
const WIDTH: f64 = 1000.0;
/// Minimum height of a non-empty bar in pixels: one finding must be visible beside a million.
const BAR_PX_MIN: f64 = 4.0;
/// Lines with more points are drawn without dots.
const DOTS_MAX: usize = 40;
/// Error bars shorter than this are hidden by their dots.
const SPREAD_PX_MIN: f64 = 2.0;
/// Widths for which labels are kept apart, in pixels: that of half a page, and that of a phone, which
/// hides labels of the class `odd`. And the width of a character.
const WIDTHS_PX: [f64; 2] = [420.0, 230.0];
const CHAR_PX: f64 = 7.0;
/// Maximum number of characters in the name of a lane.
const LANE_CHARS_MAX: usize = 13;

/// A measured point of a line.
#[derive(Debug, Clone)]
pub struct Point {
    /// The position on the horizontal axis.
    pub at: f64,
    /// The height.
    pub value: f64,
    /// The ends of the error bar.
    pub spread: (f64, f64),
    /// Whether the point is unreliable: drawn as a red ring.
    pub is_hollow: bool,
    /// The tooltip.
    pub title: String,
}

/// The position of text relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Centred on the point.
    On,
    /// Above and to the left of the point.
    Left,
}

/// A drawing over an axis.
#[derive(Debug)]
pub struct Chart<'c> {
    name: &'c str,
    height_px: f64,
    x: &'c Axis,
    y: &'c Axis,
    lane: Option<&'c str>,
    has_labels: bool,
    /// Elements that stretch with the page: paths.
    stretched: String,
    /// Error bars, drawn below all lines.
    below: String,
    /// Elements that keep their shape: dots, text.
    fixed: String,
    /// Tooltips, on top.
    tips: String,
}

impl<'c> Chart<'c> {
    /// Creates an empty chart; `name` describes it to people who cannot see it.
    pub fn new(name: &'c str, height_px: u32, x: &'c Axis, y: &'c Axis) -> Self {
        Chart {
            name,
            height_px: f64::from(height_px),
            x,
            y,
            lane: None,
            has_labels: true,
            below: String::new(),
            stretched: String::new(),
            fixed: String::new(),
            tips: String::new(),
        }
    }

    /// Adds `name` at the left, and omits the labels of the horizontal axis.
    pub fn lane(mut self, name: &'c str) -> Self {
        (self.lane, self.has_labels) = (Some(name), false);
        self
    }

    /// Omits the labels of the horizontal axis: another chart below has them.
    pub fn without_labels(mut self) -> Self {
        self.has_labels = false;
        self
    }

    fn across(&self, value: f64) -> f64 {
        WIDTH * self.x.share(value)
    }

    fn percent(&self, value: f64) -> Percent {
        Percent(100.0 * self.x.share(value))
    }

    /// The distance of `value` from the chart's upper edge, in pixels.
    pub fn down_px(&self, value: f64) -> f64 {
        self.height_px * (1.0 - self.y.share(value))
    }

    /// Draws an area in steps over equal bins; `per_axis` bins, possibly a fraction, span the axis.
    pub fn area(&mut self, colour: Colour, values: &[f64], per_axis: f64) {
        self.steps("area", colour, values, per_axis, 0.0);
    }

    /// Like [`area`](Chart::area), with an even fill, for stacked areas.
    pub fn stack(&mut self, colour: Colour, values: &[f64], per_axis: f64) {
        self.steps("stack", colour, values, per_axis, 0.0);
    }

    /// Like [`area`](Chart::area), but every value above 0 is visible.
    pub fn columns(&mut self, colour: Colour, values: &[f64], per_axis: f64) {
        self.steps("columns", colour, values, per_axis, BAR_PX_MIN);
    }

    fn steps(&mut self, class: &str, colour: Colour, values: &[f64], per_axis: f64, least_px: f64) {
        let foot = self.height_px;
        let level = |value: f64| match foot - self.down_px(value) {
            _ if value.is_nan() || value <= 0.0 => 0,
            px => (px.max(least_px).min(foot) * 10.0).round() as u32,
        };
        let edge = |bin: usize| WIDTH * bin_share(bin, per_axis);
        let mut path = format!("M0 {foot}");
        let mut bin = 0;
        for run in values.chunk_by(|a, b| level(*a) == level(*b)) {
            bin += run.len();
            let level = run.first().map_or(0, |value| level(*value));
            push(&mut path, format_args!("V{}H{:.2}", foot - f64::from(level) / 10.0, edge(bin)));
        }
        push(&mut path, format_args!("V{foot}z"));
        let class = format!("{class} {}", colour.class());
        html! { path class=(class) d=(path) {} }.render_to(&mut self.stretched);
    }

    /// Draws a line through points, which must be in the order of the axis, with their error bars and
    /// dots.
    pub fn line(&mut self, colour: Colour, points: &[Point]) {
        let is_crowded = points.len() > DOTS_MAX;
        let mut path = String::new();
        for (place, point) in points.iter().enumerate() {
            let (x, y) = (self.across(point.at), self.down_px(point.value));
            push(&mut path, format_args!("{}{x:.2} {y:.1}", if place == 0 { "M" } else { "L" }));
            let (x, low, high) = (
                self.percent(point.at),
                self.down_px(point.spread.0),
                self.down_px(point.spread.1),
            );
            let (low, high) = (Px(low), Px(high));
            if low.0 - high.0 >= SPREAD_PX_MIN {
                html! {
                    g.spread.(colour.class()) {
                        line x1=(x) x2=(x) y1=(low) y2=(high) {}
                        rect x=(x) y=(low) width="7" height="1" {}
                        rect x=(x) y=(high) width="7" height="1" {}
                    }
                }
                .render_to(&mut self.below);
            }
            let y = Px(y);
            if point.is_hollow {
                html! { circle.hollow cx=(x) cy=(y) r="4.5" {} }.render_to(&mut self.fixed);
            } else if !is_crowded {
                html! { circle.(colour.class()) cx=(x) cy=(y) r="3.5" {} }
                    .render_to(&mut self.fixed);
            }
            html! { circle cx=(x) cy=(y) r="8" { title { (point.title) } } }
                .render_to(&mut self.tips);
        }
        if points.len() > 1 {
            let class = format!("line {}", colour.class());
            html! { path class=(class) d=(path) {} }.render_to(&mut self.stretched);
        }
    }

    /// Draws a dashed line at a height, such as a ceiling.
    pub fn level(&mut self, value: f64) {
        let y = Px(self.down_px(value));
        html! { line.level x1="0" x2="100%" y1=(y) y2=(y) {} }.render_to(&mut self.fixed);
    }

    /// Draws dashed lines at positions of the axis, with names above if there is room.
    pub fn marks(&mut self, marks: &[(f64, &str)]) {
        let mut free_from = WIDTHS_PX.map(|_| f64::NEG_INFINITY);
        for &(at, name) in marks.iter().filter(|(at, _)| self.x.holds(*at)) {
            let (x, height) = (self.percent(at), self.height_px);
            html! { line.mark x1=(x) x2=(x) y1="0" y2=(height) {} }.render_to(&mut self.fixed);
            let half = name.chars().count() as f64 * CHAR_PX / 2.0;
            let mut fits = WIDTHS_PX.map(|_| false);
            for ((fits, free_from), width) in fits.iter_mut().zip(&mut free_from).zip(WIDTHS_PX) {
                let middle = width * x.0 / 100.0;
                *fits = middle - half >= *free_from;
                if *fits {
                    *free_from = middle + half + CHAR_PX;
                }
            }
            let [is_free, is_free_on_narrow] = fits;
            if is_free {
                html! { text.above.odd[!is_free_on_narrow] x=(x) y="-5" { (name) } }
                    .render_to(&mut self.fixed);
            }
        }
    }

    /// Marks a range of the axis as bad, wide enough to be visible.
    pub fn lost(&mut self, from: f64, to: f64) {
        let (x, width) = self.stretch(from, to);
        html! {
            rect.lost x=(x) width=(width) height=(self.height_px) {}
            rect.lost.top x=(x) width=(width) height="5" {}
        }
        .render_to(&mut self.fixed);
    }

    /// Draws a range of a lane, fainter the less of it is `filled` (0 to 1).
    pub fn span(&mut self, colour: Colour, (from, to): (f64, f64), filled: f64, title: &str) {
        let (x, width) = self.stretch(from, to);
        let filled = if filled < 0.95 { Some(filled.max(0.15)) } else { None };
        let faint = filled.map(|filled| format!("{filled:.2}"));
        html! {
            rect.(colour.class()) x=(x) width=(width) height=(self.height_px) opacity=[faint] {
                title { (title) }
            }
        }
        .render_to(&mut self.fixed);
    }

    fn stretch(&self, from: f64, to: f64) -> (Percent, Percent) {
        let (from, to) = (self.percent(from), self.percent(to));
        (from, Percent((to.0 - from.0).max(0.005)))
    }

    /// Draws text at a point of the chart.
    pub fn text(&mut self, (at, value): (f64, f64), side: Side, text: &str) {
        let (x, y) = (self.percent(at), self.down_px(value));
        match side {
            Side::On => html! { text.on x=(x) y=(Px(y + 4.0)) { (text) } },
            Side::Left => html! { text.left x=(x) y=(Px(y - 4.0)) { (text) } },
        }
        .render_to(&mut self.fixed);
    }

    /// Adds a tooltip at a point.
    pub fn tip(&mut self, (at, value): (f64, f64), title: &str) {
        let (x, y) = (self.percent(at), Px(self.down_px(value)));
        html! { circle cx=(x) cy=(y) r="8" { title { (title) } } }.render_to(&mut self.tips);
    }

    /// Adds tooltips to equal bins, `per_axis` of which span the axis: the text in `titles`, and the
    /// bin's range, as `place` formats it.
    pub fn tips(&mut self, titles: &[String], per_axis: f64, place: impl Fn(f64) -> String) {
        let mut bin = 0;
        let edge = |bin: usize| self.x.value(bin_share(bin, per_axis));
        let mut tips = std::mem::take(&mut self.tips);
        for run in titles.chunk_by(|a, b| a == b) {
            let (from, to) = (edge(bin), edge(bin + run.len()));
            bin += run.len();
            let (x, width) = self.stretch(from, to);
            html! {
                rect x=(x) width=(width) height=(self.height_px) {
                    title { (run[0]) " · " (place(from)) " – " (place(to)) }
                }
            }
            .render_to(&mut tips);
        }
        self.tips = tips;
    }

    fn left(&self) -> Markup {
        html! {
            @if let Some(name) = self.lane {
                text.start x="-8" y=(Px(self.height_px / 2.0 + 4.0)) {
                    title { (name) }
                    (cut(name, LANE_CHARS_MAX))
                }
            } @else {
                @for tick in self.y.ticks() {
                    text.start x="-8" y=(Px(self.down_px(tick.value) + 4.0)) { (tick.label) }
                }
            }
        }
    }

    fn grid(&self) -> Markup {
        html! {
            g.grid {
                @for tick in self.x.ticks() {
                    @let x = self.percent(tick.value);
                    line x1=(x) x2=(x) y1="0" y2=(self.height_px) {}
                }
                @for tick in self.y.ticks() {
                    @let y = Px(self.down_px(tick.value));
                    line x1="0" x2="100%" y1=(y) y2=(y) {}
                }
            }
        }
    }
}

impl Render for Chart<'_> {
    fn render(&self) -> Markup {
        let view = format!("0 0 {WIDTH} {}", self.height_px);
        let class = if self.lane.is_some() { "plot lane" } else { "plot" };
        // All of these are markup of this module.
        let part = |text: &'_ String| PreEscaped(text.clone());
        html! {
            div class=(class) {
                svg role="img" aria-label=(self.name) width="100%" height=(self.height_px) {
                    @if self.lane.is_some() {
                        rect.ground width="100%" height=(self.height_px) {}
                    }
                    (self.grid())
                    (self.left())
                    (part(&self.below))
                    @if !self.stretched.is_empty() {
                        svg viewBox=(view) preserveAspectRatio="none" width="100%"
                            height=(self.height_px) { (part(&self.stretched)) }
                    }
                    (part(&self.fixed))
                    @if !self.tips.is_empty() { g.tips { (part(&self.tips)) } }
                }
                @if self.has_labels { (labels(self.x)) }
            }
        }
    }
}

/// Renders the labels of a horizontal axis, below the last of several charts that share it.
pub fn labels_below(x: &Axis) -> Markup {
    html! { div.plot.labels { (labels(x)) } }
}

fn labels(x: &Axis) -> Markup {
    html! {
        svg.below width="100%" height="22" aria-hidden="true" {
            @for (place, tick) in x.ticks().iter().enumerate() {
                // Narrow screens show every second label.
                text.odd[place % 2 == 1] x=(Percent(100.0 * x.share(tick.value))) y="16" {
                    (tick.label)
                }
            }
        }
    }
}

/// The start of a bin as a share of the axis, which `per_axis` bins span.
fn bin_share(bin: usize, per_axis: f64) -> f64 {
    let share = bin as f64 / per_axis;
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
}

/// A share of the width.
#[derive(Debug, Clone, Copy)]
struct Percent(f64);

impl Render for Percent {
    fn render_to(&self, out: &mut String) {
        push(out, format_args!("{:.2}%", self.0));
    }
}

/// A position in pixels.
#[derive(Debug, Clone, Copy)]
struct Px(f64);

impl Render for Px {
    fn render_to(&self, out: &mut String) {
        push(out, format_args!("{:.1}", self.0));
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
}
