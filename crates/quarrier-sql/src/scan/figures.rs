//! What a scan did, for EXPLAIN ANALYZE.

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};
use quarrier_filter::Work;

/// The figures of one plan.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    bytes_touched: Count,
    blocks_tested: Count,
    blocks_skipped: Count,
    /// The time that finding the rows took.
    pub(super) scan_time: Time,
}

impl Figures {
    pub(super) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        Figures {
            bytes_touched: count("bytes_touched"),
            blocks_tested: count("blocks_tested"),
            blocks_skipped: count("blocks_skipped"),
            scan_time: MetricBuilder::new(metrics).subset_time("scan_time", partition),
        }
    }

    pub(super) fn add(&self, work: Work) {
        self.bytes_touched.add(work.bytes_touched as usize);
        self.blocks_tested.add(work.blocks_tested as usize);
        self.blocks_skipped.add(work.blocks_skipped as usize);
    }
}
