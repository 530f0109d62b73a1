//! Groups the rows of a scan within each partition.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Decimal256Array, Float64Array, Int64Array, RecordBatch,
    RecordBatchOptions, TimestampNanosecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, SchemaRef, TimeUnit, i256};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    replace_children_if_necessary,
};
use futures::TryStreamExt;
use quarrier_filter::group::{GroupPlan, Grouped, Grouper, Grouping, Total};

use super::exec::MessagesExec;
use super::over_input::{over_input, without_expressions};

/// A column of a partial aggregate's state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    measure: usize,
    is: StateContent,
}

/// The content of a state column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StateContent {
    /// The measure.
    Value,
    /// A count, NULL if nothing was counted.
    ValueCount,
    /// The part of a sum beyond 128 bits, which is always 0 here.
    Carry,
}

impl State {
    /// The state of COUNT.
    pub(crate) fn count(measure: usize) -> State {
        State { measure, is: StateContent::Value }
    }

    /// The state of a sum, minimum or maximum.
    pub(crate) fn value(measure: usize) -> State {
        State { measure, is: StateContent::Value }
    }

    /// The count of values in the state of AVG.
    pub(crate) fn value_count(measure: usize) -> State {
        State { measure, is: StateContent::ValueCount }
    }

    /// The part of a sum beyond 128 bits, in units of 2^128.
    pub(crate) fn carry(measure: usize) -> State {
        State { measure, is: StateContent::Carry }
    }
}

/// Groups the rows of a scan, in its partitions.
#[derive(Debug)]
pub(crate) struct GroupsExec {
    /// The plan that this replaces. It runs instead if there is too little memory for the groups'
    /// table.
    aggregate: Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
    grouping: Grouping,
    plan: Arc<GroupPlan>,
    states: Vec<State>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl GroupsExec {
    /// Replaces `aggregate` over `input`, a [`MessagesExec`]. The output columns are the keys, then
    /// `states`. `None` if this is not supported: too many groups, numbers too large, or other
    /// types.
    pub(crate) fn new(
        aggregate: Arc<dyn ExecutionPlan>,
        input: Arc<dyn ExecutionPlan>,
        grouping: Grouping,
        states: Vec<State>,
    ) -> Option<Self> {
        let schema = aggregate.schema();
        let scan = input.downcast_ref::<MessagesExec>()?;
        let plan = GroupPlan::of(scan.table(), grouping.clone())?;
        let (keys, values) = schema.fields().split_at_checked(grouping.keys.len())?;
        let of_table = |&key: &usize| scan.views().schema().field(key).data_type();
        let is_same =
            keys.iter().map(|field| field.data_type()).eq(grouping.keys.iter().map(of_table));
        let is_made =
            values.len() == states.len() && values.iter().all(|field| is_made(field.data_type()));
        if !is_same || !is_made {
            return None;
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(
                input.properties().output_partitioning().partition_count(),
            ),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let (plan, properties) = (Arc::new(plan), Arc::new(properties));
        let metrics = ExecutionPlanMetricsSet::new();
        Some(GroupsExec { aggregate, input, grouping, plan, states, properties, metrics })
    }
}

impl DisplayAs for GroupsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| &**field.name()).collect();
        let (keys, measures) = names.split_at(self.grouping.keys.len().min(names.len()));
        write!(f, "GroupsExec: keys=[{}], measures=[{}]", keys.join(", "), measures.join(", "))
    }
}

impl ExecutionPlan for GroupsExec {
    over_input!("GroupsExec");
    without_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return Ok(self) };
        let (grouping, states) = (self.grouping.clone(), self.states.clone());
        let aggregate = over(&self.aggregate, &input)?;
        match GroupsExec::new(aggregate, input, grouping, states) {
            Some(groups) => Ok(Arc::new(groups)),
            None => internal_err!("groups over something other than a scan of the same messages"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let memory = MemoryConsumer::new(self.name()).register(context.memory_pool());
        if memory.try_grow(self.plan.nbytes()).is_err() {
            return self.aggregate.execute(partition, context);
        }
        let (input, plan) = (Arc::clone(&self.input), Arc::clone(&self.plan));
        let (schema, states) = (self.schema(), self.states.clone());
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let keys = self.grouping.keys.clone();
        let batch_rows = context.session_config().batch_size();
        let batch = async move {
            let _memory = memory;
            let Some(scan) = input.downcast_ref::<MessagesExec>() else {
                return internal_err!("groups over something other than a scan");
            };
            let part = scan.part(partition, &context).await?;
            let mut grouper = Grouper::new(scan.table(), &plan);
            for (segment, places) in part.pieces() {
                let start = Instant::now();
                grouper.add(segment, &places);
                part.count(segment, &places, start);
                // Lets other tasks run, and lets this one be cancelled.
                tokio::task::yield_now().await;
            }
            let timer = baseline.elapsed_compute().timer();
            let batch = batch(scan, &keys, &states, &schema, &grouper.finish());
            timer.done();
            batch.inspect(|batch| baseline.record_output(batch.num_rows()))
        };
        let batches = futures::stream::once(batch)
            .map_ok(move |batch| futures::stream::iter(slices(batch, batch_rows)))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// The same plan over another scan.
fn over(
    plan: &Arc<dyn ExecutionPlan>,
    scan: &Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    match plan.children().as_slice() {
        [] => Ok(Arc::clone(scan)),
        [child] => {
            let child = over(child, scan)?;
            replace_children_if_necessary(Arc::clone(plan), vec![child])
        }
        _ => internal_err!("a plan of one scan has two inputs"),
    }
}

/// Cuts a batch into batches of at most `rows` rows.
fn slices(batch: RecordBatch, rows: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let all = batch.num_rows();
    (0..all).step_by(rows.max(1)).map(move |at| Ok(batch.slice(at, rows.min(all - at))))
}

fn batch(
    scan: &MessagesExec,
    keys: &[usize],
    states: &[State],
    schema: &SchemaRef,
    grouped: &Grouped,
) -> Result<RecordBatch> {
    let mut columns: Vec<ArrayRef> = keys
        .iter()
        .zip(&grouped.keys)
        .map(|(&key, numbers)| scan.views().values(key, numbers))
        .collect();
    for (state, field) in states.iter().zip(schema.fields().iter().skip(keys.len())) {
        let total = &grouped.measures[state.measure];
        columns.push(column(total, state.is, field.data_type())?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(grouped.groups));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Whether totals can be converted to this type.
fn is_made(data_type: &DataType) -> bool {
    column(&Total::Whole(Vec::new()), StateContent::Value, data_type).is_ok()
}

/// Converts totals to a column.
fn column(total: &Total, is: StateContent, data_type: &DataType) -> Result<ArrayRef> {
    let floats = |values: &mut dyn Iterator<Item = Option<f64>>| -> ArrayRef {
        Arc::new(values.collect::<Float64Array>())
    };
    let values = match (total, data_type) {
        (Total::Float(values), DataType::Float64) => {
            return Ok(floats(&mut values.iter().copied()));
        }
        (Total::Float(_), other) => return internal_err!("a float is not {other}"),
        (Total::Whole(values), _) => values,
    };
    let values = values.iter().map(|value| match is {
        StateContent::Value => *value,
        StateContent::ValueCount => value.filter(|&count| count != 0),
        StateContent::Carry => value.map(|_| 0),
    });
    Ok(match data_type {
        DataType::Int64 => Arc::new(values.map(|it| Some(it? as i64)).collect::<Int64Array>()),
        DataType::UInt64 => Arc::new(values.map(|it| Some(it? as u64)).collect::<UInt64Array>()),
        DataType::Float64 => floats(&mut values.map(|it| Some(it? as f64))),
        DataType::Date32 => Arc::new(values.map(|it| Some(it? as i32)).collect::<Date32Array>()),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            Arc::new(values.map(|it| Some(it? as i64)).collect::<TimestampNanosecondArray>())
        }
        DataType::Decimal128(precision, scale) => {
            let array = values.collect::<Decimal128Array>();
            Arc::new(array.with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Decimal256(precision, scale) => {
            let array = values.map(|it| Some(i256::from_i128(it?))).collect::<Decimal256Array>();
            Arc::new(array.with_precision_and_scale(*precision, *scale)?)
        }
        other => {
            return Err(DataFusionError::Internal(format!("no total is a {other}")));
        }
    })
}
