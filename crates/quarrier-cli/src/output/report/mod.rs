//! `--report FILE.html`: one page that shows a run, readable without a network.
//!
//! ```text
//! Report ── page ── facts, overview of sources
//!    └ SourceRun ── load   every stage's load, every thread's lane   ┐
//!                ── rate   bytes a second beside the ceiling         ├ plot, axis, series
//!                ── hits   findings over the source's length         ┘
//!                ── tables busy and waiting times
//!    └ patterns ── tables
//! CarvedReport ── carved  what was carved: map, types, pictures, files
//! ```
//!
//! Plots are SVG without text, stretched to the width at hand; labels are HTML beside them
//! and keep their size, so the page reads on a phone as well as on a desk. Everything that
//! comes from input goes through [`quarrier_report::escape`].

mod agents;
mod axis;
mod carved;
mod hits;
mod load;
mod page;
mod plot;
mod rate;
mod series;
mod tables;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use carved::{CarvedReport, html as carved_html};

use std::ops::Range;
use std::time::Duration;

use quarrier_core::pipeline::Timeline;

/// Writes formatted text to a `String`, which cannot fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($arg)*);
    }};
}
use put;

/// Everything the page shows about one run.
pub(crate) struct Report<'a> {
    /// What was run, such as the command line.
    pub title: &'a str,
    /// Label and value of each row: source, bytes, time, rate, engine, workers, …
    pub facts: &'a [(String, String)],
    /// One for each source, in the order they were worked on.
    pub sources: &'a [SourceRun<'a>],
    /// A pattern's label and its findings; may be very many.
    pub patterns: &'a [(String, u64)],
}

/// One source's part of the run.
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
    /// Seconds that the time axis covers: the run, or the last span where that ends later.
    fn seconds(&self) -> f64 {
        let agents = self.timeline.agents.iter();
        let last = agents.flat_map(|(_, spans)| spans.iter().map(|span| span.end)).max();
        self.elapsed.max(last.unwrap_or_default()).as_secs_f64()
    }

    /// Bytes that the kernel saw.
    fn worked_bytes(&self) -> u64 {
        let spans = self.timeline.agents.iter().flat_map(|(_, spans)| spans);
        spans.filter(|span| span.stage.is_work()).map(|span| span.bytes).sum()
    }

    /// Mean rate, where there is something to tell.
    fn bytes_per_second(&self) -> Option<f64> {
        let (bytes, seconds) = (self.worked_bytes(), self.elapsed.as_secs_f64());
        (bytes > 0 && seconds > 0.0).then(|| bytes as f64 / seconds)
    }

    /// The ceiling, where it is a number that can be drawn.
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

/// Sources drawn with all their plots; of more, those that took longest.
const SOURCES_DRAWN_MAX: usize = 24;
/// Sources that are unfolded when the page opens.
const SOURCES_OPEN_MAX: usize = 4;

/// The page, whole.
pub(crate) fn html(report: &Report<'_>) -> String {
    let drawn = drawn(report.sources);
    let mut out = String::with_capacity(64 * 1024);
    let scripts = [page::SCRIPT];
    page::head(&mut out, report.title, &[], &scripts);
    page::facts(&mut out, report.facts);
    if report.sources.len() > 1 {
        page::overview(&mut out, report.sources, &drawn);
    }
    let budget =
        agents::Budget::of(&drawn.iter().map(|&at| &report.sources[at]).collect::<Vec<_>>());
    for (place, &index) in drawn.iter().enumerate() {
        let source = &report.sources[index];
        let fold = match place {
            _ if drawn.len() == 1 => page::Fold::Never,
            0..SOURCES_OPEN_MAX => page::Fold::Open,
            _ => page::Fold::Closed,
        };
        page::source(&mut out, source, index, fold, |out| {
            load::section(out, source, budget);
            rate::section(out, source);
            hits::section(out, source);
            tables::stages(out, source);
            tables::threads(out, source, budget);
        });
    }
    tables::patterns(&mut out, report.patterns);
    quarrier_report::page::foot(&mut out, &scripts);
    out
}

/// Indexes of the sources that get plots, in the order of the run.
fn drawn(sources: &[SourceRun<'_>]) -> Vec<usize> {
    let mut indexes: Vec<usize> = (0..sources.len()).collect();
    indexes.sort_by_key(|&index| std::cmp::Reverse(sources[index].elapsed));
    indexes.truncate(SOURCES_DRAWN_MAX);
    indexes.sort_unstable();
    indexes
}
