//! The queue of batches that wait for the disk, bounded in bytes (back-pressure), and the answers to senders.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::batch::Sealed;
use super::error::{Error, Result};
use super::steps::Horizon;
use super::sync::{Arc, Condvar, Mutex, lock, wait, wait_while};
use super::writer::Committed;

/// A batch in the queue, or the end of an abandoned chain.
pub(super) struct Item {
    pub(super) sealed: Sealed,
    /// The chain of the batch.
    pub(super) chain: Option<u64>,
    pub(super) reply: Arc<Reply>,
}

/// Delivers the answer to a sender.
#[derive(Default)]
pub(super) struct Reply {
    state: Mutex<Awaited>,
    given: Condvar,
}

#[derive(Default)]
struct Awaited {
    answer: Option<Result<Committed>>,
    /// The task that awaits the answer, if any.
    waker: Option<Waker>,
}

impl Reply {
    pub(super) fn give(&self, answer: Result<Committed>) {
        let waker = {
            let mut state = lock(&self.state);
            state.answer = Some(answer);
            state.waker.take()
        };
        self.given.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn wait(&self) -> Result<Committed> {
        let mut state = lock(&self.state);
        loop {
            if let Some(answer) = state.answer.as_ref() {
                return answer.clone();
            }
            state = wait(&self.given, state);
        }
    }

    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Result<Committed>> {
        let mut state = lock(&self.state);
        match &state.answer {
            Some(answer) => Poll::Ready(answer.clone()),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The state shared by the writer and its senders.
pub(super) struct Queue {
    state: Mutex<State>,
    bytes_max: usize,
    /// The queue has items for the writer, or the writer is to end.
    filled: Condvar,
    /// There is space, or a chain has ended.
    room: Condvar,
    /// The log has grown or ended.
    grown: Condvar,
}

struct State {
    items: VecDeque<Item>,
    /// Bytes of the batches in the queue or being written.
    bytes: usize,
    /// The chain that holds the log exclusively.
    chain: Option<u64>,
    chains: u64,
    horizon: Option<Horizon>,
    next_mark: u64,
    is_ready: bool,
    /// The reason why the queue has ended.
    ended: Option<Error>,
    is_closing: bool,
}

fn bytes(item: &Item) -> usize {
    item.sealed.header.extent() as usize
}

impl Queue {
    pub(super) fn new(bytes_max: usize) -> Self {
        let state = State {
            items: VecDeque::new(),
            bytes: 0,
            chain: None,
            chains: 0,
            horizon: None,
            next_mark: 0,
            is_ready: false,
            ended: None,
            is_closing: false,
        };
        Queue {
            state: Mutex::new(state),
            bytes_max,
            filled: Condvar::new(),
            room: Condvar::new(),
            grown: Condvar::new(),
        }
    }

    /// Adds a batch once there is space. A batch longer than the queue waits until the queue is empty.
    /// Batches outside of an open chain wait for its end.
    pub(super) fn put(&self, sealed: Sealed, chain: Option<u64>) -> Result<Arc<Reply>> {
        let mut state = lock(&self.state);
        while !self.admits(&state, &sealed, chain)? {
            state = wait(&self.room, state);
        }
        Ok(self.push(&mut state, sealed, chain))
    }

    /// Like `put`, but returns None instead of waiting.
    pub(super) fn put_now(&self, sealed: Sealed) -> Result<Option<Arc<Reply>>> {
        let mut state = lock(&self.state);
        let is_admitted = self.admits(&state, &sealed, None)?;
        Ok(is_admitted.then(|| self.push(&mut state, sealed, None)))
    }

    /// Returns whether a batch need not wait.
    fn admits(&self, state: &State, sealed: &Sealed, chain: Option<u64>) -> Result<bool> {
        if let Some(error) = state.ended.clone().or(state.is_closing.then_some(Error::Closed)) {
            return Err(error);
        }
        let bytes = sealed.header.extent() as usize;
        let has_room = state.bytes == 0 || state.bytes + bytes <= self.bytes_max;
        Ok(has_room && state.chain == chain)
    }

    fn push(&self, state: &mut State, sealed: Sealed, chain: Option<u64>) -> Arc<Reply> {
        let reply = Arc::new(Reply::default());
        let item = Item { sealed, chain, reply: Arc::clone(&reply) };
        state.bytes += bytes(&item);
        state.items.push_back(item);
        self.filled.notify_one();
        reply
    }

    /// Begins a chain once no other chain is open.
    pub(super) fn begin_chain(&self) -> Result<u64> {
        let mut state = lock(&self.state);
        loop {
            if let Some(error) = state.ended.clone().or(state.is_closing.then_some(Error::Closed)) {
                return Err(error);
            }
            if state.chain.is_none() {
                break;
            }
            state = wait(&self.room, state);
        }
        state.chains += 1;
        state.chain = Some(state.chains);
        Ok(state.chains)
    }

    pub(super) fn end_chain(&self) {
        lock(&self.state).chain = None;
        self.room.notify_all();
    }

    /// Waits for items and takes all of them; None when the log is to be closed.
    pub(super) fn take(&self) -> Option<Vec<Item>> {
        let mut state = lock(&self.state);
        while state.items.is_empty() {
            if state.is_closing {
                return None;
            }
            state = wait(&self.filled, state);
        }
        Some(state.items.drain(..).collect())
    }

    /// Releases the bytes of these items, which are on the disk or refused.
    pub(super) fn give_back(&self, items: &[Item]) {
        let mut state = lock(&self.state);
        let bytes: usize = items.iter().map(bytes).sum();
        state.bytes = state.bytes.saturating_sub(bytes);
        self.room.notify_all();
    }

    /// Publishes the new end of the readable log.
    pub(super) fn publish(&self, horizon: Option<Horizon>, next_mark: u64, is_ready: bool) {
        let mut state = lock(&self.state);
        state.horizon = horizon.or(state.horizon);
        (state.next_mark, state.is_ready) = (next_mark, is_ready);
        self.grown.notify_all();
    }

    pub(super) fn horizon(&self) -> Option<Horizon> {
        lock(&self.state).horizon
    }

    /// Returns the end of the readable log, and the mark of the next message there.
    pub(super) fn end_of_log(&self) -> Option<(Horizon, u64)> {
        let state = lock(&self.state);
        state.horizon.map(|horizon| (horizon, state.next_mark))
    }

    /// Waits until the horizon changes, the log ends, or the time is up.
    pub(super) fn wait_for_growth(&self, seen: Option<Horizon>, time: Duration) -> Option<Horizon> {
        let state = lock(&self.state);
        let is_same = |state: &mut State| state.horizon == seen && state.ended.is_none();
        wait_while(&self.grown, state, time, is_same).horizon
    }

    /// Waits until the mark of the next message exceeds `seen`, or the time is up. None if the log has ended
    /// without such a mark.
    pub(super) fn wait_beyond(&self, seen: u64, time: Duration) -> Option<u64> {
        let state = lock(&self.state);
        let is_same = |state: &mut State| state.next_mark <= seen && state.ended.is_none();
        let state = wait_while(&self.grown, state, time, is_same);
        (state.next_mark > seen || state.ended.is_none()).then_some(state.next_mark)
    }

    /// Returns the mark of the next message, and whether a spare segment is ready.
    pub(super) fn next(&self) -> (u64, bool) {
        let state = lock(&self.state);
        (state.next_mark, state.is_ready)
    }

    /// Returns the reason why the queue has ended, if it has.
    pub(super) fn ended(&self) -> Option<Error> {
        lock(&self.state).ended.clone()
    }

    /// Ends the writer once the queue is empty.
    pub(super) fn close(&self) {
        lock(&self.state).is_closing = true;
        self.filled.notify_all();
        self.room.notify_all();
    }

    /// Ends the queue, and refuses the items in it.
    pub(super) fn end(&self, error: &Error) {
        let mut state = lock(&self.state);
        state.ended.get_or_insert_with(|| error.clone());
        let refused: Vec<Item> = state.items.drain(..).collect();
        drop(state);
        refused.iter().for_each(|item| item.reply.give(Err(error.clone())));
        self.filled.notify_all();
        self.room.notify_all();
        self.grown.notify_all();
    }
}
