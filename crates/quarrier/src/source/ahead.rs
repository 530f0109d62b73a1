//! Sources processed on threads, ahead of a consumer that takes the results in order.
//!
//! ```text
//!  names ─→ groups ─→ workers ─→ results, held until it is their turn ─→ consumer
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use quarrier_core::sync::{lock, wait};
use quarrier_core::threads::in_scope;

use super::Named;

/// Number of groups per worker that may wait for their turn.
const GROUPS_AHEAD: usize = 4;

/// How sources are processed ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead {
    /// The number of threads, besides the consumer's.
    pub(crate) workers: usize,
    /// The number of sources that a worker claims at a time.
    pub(crate) group: usize,
}

impl Ahead {
    /// Processes `named` on threads, each with its own `worker`, and calls `consume` with the results, in
    /// order, on the caller's thread. The results end early after `stop` becomes true.
    pub(crate) fn run<'n, T, W, R>(
        self,
        named: &'n [Named],
        stop: &AtomicBool,
        worker: impl Fn() -> W + Sync,
        consume: impl FnOnce(&mut dyn Iterator<Item = T>) -> R,
    ) -> R
    where
        T: Send,
        W: FnMut(&'n Named) -> T,
    {
        let queue = Queue {
            named,
            group: self.group,
            claimed: AtomicUsize::new(0),
            state: Mutex::new(State { done: BTreeMap::new(), turn: 0 }),
            changed: Condvar::new(),
            ended: AtomicBool::new(false),
            ahead_max: self.workers * GROUPS_AHEAD,
        };
        std::thread::scope(|scope| {
            // Ends the workers even if the consumer panics.
            let _end = End { queue: &queue, is_consumer: true };
            for _ in 0..self.workers.min(queue.groups()) {
                let work = || {
                    let _end = End { queue: &queue, is_consumer: false };
                    queue.work(&mut worker(), stop);
                };
                // If the system refuses a thread, the consumer does the remaining work.
                if in_scope(scope, "", work).is_err() {
                    break;
                }
            }
            let group = Vec::new().into_iter();
            consume(&mut Results { queue: &queue, worker: worker(), stop, group })
        })
    }
}

struct Queue<'n, T> {
    named: &'n [Named],
    group: usize,
    /// The next group for a worker to claim.
    claimed: AtomicUsize,
    state: Mutex<State<T>>,
    changed: Condvar,
    ended: AtomicBool,
    ahead_max: usize,
}

struct State<T> {
    done: BTreeMap<usize, Vec<T>>,
    /// The next group in order.
    turn: usize,
}

/// Signals the others that this end has stopped consuming or producing.
struct End<'q, 'n, T> {
    queue: &'q Queue<'n, T>,
    is_consumer: bool,
}

impl<T> Drop for End<'_, '_, T> {
    fn drop(&mut self) {
        if self.is_consumer || std::thread::panicking() {
            self.queue.ended.store(true, Ordering::Release);
            // Synchronises with a thread that is about to wait.
            drop(lock(&self.queue.state));
            self.queue.changed.notify_all();
        }
    }
}

impl<'n, T> Queue<'n, T> {
    fn groups(&self) -> usize {
        self.named.len().div_ceil(self.group)
    }

    /// Processes one group after another, at most the allowed number ahead.
    fn work(&self, worker: &mut impl FnMut(&'n Named) -> T, stop: &AtomicBool) {
        loop {
            let group = self.claimed.fetch_add(1, Ordering::Relaxed);
            if group >= self.groups() {
                return;
            }
            let mut state = lock(&self.state);
            while group >= state.turn + self.ahead_max && !self.is_over(stop) {
                state = wait(&self.changed, state);
            }
            drop(state);
            if self.is_over(stop) {
                // Synchronises with the consumer, which may wait for this group.
                drop(lock(&self.state));
                self.changed.notify_all();
                return;
            }
            self.do_group(group, worker, stop);
        }
    }

    fn is_over(&self, stop: &AtomicBool) -> bool {
        self.ended.load(Ordering::Acquire) || stop.load(Ordering::Relaxed)
    }

    fn do_group(&self, group: usize, worker: &mut impl FnMut(&'n Named) -> T, stop: &AtomicBool) {
        let start = group * self.group;
        let names = &self.named[start..(start + self.group).min(self.named.len())];
        let wanted = names.iter().take_while(|_| !self.is_over(stop));
        let results: Vec<T> = wanted.map(worker).collect();
        lock(&self.state).done.insert(group, results);
        self.changed.notify_all();
    }
}

/// An iterator over the results in order.
struct Results<'q, 'n, T, W> {
    queue: &'q Queue<'n, T>,
    worker: W,
    stop: &'q AtomicBool,
    group: std::vec::IntoIter<T>,
}

impl<'n, T, W: FnMut(&'n Named) -> T> Iterator for Results<'_, 'n, T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(result) = self.group.next() {
                return Some(result);
            }
            self.group = self.next_group()?.into_iter();
        }
    }
}

impl<'n, T, W: FnMut(&'n Named) -> T> Results<'_, 'n, T, W> {
    fn next_group(&mut self) -> Option<Vec<T>> {
        let queue = self.queue;
        let mut state = lock(&queue.state);
        let turn = state.turn;
        if turn >= queue.groups() {
            return None;
        }
        loop {
            if let Some(group) = state.done.remove(&turn) {
                state.turn += 1;
                drop(state);
                queue.changed.notify_all();
                return Some(group);
            }
            let claim = |claimed: usize| (claimed == turn).then_some(turn + 1);
            let order = Ordering::Relaxed;
            if queue.claimed.fetch_update(order, order, claim).is_ok() {
                drop(state);
                queue.do_group(turn, &mut self.worker, self.stop);
                state = lock(&queue.state);
                continue;
            }
            if queue.is_over(self.stop) {
                return None;
            }
            state = wait(&queue.changed, state);
        }
    }
}
