//! Remote sources: their client, set up from options and environment when it is needed.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_remote::{CacheOptions, Options, Remote, RemoteSource};

use crate::args::Search;

/// Opens URLs. Starts nothing before the first.
pub(in crate::commands) struct Client {
    options: Options,
    remote: OnceCell<Remote>,
}

impl Client {
    pub(in crate::commands) fn new(search: &Search, stop: &Arc<AtomicBool>) -> Self {
        let mut options = Options::of_environment(&environment());
        if let Some(requests) = search.requests {
            options.requests_max = requests;
        }
        options.cache = search.cache.clone().map(|folder| {
            let bytes_max = search.cache_bytes_max;
            CacheOptions { bytes_max, ..CacheOptions::new(folder) }
        });
        options.stop = Some(Arc::clone(stop));
        Client { options, remote: OnceCell::new() }
    }

    /// A client without options.
    pub(in crate::commands) fn plain(stop: &Arc<AtomicBool>) -> Self {
        let mut options = Options::of_environment(&environment());
        options.stop = Some(Arc::clone(stop));
        Client { options, remote: OnceCell::new() }
    }

    /// Opens a URL.
    pub(in crate::commands) fn open(&self, url: &str) -> Result<RemoteSource, String> {
        let remote = match self.remote.get() {
            Some(remote) => remote,
            None => {
                let remote = Remote::new(self.options.clone()).map_err(|e| e.to_string())?;
                self.remote.get_or_init(|| remote)
            }
        };
        remote.open(url).map_err(|error| error.to_string())
    }

    /// Why nothing is kept on disk any more, though it was asked for.
    pub(in crate::commands) fn cache_warning(&self) -> Option<String> {
        self.remote.get().and_then(Remote::cache_warning)
    }
}

fn environment() -> Vec<(String, String)> {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.filter(|(name, _)| Options::concerns(name)).collect()
}
