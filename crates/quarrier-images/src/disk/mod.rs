//! A virtual disk as a source; each format maps its offsets.
//!
//! ```text
//!  offset ──→ Layout::run ──→ zeros │ the parent's │ stored: file, place │ packed: unpacked, kept
//! ```

mod kept;

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use quarrier_core::region::Region;
use quarrier_core::source::Source;
use quarrier_core::sync::lock;

use crate::fault::{invalid, room};
pub(crate) use kept::BlockCache;

/// The unit of sizes and offsets in image formats, whatever the sector size of the disk.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// The location of a run of bytes of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Stored nowhere: all zeros.
    Zeros,
    /// In the parent, at the same offset; zeros if the parent is shorter or does not exist.
    Parent,
    /// Uncompressed, in one of the files.
    Stored { file: usize, at: u64 },
    /// In a compressed block that begins at `start` of the disk; [`Layout::unpack`] finds it by its
    /// `key`.
    Packed { key: u64, start: u64, bytes: usize },
}

impl Place {
    /// The location `bytes` bytes further on, if the run continues.
    fn further(self, bytes: u64) -> Place {
        match self {
            Place::Stored { file, at } => Place::Stored { file, at: at.saturating_add(bytes) },
            other => other,
        }
    }
}

/// A run of bytes with one location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Its length, at least 1.
    pub(crate) bytes: u64,
    pub(crate) place: Place,
}

/// A format's mapping of offsets to locations.
pub(crate) trait Layout: Send + Sync {
    /// The run that begins at `offset`, which is less than the length of the disk.
    ///
    /// # Errors
    /// If the tables of the format cannot be read or have impossible values.
    fn run(&self, offset: u64) -> io::Result<Run>;

    /// Decompresses the block of a [`Place::Packed`] into `block`, which has its length.
    ///
    /// # Errors
    /// If it cannot be read, or its bytes are invalid.
    fn unpack(&self, key: u64, block: &mut [u8]) -> io::Result<()> {
        let _ = (key, block);
        Err(invalid("this format has no compressed blocks"))
    }
}

/// Maximum length of a range of data that `next_data` returns.
const DATA_BYTES_MAX: u64 = 64 << 20;
/// Shorter runs of zeros count as data, because skipping them would cost more.
const GAP_BYTES_MAX: u64 = 256 << 10;

/// A disk of some format.
pub(crate) struct Disk<L> {
    pub(crate) name: String,
    pub(crate) length: u64,
    pub(crate) layout: L,
    /// The files that [`Place::Stored`] indexes.
    pub(crate) files: Vec<Arc<dyn Source>>,
    pub(crate) parent: Option<Arc<dyn Source>>,
    /// The unit in which reads succeed or fail.
    pub(crate) sector_bytes: usize,
    /// Whether most of it is compressed, so that windows would show little of it.
    is_packed: bool,
    kept: BlockCache,
    /// The data that was found last in a file.
    found: Mutex<Option<FoundData>>,
}

/// What a file said of its data: it takes time in proportion to the rest of the file on some systems
/// (tmpfs), and many runs lie in the same range.
struct FoundData {
    file: Option<usize>,
    /// From the offset that was asked for to the end of the data.
    asked: Range<u64>,
    data_start: u64,
}

impl<L: Layout> Disk<L> {
    /// A disk without compressed blocks.
    pub(crate) fn stored(name: &str, length: u64, layout: L, files: Vec<Arc<dyn Source>>) -> Self {
        Disk {
            name: name.to_string(),
            length,
            layout,
            files,
            parent: None,
            sector_bytes: 4096,
            is_packed: false,
            kept: BlockCache::default(),
            found: Mutex::new(None),
        }
    }

    /// A disk whose blocks, of up to `block_bytes`, may be compressed.
    pub(crate) fn packed(
        name: &str,
        length: u64,
        layout: L,
        files: Vec<Arc<dyn Source>>,
        block_bytes: usize,
    ) -> Self {
        let sector_bytes = block_bytes.max(512);
        Disk { sector_bytes, is_packed: true, ..Disk::stored(name, length, layout, files) }
    }

    /// Sets the parent, which has the bytes that this disk does not store.
    pub(crate) fn over(mut self, parent: Option<Arc<dyn Source>>) -> Self {
        self.sector_bytes =
            self.sector_bytes.max(parent.as_ref().map_or(0, |parent| parent.sector_bytes()));
        self.is_packed |= parent.as_ref().is_some_and(|parent| parent.is_packed());
        self.parent = parent;
        self
    }

    /// The run at `offset`, cut at the end of the disk.
    fn run(&self, offset: u64) -> io::Result<Run> {
        let Run { bytes, place } = self.layout.run(offset)?;
        let left = self.length - offset;
        match (place, &self.parent) {
            (Place::Parent, None) => Ok(Run { bytes: bytes.min(left), place: Place::Zeros }),
            (Place::Parent, Some(parent)) if parent.length() <= offset => {
                Ok(Run { bytes: bytes.min(left), place: Place::Zeros })
            }
            (Place::Parent, Some(parent)) => {
                Ok(Run { bytes: bytes.min(left).min(parent.length() - offset), place })
            }
            _ => Ok(Run { bytes: bytes.min(left), place }),
        }
    }

    /// The location of the bytes from `offset` on, and the end of the range, at most `end`, that has
    /// them at consecutive places of one file.
    fn contiguous(&self, offset: u64, end: u64) -> io::Result<(Place, u64)> {
        let first = self.run(offset)?;
        // Tables often end before the data that they map.
        let mut bytes = first.bytes;
        while bytes < end - offset {
            match self.run(offset + bytes) {
                Ok(next) if next.place == first.place.further(bytes) => bytes += next.bytes,
                _ => break,
            }
        }
        Ok((first.place, offset + bytes.min(end - offset)))
    }

    /// The file that can show bytes with this location, and their offset in it.
    fn shown_by(&self, offset: u64, place: Place) -> Option<(&dyn Source, u64)> {
        match place {
            Place::Parent => Some((&**self.parent.as_ref()?, offset)),
            Place::Stored { file, at } => Some((&**self.files.get(file)?, at)),
            Place::Zeros | Place::Packed { .. } => None,
        }
    }

    /// The first part of `range`, whose bytes are contiguous from `place` on, that one window can show.
    fn window_within(&self, range: Range<u64>, place: Place, bytes_min: u64) -> Option<Range<u64>> {
        let (file, at) = self.shown_by(range.start, place)?;
        let end = at.checked_add(range.end - range.start)?.min(file.length());
        let window = (at < end).then(|| file.next_window(at..end, bytes_min))??;
        Some(range.start + (window.start - at)..range.start + (window.end - at))
    }

    /// Reads from one run, and returns the number of bytes.
    fn read_run(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Run { bytes, place } = self.run(offset)?;
        let count = usize::try_from(bytes).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..count];
        let (file, at) = match place {
            Place::Zeros => {
                buffer.fill(0);
                return Ok(count);
            }
            Place::Packed { key, start, bytes } => {
                return self.read_packed(offset, (key, start, bytes), buffer).map(|()| count);
            }
            Place::Parent => (self.parent.as_ref(), offset),
            Place::Stored { file, at } => (self.files.get(file), at),
        };
        let Some(file) = file else { return Err(invalid("it is in a file that is missing")) };
        match file.read_at(at, buffer)? {
            0 => Err(invalid(format!("{} ends before byte {at}", file.name()))),
            read => Ok(read),
        }
    }

    fn read_packed(
        &self,
        offset: u64,
        (key, start, bytes): (u64, u64, usize),
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let from = (offset - start) as usize;
        if from == 0 && buffer.len() == bytes {
            return self.layout.unpack(key, buffer);
        }
        let block = self.kept.block(start, || {
            let mut block = room(bytes)?;
            self.layout.unpack(key, &mut block)?;
            Ok(block)
        })?;
        match block.get(from..from + buffer.len()) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => return Err(invalid("a block is too short")),
        }
        Ok(())
    }

    /// The first data of a file from `at` on.
    fn next_data_in(
        &self,
        index: Option<usize>,
        file: &dyn Source,
        at: u64,
    ) -> io::Result<Option<Range<u64>>> {
        let is_found = |found: &&FoundData| found.file == index && found.asked.contains(&at);
        if let Some(found) = lock(&self.found).as_ref().filter(is_found) {
            return Ok(Some(found.data_start.max(at)..found.asked.end));
        }
        let data = file.next_data(at)?;
        if let Some(data) = &data {
            let (asked, data_start) = (at..data.end, data.start);
            *lock(&self.found) = Some(FoundData { file: index, asked, data_start });
        }
        Ok(data)
    }

    /// The part of the run at `offset` that is not known to be zero.
    fn data_of(&self, offset: u64, Run { bytes, place }: Run) -> io::Result<Option<Range<u64>>> {
        let whole = offset..offset + bytes;
        let (index, file, at) = match place {
            Place::Zeros => return Ok(None),
            Place::Packed { .. } => return Ok(Some(whole)),
            Place::Parent => (None, self.parent.as_ref(), offset),
            Place::Stored { file, at } => (Some(file), self.files.get(file), at),
        };
        let Some(file) = file else { return Ok(Some(whole)) };
        // Asking costs more than reading a little. A truncated file counts as data, so that readers get
        // the error.
        if bytes <= GAP_BYTES_MAX || at.saturating_add(bytes) > file.length() {
            return Ok(Some(whole));
        }
        let Some(data) = self.next_data_in(index, &**file, at)? else { return Ok(None) };
        let start = data.start.max(at) - at;
        let end = data.end.saturating_sub(at).min(bytes);
        Ok((start < end).then(|| offset + start..offset + end))
    }
}

impl<L: Layout> Source for Disk<L> {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset.saturating_add(filled as u64);
            if at >= self.length {
                break;
            }
            match self.read_run(at, &mut buffer[filled..]) {
                Ok(read) => filled += read,
                // Return the bytes read; the next read fails.
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let (mut at, mut found) = (offset, None::<Range<u64>>);
        while at < self.length {
            if found.as_ref().is_some_and(|found| {
                at - found.end > GAP_BYTES_MAX || found.end - found.start >= DATA_BYTES_MAX
            }) {
                break;
            }
            let run = self.run(at).and_then(|run| Ok((run, self.data_of(at, run)?)));
            let (run, data) = match run {
                Ok(run) => run,
                Err(_) => {
                    // Count the sector as data: reading it reports the error.
                    let end = self.length.min(at.saturating_add(self.sector_bytes as u64));
                    found.get_or_insert(at..end).end = end;
                    break;
                }
            };
            let mut next = at + run.bytes;
            if let Some(data) = data {
                // More data may follow in the same run.
                next = data.end.min(next);
                if found.as_ref().is_some_and(|found| data.start - found.end > GAP_BYTES_MAX) {
                    break;
                }
                found.get_or_insert(data.clone()).end = data.end;
            }
            at = next;
        }
        Ok(found)
    }

    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        if range.end > self.length || range.start >= range.end {
            return None;
        }
        let (place, contiguous_end) = self.contiguous(range.start, range.end).ok()?;
        if contiguous_end < range.end {
            return None;
        }
        let (file, at) = self.shown_by(range.start, place)?;
        let end = at.checked_add(range.end - range.start).filter(|&end| end <= file.length())?;
        file.window(at..end)
    }

    fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
        let (mut at, end) = (range.start, range.end.min(self.length));
        while at < end {
            let (place, contiguous_end) = self.contiguous(at, end).ok()?;
            if contiguous_end - at >= bytes_min
                && let Some(window) = self.window_within(at..contiguous_end, place, bytes_min)
            {
                return Some(window);
            }
            at = contiguous_end;
        }
        None
    }

    fn is_resident(&self) -> bool {
        !self.is_packed && self.files.iter().chain(&self.parent).all(|file| file.is_resident())
    }

    fn is_packed(&self) -> bool {
        self.is_packed
    }

    fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }
}
