//! Bytes a second over the time of the run, beside the most the machine can do.

use quarrier_core::pipeline::Span;

use super::axis;
use super::plot::{self, Left, Plot, Tip};
use super::series::Series;
use super::{SourceRun, put, text};

/// Fewest and most bins; in between, a few chunks fall into each.
const BINS: (usize, usize) = (16, 200);
const CHUNKS_PER_BIN: usize = 3;
/// Height of the drawing in its own units.
const HEIGHT: usize = 1000;
/// A ceiling further above the highest rate than this is told, not drawn: the curve would
/// be a line on the ground.
const CEILING_DRAWN_MAX: f64 = 8.0;

/// Writes the rate at which bytes were worked on.
pub(super) fn section(out: &mut String, source: &SourceRun<'_>) {
    put!(out, "<h3>Rate over time</h3>\n");
    let seconds = source.seconds();
    let spans: Vec<&Span> = source
        .timeline
        .agents
        .iter()
        .flat_map(|(_, spans)| spans)
        .filter(|span| span.stage.is_work() && span.bytes > 0)
        .collect();
    if seconds <= 0.0 || spans.is_empty() {
        put!(out, "<p class=\"none\">No bytes were worked on while time was taken.</p>\n");
        return;
    }
    let mut series = Series::new(seconds, (spans.len() / CHUNKS_PER_BIN).clamp(BINS.0, BINS.1));
    for span in &spans {
        series.spread(span, span.bytes as f64);
    }
    let width = series.bin_seconds();
    series.bins.iter_mut().for_each(|bytes| *bytes /= width);
    let peak = series.most();
    let ceiling = source.ceiling();
    let drawn = ceiling.filter(|ceiling| *ceiling <= CEILING_DRAWN_MAX * peak);

    legend(out, source, peak, ceiling, drawn.is_some());
    let (unit, unit_name) = text::rate_unit(drawn.unwrap_or(0.0).max(peak));
    let mut height = axis::height(drawn.unwrap_or(0.0).max(peak) / unit, false);
    if let Some(top) = height.ticks.last_mut() {
        top.label = format!("{} {unit_name}", top.label);
    }
    let end = height.end * unit;
    let shares: Vec<f64> = series.bins.iter().map(|rate| rate / end).collect();
    let view = (shares.len(), HEIGHT);
    let mut svg = format!("<path class=\"area work\" d=\"{}\"/>", plot::steps(&shares, HEIGHT));
    if let Some(ceiling) = drawn {
        let y = HEIGHT as f64 * (1.0 - ceiling / end);
        put!(svg, "<path class=\"ceiling\" d=\"M0 {y:.1}H{}\"/>", view.0);
    }
    let ticks = axis::time_ticks(seconds);
    let (time_unit, time_name) = axis::time_unit(seconds);
    let told = series.bins.iter().map(|rate| text::significant(rate / unit)).collect();
    let plot = Plot {
        label: &format!("rate over time, at most {}", text::rate(peak)),
        class: "rate",
        height_px: 160,
        view,
        x: &ticks,
        left: Left::Ticks(&height.ticks),
        tip: Some(Tip {
            title: "",
            end: seconds / time_unit,
            unit: time_name,
            bins: shares.len() as f64,
            series: vec![("rate", told)],
            value_unit: unit_name,
        }),
    };
    put!(out, "<div class=\"sync\">\n");
    plot.write(out, &svg, "");
    plot::x_labels(out, &ticks);
    put!(out, "</div>\n");
}

fn legend(
    out: &mut String,
    source: &SourceRun<'_>,
    peak: f64,
    ceiling: Option<f64>,
    is_drawn: bool,
) {
    put!(out, "<div class=\"legend\"><span><i class=\"key work\"></i>bytes worked on</span>");
    if let Some(mean) = source.bytes_per_second() {
        put!(out, "<span>mean <b>{}</b></span>", text::rate(mean));
    }
    put!(out, "<span>peak {}</span>", text::rate(peak));
    if let Some(ceiling) = ceiling {
        let place = if is_drawn { "" } else { " (above this plot)" };
        put!(out, "<span><i class=\"key dashes\"></i>ceiling {}{place}", text::rate(ceiling));
        if let Some(mean) = source.bytes_per_second() {
            put!(out, ", mean reaches {}", text::percent(mean / ceiling));
        }
        put!(out, "</span>");
    }
    put!(out, "</div>\n");
}
