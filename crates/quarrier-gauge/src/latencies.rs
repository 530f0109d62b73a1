//! The distribution of the times of single requests.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::error::{Error, Result};
use crate::reading::Percentiles;

/// Longer times are recorded as this.
const LONGEST: Duration = Duration::from_secs(100);
/// The ratio between the ends of neighbouring buckets in a plot.
const BUCKET_GROWTH: f64 = 1.1;
const FIRST_BUCKET_NS: u64 = 100;

/// Request times, each with a precision of a thousandth.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Histogram<u32>);

impl Latencies {
    /// Creates an empty distribution, which takes about 100 KB.
    pub(crate) fn new() -> Result<Latencies> {
        Histogram::new_with_bounds(1, LONGEST.as_nanos() as u64, 3)
            .map(Latencies)
            .map_err(|error| Error::BadRequest(format!("histogram: {error}")))
    }

    /// Merges several.
    pub(crate) fn sum(several: &[&Latencies]) -> Result<Latencies> {
        let mut all = Latencies::new()?;
        several.iter().for_each(|one| all.add(one));
        Ok(all)
    }

    /// Records a request that took `time`.
    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record(time.as_nanos() as u64);
    }

    /// Adds all times of the other distribution.
    pub(crate) fn add(&mut self, other: &Latencies) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }

    /// Removes all times.
    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }

    /// The median in seconds; 0 if there are no times.
    pub(crate) fn median_seconds(&self) -> f64 {
        seconds(self.0.value_at_quantile(0.5))
    }

    /// The percentiles for a report; `None` without samples.
    pub(crate) fn percentiles(&self) -> Option<Percentiles> {
        if self.0.is_empty() {
            return None;
        }
        let at = |share| seconds(self.0.value_at_quantile(share));
        let buckets = self
            .0
            .iter_log(FIRST_BUCKET_NS, BUCKET_GROWTH)
            .filter(|step| step.count_since_last_iteration() > 0)
            .map(|step| (seconds(step.value_iterated_to()), step.count_since_last_iteration()))
            .collect();
        Some(Percentiles {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: seconds(self.0.max()),
            buckets,
        })
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 * 1e-9
}
