//! The positions of findings in the source, and its unreadable ranges.

use std::ops::Range;

use maud::{Markup, html};
use quarrier_report::Colour;
use quarrier_report::chart::{Axis, Chart};
use quarrier_report::number::{bytes, count, counted};
use quarrier_report::page::{Key, details, legend, note};

use super::SourceRun;

/// Maximum number of bars; if more slices were counted, neighbours are merged.
const BARS_MAX: usize = 256;
/// Height of the drawing in pixels.
const HEIGHT_PX: u32 = 130;
/// Maximum number of red marks.
const MARKS_MAX: u64 = 400;
/// Maximum number of unreadable ranges in the list.
const RANGES_TOLD_MAX: usize = 50;

/// Draws findings over the length of the source, in at most `bars_max` bars.
pub(super) fn section(source: &SourceRun<'_>, bars_max: usize) -> Markup {
    html! {
        h3 { "Positions of the findings" }
        @if source.length_bytes == 0 {
            (note("The source has no bytes, or its length is not known."))
        } @else {
            (content(source, bars_max.min(BARS_MAX)))
            (unreadable(source))
        }
    }
}

fn content(source: &SourceRun<'_>, bars_max: usize) -> Markup {
    let bars = Bars::new(source.hits, bars_max);
    let findings = counted(source.findings(), "finding");
    let name = format!("{findings} over the length of the source");
    let (x, y) = (Axis::offsets(source.length_bytes), bars.heights());
    let mut chart = Chart::new(&name, HEIGHT_PX, &x, &y);
    let counts: Vec<f64> = bars.counts.iter().map(|count| *count as f64).collect();
    let per_axis = bars.slices as f64 / bars.slices_a_bar as f64;
    chart.columns(Colour::VIOLET, &counts, per_axis);
    for Range { start, end } in joined(source.unreadable, source.length_bytes / MARKS_MAX) {
        chart.lost(start as f64, end as f64);
    }
    let titles: Vec<String> = bars.counts.iter().map(|n| counted(*n, "finding")).collect();
    chart.tips(&titles, per_axis, |offset| bytes(offset as u64));
    html! { (keys(source, &bars)) (chart) }
}

fn keys(source: &SourceRun<'_>, bars: &Bars) -> Markup {
    let words = html! {
        b { (counted(source.findings(), "finding")) } " in " (bytes(source.length_bytes))
    };
    let mut keys = vec![(Some(Key::Series(Colour::VIOLET)), words)];
    if bars.most > 0 {
        let slice = source.length_bytes / bars.counts.len().max(1) as u64;
        keys.push((None, html! { "a bar covers " (bytes(slice.max(1))) }));
    }
    if bars.is_logarithmic {
        keys.push((None, html! { "logarithmic scale" }));
    }
    if !source.unreadable.is_empty() {
        keys.push((Some(Key::Bad), html! { "unreadable" }));
    }
    legend(&keys)
}

/// Findings, counted for drawing.
struct Bars {
    counts: Vec<u64>,
    /// The number of slices that were counted, and how many make a bar.
    slices: usize,
    slices_a_bar: usize,
    most: u64,
    /// Whether a few bars are so high that the others would be invisible.
    is_logarithmic: bool,
}

impl Bars {
    fn new(hits: &[u64], bars_max: usize) -> Self {
        let slices_a_bar = hits.len().div_ceil(bars_max.max(1)).max(1);
        let sum = |slices: &[u64]| slices.iter().fold(0u64, |sum, hits| sum.saturating_add(*hits));
        let counts: Vec<u64> = hits.chunks(slices_a_bar).map(sum).collect();
        let mut some: Vec<u64> = counts.iter().copied().filter(|count| *count > 0).collect();
        some.sort_unstable();
        let most = some.last().copied().unwrap_or(0);
        let median = some.get(some.len() / 2).copied().unwrap_or(0);
        let is_logarithmic = most >= 100 && most / 20 > median;
        Bars { counts, slices: hits.len(), slices_a_bar, most, is_logarithmic }
    }

    fn heights(&self) -> Axis {
        match self.is_logarithmic {
            true => Axis::counts(self.most as f64),
            false => Axis::whole_heights(self.most as f64),
        }
    }
}

/// Joins `ranges`, which must be in order, across gaps shorter than `gap_bytes`.
fn joined(ranges: &[Range<u64>], gap_bytes: u64) -> Vec<Range<u64>> {
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap_bytes) => {
                last.end = last.end.max(range.end);
            }
            _ => out.push(range.clone()),
        }
    }
    out
}

/// The list of unreadable ranges.
fn unreadable(source: &SourceRun<'_>) -> Markup {
    let ranges = source.unreadable;
    if ranges.is_empty() {
        return html! {};
    }
    let summary = format!(
        "{} could not be read, {} in all",
        counted(ranges.len() as u64, "range"),
        bytes(source.unreadable_bytes())
    );
    let list = html! {
        ul {
            @for Range { start, end } in ranges.iter().take(RANGES_TOLD_MAX) {
                li {
                    (counted(end.saturating_sub(*start), "byte")) " at offset " (count(*start))
                    " (" (format!("{start:#x}")) ")"
                }
            }
            @if ranges.len() > RANGES_TOLD_MAX {
                li { "and " (count((ranges.len() - RANGES_TOLD_MAX) as u64)) " more" }
            }
        }
    };
    details(&summary, false, &list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_counted_into_bars() {
        let mut hits = vec![0; 1000];
        hits[0] = 1;
        hits[500] = 1_000_000;
        let bars = Bars::new(&hits, BARS_MAX);
        assert_eq!((bars.counts.len(), bars.slices_a_bar, bars.most), (250, 4, 1_000_000));
    }

    #[test]
    fn counts_at_the_limit_do_not_overflow() {
        assert_eq!(Bars::new(&vec![u64::MAX; 600], BARS_MAX).most, u64::MAX);
        assert_eq!(Bars::new(&[], 0).counts.len(), 0);
    }

    #[test]
    fn unreadable_ranges_close_together_are_one_mark() {
        let ranges = [0..512, 1024..1536, 1 << 20..2 << 20];
        assert_eq!(joined(&ranges, 1000), [0..1536, 1 << 20..2 << 20]);
        assert_eq!(joined(&ranges, 0).len(), 3);
    }
}
