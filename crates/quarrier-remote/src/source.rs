//! A remote object as a source: reads return held bytes and fetch missing ones.

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
use crate::location::Location;
use crate::object::{Object, Step, Waiting};
use crate::opening;
use crate::shared::Shared;

/// An object on a server, opened. Clones are the same source.
///
/// Reads from many threads are welcome: bytes on their way are waited for, not fetched twice.
/// When the last clone is dropped, its requests end and its memory is free.
#[derive(Clone)]
pub struct RemoteSource {
    owner: Arc<Owner>,
}

/// Lives as long as there is a clone of the source; requests do not keep it.
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

/// The smallest unit that a failing read is tried again in: what else would be listed as
/// unreadable byte by byte.
const SECTOR_BYTES: usize = 64 << 10;
/// The most that one read gives, so that a huge one does not need as much memory twice.
const READ_BYTES_MAX: usize = 32 << 20;

impl RemoteSource {
    /// Gives up when `stop` becomes true.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        location: Location,
        stop: Option<&AtomicBool>,
    ) -> Result<Self> {
        let name = location.name.clone();
        let link = Link::new(&location, shared.client.clone(), &shared.options)?;
        let identity = bucket::identity(&location.identity, &location.place, &shared.options.s3);
        if shared.options.offline {
            return RemoteSource::of_cache(shared, link, name, &identity);
        }
        let (options, asked_name) = (shared.options.clone(), name.clone());
        let asked = async move {
            let opened = opening::open(&link, &asked_name, &options).await;
            (link, opened)
        };
        let Some((link, opened)) = shared.wait_for(asked, stop) else {
            return Err(Error::Closed { source_name: name });
        };
        let opened = opened?;
        let source = RemoteSource::of_version(shared, link, name, &identity, opened.version)?;
        // An object that holds nothing yet has nothing to differ from.
        let _ = source.owner.object.keep(opened.offset, &opened.bytes, false);
        Ok(source)
    }

    /// Opens the version in the cache that was used last.
    fn of_cache(shared: &Arc<Shared>, link: Link, name: String, identity: &str) -> Result<Self> {
        let Some(folder) = &shared.folder else {
            let reason =
                "offline, objects are read from the cache on disk, and none is named".to_string();
            return Err(Error::Setup { reason });
        };
        match folder.last_version(identity) {
            Some(version) => RemoteSource::of_version(shared, link, name, identity, version),
            None => Err(Error::NotCached { source_name: name, offset: None }),
        }
    }

    /// A version of an object, of which nothing is held in memory.
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

    /// How many bytes of the object are in the cache on disk; `None` if it is not kept there: the cache is
    /// off or in use elsewhere, or the server tells no version.
    pub fn cached_bytes(&self) -> Option<u64> {
        self.owner.object.disk.as_ref().map(Entry::held_bytes)
    }

    /// The ETag that the server sent, with its quotes.
    pub fn etag(&self) -> Option<&str> {
        self.owner.object.version.etag.as_deref()
    }

    /// The date of the last modification that the server sent.
    pub fn last_modified(&self) -> Option<&str> {
        self.owner.object.version.last_modified.as_deref()
    }

    /// The cost of reads so far.
    pub fn counters(&self) -> Counters {
        self.owner.object.link.counting.read()
    }

    /// Says that `range` will be read from its start to its end, by one thread or several, so
    /// that it is fetched at full speed from the first read on, and nothing beyond it.
    pub fn announce(&self, range: Range<u64>) {
        let end = range.end.min(self.length());
        let length = end.saturating_sub(range.start);
        self.owner.object.announce(Span { offset: range.start, length });
    }

    /// Fetches the missing parts of `ranges`: close ones by one request, by the cost model, and
    /// requests in parallel. Returns when all are held. Parts beyond the length are ignored. The ranges
    /// should fit into the memory of the [`Remote`](crate::Remote).
    ///
    /// # Errors
    /// As a read of any of them.
    pub fn fetch_many(&self, ranges: &[Range<u64>]) -> Result<()> {
        let spans: Vec<Span> = ranges
            .iter()
            .map(|range| (range.start, range.end.min(self.length())))
            .filter(|(start, end)| start < end)
            .map(|(start, end)| Span { offset: start, length: end - start })
            .collect();
        let pins: Vec<_> = spans.iter().map(|&span| self.owner.object.file.pin(span)).collect();
        spans.iter().for_each(|&span| self.read_from_disk(span));
        let result = self.bring(&spans, &spans, &mut Waiting::default());
        drop(pins);
        result
    }

    /// Whether the bytes are held, so that reading them makes no request.
    pub fn holds(&self, range: Range<u64>) -> bool {
        let end = range.end.min(self.length());
        self.owner.object.file.has(range.start, end.saturating_sub(range.start))
    }

    /// Reads until `buffer` is full or the source ends, and returns the number of bytes. Gives up soon
    /// after `stop` becomes true; requests in flight complete nevertheless.
    ///
    /// # Errors
    /// As [`Source::read_at`]; [`Error::Closed`] when it was given up.
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

    /// As [`Source::read_at`], waiting as `waiting` says.
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
                // Bytes that differ from those held are left alone: the server is asked.
                let _ = object.keep(offset, bytes, true);
            });
        }
    }

    /// Reads `asked` into `buffer`, which has its length. Offline, it may read only the front of that: the
    /// bytes before the first one that is not cached. Returns how many it read.
    fn read(&self, asked: Span, buffer: &mut [u8], mut waiting: Waiting<'_>) -> Result<usize> {
        let object = &self.owner.object;
        if let Some(error) = object.lost() {
            return Err(error);
        }
        // Pinned, so that bytes stay until they have been read. Nothing overflows within the length.
        let pin = object.file.pin(asked);
        self.read_from_disk(asked);
        let (fetch, ahead) = object.advise(asked);
        // The awaited bytes go first.
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

    /// The bytes at the start of `asked` that can be read in spite of `error`: those before the first that
    /// is not in the cache.
    fn cached_front(&self, asked: Span, error: Error) -> Result<usize> {
        let missing = self.owner.object.missing(asked);
        let end = missing.first().map_or(asked.end(), |missing| missing.offset);
        match error {
            // A front is shorter than the buffer.
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
