//! The owner of the runtime: one thread for all requests, which ends with the client.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use quarrier_core::threads;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::cache::Folder;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::folder::BucketFolder;
use crate::location::{BucketPrefix, Location};
use crate::opening::FirstBytes;
use crate::options::Options;
use crate::shared::Shared;
use crate::source::RemoteSource;
use crate::transport;

/// Opens remote sources and makes their requests, on its own thread.
///
/// A forked process does not have this thread: there, all reads return [`Error::Closed`], and
/// dropping the client does not affect the parent.
///
/// The sources share the thread, the limit on concurrent requests, the memory budget and the cache
/// on disk. They do not keep it alive: when it is dropped, requests in flight are aborted, and
/// reads of bytes not yet held return [`Error::Closed`].
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
    /// Starts the thread, without connecting to anything.
    ///
    /// # Errors
    /// [`Error::Setup`] if TLS, a proxy or the thread cannot be set up. An unusable cache is not an
    /// error: see [`Remote::cache_warning`].
    pub fn new(options: Options) -> Result<Self> {
        let setup =
            |error: std::io::Error| Error::Setup { reason: format!("cannot start: {error}") };
        let client = transport::client(&options)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(setup)?;
        let handle = runtime.handle().clone();
        let (quit, asked_to_quit) = oneshot::channel::<()>();
        let run = move || {
            // An error means that the sender is gone, which also means to quit.
            let _ = runtime.block_on(asked_to_quit);
            // Do not wait for a name lookup in progress.
            runtime.shutdown_background();
        };
        let thread = threads::alone("quarrier remote", run).map_err(setup)?;
        let shared = Arc::new(Shared::new(options, client, handle));
        Ok(Remote { shared, quit: Some(quit), thread: Some(thread) })
    }

    /// Opens a URL (`https://`, `http://`, `s3://BUCKET/KEY`, `gs://…`, `az://…`) with one request,
    /// which gets length, version and first bytes.
    ///
    /// # Errors
    /// [`Error::BadUrl`], [`Error::NotFound`], [`Error::Denied`], [`Error::Unreachable`],
    /// [`Error::NoRanges`], …; [`Error::Failed`] if the server fails at every attempt.
    pub fn open(&self, url: &str) -> Result<RemoteSource> {
        RemoteSource::open(&self.shared, Location::parse(url)?, None, None)
    }

    /// As [`Remote::open`]; gives up soon after `stop` becomes true.
    ///
    /// # Errors
    /// As [`Remote::open`]; [`Error::Closed`] if it gave up.
    pub fn open_unless(&self, url: &str, stop: &AtomicBool) -> Result<RemoteSource> {
        RemoteSource::open(&self.shared, Location::parse(url)?, None, Some(stop))
    }

    /// Opens an object as [`Remote::open_unless`] does, by a request for the bytes that will be read first,
    /// so that an object that is read once costs one request. The maximum size of a request and a quarter
    /// of the memory limit these bytes. With a cache on disk, which may hold them, it opens exactly as
    /// [`Remote::open_unless`].
    ///
    /// # Errors
    /// As [`Remote::open_unless`].
    pub fn open_reading(
        &self,
        url: &str,
        first: FirstBytes,
        stop: &AtomicBool,
    ) -> Result<RemoteSource> {
        RemoteSource::open(&self.shared, Location::parse(url)?, Some(first), Some(stop))
    }

    /// The objects of a bucket whose keys begin with a prefix: `s3://BUCKET/PREFIX`, `gs://…`,
    /// `az://…`. The prefix may be empty. Makes no request.
    ///
    /// # Errors
    /// [`Error::BadUrl`] for other URLs; [`Error::Setup`] if the settings of the bucket are invalid;
    /// [`Error::Unusable`] if requests are not allowed.
    pub fn folder(&self, url: &str) -> Result<BucketFolder> {
        BucketFolder::open(&self.shared, BucketPrefix::parse(url)?)
    }

    /// The reason why the cache on disk is not used, or no longer used: a full disk, or a folder
    /// that cannot be written. Reads continue without it.
    pub fn cache_warning(&self) -> Option<String> {
        self.shared.folder.as_ref().and_then(Folder::warning)
    }

    /// The cost of all requests so far: of sources, of those that could not be opened too, and of folders.
    /// `bytes_asked` is 0; requests for credentials are not counted.
    pub fn counters(&self) -> Counters {
        self.shared.counting.read()
    }

    /// The number of bytes held in memory.
    pub fn memory_bytes(&self) -> u64 {
        self.shared.store.num_bytes()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.shared.close();
        if self.shared.is_forked() {
            // The thread belongs to the parent, and so does the channel that would end it.
            std::mem::forget((self.quit.take(), self.thread.take()));
            return;
        }
        drop(self.quit.take());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic, and if it did, it would have ended anyway.
            let _ = thread.join();
        }
    }
}
