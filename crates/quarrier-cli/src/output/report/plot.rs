//! The frame that all plots share: labels at the left, a stretched SVG, labels below.

use super::axis::Tick;
use super::{put, text};

/// What stands left of the drawing.
pub(super) enum Left<'p> {
    /// Labels of an axis from bottom (0) to top (1).
    Ticks(&'p [Tick]),
    /// The name of a lane.
    Name(&'p str),
}

/// What the pointer tells over a place of the drawing.
pub(super) struct Tip<'p> {
    /// Said first, such as the name of a lane.
    pub(super) title: &'p str,
    /// Where the axis ends, in `unit`.
    pub(super) end: f64,
    pub(super) unit: &'p str,
    /// Bins from 0 to the end; the last may be cut short by it.
    pub(super) bins: f64,
    /// Name and values of each series.
    pub(super) series: Vec<(&'p str, Vec<String>)>,
    pub(super) value_unit: &'p str,
}

/// One drawing with its labels.
pub(super) struct Plot<'p> {
    /// For those who cannot see it.
    pub(super) label: &'p str,
    pub(super) class: &'p str,
    pub(super) height_px: u32,
    /// Width and height in the units of the drawing.
    pub(super) view: (usize, usize),
    pub(super) x: &'p [Tick],
    pub(super) left: Left<'p>,
    pub(super) tip: Option<Tip<'p>>,
}

impl Plot<'_> {
    /// Writes the plot: `svg` stands in the drawing, `over` is HTML laid over it.
    pub(super) fn write(&self, out: &mut String, svg: &str, over: &str) {
        let (width, height) = self.view;
        put!(out, "<div class=\"row\">");
        let mut grid = String::new();
        for tick in self.x {
            put!(grid, "M{:.2} 0V{height}", tick.at * width as f64);
        }
        match self.left {
            Left::Ticks(ticks) => {
                put!(out, "<div class=\"left\" aria-hidden=\"true\">");
                for Tick { at, label } in ticks {
                    put!(out, "<span style=\"top:{:.1}%\">{label}</span>", 100.0 * (1.0 - at));
                    put!(grid, "M0 {:.2}H{width}", (1.0 - at) * height as f64);
                }
                put!(out, "</div>");
            }
            Left::Name(name) => {
                let name = text::escape(name);
                put!(out, "<div class=\"name\" title=\"{name}\">{name}</div>");
            }
        }
        put!(out, "<div class=\"canvas {}\" style=\"height:{}px\"", self.class, self.height_px);
        if let Some(tip) = &self.tip {
            tip.write(out);
        }
        put!(out, "><svg viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\"");
        put!(out, " role=\"img\" aria-label=\"{}\">", text::escape(self.label));
        if !grid.is_empty() {
            put!(out, "<path class=\"grid\" d=\"{grid}\"/>");
        }
        put!(out, "{svg}</svg>{over}</div></div>\n");
    }
}

impl Tip<'_> {
    fn write(&self, out: &mut String) {
        let names: Vec<&str> = self.series.iter().map(|(name, _)| *name).collect();
        let values: Vec<String> = self.series.iter().map(|(_, values)| values.join(",")).collect();
        put!(out, " data-title=\"{}\"", text::escape(self.title));
        put!(out, " data-end=\"{}\" data-unit=\"{}\"", self.end, self.unit);
        put!(out, " data-bins=\"{}\"", self.bins);
        put!(out, " data-names=\"{}\" data-values=\"{}\"", names.join(";"), values.join(";"));
        put!(out, " data-value-unit=\"{}\"", self.value_unit);
    }
}

/// The labels below a plot, or below several that share an axis.
pub(super) fn x_labels(out: &mut String, ticks: &[Tick]) {
    put!(out, "<div class=\"row x\" aria-hidden=\"true\"><div></div><div class=\"ticks\">");
    for (number, Tick { at, label }) in ticks.iter().enumerate() {
        // Narrow screens show every second one.
        let class = if number % 2 == 1 { " class=\"odd\"" } else { "" };
        put!(out, "<span{class} style=\"left:{:.2}%\">{label}</span>", 100.0 * at);
    }
    put!(out, "</div></div>\n");
}

/// A path in steps over `shares` (0 to 1 of `height`), one unit wide each, from the bottom
/// at the left to the bottom at the right: filled it is an area, stroked its upper edge.
pub(super) fn steps(shares: &[f64], height: usize) -> String {
    let mut path = format!("M0 {height}");
    let level = |share: f64| height - (share.clamp(0.0, 1.0) * height as f64).round() as usize;
    let mut at = 0;
    for run in shares.chunk_by(|a, b| level(*a) == level(*b)) {
        at += run.len();
        put!(path, "V{}H{at}", run.first().map_or(height, |share| level(*share)));
    }
    put!(path, "V{height}");
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_are_one() {
        assert_eq!(steps(&[0.5, 0.5, 1.0, 0.0], 100), "M0 100V50H2V0H3V100H4V100");
        assert_eq!(steps(&[], 100), "M0 100V100");
        assert_eq!(steps(&[f64::NAN, 7.0], 10), "M0 10V10H1V0H2V10");
    }
}
