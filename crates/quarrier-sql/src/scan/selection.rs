//! The rows that a scan keeps: found once, for all partitions, by all threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datafusion::common::{DataFusionError, Result};
use quarrier_filter::{Expr, Matches, Query, Scan, Select, Work};
use quarrier_messages::Table;
use tokio::sync::OnceCell;

use super::Wanted;
use crate::Error;

/// What the scan found.
#[derive(Debug)]
pub(super) enum Found {
    /// Every row is kept.
    Everything,
    /// So many, where no column is wanted.
    Count(u64),
    /// These, in the order that was asked for.
    Best(Vec<u64>),
    /// These, as they lie: segments with the places of their rows in them.
    Lying(Vec<(usize, Vec<u32>)>),
}

impl From<Matches> for Found {
    fn from(matches: Matches) -> Found {
        match matches {
            Matches::Count(count) => Found::Count(count),
            Matches::Best(rows) => Found::Best(rows),
            Matches::Lying(segments) => Found::Lying(segments),
        }
    }
}

impl Found {
    /// How many rows were picked out.
    pub(super) fn picked(&self) -> Option<usize> {
        match self {
            Found::Everything | Found::Count(_) => None,
            Found::Best(rows) => Some(rows.len()),
            Found::Lying(segments) => Some(segments.iter().map(|(_, rows)| rows.len()).sum()),
        }
    }
}

/// Shared by the partitions of a plan while it runs.
#[derive(Debug, Default)]
pub(super) struct Selection {
    found: OnceCell<Arc<Found>>,
}

/// Stops the scan when whoever waits for it is gone.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Selection {
    /// Lets all partitions have what was found elsewhere; nothing changes where they have begun.
    pub(super) fn set(&self, found: Arc<Found>) {
        let _ = self.found.set(found);
    }

    /// What was found, and for the first who asks also the work and the time it took. `more` says
    /// what came to be known since the plan was made.
    pub(super) async fn found(
        &self,
        table: &Arc<Table>,
        wanted: &Wanted,
        more: impl FnOnce() -> Option<Expr>,
        workers: usize,
    ) -> Result<(Arc<Found>, Option<(Work, Duration)>)> {
        let mut done = None;
        let found = self
            .found
            .get_or_try_init(|| async {
                let start = Instant::now();
                let (found, work) = search(table, wanted, more(), workers).await?;
                done = work.map(|work| (work, start.elapsed()));
                Ok::<_, DataFusionError>(Arc::new(found))
            })
            .await?;
        Ok((Arc::clone(found), done))
    }
}

/// What a scan is asked.
pub(super) struct Question {
    pub(super) query: Query,
}

impl Question {
    /// Where not every row is kept as it is. `more` is a condition beside that of `wanted`.
    pub(super) fn of(wanted: &Wanted, more: Option<Expr>) -> Option<Question> {
        let condition = match (wanted.condition.expr().cloned(), more) {
            (Some(one), Some(other)) => Some(Expr::And(vec![one, other])),
            (one, other) => one.or(other),
        };
        if condition.is_none() && wanted.is_everything() {
            return None;
        }
        let is_count = wanted.columns.is_empty() && wanted.fetch.is_none();
        let select = match is_count {
            true => Select::Count { name: "rows".into() },
            false => Select::Rows(Vec::new()),
        };
        let limit = wanted.fetch.map(|fetch| fetch as u64);
        let query = Query { select, condition, order: wanted.order.clone(), limit, offset: 0 };
        Some(Question { query })
    }

    /// What there is, found by this thread and others, and what was done for it.
    pub(super) fn found_now(
        &self,
        table: &Table,
        workers: usize,
        stop: &AtomicBool,
    ) -> Result<(Found, Work)> {
        let queries = std::slice::from_ref(&self.query);
        let scan = Scan::new(table, queries).workers(workers).cancel(stop);
        let (mut matches, work) = scan.run_matches();
        let matches = matches.pop().unwrap_or(Ok(Matches::Count(0)));
        Ok((found(matches)?, work))
    }
}

fn found(matches: std::result::Result<Matches, quarrier_filter::Error>) -> Result<Found> {
    let matches = matches.map_err(|error| match error {
        quarrier_filter::Error::Cancelled => Error::Cancelled,
        error => Error::value(error.to_string()),
    })?;
    Ok(matches.into())
}

async fn search(
    table: &Arc<Table>,
    wanted: &Wanted,
    more: Option<Expr>,
    workers: usize,
) -> Result<(Found, Option<Work>)> {
    let Some(question) = Question::of(wanted, more) else { return Ok((Found::Everything, None)) };
    let (mut found, work) = search_all(table, vec![question], workers).await?;
    let found = found.pop().unwrap_or_else(|| Ok(Found::Count(0)))?;
    Ok((found, work))
}

/// Answers all questions in one pass. It ends early where nobody waits for it any longer.
pub(super) async fn search_all(
    table: &Arc<Table>,
    questions: Vec<Question>,
    workers: usize,
) -> Result<(Vec<Result<Found>>, Option<Work>)> {
    let stop = StopOnDrop(Arc::default());
    let (flag, table) = (Arc::clone(&stop.0), Arc::clone(table));
    let scanned = tokio::task::spawn_blocking(move || {
        let queries: Vec<Query> = questions.iter().map(|one| one.query.clone()).collect();
        let scan = Scan::new(&table, &queries).workers(workers).cancel(&flag);
        let (matches, work) = scan.run_matches();
        (matches.into_iter().map(found).collect(), Some(work))
    });
    scanned.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))
}
