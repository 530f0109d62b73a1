//! A remote object as a source: reads return held bytes and fetch missing ones.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Source;
use quarrier_sparse::{Span, SparseFile};

use crate::answer::Version;
use crate::bucket;
use crate::cache::Entry;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::link::Link;
use crate::location::{Location, Place};
use crate::object::{Object, Step, Waiting};
use crate::opening::{self, FirstBytes};
use crate::shared::Shared;

/// An open object on a server. Clones are the same source.
///
/// Reads from many threads may run in parallel: bytes in flight are waited for, not fetched twice.
/// When the last clone is dropped, its requests are aborted and its memory is freed.
#[derive(Clone)]
pub struct RemoteSource {
    owner: Arc<Owner>,
}

/// Lives as long as any clone of the source; requests do not keep it alive.
struct Owner {
    object: Arc<Object>,
    id: String,
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.object.shared.is_forked() {
            return;
        }
        self.object.abandon();
        self.object.shared.store.remove(&self.id);
    }
}

impl fmt::Debug for RemoteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = &self.owner.object;
        f.debug_struct("RemoteSource")
            .field("name", &object.name)
            .field("version", &object.version)
            .finish_non_exhaustive()
    }
}

/// The unit in which failed reads are retried; without one, unreadable bytes would be listed one by
/// one.
const SECTOR_BYTES: usize = 64 << 10;
/// Maximum size of a single read, so that a huge one does not need twice its size in memory.
const READ_BYTES_MAX: usize = 32 << 20;

impl RemoteSource {
    /// Opens an object by a request for its `first` bytes; gives up when `stop` becomes true.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        location: Location,
        first: Option<FirstBytes>,
        stop: Option<&AtomicBool>,
    ) -> Result<Self> {
        let name = location.name.clone();
        let settings = match &location.place {
            Place::Bucket { store, .. } => shared.options.settings(*store)?,
            Place::Http(_) => Cow::default(),
        };
        let link = Link::new(&location, shared, &settings)?;
        let identity = bucket::identity(&location.identity, &location.place, &settings);
        if shared.options.offline {
            return RemoteSource::of_cache(shared, link, name, &identity);
        }
        let (options, asked_name) = (shared.options.clone(), name.clone());
        // The cache on disk may have these bytes.
        let first = first.filter(|_| shared.folder.is_none());
        let asked = async move {
            let opened = opening::open(&link, &asked_name, &options, first).await;
            (link, opened)
        };
        let Some((link, opened)) = shared.wait_for(asked, stop) else {
            return Err(Error::Closed { source_name: name });
        };
        let opened = opened?;
        let source = RemoteSource::of_version(shared, link, name, &identity, opened.version)?;
        // A new object holds nothing that could conflict.
        let _ = source.owner.object.keep(opened.offset, &opened.bytes, false);
        Ok(source)
    }

    /// Opens the most recently used version in the cache.
    fn of_cache(shared: &Arc<Shared>, link: Link, name: String, identity: &str) -> Result<Self> {
        let Some(folder) = &shared.folder else {
            let reason = "offline, objects are read from the cache on disk, but no cache is named"
                .to_string();
            return Err(Error::Setup { reason });
        };
        match folder.last_version(identity) {
            Some(version) => RemoteSource::of_version(shared, link, name, identity, version),
            None => Err(Error::NotCached { source_name: name, offset: None }),
        }
    }

    /// A version of an object, with nothing in memory yet.
    fn of_version(
        shared: &Arc<Shared>,
        link: Link,
        name: String,
        identity: &str,
        version: Version,
    ) -> Result<Self> {
        let id = format!("{} {identity}", shared.number());
        let file = SparseFile::builder(&id).length(version.length).build();
        let file = shared
            .store
            .insert(file)
            .map_err(|error| Error::Setup { reason: format!("cannot hold it: {error}") })?;
        let folder = shared.folder.as_ref();
        let disk = folder.and_then(|folder| folder.entry(identity, &name, &version));
        let object = Arc::new(Object::new(Arc::clone(shared), link, name, version, file, disk));
        Ok(RemoteSource { owner: Arc::new(Owner { object, id }) })
    }

    /// The number of bytes in the cache on disk; `None` if the object is not cached: the cache is
    /// off or in use elsewhere, or the server sends no validators.
    pub fn cached_bytes(&self) -> Option<u64> {
        self.owner.object.disk.as_ref().map(Entry::held_bytes)
    }

    /// The ETag sent by the server, with its quotes.
    pub fn etag(&self) -> Option<&str> {
        self.owner.object.version.etag.as_deref()
    }

    /// The Last-Modified date sent by the server.
    pub fn last_modified(&self) -> Option<&str> {
        self.owner.object.version.last_modified.as_deref()
    }

    /// The current counters of this source.
    pub fn counters(&self) -> Counters {
        self.owner.object.link.counting.read()
    }

    /// Announces that `range` will be read from start to end, by one thread or several. It is then
    /// fetched at full speed from the first read on, and nothing beyond it.
    pub fn announce(&self, range: Range<u64>) {
        let end = range.end.min(self.length());
        let length = end.saturating_sub(range.start);
        self.owner.object.announce(Span { offset: range.start, length });
    }

    /// Fetches the missing parts of `ranges`. Close ranges are merged by the cost model, and
    /// requests run in parallel. Returns when all are held. Parts beyond the length are ignored.
    /// The ranges should fit into the memory of the [`Remote`](crate::Remote).
    ///
    /// # Errors
    /// The errors of reads.
    pub fn fetch_many(&self, ranges: &[Range<u64>]) -> Result<()> {
        self.fetched(ranges.iter().cloned(), Waiting::default(), || Ok(()))
    }

    /// Fills many buffers, each from its offset on, after fetching all missing parts as
    /// [`fetch_many`](Self::fetch_many) does. Nothing is fetched ahead. A buffer is left unchanged beyond
    /// the length. Gives up soon after `stop` becomes true.
    ///
    /// # Errors
    /// The errors of reads; [`Error::Closed`] if it gave up.
    pub fn read_many_unless(
        &self,
        reads: &mut [(u64, &mut [u8])],
        stop: &AtomicBool,
    ) -> Result<()> {
        self.read_all(reads, Waiting::unless(stop), stop)
    }

    /// Fills many buffers like [`read_many_unless`](Self::read_many_unless), but fetches no hole of more than
    /// `hole_bytes_max` between two of them, even if another request takes longer: for readers that know that
    /// they will not need the holes.
    ///
    /// # Errors
    /// Those of [`read_many_unless`](Self::read_many_unless).
    pub fn read_apart_unless(
        &self,
        reads: &mut [(u64, &mut [u8])],
        hole_bytes_max: u64,
        stop: &AtomicBool,
    ) -> Result<()> {
        self.read_all(reads, Waiting::unless(stop).holes_up_to(hole_bytes_max), stop)
    }

    fn read_all(
        &self,
        reads: &mut [(u64, &mut [u8])],
        waiting: Waiting<'_>,
        stop: &AtomicBool,
    ) -> Result<()> {
        let ranges: Vec<Range<u64>> = reads
            .iter()
            .map(|(offset, buffer)| *offset..offset.saturating_add(buffer.len() as u64))
            .collect();
        self.fetched(ranges.into_iter(), waiting, || {
            reads.iter_mut().try_for_each(|(offset, buffer)| self.read_held(*offset, buffer, stop))
        })
    }

    /// Fetches the missing parts of `ranges`, and calls `then` while they cannot be evicted.
    fn fetched(
        &self,
        ranges: impl Iterator<Item = Range<u64>>,
        mut waiting: Waiting<'_>,
        then: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let spans: Vec<Span> = ranges
            .map(|range| (range.start, range.end.min(self.length())))
            .filter(|(start, end)| start < end)
            .map(|(start, end)| Span { offset: start, length: end - start })
            .collect();
        let pins: Vec<_> = spans.iter().map(|&span| self.owner.object.file.pin(span)).collect();
        spans.iter().for_each(|&span| self.read_from_disk(span));
        let result = self.bring(&spans, &spans, &mut waiting).and_then(|()| then());
        drop(pins);
        result
    }

    /// Fills a buffer with bytes that are pinned in memory.
    fn read_held(&self, offset: u64, buffer: &mut [u8], stop: &AtomicBool) -> Result<()> {
        let left = self.length().saturating_sub(offset);
        let count = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let object = &self.owner.object;
        if object.file.read_into(offset, &mut buffer[..count]).is_ok() {
            object.link.counting.asked(count);
            return Ok(());
        }
        // Another flight has replaced the bytes: read them like any others.
        self.read_unless(offset, &mut buffer[..count], stop).map(drop)
    }

    /// Whether the bytes are in memory, so that reading them makes no request.
    pub fn holds(&self, range: Range<u64>) -> bool {
        let end = range.end.min(self.length());
        self.owner.object.file.has(range.start, end.saturating_sub(range.start))
    }

    /// Reads until `buffer` is full or the source ends, and returns the number of bytes. Gives up
    /// soon after `stop` becomes true; requests in flight complete nevertheless.
    ///
    /// # Errors
    /// As [`Source::read_at`]; [`Error::Closed`] if it gave up.
    pub fn read_unless(&self, offset: u64, buffer: &mut [u8], stop: &AtomicBool) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset.saturating_add(filled as u64);
            match self.read_some(at, &mut buffer[filled..], Waiting::unless(stop))? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }

    /// As [`Source::read_at`], with the given wait state.
    fn read_some(&self, offset: u64, buffer: &mut [u8], waiting: Waiting<'_>) -> Result<usize> {
        let left = self.length().saturating_sub(offset);
        let count =
            buffer.len().min(READ_BYTES_MAX).min(usize::try_from(left).unwrap_or(usize::MAX));
        if count == 0 {
            return Ok(0);
        }
        self.read(Span { offset, length: count as u64 }, &mut buffer[..count], waiting)
    }

    /// Waits until all of `asked` is held; fetches the missing parts of `fetch`.
    fn bring(&self, asked: &[Span], fetch: &[Span], waiting: &mut Waiting<'_>) -> Result<()> {
        loop {
            match self.owner.object.step(asked, fetch, waiting) {
                Step::Read => return Ok(()),
                Step::Failed(error) => return Err(error),
                Step::Look => {}
            }
        }
    }

    fn read_from_disk(&self, span: Span) {
        let object = &self.owner.object;
        let Some(disk) = &object.disk else { return };
        for missing in object.missing(span) {
            disk.load(missing, |offset, bytes| {
                object.link.counting.loaded(bytes.len());
                // Cached bytes that conflict with those held are ignored: the server will be asked.
                let _ = object.keep(offset, bytes, true);
            });
        }
    }

    /// Reads `asked` into `buffer`, which has the same length, and returns the number of bytes. Offline,
    /// it reads fewer if some are not cached: those before the first missing byte.
    fn read(&self, asked: Span, buffer: &mut [u8], mut waiting: Waiting<'_>) -> Result<usize> {
        let object = &self.owner.object;
        if let Some(error) = object.lost() {
            return Err(error);
        }
        // Pinned, so that bytes stay until they are read. Spans within the length do not overflow.
        let pin = object.file.pin(asked);
        self.read_from_disk(asked);
        let (fetch, ahead) = object.advise(asked);
        // Request the awaited bytes first.
        object.want(&object.missing(asked), &fetch, &mut waiting);
        object.fetch_ahead(ahead);
        let mut count = buffer.len();
        loop {
            if let Err(error) = self.bring(&[asked], &fetch, &mut waiting) {
                count = self.cached_front(asked, error)?;
            }
            if object.file.read_into(asked.offset, &mut buffer[..count]).is_ok() {
                break;
            }
        }
        drop(pin);
        object.link.counting.asked(count);
        Ok(count)
    }

    /// Returns the number of cached bytes at the start of `asked`, if `error` says that others are
    /// missing.
    fn cached_front(&self, asked: Span, error: Error) -> Result<usize> {
        let missing = self.owner.object.missing(asked);
        let end = missing.first().map_or(asked.end(), |missing| missing.offset);
        match error {
            // Fits, because the count is at most the length of the buffer.
            Error::NotCached { offset: Some(_), .. } if end > asked.offset => {
                Ok((end - asked.offset) as usize)
            }
            // The request that failed may be for a later part.
            Error::NotCached { source_name, offset: Some(_) } => {
                Err(Error::NotCached { source_name, offset: Some(end) })
            }
            error => Err(error),
        }
    }
}

impl Source for RemoteSource {
    fn name(&self) -> &str {
        &self.owner.object.name
    }

    fn length(&self) -> u64 {
        self.owner.object.version.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.read_some(offset, buffer, Waiting::default())?)
    }

    fn sector_bytes(&self) -> usize {
        SECTOR_BYTES
    }
}
