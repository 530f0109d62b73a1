//! The pulse: one thread waits for every commit and notifies all listeners.
//!
//! ```text
//!  commit ─→ pulse ─→ scouts: find and convert the new rows, once for all equal subscriptions
//!                └──→ listeners: send them
//! ```
//!
//! A listener thus sends rows without waiting for another thread, which takes longer than finding them when
//! all CPUs are busy. Rows that take too long to find are left to the listeners' own threads.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use datafusion::arrow::datatypes::SchemaRef;
use quarrier::DataFolder;
use quarrier::kept::{Growth, Scout};
use quarrier_core::sync::lock;
use quarrier_core::{panics, threads};
use quarrier_wire::{Failure, Result, state};
use tokio::sync::watch;

use super::subscribe::shared;

/// How often the thread checks whether listeners remain.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time that scouts may take before the listeners are notified.
const SCOUTS_TIME: Duration = Duration::from_millis(1);
/// Maximum bytes of new messages for a scout: parsing them takes about as long.
const SCOUTED_BYTES_MAX: u64 = 512 << 10;

/// Publishes the mark of the last durable message as it grows.
#[derive(Default)]
pub(super) struct Pulse {
    mark: Mutex<Option<watch::Receiver<u64>>>,
    scouts: Arc<Scouts>,
}

/// The scouts of the running subscriptions.
#[derive(Default)]
struct Scouts {
    all: Mutex<Vec<Weak<Scouted>>>,
}

/// Equal subscriptions, and their scout.
pub(super) struct Scouted {
    query: String,
    columns: SchemaRef,
    state: Mutex<ScoutState>,
}

struct ScoutState {
    /// None after an error, which subscriptions report themselves.
    scout: Option<Scout>,
    /// The time that its last run took, halved whenever a run was left out since.
    cost: Duration,
}

/// A listener to the pulse.
pub(super) struct Beats {
    mark: watch::Receiver<u64>,
}

impl Pulse {
    /// Begins to listen; the first listener starts the thread.
    pub(super) fn beats(&self, kept: &Arc<DataFolder>) -> Result<Beats> {
        let mut started = lock(&self.mark);
        let mark = match &*started {
            Some(mark) => mark.clone(),
            None => {
                let growth = kept.growth().ok_or_else(over)?;
                let now = growth.wait_beyond(0, Duration::ZERO).unwrap_or(0);
                let (sender, mark) = watch::channel(now);
                let scouts = Arc::clone(&self.scouts);
                let beat = move || beat(&growth, &sender, &scouts);
                threads::alone("pulse", beat).map_err(|error| {
                    let said = format!("no thread to wait for messages with: {error}");
                    Failure::new(state::SYSTEM, said)
                })?;
                *started = Some(mark.clone());
                mark
            }
        };
        Ok(Beats { mark })
    }

    /// Returns the group of equal subscriptions; the first of them makes its scout.
    pub(super) fn scouted(
        &self,
        (query, columns): (&str, &SchemaRef),
        scout: impl FnOnce() -> Option<Scout>,
    ) -> Option<Arc<Scouted>> {
        let mut all = lock(&self.scouts.all);
        all.retain(|scouted| scouted.strong_count() > 0);
        let mut known = all.iter().filter_map(Weak::upgrade);
        let is_equal = |it: &Arc<Scouted>| it.query == query && it.columns == *columns;
        if let Some(known) = known.find(is_equal) {
            return Some(known);
        }
        let state = ScoutState { scout: Some(scout()?), cost: Duration::ZERO };
        let (query, columns) = (query.to_string(), Arc::clone(columns));
        let scouted = Arc::new(Scouted { query, columns, state: Mutex::new(state) });
        all.push(Arc::downgrade(&scouted));
        Some(scouted)
    }
}

impl Scouts {
    /// Finds new rows for subscriptions, as many as there is time for.
    fn run(&self) {
        let all: Vec<_> = lock(&self.all).iter().filter_map(Weak::upgrade).collect();
        let started = Instant::now();
        for scouted in all {
            scouted.run(SCOUTS_TIME.saturating_sub(started.elapsed()));
        }
    }
}

impl Scouted {
    /// Finds new rows, unless that is likely to take longer than this.
    fn run(&self, time: Duration) {
        let mut state = lock(&self.state);
        let ScoutState { scout: found, cost } = &mut *state;
        let Some(scout) = found else { return };
        if time.is_zero() || *cost > time {
            *cost /= 2;
            return;
        }
        let started = Instant::now();
        let convert = |changed: &_| drop(shared(&self.columns, changed));
        let run = || scout.run(SCOUTED_BYTES_MAX, &AtomicBool::new(false), convert);
        // A subscription that comes to these messages reports the error, or the panic.
        if !matches!(panics::caught(run), Ok(Ok(()))) {
            *found = None;
        }
        *cost = started.elapsed();
    }
}

/// Publishes marks until the folder stops accepting messages, or no listener remains.
fn beat(growth: &Growth, sender: &watch::Sender<u64>, scouts: &Scouts) {
    loop {
        let seen = *sender.borrow();
        match growth.wait_beyond(seen, PATIENCE) {
            Some(mark) if mark > seen => {
                scouts.run();
                sender.send_replace(mark);
            }
            Some(_) if sender.is_closed() => return,
            Some(_) => {}
            None => return,
        }
    }
}

fn over() -> Failure {
    Failure::new(state::SHUTDOWN, "the data folder accepts no more messages")
}

impl Beats {
    /// Returns the mark of the last durable message.
    pub(super) fn mark(&self) -> u64 {
        *self.mark.borrow()
    }

    /// Marks all previous commits as seen.
    pub(super) fn hear(&mut self) {
        self.mark.mark_unchanged();
    }

    /// Waits for the next commit.
    pub(super) async fn next(&mut self) -> Result<()> {
        self.mark.changed().await.map_err(|_| over())
    }
}
