//! A cyclic scan: queries join it at its current segment, and leave it when they have seen every
//! segment.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use quarrier_core::isa::Isa;
use quarrier_core::parallel::planned_workers;
use quarrier_core::sync::{lock, wait};
use quarrier_core::threads;
use quarrier_messages::Table;

use super::gather::{Goal, Matches, Shared, WorkerResult};
use super::plan::Plan;
use super::worker::{ScanQuery, Worker};
use crate::predicate::{Compiler, Graph, NodeId};
use crate::{Answer, Error, Query};

/// Answers queries on one table as they arrive, with one pass for all waiting queries. Its threads
/// sleep while no query is waiting. They end when the scanner is dropped, after their current
/// segments.
#[derive(Debug)]
pub struct Scanner {
    inner: Arc<Inner>,
    threads: Vec<JoinHandle<()>>,
}

/// A query in progress.
#[derive(Debug)]
pub struct Ticket {
    rider: Arc<Rider>,
}

#[derive(Debug)]
struct Inner {
    table: Arc<Table>,
    workers: usize,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number of segments handed out so far; modulo their number it is the next segment.
    next: u64,
    riders: Vec<Arc<Rider>>,
    /// The plan for all riders; `None` if the riders have changed since it was made.
    tour: Option<Arc<Tour>>,
    stop: bool,
}

/// A plan, and the riders for which it was made.
#[derive(Debug)]
struct Tour {
    plan: Plan,
    riders: Vec<(Arc<Rider>, NodeId, NodeId)>,
}

/// A query on its way round the segments.
#[derive(Debug)]
struct Rider {
    query: Query,
    shared: Shared,
    /// The value of [`State::next`] when it joined.
    start: u64,
    /// The number of segments that are not finished.
    left: AtomicUsize,
    cancelled: AtomicBool,
    /// A result for each worker.
    found: Vec<Mutex<WorkerResult>>,
    answer: Mutex<Option<Result<Answer, Error>>>,
    answered: Condvar,
}

impl Scanner {
    /// Starts `workers` threads; 0: one per CPU.
    ///
    /// # Errors
    ///
    /// If the system refuses the first thread.
    pub fn start(table: Arc<Table>, workers: usize) -> std::io::Result<Scanner> {
        let workers = planned_workers(workers);
        let (state, wake) = (Mutex::default(), Condvar::new());
        let inner = Arc::new(Inner { table, workers, state, wake });
        let mut scanner = Scanner { inner, threads: Vec::new() };
        for worker in 0..workers {
            let inner = Arc::clone(&scanner.inner);
            match threads::alone(&format!("scan {worker}"), move || inner.work(worker)) {
                Ok(thread) => scanner.threads.push(thread),
                // Fewer threads do the same work.
                Err(_) if worker > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(scanner)
    }

    /// Submits `query`, bound to the table's schema; it joins the scan at the next segment.
    pub fn submit(&self, query: Query) -> Ticket {
        let inner = &*self.inner;
        let segments = inner.table.segments();
        let mut state = lock(&inner.state);
        let rider = Arc::new(Rider {
            shared: Shared::new(Goal::of(&query)),
            query,
            start: state.next,
            left: AtomicUsize::new(segments),
            cancelled: AtomicBool::new(false),
            found: (0..inner.workers).map(|_| Mutex::default()).collect(),
            answer: Mutex::new(None),
            answered: Condvar::new(),
        });
        if segments == 0 {
            rider.finish(&inner.table);
        } else {
            state.riders.push(Arc::clone(&rider));
            state.tour = None;
            inner.wake.notify_all();
        }
        Ticket { rider }
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        lock(&self.inner.state).stop = true;
        self.inner.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A worker that panicked has no result.
            let _ = thread.join();
        }
        for rider in lock(&self.inner.state).riders.drain(..) {
            rider.reply(Err(Error::Cancelled));
        }
    }
}

impl Ticket {
    /// Waits for the answer.
    ///
    /// # Errors
    ///
    /// The errors of [`Scan::run`](crate::Scan::run), and [`Error::Cancelled`] if the scanner was
    /// dropped.
    pub fn wait(self) -> Result<Answer, Error> {
        let mut answer = lock(&self.rider.answer);
        loop {
            if let Some(answer) = answer.take() {
                return answer;
            }
            answer = wait(&self.rider.answered, answer);
        }
    }

    /// Whether [`wait`](Self::wait) would return at once.
    pub fn is_answered(&self) -> bool {
        lock(&self.rider.answer).is_some()
    }

    /// Cancels the query; it leaves the scan at the next segment.
    pub fn cancel(&self) {
        self.rider.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Inner {
    /// Runs a worker until the scanner is dropped.
    fn work(&self, worker: usize) {
        while let Some(tour) = self.tour() {
            let mut scan = Worker::new(&self.table, &tour.plan);
            while let Some(position) = self.position(&tour) {
                self.segment(worker, &mut scan, &tour, position);
            }
        }
    }

    /// Returns the plan for the waiting queries, made again if they have changed; `None` when the
    /// scanner is dropped.
    fn tour(&self) -> Option<Arc<Tour>> {
        let mut state = lock(&self.state);
        loop {
            if state.stop {
                return None;
            }
            if !state.riders.is_empty() {
                break;
            }
            state = wait(&self.wake, state);
        }
        let riders = &state.riders;
        let tour = state.tour.clone().unwrap_or_else(|| Arc::new(self.plan(riders)));
        state.tour = Some(Arc::clone(&tour));
        Some(tour)
    }

    fn plan(&self, riders: &[Arc<Rider>]) -> Tour {
        let mut compiler = Compiler::new(&self.table, 1);
        let nodes = |rider: &Arc<Rider>| {
            let (truth, fault) = match &rider.query.condition {
                Some(condition) => compiler.condition(condition),
                None => (Graph::ALL, Graph::NONE),
            };
            (Arc::clone(rider), truth, fault)
        };
        let mut riders: Vec<_> = riders.iter().map(nodes).collect();
        let plan = Plan::new(compiler.finish(), &self.table, Isa::best());
        riders.sort_by_key(|(_, truth, _)| plan.first_column(*truth));
        Tour { plan, riders }
    }

    /// Returns the next segment to scan, as [`State::next`]; `None` if `tour` is out of date.
    fn position(&self, tour: &Arc<Tour>) -> Option<u64> {
        let mut state = lock(&self.state);
        let current = state.tour.as_ref().is_some_and(|now| Arc::ptr_eq(now, tour));
        if !current || state.stop {
            return None;
        }
        let segments = self.table.segments() as u64;
        let position = state.next;
        // A query that was given all its segments only waits for the other workers.
        if tour.riders.iter().all(|(rider, ..)| position >= rider.start + segments) {
            state.tour = None;
            state.riders.retain(|rider| position < rider.start + segments);
            return None;
        }
        state.next += 1;
        Some(position)
    }

    /// Scans one segment for all riders that have not seen it.
    fn segment(&self, worker: usize, scan: &mut Worker<'_>, tour: &Tour, position: u64) {
        let segments = self.table.segments() as u64;
        let waits = |rider: &Rider| position < rider.start + segments;
        let riding: Vec<_> = tour.riders.iter().filter(|(rider, ..)| waits(rider)).collect();
        let mut found: Vec<WorkerResult> = riding
            .iter()
            .map(|(rider, ..)| std::mem::take(&mut *lock(&rider.found[worker])))
            .collect();
        let asked: Vec<ScanQuery<'_>> = riding
            .iter()
            .map(|(rider, truth, fault)| ScanQuery {
                truth: *truth,
                fault: *fault,
                condition: rider.query.condition.as_ref(),
                shared: &rider.shared,
            })
            .collect();
        scan.segment((position % segments) as usize, &asked, &mut found);
        for ((rider, ..), found) in riding.iter().zip(found) {
            *lock(&rider.found[worker]) = found;
            let last = rider.left.fetch_sub(1, Ordering::AcqRel) == 1;
            if last {
                rider.finish(&self.table);
            }
            if last || rider.cancelled.load(Ordering::Relaxed) {
                self.leave(rider);
            }
        }
    }

    fn leave(&self, rider: &Arc<Rider>) {
        rider.reply(Err(Error::Cancelled));
        let mut state = lock(&self.state);
        let before = state.riders.len();
        state.riders.retain(|other| !Arc::ptr_eq(other, rider));
        if state.riders.len() < before {
            state.tour = None;
        }
    }
}

impl Rider {
    /// Replies, unless there already is an answer.
    fn reply(&self, answer: Result<Answer, Error>) {
        lock(&self.answer).get_or_insert(answer);
        self.answered.notify_all();
    }

    /// Replies with the results.
    fn finish(&self, table: &Table) {
        let found = self.found.iter().map(|found| std::mem::take(&mut *lock(found))).collect();
        self.reply(match self.shared.fault() {
            Some((row, fault)) => Err(Error::Row { row, fault }),
            None => Ok(Matches::of(table, &self.shared, found, self.query.offset).answer(table)),
        });
    }
}
