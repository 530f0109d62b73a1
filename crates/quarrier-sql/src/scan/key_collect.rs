//! Runtime filter (dynamic filter, semi-join reduction): collects the keys on the build side of a
//! join, so that the scan of the probe side skips rows without a partner.

use std::fmt;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::{Array, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, apply_expression_roots};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr};
use futures::{Stream, StreamExt};
use quarrier_core::sync::lock;
use quarrier_filter::Keys;
use tokio::sync::watch;

use super::over_input::{over_input, rows_of_input};

/// Whether values of this type can be collected as a bitmap of keys.
pub(crate) fn is_whole(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int32 | DataType::Int64)
}

/// How far the collection of keys has come.
#[derive(Debug, Clone)]
enum KeyState {
    /// Some partitions have not ended yet.
    Open,
    /// All keys.
    All(Arc<Keys>),
    /// A partition stopped before its end, so keys may be missing and must not be used.
    Lost,
}

/// The keys that the build side of a join collects, and scans of the probe side wait for.
#[derive(Debug)]
pub(crate) struct JoinKeys {
    /// The range of keys that matter, since the probe side has no others.
    span: RangeInclusive<i64>,
    gathered: Mutex<CollectedKeys>,
    state: watch::Sender<KeyState>,
}

#[derive(Debug, Default)]
struct CollectedKeys {
    keys: Option<Keys>,
    /// The memory reserved for the keys.
    memory: Option<MemoryReservation>,
    /// The number of partitions that have ended.
    partitions: usize,
}

impl JoinKeys {
    /// An empty set of keys for a column whose values are within `span`.
    pub(crate) fn new(span: RangeInclusive<i64>) -> Arc<Self> {
        let (state, _) = watch::channel(KeyState::Open);
        Arc::new(JoinKeys { span, gathered: Mutex::default(), state })
    }

    /// Waits for all keys; `None` if the join stopped before it had seen all of them.
    ///
    /// The waiting scan must not be an input of the build side, or it would wait for itself. A scan
    /// of the probe side is safe, since the join polls that side only after the build side has
    /// ended.
    pub(super) async fn all(&self) -> Option<Arc<Keys>> {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| !matches!(state, KeyState::Open)).await.ok()?;
        match &*state {
            KeyState::All(keys) => Some(Arc::clone(keys)),
            KeyState::Open | KeyState::Lost => None,
        }
    }

    /// Adds the keys of one partition. After the last of `partitions`, the keys are complete.
    fn add(&self, (mine, memory): (Keys, MemoryReservation), partitions: usize) {
        let mut gathered = lock(&self.gathered);
        match &mut gathered.keys {
            Some(keys) => keys.add(&mine),
            none => {
                *none = Some(mine);
                gathered.memory = Some(memory);
            }
        }
        gathered.partitions += 1;
        if gathered.partitions == partitions
            && let Some(keys) = gathered.keys.take()
        {
            self.state.send_replace(KeyState::All(Arc::new(keys)));
        }
    }

    fn lose(&self) {
        self.state.send_replace(KeyState::Lost);
    }
}

/// A key to collect, and the set through which scans receive it.
#[derive(Debug, Clone)]
pub(crate) struct RequestedKey {
    /// An integer expression over the input's rows.
    pub(crate) key: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Arc<JoinKeys>,
}

/// Passes its input on and collects its join keys for a runtime filter.
#[derive(Debug)]
pub(crate) struct JoinKeyCollectExec {
    input: Arc<dyn ExecutionPlan>,
    requested: Vec<RequestedKey>,
}

impl JoinKeyCollectExec {
    /// Collects keys of `input`, the build side of a join; each key [can be
    /// collected](Self::can_collect).
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, requested: Vec<RequestedKey>) -> Self {
        JoinKeyCollectExec { input, requested }
    }

    /// Whether keys of this type can be collected from `input`.
    pub(crate) fn can_collect(input: &dyn ExecutionPlan, key: &Arc<dyn PhysicalExpr>) -> bool {
        key.data_type(&input.schema()).is_ok_and(|it| is_whole(&it))
    }
}

impl DisplayAs for JoinKeyCollectExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> =
            self.requested.iter().map(|requested| requested.key.to_string()).collect();
        write!(f, "JoinKeyCollectExec: keys=[{}]", keys.join(", "))
    }
}

impl ExecutionPlan for JoinKeyCollectExec {
    over_input!("JoinKeyCollectExec");
    rows_of_input!();

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.requested.iter().map(|requested| &requested.key), f)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("keys of nothing") };
        Ok(Arc::new(JoinKeyCollectExec { input, requested: self.requested.clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = self.input.properties().output_partitioning().partition_count();
        let gather = |requested: &RequestedKey| {
            let memory = MemoryConsumer::new("JoinKeyCollectExec").register(context.memory_pool());
            let has_room = memory.try_grow(Keys::nbytes_of(&requested.keys.span)).is_ok();
            // Without memory for the keys, the scan runs without a filter.
            if !has_room {
                requested.keys.lose();
            }
            let mine = has_room.then(|| (Keys::none_of(&requested.keys.span), memory));
            PartitionKeys { requested: requested.clone(), partitions, mine }
        };
        Ok(Box::pin(CollectingStream {
            gathering: self.requested.iter().map(gather).collect(),
            input: self.input.execute(partition, context)?,
        }))
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&inputs[0]))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}

/// The keys that one partition has collected.
struct PartitionKeys {
    requested: RequestedKey,
    partitions: usize,
    /// `None` after they were handed over, or if there is no memory for them.
    mine: Option<(Keys, MemoryReservation)>,
}

impl PartitionKeys {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some((mine, _)) = &mut self.mine else { return Ok(()) };
        let values = self.requested.key.evaluate(batch)?.into_array(batch.num_rows())?;
        if let Some(values) = values.as_primitive_opt::<Int64Type>() {
            each(values, |key| mine.insert(key));
        } else if let Some(values) = values.as_primitive_opt::<Int32Type>() {
            each(values, |key| mine.insert(key.into()));
        } else {
            return internal_err!("a join key that is not an integer: {}", values.data_type());
        }
        Ok(())
    }

    fn hand_over(&mut self) {
        if let Some(mine) = self.mine.take() {
            self.requested.keys.add(mine, self.partitions);
        }
    }
}

fn each<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, mut visit: impl FnMut(T::Native)) {
    if values.null_count() == 0 {
        values.values().iter().for_each(|&value| visit(value));
    } else {
        values.iter().flatten().for_each(visit);
    }
}

impl Drop for PartitionKeys {
    fn drop(&mut self) {
        if self.mine.is_some() {
            self.requested.keys.lose();
        }
    }
}

/// Passes on the rows of a partition, and collects their keys.
struct CollectingStream {
    input: SendableRecordBatchStream,
    gathering: Vec<PartitionKeys>,
}

impl Stream for CollectingStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.input.poll_next_unpin(context));
        let gathering = &mut self.gathering;
        Poll::Ready(match next {
            Some(Ok(batch)) => {
                let added = gathering.iter_mut().try_for_each(|one| one.add(&batch));
                Some(added.map(|()| batch))
            }
            None => {
                gathering.iter_mut().for_each(PartitionKeys::hand_over);
                None
            }
            failed => failed,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.input.size_hint()
    }
}

impl RecordBatchStream for CollectingStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
