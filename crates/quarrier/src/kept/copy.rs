//! Copies the log of a data folder elsewhere while it grows, and restores a folder from such a copy.
//!
//! ```text
//!  DataFolder::copy_to ─→ a thread: LogCopier::step, once a second ─→ CopyPlace: a folder, or one of a bucket
//!       commits do not wait        after a failure: later, up to a minute          │
//!  DataFolder::restore ←────────── tables, log, all checksums verified ←───────────┘
//! ```

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quarrier_core::sync::lock;
use quarrier_core::threads;
use quarrier_messages::kept::{CopyError, CopyProgress, LogCopier};
pub use quarrier_messages::kept::{CopyLag, Restored};
use quarrier_report::number::{bytes as bytes_text, count};

use super::{CopyPlace, DataFolder};
use crate::{Error, Result};

/// How often the log is copied while it grows; also the first pause after a failure.
const PERIOD: Duration = Duration::from_secs(1);
/// The longest pause after failures; each is twice as long as the one before.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The longest pause while a server that ends waits for the copy.
const LAST_PAUSE_MAX: Duration = Duration::from_millis(500);
/// How long a start waits for the first attempt, which shows whether the place has the copy of another log.
const FIRST_WAIT: Duration = Duration::from_secs(10);

/// The state of a copy.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CopyState {
    /// The path or URL.
    pub place: String,
    /// How far it is behind.
    pub lag: CopyLag,
    /// Number of failed attempts.
    pub failures: u64,
    /// Why the last attempt failed; `None` if it succeeded. Without secrets.
    pub error: Option<String>,
    /// Whether copying has ended for good, because the place has the copy of another log.
    pub has_ended: bool,
}

/// The thread that copies. When this is dropped, it ends after its current request.
pub(super) struct Copying {
    place: CopyPlace,
    progress: CopyProgress,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of attempts that began, and the last of them that succeeded.
    begun: u64,
    succeeded: u64,
    /// Number of attempts that ended.
    ended: u64,
    failures: u64,
    error: Option<String>,
    is_final: bool,
    /// Whether the thread must not pause for long.
    is_last: bool,
    is_over: bool,
}

impl Shared {
    /// Waits until something is true, or the time is up.
    fn wait(&self, until: Instant, is_there: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || is_there(&state) {
                return state;
            }
            let waited = self.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
        self.changed.notify_all();
    }
}

impl Copying {
    /// Starts copying. `tell` gets a line when copying begins to fail, and when it has recovered.
    fn begin(
        copier: LogCopier,
        place: CopyPlace,
        tell: impl Fn(&str) + Send + 'static,
    ) -> Result<Copying> {
        let shared = Arc::new(Shared::default());
        let progress = copier.progress();
        let own = Arc::clone(&shared);
        let copy = move || run(copier, &own, &tell);
        let thread = threads::alone("quarrier-copy", copy);
        thread.map_err(|error| Error::Request(format!("no thread to copy the log: {error}")))?;
        let copying = Copying { place, progress, shared };
        let state = copying.shared.wait(Instant::now() + FIRST_WAIT, |state| state.ended > 0);
        match state.error.clone().filter(|_| state.is_final) {
            Some(error) => Err(Error::Request(error)),
            None => {
                drop(state);
                Ok(copying)
            }
        }
    }

    fn state(&self) -> CopyState {
        let lag = self.progress.lag();
        let state = lock(&self.shared.state);
        CopyState {
            place: self.place.name(),
            lag,
            failures: state.failures,
            error: state.error.clone(),
            has_ended: state.is_final,
        }
    }

    /// Waits for the copy of everything that the log has now. Returns what is missing when the time is up.
    fn finish(&self, time: Duration) -> Option<String> {
        let mut target = 0;
        self.shared.change(|state| {
            target = state.begun + 1;
            state.is_last = true;
        });
        let is_there = |state: &State| state.succeeded >= target || state.is_final;
        let is_done = self.shared.wait(Instant::now() + time, is_there).succeeded >= target;
        self.shared.change(|state| state.is_over = true);
        (!is_done).then(|| self.missing())
    }

    fn missing(&self) -> String {
        let CopyState { place, lag, error, .. } = self.state();
        let bytes = lag.bytes.map_or("a part".to_string(), bytes_text);
        let reason = error.map(|error| format!(" ({error})")).unwrap_or_default();
        let marks = match lag.copied_mark < lag.last_mark {
            true => {
                format!(", messages {} to {}", count(lag.copied_mark + 1), count(lag.last_mark))
            }
            false => String::new(),
        };
        format!(
            "{place}: {bytes} of the log{marks} is not copied{reason}; it is on disk, and the next \
             server with --copy-to copies it"
        )
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        self.shared.change(|state| state.is_over = true);
        self.place.stop();
    }
}

/// Copies until it is over.
fn run(mut copier: LogCopier, shared: &Shared, tell: &dyn Fn(&str)) {
    let mut retry = PERIOD;
    loop {
        let (mut number, mut was_last) = (0, false);
        shared.change(|state| {
            state.begun += 1;
            (number, was_last) = (state.begun, state.is_last);
        });
        let started = Instant::now();
        let done = copier.step();
        let is_final = matches!(done, Err(CopyError::Final(_)));
        let error = done.err().map(|error| error.to_string());
        let pause = if error.is_some() { retry } else { PERIOD };
        retry = if error.is_some() { (retry * 2).min(PAUSE_MAX) } else { PERIOD };
        let mut line = None;
        shared.change(|state| {
            state.ended += 1;
            state.is_final = is_final;
            line = match (&state.error, &error) {
                (None, Some(error)) if is_final => Some(format!("the log is not copied: {error}")),
                (None, Some(error)) => {
                    Some(format!("copying the log fails: {error}; trying again"))
                }
                (Some(_), None) => Some("the log is copied again".to_string()),
                _ => None,
            };
            match &error {
                None => state.succeeded = number,
                Some(_) => state.failures += 1,
            }
            state.error = error;
        });
        if let Some(line) = line {
            tell(&line);
        }
        if is_final {
            return;
        }
        let until = if was_last { Instant::now() + LAST_PAUSE_MAX } else { started + pause };
        let goes_on = |state: &State| state.is_over || (state.is_last && !was_last);
        if shared.wait(until, goes_on).is_over {
            return;
        }
    }
}

impl DataFolder {
    /// Copies the log and the tables to a place from now on, by a thread: each complete segment, and every second
    /// the new end of the last one. Commits do not wait for it, and failures are retried, at most a minute apart.
    /// `tell` gets a line when copying begins to fail, and when it has recovered. Waits up to ten seconds for the
    /// first attempt.
    ///
    /// Segments and messages that retention removes are removed from the copy, too.
    ///
    /// # Errors
    /// [`Error::Request`] if the place has the copy of another log, or is in this folder;
    /// [`Error::Messages`] if the folder is open for reading only.
    pub fn copy_to(&self, place: CopyPlace, tell: impl Fn(&str) + Send + 'static) -> Result<()> {
        if place.is_within(Path::new(self.place())) {
            let reason = "is in the data folder: copy the log to another disk, or to a bucket";
            return Err(Error::Request(format!("{}: {reason}", place.name())));
        }
        let copier = self.store().copier(place.store())?;
        let copying = Copying::begin(copier, place, tell)?;
        self.copying
            .set(copying)
            .map_err(|_| Error::Request("the log is already copied to another place".to_string()))
    }

    /// Returns the state of the copy; `None` without one.
    pub fn copy_state(&self) -> Option<CopyState> {
        self.copying.get().map(Copying::state)
    }

    /// Waits, at most for this time, until the copy has everything that the log has now, and ends it. Returns what
    /// is not copied, if anything.
    pub fn finish_copy(&self, time: Duration) -> Option<String> {
        self.copying.get()?.finish(time)
    }

    /// Makes a data folder of a copy, and verifies all checksums. The folder must not exist, or be empty.
    ///
    /// # Errors
    /// [`Error::Messages`] if the folder is not empty, the copy is damaged or cannot be read, the disk is full or
    /// fails, or `stop` became true. The folder is then empty again.
    pub fn restore(from: &CopyPlace, folder: &Path, stop: &AtomicBool) -> Result<Restored> {
        let store = from.store();
        Ok(quarrier_messages::kept::restore(store.as_ref(), folder, stop)?)
    }
}
