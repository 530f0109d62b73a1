//! The load of every stage, and the activity of each thread, over the time of the run.

use maud::{Markup, Render, html};
use quarrier_core::pipeline::{Span, Stage};
use quarrier_report::chart::{Axis, Chart, Tick, labels_below};
use quarrier_report::number::{bytes, counted, percent, seconds};
use quarrier_report::page::{Key, legend, note};

use super::agents::{Budget, Lane, colour, lanes, stages};
use super::{SourceRun, series};

/// Height of a stage's chart in pixels.
const HEIGHT_PX: u32 = 56;

/// The charts of all stages and the lanes of all threads on one time axis.
pub(super) fn section(source: &SourceRun<'_>, budget: Budget) -> Markup {
    let time = source.seconds();
    let lanes = lanes(source.timeline, budget);
    let x = Axis::time(time);
    let stages = stages(source.timeline);
    let mut keys = vec![(None, html! { b { "Each thread" } })];
    keys.extend(
        stages.iter().map(|stage| (Some(Key::Series(colour(*stage))), html! { (stage.name()) })),
    );
    keys.push((Some(Key::Idle), html! { "waiting" }));
    html! {
        h3 { "Load of every stage" }
        @if time <= 0.0 || lanes.is_empty() {
            (note("The run was too short to be recorded."))
        } @else {
            @for stage in stages { (stage_chart(source, *stage, &x, budget)) }
            (legend(&keys))
            @for lane in &lanes { (lane_chart(lane, lanes.len(), &x, stages, budget)) }
            (labels_below(&x))
        }
    }
}

fn stage_chart(source: &SourceRun<'_>, stage: Stage, x: &Axis, budget: Budget) -> Markup {
    let (name, bins) = (stage.name(), budget.load_bins);
    let agents: Vec<&[Span]> = source
        .timeline
        .agents
        .iter()
        .map(|(_, spans)| spans.as_slice())
        .filter(|spans| spans.iter().any(|span| span.stage == stage))
        .collect();
    let load = busy(&agents, stage, x, bins);
    let mean = load.iter().sum::<f64>() / bins as f64;
    let words = match agents.len() as u64 {
        0 => html! { "nothing recorded" },
        some => html! { (percent(mean)) " busy on average, " (counted(some, "thread")) },
    };
    let marks = [(0.0, "0"), (0.5, "50"), (1.0, "100 %")];
    let marks = marks.map(|(value, label)| Tick { value, label: label.to_string() });
    let y = Axis::linear(0.0, 1.0, marks.to_vec());
    let name_of_chart = format!("load of {name} over time, mean {:.0} percent", 100.0 * mean);
    let mut chart = Chart::new(&name_of_chart, HEIGHT_PX, x, &y).without_labels();
    chart.area(colour(stage), &load, bins as f64);
    let titles: Vec<String> = load.iter().map(|share| format!("{:.0} %", 100.0 * share)).collect();
    chart.tips(&titles, bins as f64, seconds);
    let key = (Some(Key::Series(colour(stage))), html! { b { (name) } });
    html! { (legend(&[key, (None, words)])) (chart) }
}

/// The average share of each time bin that these agents were busy in `stage`.
fn busy(agents: &[&[Span]], stage: Stage, x: &Axis, bins: usize) -> Vec<f64> {
    let mut load = vec![0.0; bins];
    for spans in agents {
        let share = series::busy_share(spans, stage, x.ends().1, bins);
        load.iter_mut().zip(share).for_each(|(sum, share)| *sum += share / agents.len() as f64);
    }
    load
}

/// The work of a thread, or of a few: span by span, or binned if there are too many spans.
fn lane_chart(lane: &Lane<'_>, lanes: usize, x: &Axis, stages: &[Stage], budget: Budget) -> Markup {
    let height_px = match lanes {
        0..=8 => 22,
        9..=24 => 18,
        _ => 13,
    };
    let y = Axis::linear(0.0, 1.0, Vec::new());
    let mut chart = Chart::new(&lane.name, height_px, x, &y).lane(&lane.name);
    match lane.agents.as_slice() {
        [spans] if budget.is_exact && !overlap(spans) => exact(&mut chart, spans),
        _ => binned(&mut chart, lane, x, stages, budget.lane_bins),
    }
    chart.render()
}

/// Each span as a rectangle, fainter if the agent was idle for part of it.
fn exact(chart: &mut Chart<'_>, spans: &[Span]) {
    for span in spans {
        let (start, end) = (span.start.as_secs_f64(), span.end.as_secs_f64());
        let busy = span.busy.as_secs_f64();
        let title = format!(
            "{} {} from {}: {}",
            span.stage.name(),
            seconds(busy),
            seconds(start),
            bytes(span.bytes)
        );
        chart.span(colour(span.stage), (start, end), busy / (end - start), &title);
    }
}

/// Whether rectangles would hide each other: reads in flight at once, or merged spans.
fn overlap(spans: &[Span]) -> bool {
    let mut sorted: Vec<&Span> = spans.iter().collect();
    sorted.sort_by_key(|span| span.start);
    sorted.windows(2).any(|pair| pair[1].start < pair[0].end)
}

/// The share of each stage in each time bin, stacked; the tooltip has the shares of the whole run.
fn binned(chart: &mut Chart<'_>, lane: &Lane<'_>, x: &Axis, stages: &[Stage], bins: usize) {
    let mut sum = vec![0.0; bins];
    let mut areas = Vec::new();
    let mut parts = vec![lane.name.clone()];
    for &stage in stages {
        let share = busy(&lane.agents, stage, x, bins);
        sum.iter_mut().zip(&share).for_each(|(sum, share)| *sum += share);
        areas.push((stage, sum.clone()));
        let mean = share.iter().sum::<f64>() / bins as f64;
        parts.push(format!("{} {}", stage.name(), percent(mean)));
    }
    // Draw the total below the stages, so that no gap shows between them.
    for (stage, sum) in areas.iter().rev() {
        chart.stack(colour(*stage), sum, bins as f64);
    }
    chart.tips(&[parts.join(" · ")], 1.0, seconds);
}
