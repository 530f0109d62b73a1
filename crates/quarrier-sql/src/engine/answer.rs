//! Statements answered.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::dataframe::DataFrame;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use tokio::sync::mpsc;

use super::direct::Direct;
use crate::output::Format;
use crate::rows::Rows;
use crate::scan::{CountExec, MessagesExec, search_together};
use crate::{Error, Result};

/// What a statement comes to.
#[derive(Debug)]
pub enum Answer {
    /// Rows; of a statement that only changes something, none.
    Rows(Rows),
    /// Rows that are to be written to a file.
    Copy {
        /// The rows.
        rows: Rows,
        /// The file.
        target: PathBuf,
        /// What is written.
        format: Format,
    },
}

/// Keys of one side of a join that are asked for, one by one, of messages on the other: a scan has a
/// table of them. Of more it only asks for those between the first and the last. A join of 6.5 million
/// messages with 300 texts takes 16 ms, and 34 with the engine's own bound, 150. That is the one of plans
/// without messages: a scan of a file takes each list apart for each row group, for which query 2
/// of TPC-H took 60 ms in place of 51.
const LISTED_KEYS_MAX: usize = 4_096;

/// Batches that wait for whoever reads them.
const WAITING_MAX: usize = 2;

/// Begins to answer a plan of any kind.
pub(super) async fn answer(context: &SessionContext, plan: LogicalPlan) -> Result<Answer> {
    let frame = context.execute_logical_plan(plan).await?;
    Ok(Answer::Rows(run(context, frame).await?))
}

/// Begins to answer a query whose plan is made.
pub(super) fn direct(context: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> Result<Answer> {
    Ok(Answer::Rows(stream(context, plan)?))
}

/// What a plan runs in: all that DataFusion's own has but its functions, hundreds of which are copied
/// for each plan, and which its plans hold themselves.
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
    let (mut are_joined, mut are_messages) = (false, false);
    // No step of this can fail.
    let _ = plan.apply(|part| {
        are_joined |= part.is::<HashJoinExec>();
        are_messages |= part.is::<MessagesExec>();
        Ok(TreeNodeRecursion::Continue)
    });
    are_joined && are_messages
}

/// Finds the rows on this thread; where they are many, they come from then on as those of others do.
pub(super) fn at_once(context: &SessionContext, direct: Direct, stop: &AtomicBool) -> Result<Rows> {
    let start = Instant::now();
    let Direct { plan, scan, is_count } = direct;
    let batch_rows = context.state_ref().read().config().batch_size();
    let Some(found) = scan.find_at_once(stop, batch_rows)? else {
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
        // There is room for all of them.
        let _ = sender.try_send(named.map_err(|error| Error::Engine(error.into())));
    }
    Ok(Rows::new(schema, plan, batches, None).waited_already(start.elapsed()))
}

/// Begins to answer a query.
pub(super) async fn begin(context: &SessionContext, plan: LogicalPlan) -> Result<Rows> {
    run(context, DataFrame::new(context.state(), plan)).await
}

async fn run(context: &SessionContext, frame: DataFrame) -> Result<Rows> {
    stream(context, frame.create_physical_plan().await?)
}

/// Begins to answer queries at the same time: tables are scanned once for all of them.
pub(super) async fn together(
    context: &SessionContext,
    planned: Vec<Result<Arc<dyn ExecutionPlan>>>,
    workers: usize,
) -> Result<Vec<Result<Rows>>> {
    let all: Vec<_> = planned.iter().flatten().map(Arc::clone).collect();
    search_together(&all, workers).await?;
    Ok(planned.into_iter().map(|plan| stream(context, plan?)).collect())
}

fn stream(context: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> Result<Rows> {
    let mut stream = execute_stream(Arc::clone(&plan), task_context(context, &plan))?;
    let (sender, batches) = mpsc::channel(WAITING_MAX);
    let schema = stream.schema();
    let task = tokio::spawn(async move {
        while let Some(batch) = stream.next().await {
            let is_end = batch.is_err();
            if sender.send(batch.map_err(Error::from)).await.is_err() || is_end {
                break;
            }
        }
    });
    Ok(Rows::new(schema, plan, batches, Some(task.abort_handle())))
}
