//! Lists the batches of a log by their headers alone: reads a page for each batch, many pages in parallel.
//!
//! Handles only ordinary logs: closed, intact, without chains. For others, [`Reader`](super::Reader) reports
//! the details. Does not verify the checksums of messages; readers of the messages must.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quarrier_core::region::{AlignedBuffer, PAGE_BYTES};
use quarrier_core::threads;

use super::batch::{
    ABANDONED, CLOSED, CONTINUES, EXTENSION, EXTENSION_BYTES, Encoding, HEADER_BYTES, Header, MORE,
};
use super::disk::{Access, Disk, DiskFile};
use super::entry::Entry;
use super::error::Result;
use super::segment::{Before, HEAD_BYTES, Head};
use super::steps::segments;

/// Number of threads that wait for the disk.
const THREADS: usize = 8;
const PAGE: u64 = PAGE_BYTES as u64;

/// Returns all batches in the order of the log, without their messages; None if the whole log must be read.
///
/// # Errors
/// [`Error::Io`](super::Error::Io) if the folder cannot be listed.
pub(crate) fn skim(disk: &Arc<dyn Disk>) -> Result<Option<Vec<Entry>>> {
    let segments = segments(disk.as_ref())?;
    let next = AtomicUsize::new(0);
    let work = |_: usize| {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(segment) = segments.get(number) else { return done };
            let after = segments.get(number + 1);
            done.push((number, Segment::skimmed(disk.as_ref(), segment, after)));
        }
    };
    let mut all: Vec<(usize, Option<Segment>)> =
        threads::team(0..THREADS.min(segments.len()), work).into_iter().flatten().collect();
    all.sort_by_key(|(number, _)| *number);
    let mut entries = Vec::new();
    let mut expected = None;
    for (_, segment) in all {
        let Some(segment) = segment else { return Ok(None) };
        if expected.is_some_and(|expected| expected != segment.first_mark) {
            return Ok(None);
        }
        expected = Some(segment.next_mark);
        entries.extend(segment.entries);
    }
    Ok(Some(entries))
}

/// A segment with intact headers.
struct Segment {
    first_mark: u64,
    next_mark: u64,
    entries: Vec<Entry>,
}

impl Segment {
    fn skimmed(
        disk: &dyn Disk,
        (mark, name): &(u64, String),
        after: Option<&(u64, String)>,
    ) -> Option<Segment> {
        let mut pages = Pages::open(disk, name)?;
        let head = pages.head().filter(|head| head.first_mark == *mark)?;
        let limit = match after {
            Some((_, after)) => {
                let before = Pages::open(disk, after)?.head()?.before?;
                let Before { salt, end } = before;
                (salt == head.salt).then_some(end)?
            }
            None => {
                let length = pages.file.length().ok()?;
                length.is_multiple_of(u64::from(head.block_bytes)).then_some(length)?
            }
        };
        let mut segment = Segment { first_mark: *mark, next_mark: *mark, entries: Vec::new() };
        let (mut at, mut is_closed) = (HEAD_BYTES, false);
        while at < limit {
            match pages.header(at, head.salt) {
                Some(header) => {
                    is_closed = header.has(CLOSED);
                    at = segment.add(&mut pages, header, at, limit)?;
                }
                None => {
                    let next = at.next_multiple_of(u64::from(head.block_bytes));
                    let is_padding = next > at && next <= limit && pages.is_zero(at, next);
                    at = is_padding.then_some(next)?;
                }
            }
        }
        (at == limit && (after.is_some() || is_closed)).then_some(segment)
    }

    /// Adds a batch; returns the place where the next one may begin.
    fn add(&mut self, pages: &mut Pages, header: Header, at: u64, limit: u64) -> Option<u64> {
        let is_ordinary = header.mark == self.next_mark
            && !header.has(MORE)
            && !header.has(CONTINUES)
            && !header.has(ABANDONED)
            && at + header.extent() <= limit;
        if !is_ordinary {
            return None;
        }
        self.next_mark = header.next_mark();
        if header.encoding != Encoding::Note {
            let extension = if header.has(EXTENSION) { EXTENSION_BYTES as u64 } else { 0 };
            let extension = pages.bytes(at + HEADER_BYTES, extension)?.to_vec();
            self.entries.push(Entry::new(header, (self.first_mark, at), extension));
        }
        let next = at + header.extent();
        pages.is_zero(at + HEADER_BYTES + u64::from(header.bytes), next).then_some(next)
    }
}

/// A file, read two pages at a time.
struct Pages {
    file: Box<dyn DiskFile>,
    buffer: AlignedBuffer,
    /// Offset of the first page in memory, and the number of bytes in memory.
    held: Option<(u64, usize)>,
}

impl Pages {
    fn open(disk: &dyn Disk, name: &str) -> Option<Pages> {
        let file = disk.open(name, Access::Read).ok()?;
        Some(Pages { file, buffer: AlignedBuffer::new(2 * PAGE_BYTES), held: None })
    }

    /// Returns `count` bytes at `at`, at most a page; None if they are not available.
    fn bytes(&mut self, at: u64, count: u64) -> Option<&[u8]> {
        let is_held = self
            .held
            .is_some_and(|(start, filled)| start <= at && at + count <= start + filled as u64);
        if !is_held {
            let first = at - at % PAGE;
            let wanted = (at + count - first) as usize;
            let mut filled = 0;
            while filled < wanted {
                match self.file.read_at(first + filled as u64, &mut self.buffer[filled..]) {
                    Ok(0) | Err(_) => return None,
                    Ok(read) => filled += read,
                }
            }
            self.held = Some((first, filled));
        }
        let (start, _) = self.held?;
        let from = (at - start) as usize;
        self.buffer.get(from..from + count as usize)
    }

    /// Returns the head if both copies are intact.
    fn head(&mut self) -> Option<Head> {
        let (head, is_whole) = Head::from_bytes(self.bytes(0, HEAD_BYTES)?)?;
        is_whole.then_some(head)
    }

    fn header(&mut self, at: u64, salt: u64) -> Option<Header> {
        Header::of(self.bytes(at, HEADER_BYTES)?, at, salt)
    }

    fn is_zero(&mut self, from: u64, to: u64) -> bool {
        to - from <= PAGE
            && self.bytes(from, to - from).is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    }
}
