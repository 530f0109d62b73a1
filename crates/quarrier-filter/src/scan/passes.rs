//! Passes over tables that concurrent queries share: while a pass runs, further queries on its table
//! wait, and the next pass answers all of them.
//!
//! ```text
//!  query ─→ of a small table, or ends early ─→ a pass of its own
//!        ─→ no pass runs over the table ─────→ a pass for all that wait
//!        ─→ a pass runs ─→ waits ─────────────────┘
//! ```
//!
//! So a query waits for at most one pass before its own, however many others there are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use quarrier_core::sync::lock;
use quarrier_messages::Table;

use super::explain::Work;
use super::gather::Matches;
use super::run::Scan;
use crate::{Error, Query};

/// Smaller tables are scanned in less time than a query would wait for others.
const ROWS_MIN: u64 = 1 << 19;

/// How often a waiting query checks whether it was stopped.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// The rows that a query selected, or why it failed; and the work of the pass, which the first of its
/// queries gets.
pub type PassResult = (Result<Matches, Error>, Option<Work>);

/// The tables that are being scanned.
#[derive(Debug)]
pub struct Passes {
    rows_min: u64,
    /// By the addresses of the tables, which the lines keep alive.
    lines: Mutex<HashMap<usize, Arc<Line>>>,
}

/// The queries of one table.
#[derive(Debug)]
struct Line {
    table: Arc<Table>,
    state: Mutex<LineState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LineState {
    /// The number of queries that wait or run.
    queries: usize,
    is_running: bool,
    waiting: Vec<Arc<WaitingQuery>>,
}

#[derive(Debug)]
struct WaitingQuery {
    query: Query,
    result: Mutex<Option<PassResult>>,
}

impl Default for Passes {
    fn default() -> Self {
        Passes::over(ROWS_MIN)
    }
}

impl Passes {
    /// Makes an instance that shares passes over tables with at least this many rows.
    pub fn over(rows_min: u64) -> Self {
        Passes { rows_min, lines: Mutex::default() }
    }

    /// Answers a query as [`Scan::run_matches`] does, with `workers` threads, in a pass that it may share
    /// with others. Blocks; returns [`Error::Cancelled`] soon after `stop` is set, while others share the
    /// pass.
    pub fn ask(
        &self,
        table: &Arc<Table>,
        query: Query,
        workers: usize,
        stop: &AtomicBool,
    ) -> PassResult {
        let ends_early = query.limit.is_some() && query.order.is_empty();
        if table.rows() < self.rows_min || ends_early {
            return alone(table, &query, workers, stop);
        }
        let visit = self.enter(table);
        visit.line.ask(query, workers, stop)
    }

    fn enter(&self, table: &Arc<Table>) -> Visit<'_> {
        let mut lines = lock(&self.lines);
        let line = lines.entry(Arc::as_ptr(table).addr()).or_insert_with(|| {
            let (state, changed) = Default::default();
            Arc::new(Line { table: Arc::clone(table), state, changed })
        });
        lock(&line.state).queries += 1;
        Visit { passes: self, line: Arc::clone(line) }
    }
}

/// Keeps a line while one of its queries waits or runs.
struct Visit<'p> {
    passes: &'p Passes,
    line: Arc<Line>,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut lines = lock(&self.passes.lines);
        let mut state = lock(&self.line.state);
        state.queries -= 1;
        if state.queries == 0 {
            lines.remove(&Arc::as_ptr(&self.line.table).addr());
        }
    }
}

impl Line {
    fn ask(&self, query: Query, workers: usize, stop: &AtomicBool) -> PassResult {
        let asked = Arc::new(WaitingQuery { query, result: Mutex::new(None) });
        let mut state = lock(&self.state);
        state.waiting.push(Arc::clone(&asked));
        loop {
            if let Some(result) = lock(&asked.result).take() {
                return result;
            }
            if stop.load(Ordering::Relaxed) {
                state.waiting.retain(|other| !Arc::ptr_eq(other, &asked));
                return (Err(Error::Cancelled), None);
            }
            if state.is_running {
                let waited = self.changed.wait_timeout(state, STOP_INTERVAL);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.is_running = true;
            let queries = std::mem::take(&mut state.waiting);
            drop(state);
            self.run(queries, workers, stop);
            state = lock(&self.state);
        }
    }

    /// Runs a pass. `stop` ends one that nobody shares.
    fn run(&self, queries: Vec<Arc<WaitingQuery>>, workers: usize, stop: &AtomicBool) {
        let pass = Pass { line: self, queries };
        if let [asked] = &pass.queries[..] {
            *lock(&asked.result) = Some(alone(&self.table, &asked.query, workers, stop));
            return;
        }
        let queries: Vec<Query> = pass.queries.iter().map(|asked| asked.query.clone()).collect();
        let (matches, work) = Scan::new(&self.table, &queries).workers(workers).run_matches();
        let mut work = Some(work);
        for (asked, matches) in pass.queries.iter().zip(matches) {
            *lock(&asked.result) = Some((matches, work.take()));
        }
    }
}

/// A running pass. Its end, even by a panic, lets the next one begin.
struct Pass<'l> {
    line: &'l Line,
    queries: Vec<Arc<WaitingQuery>>,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        for asked in &self.queries {
            // After a panic, there is none.
            lock(&asked.result).get_or_insert((Err(Error::Cancelled), None));
        }
        lock(&self.line.state).is_running = false;
        self.line.changed.notify_all();
    }
}

/// Runs a pass for one query.
fn alone(table: &Table, query: &Query, workers: usize, stop: &AtomicBool) -> PassResult {
    let scan = Scan::new(table, std::slice::from_ref(query)).workers(workers).cancel(stop);
    let (mut matches, work) = scan.run_matches();
    (matches.pop().unwrap_or(Ok(Matches::Count(0))), Some(work))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::disallowed_methods,
        reason = "a test may panic if the system refuses a thread"
    )]

    use quarrier_messages::build::{Row, RowBuilder};
    use quarrier_messages::{Part, PartField, PartSegment};

    use super::*;
    use crate::{Select, sql};

    fn table() -> Arc<Table> {
        let mut builder = RowBuilder::new(1);
        let field = builder.field("n").expect("the first field");
        for number in 0..1_000 {
            builder.integer(field, number);
            builder.commit();
        }
        let mut columns = Vec::new();
        builder.finish_segment(|_, raw| {
            columns.push(Some(quarrier_messages::column::SegmentColumn::pack(raw)));
        });
        let fields = vec![PartField { name: "n".into(), ..PartField::default() }];
        let segments = vec![PartSegment { place: 0, rows: 1_000, columns }];
        Arc::new(Table::assemble(vec![Part { fields, segments }], 1))
    }

    fn query(table: &Table, text: &str) -> Query {
        let condition = sql::condition(text, table.schema()).expect("a condition");
        let select = Select::Count { name: "rows".into() };
        Query { select, condition: Some(condition), order: Vec::new(), limit: None, offset: 0 }
    }

    fn count(result: PassResult) -> u64 {
        match result.0 {
            Ok(Matches::Count(count)) => count,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_that_wait_share_the_next_pass() {
        let (table, passes, stop) = (table(), Passes::over(0), AtomicBool::new(false));
        let visit = passes.enter(&table);
        lock(&visit.line.state).is_running = true;
        let results = std::thread::scope(|scope| {
            let ask = |below: u64| {
                let query = query(&table, &format!("n < {below}"));
                passes.ask(&table, query, 1, &stop)
            };
            let asked: Vec<_> = (0..8).map(|below| scope.spawn(move || ask(below))).collect();
            while lock(&visit.line.state).waiting.len() < 8 {
                std::thread::yield_now();
            }
            // One that is stopped does not wait for the pass.
            let stopped = passes.ask(&table, query(&table, "n > 0"), 1, &AtomicBool::new(true));
            assert_eq!(stopped, (Err(Error::Cancelled), None));
            drop(Pass { line: &visit.line, queries: Vec::new() });
            asked.into_iter().map(|thread| thread.join().expect("an answer")).collect::<Vec<_>>()
        });
        assert_eq!(results.iter().filter(|(_, work)| work.is_some()).count(), 1, "one pass");
        for (below, result) in results.into_iter().enumerate() {
            assert_eq!(count(result), below as u64);
        }
        drop(visit);
        assert!(lock(&passes.lines).is_empty());
    }

    #[test]
    fn a_pass_that_panics_ends_its_queries_and_no_others() {
        let (table, passes, stop) = (table(), Passes::over(0), AtomicBool::new(false));
        let visit = passes.enter(&table);
        let lost =
            Arc::new(WaitingQuery { query: query(&table, "n = 1"), result: Mutex::new(None) });
        lock(&visit.line.state).is_running = true;
        let pass = Pass { line: &visit.line, queries: vec![Arc::clone(&lost)] };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _pass = pass;
            panic!("on purpose");
        }));
        assert!(ended.is_err());
        assert_eq!(lock(&lost.result).take(), Some((Err(Error::Cancelled), None)));
        assert_eq!(count(passes.ask(&table, query(&table, "n < 7"), 1, &stop)), 7);
    }
}
