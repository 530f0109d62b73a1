//! Wrong passwords: answered late, one derived key at a time, and logged up to a rate, so that whoever tries
//! passwords in a loop neither fills the log nor takes the processors from others.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;

use crate::failure::Failure;

/// The delay of the answer.
const DELAY: Duration = Duration::from_millis(500);
/// Maximum lines of the log in a second.
const LINES_MAX: u64 = 10;

/// The wrong passwords of all clients.
#[derive(Debug, Default)]
pub(crate) struct WrongPasswords {
    /// Wrong passwords since the last tick.
    recent: AtomicU64,
    /// Held while a key is derived from a password.
    derivation: Mutex<()>,
}

impl WrongPasswords {
    /// Waits until nobody else derives a key from a password.
    pub(crate) async fn derivation(&self) -> MutexGuard<'_, ()> {
        self.derivation.lock().await
    }

    /// Logs a client's wrong password, and delays the answer.
    pub(crate) async fn delay(
        &self,
        log: &(dyn Fn(&str) + Send + Sync),
        (peer, failure): (SocketAddr, &Failure),
    ) {
        if self.is_logged() {
            log(&format!("{peer}: {failure}"));
        }
        sleep(DELAY).await;
    }

    fn is_logged(&self) -> bool {
        self.recent.fetch_add(1, Ordering::AcqRel) < LINES_MAX
    }

    /// Begins another second. Returns a line about the wrong passwords of the last that were not logged.
    pub(crate) fn tick(&self) -> Option<String> {
        let more = self.recent.swap(0, Ordering::AcqRel).saturating_sub(LINES_MAX);
        (more > 0).then(|| format!("{more} more wrong passwords in the last second"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_a_few_lines_and_the_number_of_the_others() {
        let wrong = WrongPasswords::default();
        assert_eq!((0..25).filter(|_| wrong.is_logged()).count(), 10);
        assert_eq!(wrong.tick().as_deref(), Some("15 more wrong passwords in the last second"));
        assert!(wrong.is_logged());
        assert_eq!(wrong.tick(), None);
    }
}
