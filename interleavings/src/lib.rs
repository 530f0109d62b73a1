//! Tests the queue of the log in every order in which its threads can run, as far as `loom`
//! distinguishes orders: acknowledged messages can be read, every waiting thread is woken, and a
//! reader that switches between the log and its notifications sees each message once.
//!
//! The queue is the library's own file. The batches of one message, the disk (a list) and the locks
//! (loom's) around it are replacements.

#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]

mod batch;
mod error;
#[path = "../../crates/quarrier-messages/src/log/queue.rs"]
#[allow(dead_code, reason = "chains and tasks are tested elsewhere")]
mod queue;
mod steps;
mod sync;
mod writer;

use std::time::Duration;

use loom::thread;

use batch::Sealed;
use error::Error;
use queue::{Item, Queue, Reply};
use sync::{Arc, Mutex, lock};
use writer::{Disk, write};

/// Loom has no clock: a wait ends when there is something to take; a wait without end is a failure.
const FOREVER: Duration = Duration::MAX;

/// Maximum number of preemptions in an order.
const PREEMPTIONS: usize = 2;

fn in_all_orders(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(check);
}

struct Shared {
    queue: Queue,
    disk: Mutex<Disk>,
}

fn shared(bytes_max: usize) -> Arc<Shared> {
    let shared = Shared { queue: Queue::new(bytes_max), disk: Mutex::new(Disk::default()) };
    shared.queue.publish(None, 1, true);
    Arc::new(shared)
}

fn send(shared: &Shared, message: u8) -> Result<Arc<Reply>, Error> {
    shared.queue.put(Sealed::of(message), None)
}

/// A thread that writes until the queue is closed.
fn writer(shared: &Arc<Shared>) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || write(&shared.queue, &shared.disk))
}

/// Returns the readable messages of the log from a mark on.
fn readable(shared: &Shared, from: u64) -> Vec<u8> {
    let end = shared.queue.horizon().map_or(0, |horizon| horizon.end);
    let disk = lock(&shared.disk);
    disk.messages.iter().take(end as usize).skip(from as usize - 1).copied().collect()
}

#[test]
fn acknowledged_messages_can_be_read() {
    in_all_orders(|| {
        // The queue has room for one message at a time.
        let shared = shared(1);
        let writes = writer(&shared);
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let committed = send(&shared, b'b').unwrap().wait().unwrap();
                assert_eq!(readable(&shared, committed.marks.start)[0], b'b');
            })
        };
        let committed = send(&shared, b'a').unwrap().wait().unwrap();
        assert_eq!(readable(&shared, committed.marks.start)[0], b'a');
        assert!(shared.queue.next().0 >= committed.marks.end);
        other.join().unwrap();
        shared.queue.close();
        writes.join().unwrap();
        assert_eq!(lock(&shared.disk).messages.len(), 2);
    });
}

#[test]
fn a_reader_sees_each_message_once_whether_it_waits_or_reads() {
    in_all_orders(|| {
        let shared = shared(8);
        let writes = writer(&shared);
        let reads = {
            let shared = Arc::clone(&shared);
            // Like a subscription: get the end of the log, read the messages, wait for more.
            thread::spawn(move || {
                let (mut seen, mut next) = (Vec::new(), 1);
                while seen.len() < 2 {
                    let end = shared.queue.wait_beyond(next, FOREVER).unwrap();
                    let found = readable(&shared, next);
                    assert!(found.len() as u64 >= end - next, "announced before it can be read");
                    next += found.len() as u64;
                    seen.extend(found);
                }
                seen
            })
        };
        let replies = [b'a', b'b'].map(|message| send(&shared, message).unwrap());
        let marks = replies.map(|reply| reply.wait().unwrap().marks.start);
        assert_eq!(marks, [1, 2]);
        assert_eq!(reads.join().unwrap(), b"ab");
        shared.queue.close();
        writes.join().unwrap();
    });
}

#[test]
fn no_thread_waits_for_a_closed_log() {
    in_all_orders(|| {
        let shared = shared(1);
        let waits = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.queue.wait_beyond(9, FOREVER))
        };
        let sends = {
            let shared = Arc::clone(&shared);
            // The second has no space until the first is written or refused.
            thread::spawn(move || {
                let first = send(&shared, b'a').and_then(|reply| reply.wait());
                let second = send(&shared, b'b').and_then(|reply| reply.wait());
                assert!(first.is_err() && second.is_err(), "acknowledged after the end");
            })
        };
        // The disk fails while it writes the first group.
        if let Some(items) = shared.queue.take() {
            let refused = Err(Error::Stopped { reason: "the disk fails".into() });
            items.iter().for_each(|Item { reply, .. }| reply.give(refused.clone()));
            shared.queue.give_back(&items);
        }
        shared.queue.end(&Error::Closed);
        sends.join().unwrap();
        assert_eq!(waits.join().unwrap(), None);
    });
}

#[test]
fn batches_outside_a_chain_wait_for_its_end() {
    in_all_orders(|| {
        let shared = shared(8);
        let writes = writer(&shared);
        let chain = shared.queue.begin_chain().unwrap();
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || send(&shared, b'c').unwrap().wait().unwrap().marks.start)
        };
        for message in [b'a', b'b'] {
            drop(shared.queue.put(Sealed::of(message), Some(chain)).unwrap());
        }
        shared.queue.end_chain();
        assert_eq!(other.join().unwrap(), 3);
        shared.queue.close();
        writes.join().unwrap();
        assert_eq!(lock(&shared.disk).messages, b"abc");
    });
}
