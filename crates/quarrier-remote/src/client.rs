//! The owner of the runtime: one thread for all requests, which ends with it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use quarrier_core::threads;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::cache::Folder;
use crate::error::{Error, Result};
use crate::location::Location;
use crate::options::Options;
use crate::shared::Shared;
use crate::source::RemoteSource;
use crate::transport;

/// Opens remote sources and does their requests, on one thread of its own.
///
/// A forked process has no such thread: there, all reads return [`Error::Closed`], and dropping the
/// client ends nothing of the parent's.
///
/// Its sources share that thread, the limit of requests, the memory and the cache on disk. They do not
/// keep it alive: when it is dropped, requests in flight end, and reads of bytes not yet held return
/// [`Error::Closed`].
pub struct Remote {
    shared: Arc<Shared>,
    quit: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Remote {
    /// Starts the thread. Connects to nothing.
    ///
    /// # Errors
    /// [`Error::Setup`] when TLS, a proxy or the thread cannot be set up. A cache that cannot
    /// be used is no error: see [`Remote::cache_warning`].
    pub fn new(options: Options) -> Result<Self> {
        let setup =
            |error: std::io::Error| Error::Setup { reason: format!("cannot start: {error}") };
        let client = transport::client(&options)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(setup)?;
        let handle = runtime.handle().clone();
        let (quit, asked_to_quit) = oneshot::channel::<()>();
        let run = move || {
            // An error means that the sender is gone, which is as good.
            let _ = runtime.block_on(asked_to_quit);
            // A name that is being looked up is not waited for.
            runtime.shutdown_background();
        };
        let thread = threads::alone("quarrier remote", run).map_err(setup)?;
        let shared = Arc::new(Shared::new(options, client, handle));
        Ok(Remote { shared, quit: Some(quit), thread: Some(thread) })
    }

    /// Opens a URL (`https://`, `http://`, `s3://BUCKET/KEY`) with one request, which brings
    /// length, version and first bytes.
    ///
    /// # Errors
    /// [`Error::BadUrl`], [`Error::NotFound`], [`Error::Denied`], [`Error::Unreachable`],
    /// [`Error::NoRanges`], …; [`Error::Failed`] when the server fails at every attempt.
    pub fn open(&self, url: &str) -> Result<RemoteSource> {
        RemoteSource::open(&self.shared, Location::parse(url)?, None)
    }

    /// As [`Remote::open`]; gives up soon after `stop` becomes true.
    ///
    /// # Errors
    /// As [`Remote::open`]; [`Error::Closed`] when it was given up.
    pub fn open_unless(&self, url: &str, stop: &AtomicBool) -> Result<RemoteSource> {
        RemoteSource::open(&self.shared, Location::parse(url)?, Some(stop))
    }

    /// Why the cache on disk is not used, or not any more: a full disk, a folder that cannot be
    /// written. Reads do without it.
    pub fn cache_warning(&self) -> Option<String> {
        self.shared.folder.as_ref().and_then(Folder::warning)
    }

    /// Bytes held in memory.
    pub fn memory_bytes(&self) -> u64 {
        self.shared.store.num_bytes()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.shared.close();
        if self.shared.is_forked() {
            // The thread is the parent's, and so is the channel that would end it.
            std::mem::forget((self.quit.take(), self.thread.take()));
            return;
        }
        drop(self.quit.take());
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it did, there would be nothing left to end.
            let _ = thread.join();
        }
    }
}
