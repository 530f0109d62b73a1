//! Selects the rows of a scan: once for all partitions, on all threads.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use datafusion::common::{DataFusionError, Result};
use quarrier_core::sync::StopOnDrop;
use quarrier_filter::{Expr, Matches, Passes, Query, Scan, Select, Work};
use quarrier_messages::Table;
use tokio::sync::OnceCell;

use super::ScanSpec;
use crate::Error;

/// The rows that a scan selected.
#[derive(Debug)]
pub(super) enum SelectedRows {
    /// All rows.
    Everything,
    /// Only the number of rows, for a query without columns.
    Count(u64),
    /// These rows, in the requested order.
    Best(Vec<u64>),
    /// These rows in table order: each segment with its row indices.
    Lying(Vec<(usize, Vec<u32>)>),
}

impl From<Matches> for SelectedRows {
    fn from(matches: Matches) -> SelectedRows {
        match matches {
            Matches::Count(count) => SelectedRows::Count(count),
            Matches::Best(rows) => SelectedRows::Best(rows),
            Matches::Lying(segments) => SelectedRows::Lying(segments),
        }
    }
}

impl SelectedRows {
    /// The number of rows, if they were selected individually.
    pub(super) fn picked(&self) -> Option<usize> {
        match self {
            SelectedRows::Everything | SelectedRows::Count(_) => None,
            SelectedRows::Best(rows) => Some(rows.len()),
            SelectedRows::Lying(segments) => {
                Some(segments.iter().map(|(_, rows)| rows.len()).sum())
            }
        }
    }
}

/// The selection that the partitions of a running plan share.
#[derive(Debug, Default)]
pub(super) struct Selection {
    found: OnceCell<Arc<SelectedRows>>,
}

impl Selection {
    /// Sets a result that was found elsewhere; does nothing if partitions have started.
    pub(super) fn set(&self, found: Arc<SelectedRows>) {
        let _ = self.found.set(found);
    }

    /// The selected rows. The first caller also gets the work done and the time it took. `more`
    /// returns a runtime filter that became known after planning.
    pub(super) async fn found(
        &self,
        table: &Arc<Table>,
        spec: &ScanSpec,
        more: impl FnOnce() -> Option<Expr>,
        workers: usize,
    ) -> Result<(Arc<SelectedRows>, Option<(Work, Duration)>)> {
        let mut done = None;
        let found = self
            .found
            .get_or_try_init(|| async {
                let start = Instant::now();
                let (found, work) = search(table, spec, more(), workers).await?;
                done = work.map(|work| (work, start.elapsed()));
                Ok::<_, DataFusionError>(Arc::new(found))
            })
            .await?;
        Ok((Arc::clone(found), done))
    }
}

/// The query that selects a scan's rows.
pub(super) struct Question {
    pub(super) query: Query,
}

impl Question {
    /// The query for `spec` with the additional condition `more`; `None` if all rows are
    /// selected.
    pub(super) fn of(spec: &ScanSpec, more: Option<Expr>) -> Option<Question> {
        let condition = match (spec.condition.expr().cloned(), more) {
            (Some(one), Some(other)) => Some(Expr::And(vec![one, other])),
            (one, other) => one.or(other),
        };
        if condition.is_none() && spec.is_everything() {
            return None;
        }
        let is_count = spec.columns.is_empty() && spec.fetch.is_none();
        let select = match is_count {
            true => Select::Count { name: "rows".into() },
            false => Select::Rows(Vec::new()),
        };
        let limit = spec.fetch.map(|fetch| fetch as u64);
        let query = Query { select, condition, order: spec.order.clone(), limit, offset: 0 };
        Some(Question { query })
    }

    /// Selects rows on this thread and others. Returns them and the work done.
    pub(super) fn found_now(
        &self,
        table: &Table,
        workers: usize,
        stop: &AtomicBool,
    ) -> Result<(SelectedRows, Work)> {
        let queries = std::slice::from_ref(&self.query);
        let scan = Scan::new(table, queries).workers(workers).cancel(stop);
        let (mut matches, work) = scan.run_matches();
        let matches = matches.pop().unwrap_or(Ok(Matches::Count(0)));
        Ok((found(matches)?, work))
    }
}

fn found(matches: std::result::Result<Matches, quarrier_filter::Error>) -> Result<SelectedRows> {
    let matches = matches.map_err(|error| match error {
        quarrier_filter::Error::Cancelled => Error::Cancelled,
        error => Error::value(error.to_string()),
    })?;
    Ok(matches.into())
}

/// The passes of all statements of this process, which share its CPUs.
static PASSES: LazyLock<Passes> = LazyLock::new(Passes::default);

/// Selects a scan's rows, in a pass that other statements may share. Dropping the future leaves the pass.
async fn search(
    table: &Arc<Table>,
    spec: &ScanSpec,
    more: Option<Expr>,
    workers: usize,
) -> Result<(SelectedRows, Option<Work>)> {
    let Some(Question { query }) = Question::of(spec, more) else {
        return Ok((SelectedRows::Everything, None));
    };
    let stop = StopOnDrop::default();
    let (flag, table) = (stop.flag(), Arc::clone(table));
    let ask = move || PASSES.ask(&table, query, workers, &flag);
    let (matches, work) = tokio::task::spawn_blocking(ask).await.map_err(join_failed)?;
    Ok((found(matches)?, work))
}

fn join_failed(error: tokio::task::JoinError) -> DataFusionError {
    DataFusionError::ExecutionJoin(Box::new(error))
}

/// Runs all queries in one pass. Dropping the future ends the pass early.
pub(super) async fn search_all(
    table: &Arc<Table>,
    questions: Vec<Question>,
    workers: usize,
) -> Result<(Vec<Result<SelectedRows>>, Option<Work>)> {
    let stop = StopOnDrop::default();
    let (flag, table) = (stop.flag(), Arc::clone(table));
    let scanned = tokio::task::spawn_blocking(move || {
        let queries: Vec<Query> = questions.iter().map(|one| one.query.clone()).collect();
        let scan = Scan::new(&table, &queries).workers(workers).cancel(&flag);
        let (matches, work) = scan.run_matches();
        (matches.into_iter().map(found).collect(), Some(work))
    });
    scanned.await.map_err(join_failed)
}
