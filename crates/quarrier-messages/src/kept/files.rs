//! The segments of a log, each opened on first read.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use quarrier_core::region::{AlignedBuffer, PAGE_BYTES};
use quarrier_core::sync::lock;

use crate::log::disk::{Access, Disk, DiskFile};
use crate::log::{Place, Recent, payload_sum, segment, unpacked};

/// Batches up to this length are read together with their neighbours: a single inserted row takes a few
/// hundred bytes, and one disk read takes as long for a thousand of them.
const SMALL_BYTES_MAX: u64 = 32 << 10;
/// Bytes of a segment to read at once for small batches.
const STRETCH_BYTES: u64 = 512 << 10;
/// Maximum number of stretches to keep: about one per worker.
const STRETCHES_MAX: usize = 8;

/// Maximum number of segments to keep open.
const OPEN_MAX: usize = 32;
/// Maximum number of buffers to keep for later batches. The first touch of fresh memory costs more than the
/// read.
const IDLE_MAX: usize = 64;
const IDLE_BYTES_MAX: usize = 4 << 20;
const PAGE: u64 = PAGE_BYTES as u64;

/// Reads messages from the segments of a log, given their places.
pub(super) struct Files {
    disk: Arc<dyn Disk>,
    /// The batches that this process wrote last.
    recent: Arc<Recent>,
    open: Mutex<HashMap<u64, Arc<dyn DiskFile>>>,
    idle: Mutex<Vec<AlignedBuffer>>,
    stretches: Mutex<VecDeque<Arc<Stretch>>>,
}

/// Bytes of a segment as of the time of the read.
struct Stretch {
    segment: u64,
    first: u64,
    bytes: Vec<u8>,
}

impl Stretch {
    /// Returns the bytes in a range of the segment, if the stretch includes them.
    fn part(&self, range: &Range<u64>) -> Option<&[u8]> {
        let from = usize::try_from(range.start.checked_sub(self.first)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.first)?).ok()?;
        self.bytes.get(from..to)
    }
}

/// The messages of a batch in memory.
pub(super) enum Messages {
    /// As stored on disk, among other bytes.
    Stored {
        buffer: AlignedBuffer,
        messages: Range<usize>,
    },
    Unpacked(Vec<u8>),
    /// As stored, and still in memory.
    Recent(Arc<Vec<u8>>),
}

impl Messages {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Messages::Stored { buffer, messages } => &buffer[messages.clone()],
            Messages::Unpacked(bytes) => bytes,
            Messages::Recent(bytes) => bytes,
        }
    }
}

/// Explains why a segment that was there does not exist.
fn gone(segment: u64, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    let name = segment::name(segment);
    let what =
        format!("{name} no longer exists: retention removed its messages; read the table again");
    io::Error::new(io::ErrorKind::NotFound, what)
}

impl Files {
    pub(super) fn new(disk: Arc<dyn Disk>, recent: Arc<Recent>) -> Self {
        let (open, idle, stretches) = Default::default();
        Files { disk, recent, open, idle, stretches }
    }

    fn file(&self, segment: u64) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = lock(&self.open).get(&segment) {
            return Ok(Arc::clone(file));
        }
        let opened = self.disk.open(&segment::name(segment), Access::Read);
        let file: Arc<dyn DiskFile> = opened.map_err(|error| gone(segment, error))?.into();
        let mut open = lock(&self.open);
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        open.insert(segment, Arc::clone(&file));
        Ok(file)
    }

    /// Returns the messages of a batch: from memory if it was just written, and otherwise read with direct I/O
    /// (past the page cache) if the file system allows it, reusing memory of earlier batches. Decompresses them.
    ///
    /// # Errors
    /// The operating system's error; [`io::ErrorKind::InvalidData`] if the bytes differ from those written.
    pub(super) fn messages(&self, place: &Place) -> io::Result<Messages> {
        if let Some(stored) = self.recent.stored(place) {
            return Ok(match place.is_compressed {
                true => Messages::Unpacked(unpacked(&stored, place.bytes_unpacked as usize)?),
                false => Messages::Recent(stored),
            });
        }
        let start = place.offset.saturating_sub(u64::from(place.extension_bytes));
        let end = place.offset + u64::from(place.bytes);
        if end - start <= SMALL_BYTES_MAX
            && let Some(bytes) = self.small(place, &(start..end))
        {
            return Ok(Messages::Unpacked(bytes));
        }
        let (first, last) = (start - start % PAGE, end.next_multiple_of(PAGE));
        let mut buffer = self.buffer((last - first) as usize);
        let wanted = (end - first) as usize;
        let file = self.file(place.segment)?;
        let mut filled = 0;
        while filled < wanted {
            let room = (last - first) as usize;
            match file.read_at(first + filled as u64, &mut buffer[filled..room])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        let stored = (start - first) as usize..wanted;
        if payload_sum([&buffer[stored]]) != place.checksum {
            let what = format!(
                "the messages at byte {} of {} are not those that were written; 'quarrier reindex' \
                 of the data folder lists all that is damaged, and then all else can be read",
                place.offset,
                segment::name(place.segment)
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let messages = (place.offset - first) as usize..wanted;
        if !place.is_compressed {
            return Ok(Messages::Stored { buffer, messages });
        }
        let bytes = unpacked(&buffer[messages], place.bytes_unpacked as usize)?;
        self.give_back(buffer);
        Ok(Messages::Unpacked(bytes))
    }

    /// Returns the messages of a small batch, which occupies `range` of its segment; None if it must be read
    /// individually.
    fn small(&self, place: &Place, range: &Range<u64>) -> Option<Vec<u8>> {
        if place.is_compressed {
            return None;
        }
        let messages = |stretch: &Stretch| {
            // A batch that was not yet written when the stretch was read fails its checksum.
            let stored = stretch.part(range).filter(|it| payload_sum([*it]) == place.checksum)?;
            stored.get(place.extension_bytes as usize..).map(<[u8]>::to_vec)
        };
        let held = {
            let stretches = lock(&self.stretches);
            let is_there = |stretch: &&Arc<Stretch>| {
                stretch.segment == place.segment && stretch.part(range).is_some()
            };
            stretches.iter().rev().find(is_there).map(Arc::clone)
        };
        if let Some(found) = held.as_deref().and_then(messages) {
            return Some(found);
        }
        // The batch may be intact even if bytes after it cannot be read.
        let stretch = self.stretch(place.segment, range.start).ok()?;
        let found = messages(&stretch);
        let mut stretches = lock(&self.stretches);
        // Drop a stretch that was read too early.
        stretches.retain(|it| held.as_ref().is_none_or(|held| !Arc::ptr_eq(held, it)));
        if stretches.len() >= STRETCHES_MAX {
            stretches.pop_front();
        }
        stretches.push_back(Arc::new(stretch));
        found
    }

    /// Reads a stretch of a segment, from the page that contains an offset.
    fn stretch(&self, segment: u64, offset: u64) -> io::Result<Stretch> {
        let first = offset - offset % PAGE;
        let mut buffer = self.buffer(STRETCH_BYTES as usize);
        let file = self.file(segment)?;
        let mut filled = 0;
        while filled < STRETCH_BYTES as usize {
            let room = &mut buffer[filled..STRETCH_BYTES as usize];
            match file.read_at(first + filled as u64, room)? {
                0 => break,
                count => filled += count,
            }
        }
        let bytes = buffer[..filled].to_vec();
        self.give_back(buffer);
        Ok(Stretch { segment, first, bytes })
    }

    /// Recycles the memory of messages that nobody reads any longer.
    pub(super) fn recycle(&self, messages: Messages) {
        if let Messages::Stored { buffer, .. } = messages {
            self.give_back(buffer);
        }
    }

    fn give_back(&self, buffer: AlignedBuffer) {
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE_MAX && buffer.len() <= IDLE_BYTES_MAX {
            idle.push(buffer);
        }
    }

    /// Returns a buffer of at least `bytes` bytes.
    fn buffer(&self, bytes: usize) -> AlignedBuffer {
        let mut idle = lock(&self.idle);
        let found = idle.iter().position(|buffer| buffer.len() >= bytes);
        match found {
            Some(at) => idle.swap_remove(at),
            // Round up, since the next batch may be a little longer.
            None => AlignedBuffer::new(bytes.next_multiple_of(1 << 18)),
        }
    }
}
