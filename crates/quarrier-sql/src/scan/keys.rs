//! The keys of one side of a join, gathered as its rows come by, for the scan of the other side: rows
//! without a partner are then left out where they lie, before the engine has them made and hashed.

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

/// Whether values of this type are keys that have bits.
pub(crate) fn is_whole(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int32 | DataType::Int64)
}

/// What is known of the keys.
#[derive(Debug, Clone)]
enum Told {
    /// They are still gathered.
    Open,
    /// All of them.
    All(Arc<Keys>),
    /// Somebody stopped before all of them had come by.
    Lost,
}

/// Keys that a join gathers, and somebody waits for.
#[derive(Debug)]
pub(crate) struct JoinKeys {
    /// Those that matter lie here.
    span: RangeInclusive<i64>,
    gathered: Mutex<Gathered>,
    told: watch::Sender<Told>,
}

#[derive(Debug, Default)]
struct Gathered {
    keys: Option<Keys>,
    /// What the engine was asked for these.
    memory: Option<MemoryReservation>,
    /// Partitions that are through.
    partitions: usize,
}

impl JoinKeys {
    /// None yet, of a column whose numbers lie in `span`.
    pub(crate) fn new(span: RangeInclusive<i64>) -> Arc<Self> {
        let (told, _) = watch::channel(Told::Open);
        Arc::new(JoinKeys { span, gathered: Mutex::default(), told })
    }

    /// All of them, once the join has seen them; none where it stopped before.
    ///
    /// Whoever waits must not be asked for by the side that is gathered. A scan of the other side is not:
    /// the join asks that side for nothing before it has this one.
    pub(super) async fn all(&self) -> Option<Arc<Keys>> {
        let mut told = self.told.subscribe();
        let told = told.wait_for(|told| !matches!(told, Told::Open)).await.ok()?;
        match &*told {
            Told::All(keys) => Some(Arc::clone(keys)),
            Told::Open | Told::Lost => None,
        }
    }

    /// Those of one of so many partitions.
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
            self.told.send_replace(Told::All(Arc::new(keys)));
        }
    }

    fn lose(&self) {
        self.told.send_replace(Told::Lost);
    }
}

/// A key of a join, and who wants it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Of the rows that come by: a whole number.
    pub(crate) key: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Arc<JoinKeys>,
}

/// Hands its input on and gathers keys of it.
#[derive(Debug)]
pub(crate) struct KeysExec {
    input: Arc<dyn ExecutionPlan>,
    asked: Vec<Asked>,
}

impl KeysExec {
    /// Of `input`, the side of a join that is read first; each key [can be gathered](Self::can_gather).
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, asked: Vec<Asked>) -> Self {
        KeysExec { input, asked }
    }

    /// Whether such a key can be gathered of `input`.
    pub(crate) fn can_gather(input: &dyn ExecutionPlan, key: &Arc<dyn PhysicalExpr>) -> bool {
        key.data_type(&input.schema()).is_ok_and(|it| is_whole(&it))
    }
}

impl DisplayAs for KeysExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.asked.iter().map(|asked| asked.key.to_string()).collect();
        write!(f, "KeysExec: keys=[{}]", keys.join(", "))
    }
}

impl ExecutionPlan for KeysExec {
    over_input!("KeysExec");
    rows_of_input!();

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.asked.iter().map(|asked| &asked.key), f)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("keys of nothing") };
        Ok(Arc::new(KeysExec { input, asked: self.asked.clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = self.input.properties().output_partitioning().partition_count();
        let gather = |asked: &Asked| {
            let memory = MemoryConsumer::new("KeysExec").register(context.memory_pool());
            let has_room = memory.try_grow(Keys::nbytes_of(&asked.keys.span)).is_ok();
            // Where there is no room, the scan does without.
            if !has_room {
                asked.keys.lose();
            }
            let mine = has_room.then(|| (Keys::none_of(&asked.keys.span), memory));
            Gathering { asked: asked.clone(), partitions, mine }
        };
        Ok(Box::pin(Passing {
            gathering: self.asked.iter().map(gather).collect(),
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

/// What one partition has of a key so far.
struct Gathering {
    asked: Asked,
    partitions: usize,
    /// None once they are handed over, or where there is no room for them.
    mine: Option<(Keys, MemoryReservation)>,
}

impl Gathering {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some((mine, _)) = &mut self.mine else { return Ok(()) };
        let values = self.asked.key.evaluate(batch)?.into_array(batch.num_rows())?;
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
            self.asked.keys.add(mine, self.partitions);
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

impl Drop for Gathering {
    fn drop(&mut self) {
        if self.mine.is_some() {
            self.asked.keys.lose();
        }
    }
}

/// A partition's rows as they come.
struct Passing {
    input: SendableRecordBatchStream,
    gathering: Vec<Gathering>,
}

impl Stream for Passing {
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
                gathering.iter_mut().for_each(Gathering::hand_over);
                None
            }
            failed => failed,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.input.size_hint()
    }
}

impl RecordBatchStream for Passing {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
