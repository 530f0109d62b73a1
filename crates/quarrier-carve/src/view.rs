//! Views: validators see a candidate as the bytes of a file, wherever these are in the source.

use std::io;
use std::ops::Range;

use quarrier_core::ranges::push_merged;
use quarrier_core::region::{AsData, Shown};
use quarrier_core::source::{Source, read_full_at};

/// Maximum length of the piece that [`View::take`] returns, in bytes.
pub const TAKE_BYTES_MAX: usize = 64 << 10;

/// Windows begin at multiples of this.
const WINDOW_ALIGN_BYTES: u64 = 8 << 20;
pub(crate) const WINDOW_BYTES: u64 = 16 << 20;
/// Maximum number of windows of a view. Some files are read at several places in turn, and
/// unmapping a window makes all processors wait for each other.
pub(crate) const WINDOWS_MAX: usize = 4;
/// The size of a sector: the smallest block of file systems, at whose multiples files begin.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Bytes per step of a search.
const FIND_BYTES: u64 = 64 << 10;
/// The minimum cost of a search, in bytes of fuel.
const FIND_FUEL: u64 = 32;
/// A read within this distance of the last one costs nothing extra.
const JUMP_BYTES_MIN: u64 = 16 << 10;
/// The cost of a jump, in bytes of fuel.
const PAGE_FUEL: u64 = 512;
const WINDOW_FUEL: u64 = 8 << 10;
/// Bytes per read of a source without windows.
const BUFFER_BYTES: u64 = 1 << 20;

/// Contiguous bytes of a file in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The offset in the source, in bytes.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

impl Extent {
    /// Returns the offset after the last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// Returns the first `length` bytes of `extents`.
pub(crate) fn cut(extents: &[Extent], length: u64) -> Vec<Extent> {
    let mut left = length;
    let mut kept = Vec::new();
    for extent in extents {
        if left == 0 {
            break;
        }
        let length = extent.length.min(left);
        kept.push(Extent { offset: extent.offset, length });
        left -= length;
    }
    kept
}

/// The bytes of a candidate, as far as their places are known: concatenated extents of a source. A
/// validator requests bytes by their place in the file.
///
/// Every requested byte costs fuel. When the fuel runs out, the view ends there, like a truncated
/// file, and [`is_starved`](View::is_starved) returns true. That bounds the time of every
/// validator, however hostile the lengths that it reads. A validator that does more work than
/// reading (a decompressor) pays for it by [`spend`](View::spend).
pub struct View<'s> {
    source: &'s dyn Source,
    extents: Vec<Extent>,
    /// The start of each extent in the file, and finally the length of the file.
    starts: Vec<u64>,
    at_hand: Option<Piece<'s>>,
    /// Pieces used before, the most recent last.
    aside: Vec<Piece<'s>>,
    pieces_max: usize,
    /// A buffer that is no longer needed, for reuse.
    spare: Option<Vec<u8>>,
    joined: Vec<u8>,
    fuel_bytes: u64,
    is_starved: bool,
    /// The offset in the source of the last byte shown, if jumps from there have a cost.
    last: Option<u64>,
    unreadable: Vec<Range<u64>>,
    promise: Option<AsData>,
}

/// Bytes of the source from an offset on.
struct Piece<'s> {
    from: u64,
    bytes: Bytes<'s>,
    /// Ranges that could not be read from the source; they are zero here.
    bad: Vec<Range<u64>>,
}

enum Bytes<'s> {
    Window(Shown<'s>),
    Buffer(Vec<u8>),
}

impl Piece<'_> {
    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Window(shown) => shown.bytes(),
            Bytes::Buffer(bytes) => bytes,
        }
    }

    fn is_torn(&self) -> bool {
        matches!(&self.bytes, Bytes::Window(shown) if shown.is_torn())
    }

    /// Whether it contains the byte at `offset` of the source.
    fn shows(&self, offset: u64) -> bool {
        !self.is_torn() && (self.from..self.from + self.bytes().len() as u64).contains(&offset)
    }
}

impl<'s> View<'s> {
    /// Makes an empty view; [`look_at`](View::look_at) gives it extents.
    pub fn new(source: &'s dyn Source) -> Self {
        View {
            source,
            extents: Vec::new(),
            starts: vec![0],
            at_hand: None,
            aside: Vec::new(),
            pieces_max: WINDOWS_MAX,
            spare: None,
            joined: Vec::new(),
            fuel_bytes: u64::MAX,
            is_starved: false,
            last: None,
            unreadable: Vec::new(),
            promise: None,
        }
    }

    /// As [`new`](View::new), with at most `windows_max` windows. With `promise`, they may show
    /// bytes that others may change, such as those of files; otherwise these are copied.
    pub(crate) fn with_windows(
        source: &'s dyn Source,
        windows_max: usize,
        promise: Option<AsData>,
    ) -> Self {
        View { pieces_max: windows_max, promise, ..Self::new(source) }
    }

    /// Makes another, empty view of the same source.
    pub(crate) fn another(&self) -> Self {
        View::with_windows(self.source, WINDOWS_MAX, self.promise)
    }

    /// Makes a view of `extents` with unlimited fuel. It omits parts beyond the source.
    pub fn of(source: &'s dyn Source, extents: &[Extent]) -> Self {
        let mut view = Self::new(source);
        view.look_at(extents, u64::MAX);
        view
    }

    /// Shows other extents, with `fuel_bytes` of fuel. Windows and buffers are reused.
    pub fn look_at(&mut self, extents: &[Extent], fuel_bytes: u64) {
        let length = self.source.length();
        self.extents.clear();
        self.starts.clear();
        let mut start = 0;
        for extent in extents {
            let offset = extent.offset.min(length);
            let extent = Extent { offset, length: extent.length.min(length - offset) };
            self.starts.push(start);
            start += extent.length;
            self.extents.push(extent);
        }
        self.starts.push(start);
        self.fuel_bytes = fuel_bytes;
        self.is_starved = false;
        if let (Some(last), Some(first)) = (&mut self.last, self.extents.first()) {
            *last = first.offset;
        }
        self.unreadable.clear();
    }

    /// Sets whether jumps cost more fuel than sequential reads, as they take more time.
    pub(crate) fn pay_for_jumps(&mut self, pays: bool) {
        self.last = pays.then_some(0);
    }

    /// Returns the current piece: its offset in the source, and its bytes.
    fn shown(&self) -> (u64, &[u8]) {
        match &self.at_hand {
            None => (0, &[]),
            Some(piece) => (piece.from, piece.bytes()),
        }
    }

    /// Returns the extents of the bytes.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Returns the underlying source.
    pub fn source(&self) -> &'s dyn Source {
        self.source
    }

    /// Returns the maximum length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.starts[self.extents.len()]
    }

    /// Returns whether a byte was refused for lack of fuel.
    pub fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// Returns the remaining fuel in bytes.
    pub fn fuel_bytes(&self) -> u64 {
        self.fuel_bytes
    }

    /// Pays for work besides reading.
    pub fn spend(&mut self, bytes: u64) {
        self.is_starved |= bytes > self.fuel_bytes;
        self.fuel_bytes = self.fuel_bytes.saturating_sub(bytes);
    }

    /// Refunds the fuel for bytes that were shown and not read.
    pub(crate) fn refund(&mut self, bytes: u64) {
        self.fuel_bytes = self.fuel_bytes.saturating_add(bytes);
    }

    /// Returns the ranges of the source that could not be read since [`look_at`](View::look_at),
    /// and are shown as zeros.
    pub fn unreadable(&self) -> &[Range<u64>] {
        &self.unreadable
    }

    /// Returns the offset in the source of the byte at `at` of the file.
    pub fn offset_of(&self, at: u64) -> Option<u64> {
        let index = self.extent_at(at)?;
        Some(self.extents[index].offset + (at - self.starts[index]))
    }

    /// Returns some of the bytes from `at` on: at least one, if there is one, and at most `most`.
    /// They are in memory and not copied; the next call continues.
    pub fn run(&mut self, at: u64, most: usize) -> &[u8] {
        let Some(index) = self.extent_at(at) else { return &[] };
        let into = at - self.starts[index];
        let extent = self.extents[index];
        let together = (extent.length - into).min(most as u64);
        let offset = extent.offset + into;
        self.jump_to(offset);
        if together > 0 && self.fuel_bytes == 0 {
            self.is_starved = true;
            return &[];
        }
        let together = together.min(self.fuel_bytes);
        self.bring(offset);
        let (from, bytes) = self.shown();
        let shown = bytes.len().saturating_sub((offset - from) as usize);
        self.paid(offset, shown.min(together as usize))
    }

    /// Returns at most `count` bytes of the current piece, from `offset` of the source on, for
    /// which there is enough fuel.
    fn paid(&mut self, offset: u64, count: usize) -> &[u8] {
        self.fuel_bytes -= count as u64;
        self.last = self.last.map(|_| offset + count as u64);
        if self.is_any_bad() {
            self.note_unreadable(offset, count);
        }
        let (from, bytes) = self.shown();
        let skip = ((offset - from) as usize).min(bytes.len());
        &bytes[skip..][..count]
    }

    /// Returns exactly `bytes` bytes from `at` on; `None` if there are fewer, too little fuel, or
    /// more than [`TAKE_BYTES_MAX`] are requested.
    pub fn take(&mut self, at: u64, bytes: usize) -> Option<&[u8]> {
        if bytes > TAKE_BYTES_MAX || at.checked_add(bytes as u64)? > self.length() {
            return None;
        }
        let Some(index) = self.extent_at(at) else { return Some(&[]) };
        let into = at - self.starts[index];
        let extent = self.extents[index];
        let offset = extent.offset + into;
        self.jump_to(offset);
        if bytes as u64 > self.fuel_bytes {
            self.is_starved = true;
            return None;
        }
        if extent.length - into >= bytes as u64 {
            self.bring(offset);
            if self.shows(offset, bytes) {
                return Some(self.paid(offset, bytes));
            }
        }
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        while joined.len() < bytes {
            let more = self.run(at + joined.len() as u64, bytes - joined.len());
            if more.is_empty() {
                break;
            }
            joined.extend_from_slice(more);
        }
        self.joined = joined;
        (self.joined.len() == bytes).then_some(&self.joined[..])
    }

    /// Returns the `N` bytes from `at` on.
    pub fn array<const N: usize>(&mut self, at: u64) -> Option<[u8; N]> {
        self.take(at, N)?.try_into().ok()
    }

    /// Returns the byte at `at`.
    pub fn byte(&mut self, at: u64) -> Option<u8> {
        self.array::<1>(at).map(|[byte]| byte)
    }

    /// Returns whether `bytes` are at `at`.
    pub fn is_at(&mut self, at: u64, bytes: &[u8]) -> bool {
        self.take(at, bytes.len()) == Some(bytes)
    }

    /// Returns two bytes at `at` as a number, the least significant first.
    pub fn u16_le(&mut self, at: u64) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    /// Returns two bytes at `at` as a number, the most significant first.
    pub fn u16_be(&mut self, at: u64) -> Option<u16> {
        self.array(at).map(u16::from_be_bytes)
    }

    /// Returns four bytes at `at` as a number, the least significant first.
    pub fn u32_le(&mut self, at: u64) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// Returns four bytes at `at` as a number, the most significant first.
    pub fn u32_be(&mut self, at: u64) -> Option<u32> {
        self.array(at).map(u32::from_be_bytes)
    }

    /// Returns eight bytes at `at` as a number, the least significant first.
    pub fn u64_le(&mut self, at: u64) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    /// Returns eight bytes at `at` as a number, the most significant first.
    pub fn u64_be(&mut self, at: u64) -> Option<u64> {
        self.array(at).map(u64::from_be_bytes)
    }

    /// Whether the rest of the sector after a file that ends at `end` is unused: all zeros, or past the end
    /// of the source. False if `end` is the end of a sector: the bytes after it prove nothing.
    pub(crate) fn is_slack(&mut self, end: u64) -> bool {
        let left = self.length().saturating_sub(end);
        let bytes = (end.next_multiple_of(SECTOR_BYTES) - end).min(left);
        let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        left == 0 || bytes > 0 && self.take(end, bytes as usize).is_some_and(is_zero)
    }

    /// Calls `take` with all bytes of `range`, in order, in pieces. Returns their number.
    pub fn each(&mut self, range: Range<u64>, mut take: impl FnMut(&[u8])) -> u64 {
        let mut at = range.start;
        while at < range.end {
            let most = usize::try_from(range.end - at).unwrap_or(usize::MAX);
            let bytes = self.run(at, most);
            if bytes.is_empty() {
                break;
            }
            take(bytes);
            at += bytes.len() as u64;
        }
        at.saturating_sub(range.start)
    }

    /// Returns the place of the first `needle` in the bytes of `range`.
    pub fn find(&mut self, range: Range<u64>, needle: &[u8]) -> Option<u64> {
        let finder = memchr::memmem::Finder::new(needle);
        let overlap = needle.len().checked_sub(1)? as u64;
        let end = range.end.min(self.length());
        let mut at = range.start;
        while at.checked_add(needle.len() as u64)? <= end {
            let bytes = self.run(at, (end - at).min(FIND_BYTES) as usize);
            let count = bytes.len() as u64;
            if count == 0 {
                return None;
            }
            if let Some(place) = finder.find(bytes) {
                // Refund the unread bytes: a page has thousands of tags.
                let looked = (place + needle.len()) as u64;
                self.refund(count - looked);
                self.spend(FIND_FUEL);
                return Some(at + place as u64);
            }
            // Matches that begin in these bytes and end in the next ones.
            let seam = (at + count).saturating_sub(overlap).max(at);
            let length = (2 * overlap).min(end - seam) as usize;
            let place = self.take(seam, length).and_then(|seam| finder.find(seam));
            if let Some(place) = place {
                return Some(seam + place as u64);
            }
            at += count;
        }
        None
    }

    /// Pays for a jump to `offset` of the source, if jumps have a cost.
    fn jump_to(&mut self, offset: u64) {
        if let Some(last) = self.last {
            self.spend(jump_fuel(last, offset));
            self.last = Some(offset);
        }
    }

    fn extent_at(&self, at: u64) -> Option<usize> {
        if at >= self.length() {
            return None;
        }
        Some(self.starts.partition_point(|start| *start <= at) - 1)
    }

    /// Whether the current piece contains these bytes from `offset` of the source on.
    fn shows(&self, offset: u64, bytes: usize) -> bool {
        let (from, shown) = self.shown();
        offset + bytes as u64 <= from + shown.len() as u64
    }

    /// Loads the byte at `offset` of the source, with the bytes after it.
    fn bring(&mut self, offset: u64) {
        let is_torn = match &self.at_hand {
            None => false,
            Some(piece) if piece.shows(offset) => return,
            Some(piece) => piece.is_torn(),
        };
        let piece = match self.aside.iter().position(|piece| piece.shows(offset)) {
            Some(index) => self.aside.remove(index),
            None if is_torn => self.buffer(offset),
            None => self.window(offset).unwrap_or_else(|| self.buffer(offset)),
        };
        self.show(piece);
    }

    /// Makes a window with the byte at `offset`.
    fn window(&self, offset: u64) -> Option<Piece<'s>> {
        let from = offset - offset % WINDOW_ALIGN_BYTES;
        let range = from..self.source.length().min(from + WINDOW_BYTES);
        let shown = self.source.window(range)?.ok()?.shown(self.promise)?;
        Some(Piece { from, bytes: Bytes::Window(shown), bad: Vec::new() })
    }

    /// Reads the byte at `offset` and those around it into memory.
    fn buffer(&mut self, offset: u64) -> Piece<'s> {
        let from = offset - offset % BUFFER_BYTES;
        let mut buffer = self.spare.take().unwrap_or_default();
        buffer.resize(BUFFER_BYTES.min(self.source.length() - from) as usize, 0);
        let mut bad = Vec::new();
        if !fill(self.source, from, &mut buffer) {
            read_by_sectors(self.source, from, &mut buffer, &mut bad);
        }
        Piece { from, bytes: Bytes::Buffer(buffer), bad }
    }

    /// Makes a piece the current one, and keeps the previous one.
    fn show(&mut self, piece: Piece<'s>) {
        self.aside.extend(self.at_hand.replace(piece));
        if self.aside.len() >= self.pieces_max
            && let Bytes::Buffer(buffer) = self.aside.remove(0).bytes
        {
            self.spare = Some(buffer);
        }
    }

    #[inline]
    fn is_any_bad(&self) -> bool {
        self.at_hand.as_ref().is_some_and(|piece| !piece.bad.is_empty())
    }

    /// Records which of the bytes from `offset` on, shown now, could not be read.
    fn note_unreadable(&mut self, offset: u64, bytes: usize) {
        let Some(Piece { bad, .. }) = &self.at_hand else { return };
        let end = offset + bytes as u64;
        for range in bad.iter().filter(|range| range.start < end && range.end > offset) {
            if !self.unreadable.contains(range) {
                self.unreadable.push(range.clone());
            }
        }
    }
}

/// Returns the cost of a jump between two offsets of a source: uncached pages, or another window.
fn jump_fuel(from: u64, to: u64) -> u64 {
    match from.abs_diff(to) {
        0..JUMP_BYTES_MIN => 0,
        _ if from / WINDOW_ALIGN_BYTES == to / WINDOW_ALIGN_BYTES => PAGE_FUEL,
        _ => WINDOW_FUEL,
    }
}

/// Reads the readable sectors; the `bad` ones become zeros.
fn read_by_sectors(source: &dyn Source, from: u64, buffer: &mut [u8], bad: &mut Vec<Range<u64>>) {
    let mut at = from;
    for sector in buffer.chunks_mut(source.sector_bytes().max(1)) {
        let end = at + sector.len() as u64;
        if !fill(source, at, sector) {
            sector.fill(0);
            push_merged(bad, at..end);
        }
        at = end;
    }
}

/// Returns whether all of `buffer` could be read.
fn fill(source: &dyn Source, offset: u64, buffer: &mut [u8]) -> bool {
    let filled: io::Result<usize> = read_full_at(source, offset, buffer);
    filled.is_ok_and(|bytes| bytes == buffer.len())
}
