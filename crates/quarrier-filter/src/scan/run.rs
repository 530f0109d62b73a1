//! One pass over a table for several queries.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quarrier_core::isa::Isa;
use quarrier_core::parallel::planned_workers;
use quarrier_core::threads;
use quarrier_messages::Table;

use super::explain::{self, Explanation, Work};
use super::gather::{Goal, Matches, Shared, WorkerResult};
use super::plan::Plan;
use super::rank;
use super::worker::{ScanQuery, Worker};
use crate::predicate::{Compiler, Graph, NodeId};
use crate::{Error, Query};

/// The result of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The number of matching rows of a `COUNT(*)`, otherwise the number of `rows`.
    pub count: u64,
    /// The result's rows by their index in the table: in the requested order, or in that of the
    /// table, after `OFFSET` and `LIMIT`. Empty for a count.
    pub rows: Vec<u64>,
}

/// The matches, the total work, and the blocks tested and skipped by each query.
type ScanResult = (Vec<Result<Matches, Error>>, Work, Vec<(u64, u64)>);

/// One pass over a table that answers any number of queries.
#[derive(Debug)]
pub struct Scan<'a> {
    table: &'a Table,
    queries: &'a [Query],
    workers: usize,
    isa: Isa,
    cancel: Option<&'a AtomicBool>,
}

impl<'a> Scan<'a> {
    /// Makes a scan for `queries`, bound to the table's schema.
    pub fn new(table: &'a Table, queries: &'a [Query]) -> Self {
        Scan { table, queries, workers: 1, isa: Isa::best(), cancel: None }
    }

    /// Sets the number of threads, including the caller's; 0: one per CPU. The default is 1.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = planned_workers(workers);
        self
    }

    /// Sets the instruction set instead of the best one; the best one if the CPU does not support
    /// it.
    #[must_use]
    pub fn isa(mut self, isa: Isa) -> Self {
        self.isa = isa;
        self
    }

    /// Stops soon after `flag` is set, with [`Error::Cancelled`].
    #[must_use]
    pub fn cancel(mut self, flag: &'a AtomicBool) -> Self {
        self.cancel = Some(flag);
        self
    }

    /// Returns the answers, one for each query.
    ///
    /// # Errors
    ///
    /// For a query: [`Error::Row`] if its condition has no value for a row and that row's result
    /// depends on it; the first such row if no limit ends the scan.
    pub fn run(&self) -> Vec<Result<Answer, Error>> {
        let (plan, nodes) = self.plan();
        self.answers(self.run_plan(&plan, &nodes).0)
    }

    /// Returns the matching rows in the scan's own form, which is cheaper if there are many, and
    /// the work done for all queries.
    ///
    /// # Errors
    ///
    /// For a query, those of [`run`](Self::run).
    pub fn run_matches(&self) -> (Vec<Result<Matches, Error>>, Work) {
        let (plan, nodes) = self.plan();
        let (matches, work, _) = self.run_plan(&plan, &nodes);
        (matches, work)
    }

    /// Returns the plan. Tries every test on a few blocks, as [`run`](Self::run) does.
    pub fn explain(&self) -> Explanation {
        let (plan, nodes) = self.plan();
        explain::explain((self.table, self.workers), &plan, &nodes)
    }

    /// Returns the answers, and the plan with the work done.
    ///
    /// # Errors
    ///
    /// For a query, those of [`run`](Self::run).
    pub fn run_explained(&self) -> (Vec<Result<Answer, Error>>, Explanation) {
        let (plan, nodes) = self.plan();
        let mut explanation = explain::explain((self.table, self.workers), &plan, &nodes);
        let (matches, work, of_queries) = self.run_plan(&plan, &nodes);
        for (query, (tested, skipped)) in explanation.queries.iter_mut().zip(of_queries) {
            (query.blocks_tested, query.blocks_skipped) = (Some(tested), Some(skipped));
        }
        explanation.work = Some(work);
        (self.answers(matches), explanation)
    }

    fn answers(&self, matches: Vec<Result<Matches, Error>>) -> Vec<Result<Answer, Error>> {
        matches.into_iter().map(|matches| Ok(matches?.answer(self.table))).collect()
    }

    /// Returns the matches, the work done, and for each query the numbers of blocks tested and
    /// skipped.
    fn run_plan(&self, plan: &Plan, nodes: &[(NodeId, NodeId)]) -> ScanResult {
        let shared: Vec<Shared> =
            self.queries.iter().map(|query| Shared::new(Goal::of(query))).collect();
        let mut asked: Vec<(usize, ScanQuery<'_>)> = (0..self.queries.len())
            .map(|at| {
                let (truth, fault) = nodes[at];
                let condition = self.queries[at].condition.as_ref();
                (at, ScanQuery { truth, fault, condition, shared: &shared[at] })
            })
            .collect();
        asked.sort_by_key(|(_, asked)| plan.first_column(asked.truth));
        let (places, asked): (Vec<usize>, Vec<ScanQuery<'_>>) = asked.into_iter().unzip();
        let segments = self.segments(&shared);
        let (mut found, mut work) = self.scan(plan, &asked, &segments);
        let mut of_queries = vec![(0, 0); self.queries.len()];
        let mut matches: Vec<_> = (0..self.queries.len()).map(|_| Ok(Matches::Count(0))).collect();
        for (nth, &at) in places.iter().enumerate() {
            let parts: Vec<WorkerResult> =
                found.iter_mut().map(|found| std::mem::take(&mut found[nth])).collect();
            of_queries[at] = (
                parts.iter().map(|found| found.blocks_tested).sum(),
                parts.iter().map(|found| found.blocks_skipped).sum(),
            );
            work.blocks_tested += of_queries[at].0;
            work.blocks_skipped += of_queries[at].1;
            matches[at] = self.matches(&self.queries[at], &shared[at], parts);
        }
        (matches, work, of_queries)
    }

    /// Returns the plan, and for each query the nodes of the rows where it is true and where it has
    /// no value.
    fn plan(&self) -> (Plan, Vec<(NodeId, NodeId)>) {
        let mut compiler = Compiler::new(self.table, self.workers);
        let node = |query: &Query| match &query.condition {
            Some(condition) => compiler.condition(condition),
            None => (Graph::ALL, Graph::NONE),
        };
        let nodes = self.queries.iter().map(node).collect();
        (Plan::new(compiler.finish(), self.table, self.isa), nodes)
    }

    /// Returns the segments in the order of the scan: first those with the best rows of an order.
    fn segments(&self, shared: &[Shared]) -> Vec<usize> {
        let mut segments: Vec<usize> = (0..self.table.segments()).collect();
        if let Some(order) = shared.iter().find_map(|shared| shared.goal.leading()) {
            let column = &self.table.columns()[order.column];
            segments.sort_by_key(|&segment| {
                let zone = rank::zone(column, segment);
                let nulls = order.nulls_first && zone.nulls > 0;
                let best = if order.descending { zone.max } else { zone.min };
                let best = if order.descending { !best } else { best };
                (!nulls, zone.is_without_values(), best)
            });
        }
        segments
    }

    /// Returns the results of each worker, for each of `asked`, and the bytes that all have read.
    fn scan(
        &self,
        plan: &Plan,
        asked: &[ScanQuery<'_>],
        segments: &[usize],
    ) -> (Vec<Vec<WorkerResult>>, Work) {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut worker = Worker::new(self.table, plan);
            let mut found: Vec<WorkerResult> =
                asked.iter().map(|_| WorkerResult::default()).collect();
            while !self.is_cancelled() {
                let Some(&segment) = segments.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                worker.segment(segment, asked, &mut found);
            }
            (found, worker.work())
        };
        let workers = self.workers.min(segments.len()).max(1);
        let (mut all, mut done) = (Vec::with_capacity(workers), Work::default());
        for (found, work) in threads::team(0..workers, |_| work()) {
            all.push(found);
            done.add(work);
        }
        (all, done)
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn matches(
        &self,
        query: &Query,
        shared: &Shared,
        parts: Vec<WorkerResult>,
    ) -> Result<Matches, Error> {
        if self.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some((row, fault)) = shared.fault() {
            return Err(Error::Row { row, fault });
        }
        Ok(Matches::of(self.table, shared, parts, query.offset))
    }
}
