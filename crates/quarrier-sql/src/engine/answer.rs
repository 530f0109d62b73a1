//! Runs planned statements.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNode;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{EmptyRecordBatchStream, ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use quarrier_core::region::give_back_freed_memory;
use quarrier_core::sync::lock;
use tokio::sync::mpsc;

use super::direct::Direct;
use crate::net::{caught, caught_now};
use crate::output::Format;
use crate::rows::Rows;
use crate::scan::{CountExec, MessagesExec, search_together};
use crate::{Error, Result};

/// The result of a statement.
#[derive(Debug)]
pub enum Answer {
    /// Rows; without columns if the statement only changes something.
    Rows(Rows),
    /// Rows to be written to a file.
    Copy {
        /// The rows.
        rows: Rows,
        /// The file.
        target: PathBuf,
        /// The output format.
        format: Format,
    },
}

/// Scans of messages test up to this many join keys individually, by a table; for more keys, only
/// their range is tested. A join of 6.5 million messages with 300 strings takes 16 ms, and 34 ms
/// with DataFusion's default of 150. That default still applies to plans without messages: a file
/// scan rebuilds each list for each row group, for which query 2 of TPC-H took 60 ms instead of 51.
const LISTED_KEYS_MAX: usize = 4_096;

/// Below this memory limit, freed memory is returned to the system before each statement, which
/// takes a millisecond.
const SPARED_BYTES: usize = 1 << 30;

/// The number of batches that may wait for the reader.
const WAITING_MAX: usize = 2;

/// Begins to run a logical plan of any kind.
pub(super) async fn answer(context: &SessionContext, plan: LogicalPlan) -> Result<Answer> {
    let frame = context.execute_logical_plan(plan).await?;
    Ok(Answer::Rows(run(context, frame).await?))
}

/// Begins to run a physical plan.
pub(super) fn direct(context: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> Result<Answer> {
    Ok(Answer::Rows(stream(context, plan)?))
}

/// The context of a plan: DataFusion's own without its functions. Copying these takes time, since
/// there are hundreds, and plans hold the functions they need.
fn task_context(context: &SessionContext, plan: &Arc<dyn ExecutionPlan>) -> Arc<TaskContext> {
    let mut config = context.copied_config();
    if joins_messages(plan) {
        let most =
            &mut config.options_mut().optimizer.hash_join_inlist_pushdown_max_distinct_values;
        *most = LISTED_KEYS_MAX.max(*most);
    }
    Arc::new(TaskContext::new(
        None,
        context.session_id(),
        config,
        HashMap::default(),
        HashMap::default(),
        HashMap::default(),
        HashMap::default(),
        context.runtime_env(),
    ))
}

fn joins_messages(plan: &Arc<dyn ExecutionPlan>) -> bool {
    has(plan, is_hash_join) && has(plan, |part| part.is::<MessagesExec>())
}

/// Finds the rows on this thread. If they are many, they arrive as a stream, as those of other
/// plans do.
pub(super) fn at_once(context: &SessionContext, direct: Direct, stop: &AtomicBool) -> Result<Rows> {
    let start = Instant::now();
    let Direct { plan, scan, is_count } = direct;
    let batch_rows = context.state_ref().read().config().batch_size();
    let Some(found) = caught_now(|| Ok(scan.find_at_once(stop, batch_rows)?))? else {
        let rows = stream(context, plan)?;
        return Ok(rows.waited_already(start.elapsed()));
    };
    let schema = plan.schema();
    let found = match is_count {
        true => vec![CountExec::counted(&schema, found.iter().map(RecordBatch::num_rows).sum())?],
        false => found,
    };
    let (sender, batches) = mpsc::channel(found.len().max(1));
    for batch in found {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        let named = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options);
        // The channel has room for all of them.
        let _ = sender.try_send(named.map_err(|error| Error::Engine(error.into())));
    }
    Ok(Rows::new(schema, Arc::new(Mutex::new(plan)), batches, None).waited_already(start.elapsed()))
}

/// Begins to run a query.
pub(super) async fn begin(context: &SessionContext, plan: LogicalPlan) -> Result<Rows> {
    run(context, DataFrame::new(context.state(), plan)).await
}

async fn run(context: &SessionContext, frame: DataFrame) -> Result<Rows> {
    let planned = Planned::of_frame(context, frame).await?;
    if limit_bytes(context) < SPARED_BYTES {
        // Earlier statements leave freed memory that would count against the limit.
        give_back_freed_memory();
    }
    begun(context, planned)
}

/// The memory limit of all statements together, in bytes.
fn limit_bytes(context: &SessionContext) -> usize {
    match context.runtime_env().memory_pool.memory_limit() {
        MemoryLimit::Finite(limit) => limit,
        _ => usize::MAX,
    }
}

/// A planned query.
pub(super) struct Planned {
    plan: Arc<dyn ExecutionPlan>,
    /// The fallback if memory runs out before the first rows.
    instead: Option<FallbackPlan>,
}

impl Planned {
    /// A plan that needs hardly any memory.
    pub(super) fn direct(plan: Arc<dyn ExecutionPlan>) -> Self {
        Planned { plan, instead: None }
    }

    pub(super) async fn of(context: &SessionContext, plan: LogicalPlan) -> Result<Self> {
        Self::of_frame(context, DataFrame::new(context.state(), plan)).await
    }

    /// The columns of the answer.
    pub(super) fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    async fn of_frame(context: &SessionContext, frame: DataFrame) -> Result<Self> {
        let (state, logical) = frame.into_parts();
        let plan = state.create_physical_plan(&logical).await?;
        let may_lack_memory = limit_bytes(context) < usize::MAX && has(&plan, is_hash_join);
        let instead = may_lack_memory.then(|| FallbackPlan {
            context: context.clone(),
            state: Box::new(state),
            logical,
        });
        Ok(Planned { plan, instead })
    }
}

/// The plan that runs.
type Run = Mutex<Arc<dyn ExecutionPlan>>;

/// The fallback if the hash tables of joins do not fit in memory: hash joins cannot spill.
/// Sort-merge joins can, and take several times as long.
struct FallbackPlan {
    context: SessionContext,
    state: Box<SessionState>,
    logical: LogicalPlan,
}

impl FallbackPlan {
    /// The rows of the fallback plan, which becomes `run`.
    async fn stream(mut self, run: &Run) -> Result<SendableRecordBatchStream> {
        let options = self.state.config_mut().options_mut();
        options.optimizer.prefer_hash_join = false;
        // With one partition, DataFusion plans no sort-merge join.
        options.execution.target_partitions = options.execution.target_partitions.max(2);
        give_back_freed_memory();
        let plan = self.state.create_physical_plan(&self.logical).await?;
        let context = task_context(&self.context, &plan);
        // Releases the memory of the first plan.
        *lock(run) = Arc::clone(&plan);
        Ok(execute_stream(plan, context)?)
    }
}

fn is_out_of_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

fn is_hash_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<HashJoinExec>()
}

/// Whether `is` holds for any part of a plan.
fn has(plan: &Arc<dyn ExecutionPlan>, is: fn(&Arc<dyn ExecutionPlan>) -> bool) -> bool {
    // The closure never fails.
    plan.exists(|part| Ok(is(part))).unwrap_or(false)
}

/// Begins to run queries at the same time; each table is scanned once for all of them.
pub(super) async fn together(
    context: &SessionContext,
    all: Vec<Result<Planned>>,
    workers: usize,
) -> Result<Vec<Result<Rows>>> {
    let plans: Vec<_> = all.iter().flatten().map(|planned| Arc::clone(&planned.plan)).collect();
    search_together(&plans, workers).await?;
    Ok(all.into_iter().map(|planned| begun(context, planned?)).collect())
}

fn stream(context: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> Result<Rows> {
    begun(context, Planned::direct(plan))
}

/// Runs a plan in a task. If it runs out of memory before its first rows, the fallback runs
/// instead.
fn begun(context: &SessionContext, planned: Planned) -> Result<Rows> {
    let Planned { plan, instead } = planned;
    let stream = execute_stream(Arc::clone(&plan), task_context(context, &plan))?;
    let (sender, batches) = mpsc::channel(WAITING_MAX);
    let schema = stream.schema();
    let run = Arc::new(Mutex::new(plan));
    let task = tokio::spawn(hand_over((stream, Arc::clone(&run)), instead, sender));
    Ok(Rows::new(schema, run, batches, Some(task.abort_handle())))
}

async fn hand_over(
    (mut stream, run): (SendableRecordBatchStream, Arc<Run>),
    mut instead: Option<FallbackPlan>,
    sender: mpsc::Sender<Result<RecordBatch>>,
) {
    loop {
        let next = caught(async { Ok(stream.next().await) }).await;
        let Some(mut next) = next.transpose() else { return };
        if let Ok(Err(error)) = &next
            && is_out_of_memory(error)
            && let Some(instead) = instead.take()
        {
            // Frees the memory of the first stream.
            stream = Box::pin(EmptyRecordBatchStream::new(stream.schema()));
            match caught(instead.stream(&run)).await {
                Ok(other) => {
                    stream = other;
                    continue;
                }
                Err(error) => next = Err(error),
            }
        }
        instead = None;
        let batch = next.and_then(|batch| Ok(batch?));
        let is_end = batch.is_err();
        if sender.send(batch).await.is_err() || is_end {
            return;
        }
    }
}
