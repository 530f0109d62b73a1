//! The pulse: one thread waits for every commit and notifies all listeners.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quarrier::DataFolder;
use quarrier::kept::Growth;
use quarrier_core::sync::lock;
use quarrier_core::threads;
use quarrier_wire::{Failure, Result, state};
use tokio::sync::watch;

/// How often the thread checks whether listeners remain.
const PATIENCE: Duration = Duration::from_secs(1);

/// Publishes the mark of the last durable message as it grows.
#[derive(Default)]
pub(super) struct Pulse {
    mark: Mutex<Option<watch::Receiver<u64>>>,
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
                let beat = move || beat(&growth, &sender);
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
}

/// Publishes marks until the folder stops accepting messages, or no listener remains.
fn beat(growth: &Growth, sender: &watch::Sender<u64>) {
    loop {
        let seen = *sender.borrow();
        match growth.wait_beyond(seen, PATIENCE) {
            Some(mark) if mark > seen => drop(sender.send_replace(mark)),
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
