//! Work that ends when it is interrupted, or takes too long.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quarrier_sql::{Error, Result};

use super::Session;

/// How often the flag is looked at.
const PERIOD: Duration = Duration::from_millis(20);

/// The result of `work`, unless Ctrl-C or the time limit comes first.
pub(super) async fn until<T>(
    session: &Session<'_>,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let interrupted = async {
        while !session.stop.load(Ordering::Relaxed) {
            tokio::time::sleep(PERIOD).await;
        }
    };
    let late = async {
        match session.query.timeout {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        done = work => done,
        () = interrupted => Err(Error::Cancelled),
        () = late => {
            let seconds = session.query.timeout.unwrap_or_default().as_secs_f64();
            // Loads look at the flag, too.
            session.stop.store(true, Ordering::Relaxed);
            Err(Error::TimedOut { seconds })
        }
    }
}
