//! Bytes per second over the time of the run, with the ceiling of the machine.

use maud::{Markup, Render, html};
use quarrier_core::pipeline::Span;
use quarrier_report::Colour;
use quarrier_report::chart::{Axis, Chart};
use quarrier_report::number::{large_prefix, percent, rate, seconds, short};
use quarrier_report::page::{Key, legend, note};

use super::SourceRun;
use super::series::Series;

/// Minimum number of bins; each covers a few chunks.
const BINS_MIN: usize = 16;
const CHUNKS_PER_BIN: usize = 3;
/// Height of the drawing in pixels.
const HEIGHT_PX: u32 = 160;
/// A ceiling higher than this multiple of the peak rate is printed, not drawn: the curve would be flat.
const CEILING_DRAWN_MAX: f64 = 8.0;

/// The rate at which bytes were processed, in at most `bins_max` bins.
pub(super) fn section(source: &SourceRun<'_>, bins_max: usize) -> Markup {
    html! { h3 { "Rate over time" } (content(source, bins_max)) }
}

fn content(source: &SourceRun<'_>, bins_max: usize) -> Markup {
    let time = source.seconds();
    let spans: Vec<&Span> = source
        .timeline
        .agents
        .iter()
        .flat_map(|(_, spans)| spans)
        .filter(|span| span.stage.is_work() && span.bytes > 0)
        .collect();
    if time <= 0.0 || spans.is_empty() {
        return note("No bytes were processed while the run was timed.");
    }
    let bins = (spans.len() / CHUNKS_PER_BIN).clamp(BINS_MIN, bins_max.max(BINS_MIN));
    let mut series = Series::new(time, bins);
    for span in &spans {
        series.spread(span, span.bytes as f64);
    }
    let width = series.bin_seconds();
    series.bins.iter_mut().for_each(|bytes| *bytes /= width);
    let peak = series.most();
    let ceiling = source.ceiling();
    let drawn = ceiling.filter(|ceiling| *ceiling <= CEILING_DRAWN_MAX * peak);
    let (x, y) = (Axis::time(time), Axis::heights(drawn.unwrap_or(0.0).max(peak), short_rate));
    let name = format!("rate over time, at most {}", rate(peak));
    let mut chart = Chart::new(&name, HEIGHT_PX, &x, &y);
    chart.area(Colour::ORANGE, &series.bins, bins as f64);
    if let Some(ceiling) = drawn {
        chart.level(ceiling);
    }
    let titles: Vec<String> = series.bins.iter().copied().map(rate).collect();
    chart.tips(&titles, bins as f64, seconds);
    html! { (keys(source, peak, ceiling, drawn.is_some())) (chart.render()) }
}

/// A rounded rate, without trailing zeros.
fn short_rate(bytes_per_second: f64) -> String {
    let (factor, prefix) = large_prefix(bytes_per_second);
    format!("{} {prefix}B/s", short(bytes_per_second / factor))
}

fn keys(source: &SourceRun<'_>, peak: f64, ceiling: Option<f64>, is_drawn: bool) -> Markup {
    let mean = source.bytes_per_second();
    let mut keys = vec![(Some(Key::Series(Colour::ORANGE)), html! { "bytes processed" })];
    if let Some(mean) = mean {
        keys.push((None, html! { "mean " b { (rate(mean)) } }));
    }
    keys.push((None, html! { "peak " (rate(peak)) }));
    if let Some(ceiling) = ceiling {
        let words = html! {
            "ceiling " (rate(ceiling)) @if !is_drawn { " (above this chart)" }
            @if let Some(mean) = mean { ", mean reaches " (percent(mean / ceiling)) }
        };
        keys.push((Some(Key::Dashes), words));
    }
    legend(&keys)
}
