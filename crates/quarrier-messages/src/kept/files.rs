//! The segments of a log, opened when something in them is read.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use quarrier_core::region::{AlignedBuffer, PAGE_BYTES};
use quarrier_core::sync::lock;

use crate::log::disk::{Access, Disk, DiskFile};
use crate::log::{Place, payload_sum, segment, unpacked};

/// Batches up to this length are read together with those around them: single rows that were inserted
/// take a few hundred bytes, and a read of the disk takes as long for a thousand of them.
const SMALL_BYTES_MAX: u64 = 32 << 10;
/// So many bytes of a segment are read for them at once.
const STRETCH_BYTES: u64 = 512 << 10;
/// Stretches that are held: about one a worker.
const STRETCHES_MAX: usize = 8;

/// Segments that are held open at once.
const OPEN_MAX: usize = 32;
/// Buffers that are held for the next batch. Memory that is touched for the first time costs more than
/// the read.
const IDLE_MAX: usize = 64;
const IDLE_BYTES_MAX: usize = 4 << 20;
const PAGE: u64 = PAGE_BYTES as u64;

/// The segments of a log, to read messages from at their places.
pub(super) struct Files {
    disk: Arc<dyn Disk>,
    open: Mutex<HashMap<u64, Arc<dyn DiskFile>>>,
    idle: Mutex<Vec<AlignedBuffer>>,
    stretches: Mutex<VecDeque<Arc<Stretch>>>,
}

/// Bytes of a segment, as they were when they were read.
struct Stretch {
    segment: u64,
    first: u64,
    bytes: Vec<u8>,
}

impl Stretch {
    /// The bytes of a range of the segment, if it has them.
    fn part(&self, range: &Range<u64>) -> Option<&[u8]> {
        let from = usize::try_from(range.start.checked_sub(self.first)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.first)?).ok()?;
        self.bytes.get(from..to)
    }
}

/// The messages of a batch in memory.
pub(super) enum Messages {
    /// As they lie on the disk, among other bytes.
    Stored {
        buffer: AlignedBuffer,
        messages: Range<usize>,
    },
    Unpacked(Vec<u8>),
}

impl Messages {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Messages::Stored { buffer, messages } => &buffer[messages.clone()],
            Messages::Unpacked(bytes) => bytes,
        }
    }
}

impl Files {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        let (open, idle, stretches) = Default::default();
        Files { disk, open, idle, stretches }
    }

    fn file(&self, segment: u64) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = lock(&self.open).get(&segment) {
            return Ok(Arc::clone(file));
        }
        let file: Arc<dyn DiskFile> = self.disk.open(&segment::name(segment), Access::Read)?.into();
        let mut open = lock(&self.open);
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        open.insert(segment, Arc::clone(&file));
        Ok(file)
    }

    /// The messages of a batch, unpacked. They are read past the page cache where the file system
    /// lets us, into memory that was used before.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::InvalidData`] where they are not what was written.
    pub(super) fn messages(&self, place: &Place) -> io::Result<Messages> {
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

    /// The messages of a small batch, which take the range of its segment; None where they are read by
    /// themselves.
    fn small(&self, place: &Place, range: &Range<u64>) -> Option<Vec<u8>> {
        if place.is_compressed {
            return None;
        }
        let messages = |stretch: &Stretch| {
            // What was not yet written when the stretch was read is not what its checksum says.
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
        // The batch is intact even if bytes after it cannot be read.
        let stretch = self.stretch(place.segment, range.start).ok()?;
        let found = messages(&stretch);
        let mut stretches = lock(&self.stretches);
        // One that was read too early is of no use any more.
        stretches.retain(|it| held.as_ref().is_none_or(|held| !Arc::ptr_eq(held, it)));
        if stretches.len() >= STRETCHES_MAX {
            stretches.pop_front();
        }
        stretches.push_back(Arc::new(stretch));
        found
    }

    /// Reads a stretch of a segment, from the page on in which an offset lies.
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

    /// Takes the memory of messages that nobody reads any more.
    pub(super) fn let_go(&self, messages: Messages) {
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

    /// A buffer of at least so many bytes.
    fn buffer(&self, bytes: usize) -> AlignedBuffer {
        let mut idle = lock(&self.idle);
        let found = idle.iter().position(|buffer| buffer.len() >= bytes);
        match found {
            Some(at) => idle.swap_remove(at),
            // A little more, for the next batch may be a little longer.
            None => AlignedBuffer::new(bytes.next_multiple_of(1 << 18)),
        }
    }
}
