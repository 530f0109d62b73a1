//! Sums of spans in equal time bins.

use quarrier_core::pipeline::{Span, Stage};

/// Sums over `bins.len()` equal parts of the time from 0 to `end_seconds`.
#[derive(Debug, Clone)]
pub(super) struct Series {
    end_seconds: f64,
    pub(super) bins: Vec<f64>,
}

impl Series {
    /// Creates empty bins; `end_seconds` and `count` must be above 0.
    pub(super) fn new(end_seconds: f64, count: usize) -> Self {
        Series { end_seconds, bins: vec![0.0; count.max(1)] }
    }

    /// The length of a bin in seconds.
    pub(super) fn bin_seconds(&self) -> f64 {
        self.end_seconds / self.bins.len() as f64
    }

    /// Adds `amount`, spread evenly over the span's time.
    pub(super) fn spread(&mut self, span: &Span, amount: f64) {
        let width = self.bin_seconds();
        let last = self.bins.len() - 1;
        let start = span.start.as_secs_f64() / width;
        let end = span.end.as_secs_f64() / width;
        let (from, to) = ((start as usize).min(last), (end as usize).min(last));
        if from == to {
            self.bins[from] += amount;
            return;
        }
        let per_bin = amount / (end - start);
        for (place, bin) in self.bins.iter_mut().enumerate().take(to + 1).skip(from) {
            let (left, right) = (place as f64, (place + 1) as f64);
            *bin += per_bin * (right.min(end) - left.max(start)).max(0.0);
        }
    }

    /// The largest bin.
    pub(super) fn most(&self) -> f64 {
        self.bins.iter().copied().fold(0.0, f64::max)
    }
}

/// The share of each bin that the agent with these spans was busy in `stage`.
///
/// At most 1, even for an agent with several reads in flight.
pub(super) fn busy_share(spans: &[Span], stage: Stage, end_seconds: f64, count: usize) -> Vec<f64> {
    let mut series = Series::new(end_seconds, count);
    for span in spans.iter().filter(|span| span.stage == stage) {
        series.spread(span, span.busy.as_secs_f64());
    }
    let width = series.bin_seconds();
    series.bins.iter().map(|busy| (busy / width).min(1.0)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn span(start_ms: u64, end_ms: u64) -> Span {
        let (start, end) = (Duration::from_millis(start_ms), Duration::from_millis(end_ms));
        Span { stage: Stage::Work, start, end, busy: end - start, bytes: 0 }
    }

    #[test]
    fn a_span_is_shared_out_by_its_time() {
        let mut series = Series::new(1.0, 4);
        series.spread(&span(125, 625), 8.0);
        let expected = [2.0, 4.0, 2.0, 0.0];
        assert!(series.bins.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{series:?}");
    }

    #[test]
    fn spans_without_length_or_past_the_end_are_kept() {
        let mut series = Series::new(1.0, 4);
        series.spread(&span(500, 500), 3.0);
        series.spread(&span(1000, 1000), 5.0);
        assert_eq!(series.bins, [0.0, 0.0, 3.0, 5.0]);
    }

    #[test]
    fn overlapping_spans_of_one_agent_are_full_load() {
        let share = busy_share(&[span(0, 500), span(0, 500)], Stage::Work, 1.0, 2);
        assert_eq!(share, [1.0, 0.0]);
    }
}
