//! A sparse file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::counters::{Reader, Readers};
use crate::leaf::BYTES_MAX;
use crate::map::{Map, Place};
use crate::walk::Walk;
use crate::{Counters, Error, Merge, Result, Span};

/// How to handle a write that differs from the bytes held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Refuse the write, and change nothing: the remote file must have changed.
    #[default]
    Raise,
    /// Replace the bytes held.
    Replace,
}

/// The fetched parts of a file.
///
/// Methods that take `&self` may run in parallel. Offsets count from the start of the file, lengths
/// are in bytes; an empty range is always held and never needed. An error loses nothing.
///
/// Finding a byte costs a binary search over leaves of 64 KiB or 512 blocks and another within a
/// leaf (some 10 ns), or less in sequential reads. Writing costs the same plus a move of at most 64
/// KiB. A block of one byte takes 7 to 10 bytes of memory.
#[derive(Debug)]
pub struct SparseFile {
    pub(crate) identity: Identity,
    pub(crate) map: Map,
    /// A logical clock of uses, for LRU eviction.
    pub(crate) clock: Arc<AtomicU64>,
    pub(crate) pins: Vec<Span>,
    pub(crate) reads: Readers,
    /// All counts except those of reads.
    pub(crate) counts: Counters,
}

/// The file's properties besides its bytes, and its configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Identity {
    pub(crate) id: String,
    pub(crate) modified: Option<f64>,
    pub(crate) etag: Option<String>,
    pub(crate) length: Option<u64>,
    pub(crate) on_conflict: OnConflict,
    pub(crate) wipe: bool,
}

/// Builds a [`SparseFile`].
#[derive(Debug, Clone, Default)]
pub struct Builder {
    identity: Identity,
}

impl Builder {
    /// Sets the time when the file was last modified, in seconds since 1970.
    pub fn modified(mut self, seconds: f64) -> Self {
        self.identity.modified = Some(seconds);
        self
    }

    /// Sets the entity tag of this version of the file (RFC 9110, 8.8.3).
    pub fn etag(mut self, etag: impl Into<String>) -> Self {
        self.identity.etag = Some(etag.into());
        self
    }

    /// Sets the file's length in bytes: nothing beyond it is needed or accepted.
    pub fn length(mut self, bytes: u64) -> Self {
        self.identity.length = Some(bytes);
        self
    }

    /// Sets how to handle writes that differ from the bytes held.
    pub fn on_conflict(mut self, what: OnConflict) -> Self {
        self.identity.on_conflict = what;
        self
    }

    /// Sets whether memory is overwritten before it is freed.
    pub fn wipe(mut self, wipe: bool) -> Self {
        self.identity.wipe = wipe;
        self
    }

    /// Builds an empty file.
    pub fn build(self) -> SparseFile {
        SparseFile {
            map: Map::new(self.identity.wipe),
            identity: self.identity,
            clock: Arc::default(),
            pins: Vec::new(),
            reads: Readers::default(),
            counts: Counters::default(),
        }
    }
}

impl From<Identity> for Builder {
    fn from(identity: Identity) -> Self {
        Builder { identity }
    }
}

impl SparseFile {
    /// Creates an empty file without properties.
    pub fn new(id: impl Into<String>) -> Self {
        SparseFile::builder(id).build()
    }

    /// Builds a file with known properties.
    pub fn builder(id: impl Into<String>) -> Builder {
        Builder { identity: Identity { id: id.into(), ..Identity::default() } }
    }

    /// The file's name.
    pub fn id(&self) -> &str {
        &self.identity.id
    }

    /// The time when it was last modified, in seconds since 1970.
    pub fn modified(&self) -> Option<f64> {
        self.identity.modified
    }

    /// The entity tag.
    pub fn etag(&self) -> Option<&str> {
        self.identity.etag.as_deref()
    }

    /// The length in bytes, if known.
    pub fn length(&self) -> Option<u64> {
        self.identity.length
    }

    /// How writes that differ from the bytes held are handled.
    pub fn on_conflict(&self) -> OnConflict {
        self.identity.on_conflict
    }

    /// Whether memory is overwritten before it is freed.
    pub fn wipes(&self) -> bool {
        self.identity.wipe
    }

    /// Sets the file's length, in bytes.
    ///
    /// # Errors
    /// [`Error::BeyondLength`] if bytes beyond it are held.
    pub fn set_length(&mut self, bytes: u64) -> Result<()> {
        if let Some(offset) = self.map.next_held(bytes) {
            return Err(Error::BeyondLength { offset, length: 1, file_length: bytes });
        }
        self.identity.length = Some(bytes);
        Ok(())
    }

    /// Checks a range, and returns its end.
    fn checked(&self, offset: u64, length: u64) -> Result<u64> {
        let end = Span::new(offset, length).checked_end()?;
        match self.identity.length {
            Some(file_length) if end > file_length => {
                Err(Error::BeyondLength { offset, length, file_length })
            }
            _ => Ok(end),
        }
    }

    /// Whether all bytes of the range are held.
    pub fn has(&self, offset: u64, length: u64) -> bool {
        let held = self.map.find(offset, self.reads.mine().guess());
        // Fast path: usually a single run within the file has all the bytes.
        held.is_some_and(|place| length <= place.bytes.len() as u64)
            || self.checked(offset, length).is_ok_and(|end| self.held_until(offset, end) == end)
    }

    /// The offset of the next held byte at or after `offset`.
    pub(crate) fn next_held(&self, offset: u64) -> Option<u64> {
        self.map.next_held(offset)
    }

    /// The end of the contiguous held bytes that begin at `offset`, or `end` if that is less.
    fn held_until(&self, offset: u64, end: u64) -> u64 {
        let reader = self.reads.mine();
        let mut at = offset;
        while at < end {
            let Some(place) = self.map.find(at, reader.guess()) else { break };
            at = at.saturating_add(place.bytes.len() as u64);
        }
        at.min(end)
    }

    /// Writes bytes, and returns how many of them are new. They join adjacent blocks.
    ///
    /// # Errors
    /// [`Error::Conflict`] if a byte differs from the one held and conflicts do not replace,
    /// [`Error::BeyondLength`], [`Error::Overflow`]; then nothing is written.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<u64> {
        let length = data.len() as u64;
        let end = self.checked(offset, length)?;
        if data.is_empty() {
            return Ok(0);
        }
        let overlaps = self.map.next_held(offset).is_some_and(|next| next < end);
        let differs = overlaps && self.compare(offset, data)?;
        // One use for each leaf that the bytes fill.
        let uses = 1 + length / BYTES_MAX as u64;
        let stamp = self.clock.fetch_add(uses, Relaxed) + 1;
        let mut new_bytes = 0;
        let mut at = offset;
        while at < end {
            let next = if overlaps { self.map.next_held(at).unwrap_or(end).min(end) } else { end };
            let from = (at - offset) as usize;
            if next > at {
                self.map.insert(at, &data[from..(next - offset) as usize], stamp);
                new_bytes += next - at;
                at = next;
            } else {
                let held_end = self.held_until(at, end);
                if differs {
                    self.map.overwrite(at, &data[from..(held_end - offset) as usize], stamp);
                }
                at = held_end;
            }
        }
        self.counts.writes += 1;
        self.counts.written_bytes += length;
        self.counts.wasted_bytes += length - new_bytes;
        Ok(new_bytes)
    }

    /// Writes many ranges, whose bytes are concatenated in `data`, and returns the number of new
    /// bytes. Checks all ranges before it writes any.
    ///
    /// # Errors
    /// As [`write`](Self::write), for conflicts of the ranges with bytes held and with each other; then
    /// nothing is written.
    ///
    /// # Panics
    /// If `data` has fewer bytes than the ranges.
    pub fn write_many(
        &mut self,
        spans: impl Iterator<Item = Span> + Clone,
        data: &[u8],
    ) -> Result<u64> {
        self.check_many(spans.clone(), data)?;
        let (mut rest, mut new_bytes) = (data, 0);
        for span in spans {
            let (here, after) = rest.split_at(span.length as usize);
            rest = after;
            new_bytes += self.write(span.offset, here)?;
        }
        Ok(new_bytes)
    }

    /// Checks that all ranges can be written.
    fn check_many(&self, spans: impl Iterator<Item = Span> + Clone, data: &[u8]) -> Result<()> {
        let (mut first, mut last, mut is_ordered) = (u64::MAX, 0, true);
        for span in spans.clone() {
            let end = self.checked(span.offset, span.length)?;
            is_ordered &= span.offset >= last;
            (first, last) = (first.min(span.offset), last.max(end));
        }
        if self.identity.on_conflict == OnConflict::Replace {
            return Ok(());
        }
        // Usually the ranges are sorted, and nothing is held there.
        if self.map.next_held(first).is_some_and(|next| next < last) {
            let mut rest = data;
            for span in spans.clone() {
                let (here, after) = rest.split_at(span.length as usize);
                rest = after;
                self.compare(span.offset, here)?;
            }
        }
        if !is_ordered && do_overlap(spans.clone()) {
            let (mut alone, mut rest) = (SparseFile::new(""), data);
            for span in spans {
                let (here, after) = rest.split_at(span.length as usize);
                rest = after;
                alone.write(span.offset, here)?;
            }
        }
        Ok(())
    }

    /// Compares bytes with those held; returns whether any differ, or an error if that is a
    /// conflict.
    fn compare(&self, offset: u64, data: &[u8]) -> Result<bool> {
        let end = offset + data.len() as u64;
        let mut at = offset;
        while let Some(next) = self.map.next_held(at).filter(|&next| next < end) {
            let Some(place) = self.map.find(next, self.reads.mine().guess()) else { break };
            let given = &data[(next - offset) as usize..];
            let length = place.bytes.len().min(given.len());
            if place.bytes[..length] != given[..length] {
                if self.identity.on_conflict == OnConflict::Replace {
                    return Ok(true);
                }
                let mut pairs = place.bytes.iter().zip(given).zip(next..);
                if let Some(((&held, &given), offset)) =
                    pairs.find(|((held, given), _)| held != given)
                {
                    return Err(Error::Conflict { offset, held, given });
                }
            }
            at = next + length as u64;
        }
        Ok(false)
    }

    /// Reads the bytes of the range.
    ///
    /// # Errors
    /// [`Error::NotHeld`] with the first range that is missing, [`Error::BeyondLength`],
    /// [`Error::Overflow`].
    pub fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        // Allocate nothing if the bytes are not held.
        let mut bytes = Vec::new();
        for slice in self.slices(offset, length)? {
            bytes.reserve_exact(if bytes.is_empty() { length as usize } else { 0 });
            bytes.extend_from_slice(slice);
        }
        Ok(bytes)
    }

    /// Reads from `offset` on, until `buffer` is full.
    ///
    /// # Errors
    /// As [`SparseFile::read`]; `buffer` may have been written to.
    #[inline]
    pub fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let length = buffer.len() as u64;
        let reader = self.reads.mine();
        // Fast path: usually a single run within the file has all the bytes.
        match self.map.find(offset, reader.guess()) {
            Some(place) if buffer.len() <= place.bytes.len() => {
                copy(&place.bytes[..buffer.len()], buffer);
                self.touch(place);
            }
            _ => self.copy(offset, buffer, reader)?,
        }
        reader.hit(1, length);
        Ok(())
    }

    /// Reads many ranges into `buffer`, concatenated.
    ///
    /// # Errors
    /// As [`SparseFile::read`], for the first range that cannot be read.
    ///
    /// # Panics
    /// If the length of `buffer` is not the total length of the ranges.
    pub fn read_many_into(
        &self,
        spans: impl IntoIterator<Item = Span>,
        mut buffer: &mut [u8],
    ) -> Result<()> {
        let reader = self.reads.mine();
        let (mut count, mut bytes) = (0, 0);
        let mut result = Ok(());
        let mut walk: Option<Walk<'_>> = None;
        for span in spans {
            let (here, rest) = buffer.split_at_mut(span.length as usize);
            buffer = rest;
            if !self.copy_from(&mut walk, span.offset, here) {
                result = self.copy(span.offset, here, reader);
                walk = self.map.find(span.offset, reader.guess()).map(|p| Walk::at(span.offset, p));
            }
            if result.is_err() {
                break;
            }
            count += 1;
            bytes += span.length;
        }
        assert!(buffer.is_empty() || result.is_err(), "the buffer is longer than the ranges");
        reader.hit(count, bytes);
        result
    }

    /// Copies a range that is in the current or the next run; returns false otherwise.
    #[inline]
    fn copy_from(&self, walk: &mut Option<Walk<'_>>, offset: u64, buffer: &mut [u8]) -> bool {
        let Some(walk) = walk else { return false };
        let Some(held) = walk.seek(offset).and_then(|bytes| bytes.get(..buffer.len())) else {
            return false;
        };
        copy(held, buffer);
        self.touch(walk.place());
        true
    }

    /// As [`SparseFile::read_into`], without counting.
    #[inline]
    fn copy(&self, offset: u64, buffer: &mut [u8], reader: Reader<'_>) -> Result<()> {
        let length = buffer.len() as u64;
        self.checked(offset, length)?;
        let mut filled = 0;
        while filled < buffer.len() {
            let Some(place) = self.map.find(offset + filled as u64, reader.guess()) else {
                return Err(self.not_held(offset, length));
            };
            let count = place.bytes.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&place.bytes[..count]);
            filled += count;
            self.touch(place);
        }
        Ok(())
    }

    /// The bytes of the range as slices, without a copy.
    ///
    /// # Errors
    /// As [`SparseFile::read`].
    pub fn slices(&self, offset: u64, length: u64) -> Result<impl Iterator<Item = &[u8]>> {
        let end = self.checked(offset, length)?;
        if self.held_until(offset, end) != end {
            return Err(self.not_held(offset, length));
        }
        self.reads.mine().hit(1, length);
        let mut at = offset;
        Ok(std::iter::from_fn(move || {
            if at == end {
                return None;
            }
            let place = self.map.find(at, self.reads.mine().guess())?;
            self.touch(place);
            let count = (end - at).min(place.bytes.len() as u64);
            at += count;
            Some(&place.bytes[..count as usize])
        }))
    }

    #[cold]
    fn not_held(&self, offset: u64, length: u64) -> Error {
        self.reads.mine().miss();
        let mut missing = Span::new(offset, length);
        let mut is_first = true;
        self.for_each_missing(offset, missing.end(), |span| {
            if std::mem::take(&mut is_first) {
                missing = span;
            }
        });
        Error::NotHeld { offset, length, missing }
    }

    /// The missing ranges, in order and not adjacent. Bytes beyond the known length are not needed.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn need(&self, offset: u64, length: u64) -> Result<Vec<Span>> {
        let mut missing = Vec::new();
        self.for_each_need(Span::new(offset, length), |span| missing.push(span))?;
        Ok(missing)
    }

    /// Calls `each` with every missing range, in order; allocates nothing.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    #[inline]
    pub fn for_each_need(&self, span: Span, each: impl FnMut(Span)) -> Result<()> {
        let end = span.checked_end()?.min(self.identity.length.unwrap_or(u64::MAX));
        // Fast path: most calls are about a block that is held.
        let held = self
            .map
            .find(span.offset, self.reads.mine().guess())
            .map_or(0, |place| place.bytes.len() as u64);
        if span.offset.saturating_add(held) < end {
            self.for_each_missing(span.offset + held, end, each);
        }
        Ok(())
    }

    /// The missing parts of many ranges, which may overlap and come in any order, merged into
    /// requests.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn need_many(&self, wanted: &[Span], merge: &Merge) -> Result<Vec<Span>> {
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        let mut missing = Vec::new();
        let mut done = 0;
        for span in wanted {
            // Skip the part that an earlier range covers.
            let end = span.checked_end()?;
            let start = span.offset.max(done).min(end);
            self.for_each_need(Span::between(start, end), |span| missing.push(span))?;
            done = done.max(end);
        }
        Ok(merge.requests(missing, self.identity.length.unwrap_or(u64::MAX)))
    }

    fn for_each_missing(&self, offset: u64, end: u64, mut each: impl FnMut(Span)) {
        let mut at = offset;
        self.map.for_each_run(offset, end, |start, stop| {
            if start > at {
                each(Span::between(at, start));
            }
            at = stop;
        });
        if at < end {
            each(Span::between(at, end));
        }
    }

    /// The maximum number of ranges that [`SparseFile::need`] could return: one more than the
    /// number of blocks. Takes time proportional to the number of leaves.
    pub fn need_count_max(&self) -> usize {
        1 + self.map.leaves().map(|(_, leaf)| leaf.runs()).sum::<usize>()
    }

    /// Erases the held bytes of the range, and returns their number.
    ///
    /// # Errors
    /// [`Error::Pinned`] if a byte of it is pinned; then nothing is erased. [`Error::Overflow`].
    pub fn erase(&mut self, offset: u64, length: u64) -> Result<u64> {
        let span = Span::new(offset, length);
        let end = span.checked_end()?;
        let overlaps = |pin: &&Span| pin.offset < end && offset < pin.end();
        if let Some(&span) = self.pins.iter().find(overlaps) {
            return Err(Error::Pinned { span });
        }
        let erased = self.map.remove(span);
        self.counts.erased_bytes += erased;
        Ok(erased)
    }

    /// Erases everything that is not pinned, and returns the number of bytes.
    pub fn clear(&mut self) -> u64 {
        if self.pins.is_empty() {
            let erased = self.map.len_bytes();
            self.map = Map::new(self.identity.wipe);
            self.counts.erased_bytes += erased;
            return erased;
        }
        let evicted = self.evict(0);
        self.counts.evicted_bytes -= evicted;
        self.counts.erased_bytes += evicted;
        evicted
    }

    /// The blocks held, in order and not adjacent.
    pub fn blocks(&self) -> Vec<Span> {
        let mut blocks: Vec<Span> = Vec::new();
        self.map.for_each_run(0, u64::MAX, |start, end| match blocks.last_mut() {
            Some(last) if last.end() == start => last.length = end - last.offset,
            _ => blocks.push(Span::between(start, end)),
        });
        blocks
    }

    /// The offset after the last byte held, or 0 if none is held.
    pub fn held_end(&self) -> u64 {
        self.map.held_end()
    }

    /// The number of bytes held.
    pub fn num_bytes(&self) -> u64 {
        self.map.len_bytes()
    }

    /// The number of blocks held. Takes time proportional to the number of leaves.
    pub fn num_blocks(&self) -> usize {
        let mut end = None;
        let mut count = 0;
        for (key, leaf) in self.map.leaves() {
            count += leaf.runs() - usize::from(end == Some(key));
            end = Some(key + leaf.last_end());
        }
        count
    }

    /// Bytes of memory used, without the allocator's overhead.
    pub fn memory_bytes(&self) -> usize {
        size_of::<SparseFile>() - size_of::<Map>() + self.map.memory_bytes()
    }

    /// The current counters.
    pub fn counters(&self) -> Counters {
        let (hits, misses, read_bytes) = self.reads.sums();
        Counters { hits, misses, read_bytes, ..self.counts }
    }

    /// Records a use of a place.
    ///
    /// With many leaves, a leaf used among the last eighth of all is not updated again: parallel
    /// readers would only contend for the clock.
    #[inline]
    fn touch(&self, place: Place<'_>) {
        let leaves = self.map.leaf_count() as u64;
        let recent = if leaves >= 64 { leaves / 8 } else { 0 };
        let used = place.leaf.last_used(place.run);
        if used + recent < self.clock.load(Relaxed) {
            place.leaf.use_run(place.run, self.clock.fetch_add(1, Relaxed) + 1);
        }
    }
}

/// Copies bytes into a slice of the same length. For a single byte, calling `memcpy` would take
/// longer than the rest of a read.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    match (from, &mut *to) {
        (&[byte], [place]) => *place = byte,
        _ => to.copy_from_slice(from),
    }
}

/// Whether any two of the ranges overlap.
fn do_overlap(spans: impl Iterator<Item = Span>) -> bool {
    let mut spans: Vec<(u64, u64)> =
        spans.filter(|s| s.length > 0).map(|s| (s.offset, s.offset + s.length)).collect();
    spans.sort_unstable();
    spans.windows(2).any(|pair| pair[1].0 < pair[0].1)
}
