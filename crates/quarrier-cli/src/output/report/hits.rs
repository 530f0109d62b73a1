//! Where in the source the findings lie, and what of it could not be read.

use std::ops::Range;

use super::axis::{self, Tick};
use super::plot::{self, Left, Plot, Tip};
use super::{SourceRun, put, text};

/// Bars drawn; where more slices were counted, neighbours become one.
const BARS_MAX: usize = 256;
/// Height of the drawing in its own units.
const HEIGHT: usize = 1000;
/// The least that a bar shows of itself: one finding must be seen beside a million.
const BAR_MIN: usize = 35;
/// Red marks drawn at most.
const MARKS_MAX: usize = 400;
/// Unreadable ranges told in words.
const RANGES_TOLD_MAX: usize = 50;

/// Writes the plot of findings over the length of the source.
pub(super) fn section(out: &mut String, source: &SourceRun<'_>) {
    put!(out, "<h3>Where the findings lie</h3>\n");
    if source.length_bytes == 0 {
        put!(out, "<p class=\"none\">The source has no bytes, or its length is not known.</p>\n");
        return;
    }
    let bars = Bars::new(source.hits);
    legend(out, source, &bars);
    let ticks = axis::byte_ticks(source.length_bytes);
    let heights = bars.ticks();
    let plot = Plot {
        label: &format!(
            "{} over the length of the source",
            text::counted(source.findings(), "finding")
        ),
        class: "hits",
        height_px: 130,
        view: (bars.slices.max(1), HEIGHT),
        x: &ticks,
        left: Left::Ticks(&heights),
        tip: (!bars.counts.is_empty()).then(|| Tip {
            title: "",
            end: source.length_bytes as f64,
            unit: "bytes",
            bins: bars.slices as f64 / bars.slices_a_bar as f64,
            series: vec![("findings", bars.counts.iter().map(u64::to_string).collect())],
            value_unit: "",
        }),
    };
    let svg = format!("<path class=\"bars\" d=\"{}\"/>", bars.path());
    plot.write(out, &svg, &marks(source));
    plot::x_labels(out, &ticks);
    unreadable(out, source);
}

fn legend(out: &mut String, source: &SourceRun<'_>, bars: &Bars) {
    put!(out, "<div class=\"legend\"><span><i class=\"key hits\"></i>");
    put!(out, "<b>{}</b>", text::counted(source.findings(), "finding"));
    put!(out, " in {}</span>", text::bytes(source.length_bytes));
    if bars.most > 0 {
        let slice = source.length_bytes / bars.counts.len().max(1) as u64;
        put!(out, "<span>a bar covers {}</span>", text::bytes(slice.max(1)));
    }
    if bars.is_logarithmic {
        put!(out, "<span>logarithmic scale</span>");
    }
    if !source.unreadable.is_empty() {
        put!(out, "<span><i class=\"key bad\"></i>unreadable</span>");
    }
    put!(out, "</div>\n");
}

/// Findings counted for drawing.
struct Bars {
    counts: Vec<u64>,
    /// Slices that were counted in all, and how many make a bar.
    slices: usize,
    slices_a_bar: usize,
    most: u64,
    /// Whether few bars are so high that the others would not be seen.
    is_logarithmic: bool,
}

impl Bars {
    fn new(hits: &[u64]) -> Self {
        let slices_a_bar = hits.len().div_ceil(BARS_MAX).max(1);
        let sum = |slices: &[u64]| slices.iter().fold(0u64, |sum, hits| sum.saturating_add(*hits));
        let counts: Vec<u64> = hits.chunks(slices_a_bar).map(sum).collect();
        let mut some: Vec<u64> = counts.iter().copied().filter(|count| *count > 0).collect();
        some.sort_unstable();
        let most = some.last().copied().unwrap_or(0);
        let median = some.get(some.len() / 2).copied().unwrap_or(0);
        let is_logarithmic = most >= 100 && most / 20 > median;
        Bars { counts, slices: hits.len(), slices_a_bar, most, is_logarithmic }
    }

    fn ticks(&self) -> Vec<Tick> {
        if self.most == 0 {
            return vec![Tick { at: 0.0, label: "0".to_string() }];
        }
        if !self.is_logarithmic {
            return axis::height(self.most as f64, true).ticks;
        }
        axis::logarithmic(self.most as f64)
    }

    /// A rectangle for each run of bars of one height; bars without findings show nothing.
    fn path(&self) -> String {
        let most = self.most as f64;
        let end = axis::height(most, true).end;
        let level = |count: u64| {
            let count = count as f64;
            let share =
                if self.is_logarithmic { axis::log_share(count, most) } else { count / end };
            ((share * HEIGHT as f64).round() as usize).clamp(BAR_MIN, HEIGHT)
        };
        let mut path = String::new();
        let mut from = 0;
        for run in self.counts.chunk_by(|a, b| a == b) {
            let to = from + run.len();
            if let Some(&count) = run.first().filter(|count| **count > 0) {
                let (left, right) = (from * self.slices_a_bar, to * self.slices_a_bar);
                let (right, top) = (right.min(self.slices), HEIGHT - level(count));
                put!(path, "M{left} {HEIGHT}V{top}H{right}V{HEIGHT}z");
            }
            from = to;
        }
        path
    }
}

/// Unreadable ranges as marks over the plot, wide enough to be seen.
fn marks(source: &SourceRun<'_>) -> String {
    let length = source.length_bytes as f64;
    let mut out = String::new();
    for Range { start, end } in joined(source.unreadable, source.length_bytes / MARKS_MAX as u64) {
        let left = 100.0 * (start as f64 / length).min(1.0);
        let width = (100.0 * end.saturating_sub(start) as f64 / length).min(100.0 - left);
        put!(out, "<i class=\"mark\" style=\"left:{left:.3}%;width:{width:.3}%\"></i>");
    }
    out
}

/// `ranges`, in order, with those that lie less than `gap_bytes` apart as one.
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

/// The unreadable ranges in words, with their places.
fn unreadable(out: &mut String, source: &SourceRun<'_>) {
    let ranges = source.unreadable;
    if ranges.is_empty() {
        return;
    }
    put!(
        out,
        "<details class=\"ranges\"><summary>{} could not be read, {} in all</summary><ul>\n",
        text::counted(ranges.len() as u64, "range"),
        text::bytes(source.unreadable_bytes()),
    );
    for Range { start, end } in ranges.iter().take(RANGES_TOLD_MAX) {
        let bytes = text::counted(end.saturating_sub(*start), "byte");
        put!(out, "<li>{} at offset {} ({start:#x})</li>\n", bytes, text::count(*start));
    }
    if ranges.len() > RANGES_TOLD_MAX {
        put!(out, "<li>and {} more</li>", text::count((ranges.len() - RANGES_TOLD_MAX) as u64));
    }
    put!(out, "</ul></details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_finding_is_seen_beside_very_many() {
        let mut hits = vec![0; 1000];
        hits[0] = 1;
        hits[500] = 1_000_000;
        let bars = Bars::new(&hits);
        assert_eq!((bars.counts.len(), bars.slices_a_bar, bars.most), (250, 4, 1_000_000));
        assert!(bars.path().starts_with("M0 1000V"), "{}", bars.path());
        assert_eq!(bars.path().matches('M').count(), 2);
    }

    #[test]
    fn counts_at_the_limit_do_not_overflow() {
        let bars = Bars::new(&vec![u64::MAX; 600]);
        assert_eq!(bars.most, u64::MAX);
        assert!(!bars.ticks().is_empty());
        assert!(Bars::new(&[]).path().is_empty());
    }

    #[test]
    fn unreadable_ranges_close_together_are_one_mark() {
        let ranges = [0..512, 1024..1536, 1 << 20..2 << 20];
        assert_eq!(joined(&ranges, 1000), [0..1536, 1 << 20..2 << 20]);
        assert_eq!(joined(&ranges, 0).len(), 3);
    }
}
