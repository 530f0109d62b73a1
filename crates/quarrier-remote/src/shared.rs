//! State that all sources of a client share, and waiting for its requests.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use quarrier_sparse::SparseStore;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::cache::Folder;
use crate::counters::Counting;
use crate::options::Options;

/// How often a waiting thread checks whether to give up.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// State that sources and their requests share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) client: reqwest::Client,
    pub(crate) store: SparseStore,
    pub(crate) permits: Semaphore,
    pub(crate) folder: Option<Folder>,
    /// The requests of all sources and folders.
    pub(crate) counting: Arc<Counting>,
    handle: Handle,
    closed: AtomicBool,
    opened: AtomicU64,
    /// The process that owns the thread: a forked child does not have it.
    process: u32,
}

impl Shared {
    /// Creates the shared state; requests run on `handle`.
    pub(crate) fn new(options: Options, client: reqwest::Client, handle: Handle) -> Self {
        Shared {
            client,
            store: SparseStore::new(Some(options.memory_bytes_max)),
            permits: Semaphore::new(options.requests().min(Semaphore::MAX_PERMITS)),
            folder: options.cache.clone().map(Folder::open),
            counting: Arc::default(),
            handle,
            closed: AtomicBool::new(false),
            opened: AtomicU64::new(0),
            process: std::process::id(),
            options,
        }
    }

    /// Aborts requests and waits.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether this is a child of the process that owns the thread.
    pub(crate) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// Whether requests and waits should end.
    pub(crate) fn is_closed(&self) -> bool {
        let stop = self.options.stop.as_ref();
        self.is_forked()
            || self.closed.load(Ordering::Acquire)
            || stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// A number unique among the sources of this client.
    pub(crate) fn number(&self) -> u64 {
        self.opened.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a task, which is dropped with the client.
    pub(crate) fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::AbortHandle {
        self.handle.spawn(task).abort_handle()
    }

    /// Runs a task and waits for its result; `None` if the client is closed or `stop` becomes true
    /// first.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
        stop: Option<&AtomicBool>,
    ) -> Option<T> {
        let (sender, receiver) = sync_channel(1);
        let running = self.spawn(async move {
            // If the caller has given up, nobody receives the result.
            let _ = sender.send(task.await);
        });
        let is_stopped = || stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(value) => return Some(value),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if self.is_closed() || is_stopped() => {
                    running.abort();
                    return None;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
