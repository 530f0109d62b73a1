//! Opens sources: files as they are, images by their format, URLs by a client that all share.

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use quarrier_core::source::{Polled, Source, open_in_order};
use quarrier_images::ewf::{EwfSource, is_ewf};
use quarrier_messages::kept::is_log;
use quarrier_remote::{CacheOptions, Options, Remote};

use super::following::Following;
use super::stdin::standard_input;
use super::{Named, Opened, kept};
use crate::{Environment, Error, Result};

/// How sources are opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct OpenOptions {
    direct: bool,
    cache: Option<PathBuf>,
    cache_bytes_max: Option<u64>,
    memory_bytes_max: Option<u64>,
    requests_max: usize,
}

impl OpenOptions {
    /// Local files are read past the page cache (`O_DIRECT`).
    pub fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// What is fetched is kept in `folder`, for later runs and other processes.
    pub fn cache(mut self, folder: Option<PathBuf>) -> Self {
        self.cache = folder;
        self
    }

    /// The most bytes in that folder; None: 10 GiB.
    pub fn cache_bytes_max(mut self, bytes: Option<u64>) -> Self {
        self.cache_bytes_max = bytes;
        self
    }

    /// The most bytes of remote sources held in memory; None: as [`Options`] says.
    pub fn memory_bytes_max(mut self, bytes: Option<u64>) -> Self {
        self.memory_bytes_max = bytes;
        self
    }

    /// The most requests under way at once; 0: as [`Options`] says.
    pub fn requests_max(mut self, requests: usize) -> Self {
        self.requests_max = requests;
        self
    }

    /// An owner of requests to remote sources, with its own thread and memory.
    ///
    /// # Errors
    /// [`Error::Remote`] where the system lacks what it needs.
    pub fn client(&self, environment: &Environment) -> Result<Remote> {
        self.client_until(environment, None)
    }

    fn client_until(
        &self,
        environment: &Environment,
        stop: Option<&Arc<AtomicBool>>,
    ) -> Result<Remote> {
        let mut options: Options = environment.remote_options();
        options.requests_max = self.requests_max;
        if let Some(bytes) = self.memory_bytes_max {
            options.memory_bytes_max = bytes;
        }
        options.cache = self.cache.as_ref().map(|folder| {
            let cache = CacheOptions::new(folder);
            CacheOptions { bytes_max: self.cache_bytes_max.unwrap_or(cache.bytes_max), ..cache }
        });
        options.stop = stop.cloned();
        Ok(Remote::new(options)?)
    }
}

/// Opens sources by their names. Remote ones share one client, which starts with the first of them.
pub struct Opener {
    options: OpenOptions,
    environment: Environment,
    stop: Arc<AtomicBool>,
    remote: OnceLock<Remote>,
}

impl Opener {
    /// An opener. Once `stop` is true, remote sources give up.
    pub fn new(options: OpenOptions, environment: &Environment, stop: &Arc<AtomicBool>) -> Self {
        let (environment, stop) = (environment.clone(), Arc::clone(stop));
        Opener { options, environment, stop, remote: OnceLock::new() }
    }

    /// Opens a source.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(&self, named: &Named) -> Result<Opened> {
        match named {
            Named::Stdin => {
                let reader = Box::new(standard_input());
                Ok(Opened::Stream { name: "-".to_string(), reader })
            }
            Named::Path(path) => open_path(path, self.options.direct),
            Named::Kept(run) => Ok(kept::opened_run(run)),
            Named::Url(url) => Ok(Opened::Remote(self.client()?.open(url)?)),
            Named::Missing(name) => Err(Error::NotFound { name: name.clone() }),
            Named::Refused { name, reason } => {
                Err(Error::Unsupported { name: name.clone(), reason: reason.clone() })
            }
        }
    }

    /// As [`Opener::open`], for whoever reads messages: of a segment of a log, or the folder that it
    /// lies in, those that it holds are the source, not its own bytes.
    ///
    /// # Errors
    /// As [`Opener::open`], and where it holds messages of several kinds.
    pub fn open_messages(&self, named: &Named) -> Result<Opened> {
        match named {
            Named::Path(path) if is_log(path) => kept::opened(path),
            named => self.open(named),
        }
    }

    /// Opens a file that is waited for at its end, and streams as [`Opener::open`] does.
    ///
    /// # Errors
    /// As [`Opener::open`], and [`Error::Unsupported`] for what does not grow.
    pub fn follow(&self, named: &Named) -> Result<Opened> {
        match named {
            Named::Path(path) if path.is_file() && !is_log(path) => {
                let name = path.display().to_string();
                let following = Following::open(path)
                    .map_err(|error| quarrier_core::Error::io(name.clone(), "open", error))?;
                Ok(Opened::Stream { name, reader: Box::new(following) })
            }
            Named::Url(url) => Err(only_files(super::shown(url))),
            Named::Kept(run) => Err(only_files(run.name().to_string())),
            named => self.open_messages(named),
        }
    }

    fn client(&self) -> Result<&Remote> {
        if let Some(remote) = self.remote.get() {
            return Ok(remote);
        }
        let remote = self.options.client_until(&self.environment, Some(&self.stop))?;
        Ok(self.remote.get_or_init(|| remote))
    }

    /// Why nothing is kept in the cache folder any more, though it was asked for.
    pub fn cache_warning(&self) -> Option<String> {
        self.remote.get().and_then(Remote::cache_warning)
    }
}

fn only_files(name: String) -> Error {
    Error::Unsupported { name, reason: "only files and streams can be followed".to_string() }
}

fn open_path(path: &Path, direct: bool) -> Result<Opened> {
    if let Some(stream) = open_stream(path)? {
        return Ok(stream);
    }
    if is_ewf(path) {
        let image = EwfSource::open(path).map_err(quarrier_core::Error::from)?;
        let notice = image.missing();
        return Ok(local(Box::new(image), notice));
    }
    let source: Box<dyn Source> = match direct {
        true => quarrier_core::source::open_direct(path)?,
        false => quarrier_core::source::open(path)?,
    };
    Ok(local(source, None))
}

fn local(source: Box<dyn Source>, notice: Option<String>) -> Opened {
    Opened::Local { source, notice, format: None, damages: Vec::new() }
}

/// Opens what can only be read in order: a pipe (`<(zcat image.gz)`), or a file of the
/// kernel, which says that it is empty and is not.
fn open_stream(path: &Path) -> Result<Option<Opened>> {
    use std::os::unix::fs::FileTypeExt;
    let Ok(meta) = std::fs::metadata(path) else { return Ok(None) };
    let in_order = meta.file_type().is_fifo();
    let seems_empty = meta.is_file() && meta.len() == 0;
    if !in_order && !seems_empty {
        return Ok(None);
    }
    let name = path.display().to_string();
    // A pipe is not waited for here: whoever reads looks at the stop flag.
    let opened = open_in_order(path);
    let mut file = opened.map_err(|error| quarrier_core::Error::io(name.clone(), "open", error))?;
    if in_order {
        return Ok(Some(Opened::Stream { name, reader: Box::new(Polled::new(file)) }));
    }
    let mut first = [0u8; 1];
    match file.read(&mut first) {
        Ok(1) => {
            let reader = Box::new(Cursor::new(first).chain(file));
            Ok(Some(Opened::Stream { name, reader }))
        }
        // Empty indeed, or unreadable, which the ordinary way reports.
        Ok(_) | Err(_) => Ok(None),
    }
}
