//! The metrics of a scan, for EXPLAIN ANALYZE.

use std::time::Duration;

use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricValue, RatioMetrics, Time,
};
use quarrier_filter::Work;

/// The metrics of one partition.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    bytes_touched: Count,
    blocks_tested: Count,
    blocks_skipped: Count,
    /// Time that all threads took to find rows.
    scan_time: Time,
    /// Time that partitions, each on its own thread, took to make batches.
    batch_time: Time,
    partitions: u32,
    share: Option<Share>,
}

/// The achieved share of the memory bandwidth.
#[derive(Debug, Clone)]
struct Share {
    ratio: RatioMetrics,
    bytes_per_second: f64,
}

impl Figures {
    /// Registers the metrics of a partition, with the share of `ceiling` in bytes per second if
    /// that is known.
    pub(super) fn new(
        metrics: &ExecutionPlanMetricsSet,
        (partition, partitions): (usize, usize),
        ceiling: Option<f64>,
    ) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        let time = |name: &'static str| MetricBuilder::new(metrics).subset_time(name, partition);
        let share = ceiling.map(|bytes_per_second| {
            let ratio = RatioMetrics::new().with_display_raw_values(false);
            let ratio_metrics = ratio.clone();
            MetricBuilder::new(metrics)
                .with_partition(partition)
                .build(MetricValue::Ratio { name: "share_of_memory_read".into(), ratio_metrics });
            Share { ratio, bytes_per_second }
        });
        Figures {
            bytes_touched: count("bytes_touched"),
            blocks_tested: count("blocks_tested"),
            blocks_skipped: count("blocks_skipped"),
            scan_time: time("scan_time"),
            batch_time: time("batch_time"),
            partitions: u32::try_from(partitions.max(1)).unwrap_or(u32::MAX),
            share,
        }
    }

    /// Records a pass that found rows.
    pub(super) fn found(&self, work: Work, time: Duration) {
        self.blocks_tested.add(work.blocks_tested as usize);
        self.blocks_skipped.add(work.blocks_skipped as usize);
        self.scan_time.add_duration(time);
        self.touched(work.bytes_touched, time);
    }

    /// Records that this partition made rows from this many bytes of columns.
    pub(super) fn made(&self, bytes: u64, time: Duration) {
        self.batch_time.add_duration(time);
        self.touched(bytes, time / self.partitions);
    }

    fn touched(&self, bytes: u64, time: Duration) {
        self.bytes_touched.add(bytes as usize);
        if let Some(share) = &self.share {
            share.ratio.add_part(bytes as usize);
            share.ratio.add_total((share.bytes_per_second * time.as_secs_f64()) as usize);
        }
    }
}
