//! Opens sources: plain files, images by their format, URLs with one shared client.

use std::fmt;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use quarrier_core::name;
use quarrier_core::source::{FileSource, Polled, Source, open_in_order};
use quarrier_core::sync::{into_inner, lock};
use quarrier_images::{Content, FolderSiblings, Kind, ScratchFolder, Siblings};
use quarrier_messages::kept::{is_log, is_segment_head};
use quarrier_remote::{CacheOptions, Header, Options, Remote, RemoteSource};

use super::far::{FarImage, Unwrapping, is_of_another_format, open_with};
use super::following::Following;
use super::index::IndexFile;
use super::partition::PartitionSource;
use super::stdin::standard_input;
use super::{Named, Opened, kept, only_in_order};
use crate::remote_cost::RemoteCost;
use crate::{Environment, Error, Result};

/// Formats that message readers decompress themselves, in order.
const UNPACKED_BY_READERS: [Kind; 2] = [Kind::Gzip, Kind::Zstd];

/// Options for opening sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct OpenOptions {
    direct: bool,
    cache: Option<PathBuf>,
    cache_bytes_max: Option<u64>,
    memory_bytes_max: Option<u64>,
    requests_max: usize,
    offline: bool,
    headers: Vec<Header>,
}

impl OpenOptions {
    /// Opens local files to bypass the page cache (`O_DIRECT`).
    pub fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Caches fetched bytes in `folder`, for later runs and other processes; `None` for the folder of
    /// the environment, if it names one.
    pub fn cache(mut self, folder: Option<PathBuf>) -> Self {
        self.cache = folder;
        self
    }

    /// Limits the size of that folder in bytes; `None` for 10 GiB.
    pub fn cache_bytes_max(mut self, bytes: Option<u64>) -> Self {
        self.cache_bytes_max = bytes;
        self
    }

    /// Limits the bytes of remote sources held in memory; `None` for the default of [`Options`].
    pub fn memory_bytes_max(mut self, bytes: Option<u64>) -> Self {
        self.memory_bytes_max = bytes;
        self
    }

    /// Limits the number of concurrent requests; 0 for the default of [`Options`].
    pub fn requests_max(mut self, requests: usize) -> Self {
        self.requests_max = requests;
        self
    }

    /// Reads remote sources only from the cache, by default from the user's cache folder, and makes no
    /// requests. The environment can also require this.
    pub fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// Sends these header fields with requests of `http://` and `https://` URLs, but not after a redirect to
    /// another server.
    pub fn headers(mut self, headers: Vec<Header>) -> Self {
        self.headers = headers;
        self
    }

    /// Sends the header fields of `other`, too.
    pub fn with_headers_of(mut self, other: &OpenOptions) -> Self {
        self.headers.extend(other.headers.iter().cloned());
        self
    }

    /// The folder of cached bytes, if there is one.
    fn cache_in(&self, environment: &Environment) -> Option<PathBuf> {
        let named = self.cache.as_ref().or(environment.remote_cache()).cloned();
        let is_offline = self.offline || environment.is_offline();
        named.or_else(|| environment.default_remote_cache().filter(|_| is_offline))
    }

    /// Creates a client for remote sources, with its own thread and memory.
    ///
    /// # Errors
    /// [`Error::Remote`] if the system cannot start the client.
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
        options.headers.clone_from(&self.headers);
        if let Some(bytes) = self.memory_bytes_max {
            options.memory_bytes_max = bytes;
        }
        options.offline = self.offline || environment.is_offline();
        options.cache = self.cache_in(environment).map(|folder| {
            let cache = CacheOptions::new(folder);
            CacheOptions { bytes_max: self.cache_bytes_max.unwrap_or(cache.bytes_max), ..cache }
        });
        options.stop = stop.cloned();
        Ok(Remote::new(options)?)
    }
}

/// Opens sources by name. Remote sources share one client, which starts with the first of them.
pub struct Opener {
    options: OpenOptions,
    environment: Environment,
    stop: Arc<AtomicBool>,
    remote: OnceLock<Arc<Remote>>,
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Opener {
    /// Creates an opener. Once `stop` is true, remote sources give up.
    pub fn new(options: OpenOptions, environment: &Environment, stop: &Arc<AtomicBool>) -> Self {
        let (environment, stop) = (environment.clone(), Arc::clone(stop));
        Opener { options, environment, stop, remote: OnceLock::new() }
    }

    /// Opens a source.
    ///
    /// # Errors
    /// Why the source cannot be opened.
    pub fn open(&self, named: &Named) -> Result<Opened> {
        self.open_packed(named, Packed::Unpacked)
    }

    /// Opens a source. `packed` applies to a compressed file that allows only sequential reading, unless an
    /// image is inside.
    ///
    /// # Errors
    /// Why the source cannot be opened.
    pub fn open_packed(&self, named: &Named, packed: Packed) -> Result<Opened> {
        self.open_as(named, &[], packed)
    }

    /// Opens a file or an object as its own bytes: does not unwrap an image, nor join the other parts of a
    /// split image. Opens all other sources as [`Opener::open`] does.
    ///
    /// # Errors
    /// Why the source cannot be opened.
    pub fn open_raw(&self, named: &Named) -> Result<Opened> {
        match named {
            Named::Path(path) => {
                if let Some(stream) = open_stream(path)? {
                    return Ok(stream);
                }
                let file = match self.options.direct {
                    true => FileSource::open_direct(path)?,
                    false => FileSource::open(path)?,
                };
                Ok(local(Box::new(file), None, Vec::new()))
            }
            Named::Url(url) => Ok(Opened::Remote(self.client()?.open_unless(url, &self.stop)?)),
            named => self.open(named),
        }
    }

    /// Opens a source according to its content; formats in `kinds_left` are not unwrapped.
    fn open_as(&self, named: &Named, kinds_left: &[Kind], packed: Packed) -> Result<Opened> {
        match named {
            Named::Stdin => {
                let reader = Box::new(standard_input());
                Ok(Opened::Stream { name: "-".to_string(), reader })
            }
            Named::Path(path) => self.open_path(path, kinds_left, packed),
            Named::Stored(run) => Ok(kept::opened_run(run)),
            Named::Url(url) => {
                let cache = self.options.cache_in(&self.environment);
                let scratch = self.scratch();
                let how = Unwrapping { kinds_left, cache: cache.as_deref(), scratch, packed };
                open_with(self.client()?, url, &how, &self.stop)
            }
            Named::Objects(url) => self.open_as(&self.only_object(url)?, kinds_left, packed),
            Named::Unlisted(error) => Err(error.clone().into()),
            Named::Partition { of, number } => self.open_partition(of, *number),
            Named::Missing(name) => Err(Error::NotFound { name: name.clone() }),
            Named::Refused { name, reason } => {
                Err(Error::Unsupported { name: name.clone(), reason: reason.clone() })
            }
        }
    }

    fn open_partition(&self, of: &Named, number: u32) -> Result<Opened> {
        match self.open(of)? {
            Opened::Local { source, notice, beside, .. } => {
                Ok(local(Box::new(PartitionSource::open(source, number)?), notice, beside))
            }
            Opened::Remote(object) => {
                let image = FarImage::plain(object, self.client()?).partition(number)?;
                Ok(Opened::FarImage { image, notice: None })
            }
            Opened::FarImage { image, notice } => {
                Ok(Opened::FarImage { image: image.partition(number)?, notice })
            }
            Opened::Stream { name, .. } => Err(only_in_order(name)),
        }
    }

    /// Like [`Opener::open`], for readers of messages: a segment of a log, or its folder, opens as the
    /// messages in it instead of its own bytes.
    ///
    /// # Errors
    /// Those of [`Opener::open`], and an error if it holds messages of several types.
    pub fn open_messages(&self, named: &Named) -> Result<Opened> {
        match named {
            Named::Path(path) if is_log(path) => kept::opened(path),
            Named::Url(url) => self.open_far_messages(named, url),
            Named::Objects(url) => self.open_messages(&self.only_object(url)?),
            named => self.open_as(named, &UNPACKED_BY_READERS, Packed::InOrder),
        }
    }

    /// Like [`Opener::open_messages`], but without reading any message: a segment of a log is its own bytes, and so are
    /// compressed messages.
    ///
    /// # Errors
    /// Those of [`Opener::open`].
    pub fn open_unparsed(&self, named: &Named) -> Result<Opened> {
        match named {
            Named::Objects(url) => self.open_unparsed(&self.only_object(url)?),
            named => self.open_as(named, &UNPACKED_BY_READERS, Packed::InOrder),
        }
    }

    fn open_far_messages(&self, named: &Named, url: &str) -> Result<Opened> {
        if super::is_segment(url) {
            let object = self.client()?.open_unless(url, &self.stop)?;
            return kept::opened_object(url, object, self);
        }
        match self.open_as(named, &UNPACKED_BY_READERS, Packed::InOrder)? {
            Opened::Remote(object) if !is_of_another_format(url) && self.is_segment(&object) => {
                kept::opened_object(url, object, self)
            }
            opened => Ok(opened),
        }
    }

    /// Whether an object begins like a segment of a log. A read reports the error of an object that cannot be read.
    fn is_segment(&self, object: &RemoteSource) -> bool {
        let mut head = [0; 8];
        let read = object.read_unless(0, &mut head, &self.stop);
        read.is_ok_and(|count| is_segment_head(&head[..count]))
    }

    /// Opens a segment of a log, or of the copy of one, as its own bytes, and reads no message; `None` for all other
    /// sources. A remote segment is known by its name alone.
    ///
    /// # Errors
    /// Those of [`Opener::open_raw`].
    pub fn open_segment(&self, named: &Named) -> Result<Option<Opened>> {
        let is_segment = match named {
            Named::Path(path) => path.is_file() && is_log(path),
            Named::Url(url) => super::is_segment(url),
            _ => false,
        };
        is_segment.then(|| self.open_raw(named)).transpose()
    }

    /// Opens a file for waiting at its end, and streams like [`Opener::open`] does.
    ///
    /// # Errors
    /// Those of [`Opener::open`], and [`Error::Unsupported`] for sources that cannot grow.
    pub fn follow(&self, named: &Named) -> Result<Opened> {
        match named {
            Named::Path(path) if path.is_file() && !is_log(path) => {
                let name = name::of_path(path);
                let following = Following::open(path)
                    .map_err(|error| quarrier_core::Error::io(name.clone(), "open", error))?;
                Ok(Opened::Stream { name, reader: Box::new(following) })
            }
            Named::Url(url) | Named::Objects(url) => Err(only_files(super::shown(url))),
            Named::Stored(run) => Err(only_files(run.name().to_string())),
            named => self.open_messages(named),
        }
    }

    /// Opens a file according to its content; formats in `kinds_left` are not unwrapped.
    fn open_path(&self, path: &Path, kinds_left: &[Kind], packed: Packed) -> Result<Opened> {
        if let Some(stream) = open_stream(path)? {
            return Ok(stream);
        }
        let direct = self.options.direct;
        let file: Box<dyn Source> = match direct {
            true => quarrier_core::source::open_direct(path)?,
            false => quarrier_core::source::open(path)?,
        };
        let cache = self.options.cache_in(&self.environment);
        let index = IndexFile::of_file(cache.as_deref(), path);
        let scratch = self.scratch();
        let beside = FolderSiblings::new(path, direct).unpacking_in(scratch.clone());
        let beside = Noted { beside, index, opened: Mutex::default() };
        let image = quarrier_images::open(Arc::from(file), &beside, kinds_left, &self.stop)?;
        let (disk, notice) = match (image.content, packed) {
            (Content::Disk(disk), _) => (disk, image.notice),
            (Content::Stream(sequential), Packed::Unpacked) => sequential.unpacked(&scratch)?,
            (Content::Stream(sequential), Packed::InOrder) => {
                let (name, reader) = (name::of_path(path), sequential.reader()?);
                return Ok(Opened::Stream { name, reader });
            }
        };
        Ok(local(Box::new(disk), notice, into_inner(beside.opened)))
    }

    /// Where compressed files are unpacked.
    fn scratch(&self) -> ScratchFolder {
        ScratchFolder::new(self.environment.temporary_folder(), &self.stop)
    }

    /// Where objects are kept that are read twice.
    pub(super) fn temporary_folder(&self) -> &Path {
        self.environment.temporary_folder()
    }

    /// The flag that ends requests.
    pub(crate) fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    pub(super) fn client(&self) -> Result<&Arc<Remote>> {
        if let Some(remote) = self.remote.get() {
            return Ok(remote);
        }
        let remote = self.options.client_until(&self.environment, Some(&self.stop))?;
        Ok(self.remote.get_or_init(|| Arc::new(remote)))
    }

    /// The cost of all requests so far: of sources, of those that could not be opened too, and of listings;
    /// `None` if there was nothing remote.
    pub fn remote_cost(&self) -> Option<RemoteCost> {
        self.remote.get().map(|remote| RemoteCost::of(&remote.counters()))
    }

    /// Why the requested cache folder is no longer used.
    pub fn cache_warning(&self) -> Option<String> {
        self.remote.get().and_then(|remote| remote.cache_warning())
    }
}

/// How to open compressed files that allow only sequential reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packed {
    /// As a stream.
    InOrder,
    /// Unpacked to a temporary file as they are read.
    Unpacked,
}

fn only_files(name: String) -> Error {
    Error::Unsupported { name, reason: "only files and streams can be followed".to_string() }
}

fn local(source: Box<dyn Source>, notice: Option<String>, beside: Vec<PathBuf>) -> Opened {
    Opened::Local { source, notice, format: None, damages: Vec::new(), beside }
}

/// The files beside an image; records those that are opened.
struct Noted {
    beside: FolderSiblings,
    index: Option<IndexFile>,
    opened: Mutex<Vec<PathBuf>>,
}

impl Siblings for Noted {
    fn open(&self, name: &str) -> quarrier_core::Result<Box<dyn Source>> {
        let source = self.beside.open(name)?;
        lock(&self.opened).push(self.beside.path_of(name));
        Ok(source)
    }

    fn names(&self) -> Vec<String> {
        self.beside.names()
    }

    fn keeps_indexes(&self) -> bool {
        self.index.is_some()
    }

    fn kept_index(&self) -> Option<Vec<u8>> {
        self.index.as_ref()?.read()
    }

    fn keep_index(&self, index: &[u8]) {
        if let Some(file) = &self.index {
            file.write(index);
        }
    }

    fn scratch(&self) -> Option<&ScratchFolder> {
        self.beside.scratch()
    }

    fn path(&self) -> Option<&Path> {
        self.beside.path()
    }
}

/// Opens files that can only be read in order: a pipe (`<(zcat image.gz)`), or a kernel file that
/// claims to be empty.
fn open_stream(path: &Path) -> Result<Option<Opened>> {
    use std::os::unix::fs::FileTypeExt;
    let Ok(meta) = std::fs::metadata(path) else { return Ok(None) };
    let in_order = meta.file_type().is_fifo();
    let seems_empty = meta.is_file() && meta.len() == 0;
    if !in_order && !seems_empty {
        return Ok(None);
    }
    let name = name::of_path(path);
    // Does not wait for a pipe's writer: the reader checks the stop flag.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_file_has_its_own_bytes_and_a_name_without_patterns() {
        let folder = tempfile::tempdir().unwrap();
        let opener = Opener::new(OpenOptions::default(), &Environment::default(), &Arc::default());
        // A part of a split image, an image, and names that would be a glob and a partition.
        for (name, bytes) in [
            ("disk.001", &b"first"[..]),
            ("disk.002", b"second"),
            ("disk.lz", b"LZIP\x01 packed"),
            ("*.[ab]?", b"no glob"),
            ("disk#1", b"no partition"),
            ("empty", b""),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let mut opened = opener.open_raw(&Named::exactly(&path)).unwrap();
            assert_eq!(opened.notice(), None);
            let source = opened.place().source().unwrap();
            let mut found = vec![0; 20];
            assert_eq!(source.length(), bytes.len() as u64);
            assert_eq!(source.read_at(0, &mut found).unwrap(), bytes.len());
            assert_eq!(found[..bytes.len()], *bytes);
        }
        let missing = opener.open_raw(&Named::exactly(folder.path().join("*")));
        assert!(missing.err().unwrap().to_string().contains("No such file"));
        assert_eq!(Named::exactly("S3://a/b?#2"), Named::Url("S3://a/b?#2".to_string()));
    }
}
