//! The load of every stage, and what each thread did, over the time of the run.

use quarrier_core::pipeline::{Span, Stage};

use super::agents::{Budget, Lane, lanes, stages};
use super::axis::{self, Tick};
use super::plot::{self, Left, Plot, Tip};
use super::{SourceRun, put, series, text};

/// Bins of a stage's plot.
const BINS: usize = 200;
/// Height of the drawing in its own units; loads are told in whole percent.
const HEIGHT: usize = 100;

/// Writes the plots of all stages and the lanes of all threads on one axis of time.
pub(super) fn section(out: &mut String, source: &SourceRun<'_>, budget: Budget) {
    put!(out, "<h3>Load of every stage</h3>\n");
    let seconds = source.seconds();
    let lanes = lanes(source.timeline, budget);
    if seconds <= 0.0 || lanes.is_empty() {
        put!(out, "<p class=\"none\">The run was too short to be recorded.</p>\n");
        return;
    }
    let time = Time { seconds, ticks: axis::time_ticks(seconds) };
    put!(out, "<div class=\"sync\">\n");
    let stages = stages(source.timeline);
    for &stage in stages {
        stage_plot(out, source, stage, &time);
    }
    put!(out, "<div class=\"legend\"><b>Each thread</b>");
    for stage in stages {
        put!(out, "<span><i class=\"key {0}\"></i>{0}</span>", stage.name());
    }
    put!(out, "<span><i class=\"key idle\"></i>waiting</span></div>\n");
    for lane in &lanes {
        let height_px = match lanes.len() {
            0..=8 => 22,
            9..=24 => 18,
            _ => 13,
        };
        match lane.agents.as_slice() {
            [spans] if budget.is_exact && !overlap(spans) => {
                let plot = lane_plot(lane, height_px, (1000, 1), &time, None);
                plot.write(out, &exact(spans, &time), "");
            }
            _ => binned(out, lane, stages, height_px, budget.bins, &time),
        }
    }
    plot::x_labels(out, &time.ticks);
    put!(out, "</div>\n");
}

/// The axis that all plots of the section share.
struct Time {
    seconds: f64,
    ticks: Vec<Tick>,
}

fn stage_plot(out: &mut String, source: &SourceRun<'_>, stage: Stage, time: &Time) {
    let name = stage.name();
    let agents: Vec<&[Span]> = source
        .timeline
        .agents
        .iter()
        .map(|(_, spans)| spans.as_slice())
        .filter(|spans| spans.iter().any(|span| span.stage == stage))
        .collect();
    let mut load = vec![0.0; BINS];
    for spans in &agents {
        let share = series::busy_share(spans, stage, time.seconds, BINS);
        load.iter_mut().zip(share).for_each(|(sum, share)| *sum += share / agents.len() as f64);
    }
    let mean = load.iter().sum::<f64>() / BINS as f64;
    put!(out, "<div class=\"legend\"><span><i class=\"key {name}\"></i><b>{name}</b></span>");
    if agents.is_empty() {
        put!(out, "<span>nothing recorded</span></div>\n");
    } else {
        let threads = text::counted(agents.len() as u64, "thread");
        put!(out, "<span>{} busy on average, {threads}</span></div>\n", text::percent(mean));
    }
    let marks = [(0.0, "0"), (0.5, "50"), (1.0, "100 %")];
    let marks = marks.map(|(at, label)| Tick { at, label: label.to_string() });
    let (unit, unit_name) = axis::time_unit(time.seconds);
    let plot = Plot {
        label: &format!("load of {name} over time, mean {:.0} percent", 100.0 * mean),
        class: "load",
        height_px: 56,
        view: (BINS, HEIGHT),
        x: &time.ticks,
        left: Left::Ticks(&marks),
        tip: Some(Tip {
            title: "",
            end: time.seconds / unit,
            unit: unit_name,
            bins: BINS as f64,
            series: vec![(name, percents(&load))],
            value_unit: "%",
        }),
    };
    let path = plot::steps(&load, HEIGHT);
    plot.write(out, &format!("<path class=\"area {name}\" d=\"{path}\"/>"), "");
}

fn percents(shares: &[f64]) -> Vec<String> {
    shares.iter().map(|share| format!("{:.0}", 100.0 * share)).collect()
}

fn lane_plot<'p>(
    lane: &'p Lane<'_>,
    height_px: u32,
    view: (usize, usize),
    time: &'p Time,
    tip: Option<Tip<'p>>,
) -> Plot<'p> {
    let (label, left) = (&lane.name, Left::Name(&lane.name));
    Plot { label, class: "lane", height_px, view, x: &time.ticks, left, tip }
}

/// Each span as a rectangle, fainter where the agent was not busy all the time.
fn exact(spans: &[Span], time: &Time) -> String {
    let mut svg = String::new();
    for span in spans {
        let (start, end) = (span.start.as_secs_f64(), span.end.as_secs_f64());
        let busy = span.busy.as_secs_f64();
        let length = end - start;
        put!(
            svg,
            "<rect class=\"{}\" x=\"{:.2}\" width=\"{:.2}\" height=\"1\"",
            span.stage.name(),
            1000.0 * start / time.seconds,
            (1000.0 * length / time.seconds).max(0.05),
        );
        if busy < 0.95 * length {
            put!(svg, " opacity=\"{:.2}\"", (busy / length).max(0.15));
        }
        put!(
            svg,
            "><title>{} {} from {}: {}</title></rect>",
            span.stage.name(),
            text::seconds(busy),
            text::seconds(start),
            text::bytes(span.bytes),
        );
    }
    svg
}

/// Whether rectangles would hide each other: reads in flight at once, or merged spans.
fn overlap(spans: &[Span]) -> bool {
    let mut sorted: Vec<&Span> = spans.iter().collect();
    sorted.sort_by_key(|span| span.start);
    sorted.windows(2).any(|pair| pair[1].start < pair[0].end)
}

/// The share of each stage in each bin of time, one on top of the other.
fn binned(
    out: &mut String,
    lane: &Lane<'_>,
    stages: &[Stage],
    height_px: u32,
    bins: usize,
    time: &Time,
) {
    let mut sum = vec![0.0; bins];
    let mut areas = Vec::new();
    let mut told = Vec::new();
    for &stage in stages {
        let mut share = vec![0.0; bins];
        for spans in &lane.agents {
            let busy = series::busy_share(spans, stage, time.seconds, bins);
            let agents = lane.agents.len() as f64;
            share.iter_mut().zip(busy).for_each(|(share, busy)| *share += busy / agents);
        }
        sum.iter_mut().zip(&share).for_each(|(sum, share)| *sum += share);
        areas.push((stage.name(), plot::steps(&sum, HEIGHT)));
        told.push((stage.name(), percents(&share)));
    }
    // The sum of all lies behind, so that no gap shows between one stage and the next.
    let mut svg = String::new();
    for (name, path) in areas.iter().rev() {
        put!(svg, "<path class=\"{name}\" d=\"{path}\"/>");
    }
    let (unit, unit_name) = axis::time_unit(time.seconds);
    let tip = Tip {
        title: &lane.name,
        end: time.seconds / unit,
        unit: unit_name,
        bins: bins as f64,
        series: told,
        value_unit: "%",
    };
    lane_plot(lane, height_px, (bins, HEIGHT), time, Some(tip)).write(out, &svg, "");
}
