//! Applies a runtime filter to rows of Parquet: drops rows without a partner as they leave the
//! file, before they are repartitioned and hashed.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer};
use datafusion::arrow::compute::{BatchCoalescer, and};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::{StreamExt, TryStreamExt};
use quarrier_filter::Keys;

use super::key_collect::JoinKeys;
use super::over_input::{over_input, rows_of_input, without_expressions};

/// A filter that keeps more than this share of the rows is abandoned; the join tests the rows
/// anyway.
const KEPT_SHARE_MAX: f64 = 0.8;
/// The number of rows on which that decision is based.
const TRIAL_ROWS: usize = 1 << 16;

/// A column, and the set of keys that its values must be in.
#[derive(Debug, Clone)]
pub(crate) struct JoinKeyColumn {
    /// The column's index in the input's schema.
    pub(crate) column: usize,
    pub(crate) keys: Arc<JoinKeys>,
}

/// Waits for the keys of the build side, and passes on only rows that have one of them.
#[derive(Debug)]
pub(crate) struct JoinKeyFilterExec {
    input: Arc<dyn ExecutionPlan>,
    key_columns: Vec<JoinKeyColumn>,
    metrics: ExecutionPlanMetricsSet,
}

impl JoinKeyFilterExec {
    /// Filters `input` by `key_columns`, which are of [integer
    /// types](super::key_collect::is_whole).
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, key_columns: Vec<JoinKeyColumn>) -> Self {
        JoinKeyFilterExec { input, key_columns, metrics: ExecutionPlanMetricsSet::new() }
    }

    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    pub(crate) fn key_columns(&self) -> &[JoinKeyColumn] {
        &self.key_columns
    }
}

impl DisplayAs for JoinKeyFilterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let names: Vec<&str> =
            self.key_columns.iter().map(|key| &**schema.field(key.column).name()).collect();
        write!(f, "JoinKeyFilterExec: keys=[{}]", names.join(", "))
    }
}

impl ExecutionPlan for JoinKeyFilterExec {
    over_input!("JoinKeyFilterExec");
    without_expressions!();
    rows_of_input!();

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("rows of nothing") };
        Ok(Arc::new(JoinKeyFilterExec::new(input, self.key_columns.clone())))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (schema, input) = (self.schema(), Arc::clone(&self.input));
        let key_columns = self.key_columns.clone();
        let batch_rows = context.session_config().batch_size();
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        // Opens files only after the keys are known, so that row groups without a key are not read.
        let rows = futures::stream::once(async move {
            let mut tests = Vec::new();
            for key in &key_columns {
                let keys = key.keys.all().await;
                tests.extend(keys.map(|keys| Test::new(key.column, keys)));
            }
            let rows = input.execute(partition, context)?;
            let room = BatchCoalescer::new(rows.schema(), batch_rows);
            Ok::<_, datafusion::error::DataFusionError>(
                FilteredStream { rows, tests, room, whole: None }.batches(),
            )
        });
        let rows = rows.try_flatten();
        let rows = rows.inspect_ok(move |batch| baseline.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.boxed())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::clone(&inputs[0]).to_inexact()))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}

/// The rows of a partition that pass the filter.
struct FilteredStream {
    rows: SendableRecordBatchStream,
    tests: Vec<Test>,
    /// Gathers the few rows that each batch keeps.
    room: BatchCoalescer,
    /// A batch that passes unfiltered, to be returned after the rows in `room`.
    whole: Option<RecordBatch>,
}

impl FilteredStream {
    fn batches(self) -> impl futures::Stream<Item = Result<RecordBatch>> {
        futures::stream::try_unfold(Some(self), |kept| async move {
            let Some(mut kept) = kept else { return Ok(None) };
            loop {
                if let Some(batch) = kept.room.next_completed_batch().or_else(|| kept.whole.take())
                {
                    return Ok(Some((batch, Some(kept))));
                }
                match kept.rows.next().await.transpose()? {
                    Some(batch) => kept.add(batch)?,
                    None => {
                        kept.room.finish_buffered_batch()?;
                        return Ok(kept.room.next_completed_batch().map(|batch| (batch, None)));
                    }
                }
            }
        })
    }

    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        let mut kept: Option<BooleanArray> = None;
        for test in &mut self.tests {
            let Some(its) = test.kept(&batch)? else { continue };
            kept = Some(match kept {
                Some(kept) => and(&kept, &its)?,
                None => its,
            });
        }
        match kept.filter(|kept| kept.true_count() < batch.num_rows()) {
            Some(kept) => self.room.push_batch_with_filter(batch, &kept)?,
            None => {
                self.room.finish_buffered_batch()?;
                self.whole = Some(batch);
            }
        }
        Ok(())
    }
}

/// The filter of one column, and how many rows it kept.
struct Test {
    column: usize,
    keys: Arc<Keys>,
    rows: usize,
    kept: usize,
}

impl Test {
    fn new(column: usize, keys: Arc<Keys>) -> Test {
        Test { column, keys, rows: 0, kept: 0 }
    }

    /// The mask of rows to keep; `None` if the filter keeps too many rows to be worth its time.
    fn kept(&mut self, batch: &RecordBatch) -> Result<Option<BooleanArray>> {
        if self.rows >= TRIAL_ROWS && self.kept as f64 > KEPT_SHARE_MAX * self.rows as f64 {
            return Ok(None);
        }
        let values = batch.column(self.column);
        let keys = &self.keys;
        let which = if let Some(values) = values.as_primitive_opt::<Int64Type>() {
            keys.which_i64(values.values())
        } else if let Some(values) = values.as_primitive_opt::<Int32Type>() {
            keys.which_i32(values.values())
        } else {
            return internal_err!("a join key that is not an integer: {}", values.data_type());
        };
        let found = BooleanBuffer::new(Buffer::from_vec(which), 0, values.len());
        // NULL never has a partner.
        let kept = match values.nulls() {
            Some(nulls) => BooleanArray::new(&found & nulls.inner(), None),
            None => BooleanArray::new(found, None),
        };
        self.rows += kept.len();
        self.kept += kept.true_count();
        Ok(Some(kept))
    }
}
