//! A barrier that all threads pass together, or none if one cannot arrive.

use std::sync::{Condvar, Mutex};

use quarrier_core::sync::{lock, wait};

/// Holds `expected` threads back until all have arrived.
pub(super) struct Gate {
    expected: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    arrived: usize,
    given_up: bool,
}

impl Gate {
    pub(super) fn new(expected: usize) -> Gate {
        Gate { expected, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for the others. Returns `false` if they do not arrive.
    pub(super) fn pass(&self) -> bool {
        let mut state = lock(&self.state);
        state.arrived += 1;
        if state.arrived == self.expected {
            self.changed.notify_all();
        }
        while state.arrived < self.expected && !state.given_up {
            state = wait(&self.changed, state);
        }
        !state.given_up
    }

    /// Releases all threads that wait or will wait.
    pub(super) fn give_up(&self) {
        lock(&self.state).given_up = true;
        self.changed.notify_all();
    }
}
