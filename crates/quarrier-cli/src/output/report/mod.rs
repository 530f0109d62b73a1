//! `--report FILE.html`: one page that shows a run, readable without a network.
//!
//! ```text
//! Report ── facts, overview of sources
//!    └ SourceRun ── load   every stage's load, every thread's lane
//!                ── rate   bytes a second beside the ceiling
//!                ── hits   findings over the source's length
//!                ── tables busy and waiting times
//!    └ patterns ── tables
//! CarvedReport ── carved  the carved files: map, types, pictures, list
//! ```
//!
//! All elements, including charts, come from [`quarrier_report`], which escapes all text.

mod agents;
mod carved;
mod hits;
mod load;
mod page;
mod rate;
mod series;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use carved::{CarvedReport, html as carved_html};

use std::ops::Range;
use std::time::Duration;

use maud::html;
use quarrier_core::pipeline::Timeline;
use quarrier_report::page::{Fold, facts, header, page as whole};

/// Everything the page shows about one run.
pub(crate) struct Report<'a> {
    /// The title, such as the command line.
    pub title: &'a str,
    /// Label and value of each row: source, bytes, time, rate, engine, workers, …
    pub facts: &'a [(String, String)],
    /// One for each source, in the order of the run.
    pub sources: &'a [SourceRun<'a>],
    /// The label of each pattern and its number of findings; there may be very many.
    pub patterns: &'a [(String, u64)],
}

/// The run over one source.
pub(crate) struct SourceRun<'a> {
    pub name: &'a str,
    pub length_bytes: u64,
    pub elapsed: Duration,
    pub timeline: &'a Timeline,
    pub ceiling_bytes_per_second: Option<f64>,
    /// Findings in each of equal slices of the source.
    pub hits: &'a [u64],
    /// Ranges that could not be read, in order.
    pub unreadable: &'a [Range<u64>],
}

impl SourceRun<'_> {
    /// Length of the time axis in seconds: the run, or until the end of the last span if that is later.
    fn seconds(&self) -> f64 {
        let agents = self.timeline.agents.iter();
        let last = agents.flat_map(|(_, spans)| spans.iter().map(|span| span.end)).max();
        self.elapsed.max(last.unwrap_or_default()).as_secs_f64()
    }

    /// Bytes that the kernel processed.
    fn worked_bytes(&self) -> u64 {
        let spans = self.timeline.agents.iter().flat_map(|(_, spans)| spans);
        spans.filter(|span| span.stage.is_work()).map(|span| span.bytes).sum()
    }

    /// The mean rate in bytes per second, if there is one.
    fn bytes_per_second(&self) -> Option<f64> {
        let (bytes, seconds) = (self.worked_bytes(), self.elapsed.as_secs_f64());
        (bytes > 0 && seconds > 0.0).then(|| bytes as f64 / seconds)
    }

    /// The ceiling in bytes per second, if it is a finite number to draw.
    fn ceiling(&self) -> Option<f64> {
        self.ceiling_bytes_per_second.filter(|ceiling| ceiling.is_finite() && *ceiling > 0.0)
    }

    fn findings(&self) -> u64 {
        self.hits.iter().copied().fold(0, u64::saturating_add)
    }

    fn unreadable_bytes(&self) -> u64 {
        let bytes = self.unreadable.iter().map(|range| range.end.saturating_sub(range.start));
        bytes.fold(0, u64::saturating_add)
    }
}

/// Maximum number of sources drawn with all their plots; the slowest ones are chosen.
const SOURCES_DRAWN_MAX: usize = 24;
/// Maximum number of sources unfolded when the page opens.
const SOURCES_OPEN_MAX: usize = 4;

/// Renders the whole page.
pub(crate) fn html(report: &Report<'_>) -> String {
    let drawn = drawn(report.sources);
    let mut parts =
        vec![header("quarrier report", report.title, true, &html! {}), facts(report.facts)];
    if report.sources.len() > 1 {
        parts.push(page::overview(report.sources, &drawn));
    }
    let budget =
        agents::Budget::of(&drawn.iter().map(|&at| &report.sources[at]).collect::<Vec<_>>());
    for (place, &index) in drawn.iter().enumerate() {
        let source = &report.sources[index];
        let fold = match place {
            _ if drawn.len() == 1 => Fold::Never,
            0..SOURCES_OPEN_MAX => Fold::Open,
            _ => Fold::Closed,
        };
        let charts = html! {
            (load::section(source, budget))
            (rate::section(source, budget.load_bins))
            (hits::section(source, budget.load_bins))
            (tables::stages(source))
            (tables::threads(source, budget))
        };
        parts.push(page::source(source, index, fold, &charts));
    }
    parts.push(tables::patterns(report.patterns));
    whole(report.title, &[], &parts)
}

/// Indexes of the sources that get plots, in the order of the run.
fn drawn(sources: &[SourceRun<'_>]) -> Vec<usize> {
    let mut indexes: Vec<usize> = (0..sources.len()).collect();
    indexes.sort_by_key(|&index| std::cmp::Reverse(sources[index].elapsed));
    indexes.truncate(SOURCES_DRAWN_MAX);
    indexes.sort_unstable();
    indexes
}
