//! gzip, with an index of points at which decompression can start.
//!
//! Deflate can be resumed anywhere from a copy of the decoder's state: its code lengths and bits, and the
//! preceding 32 KiB. One pass builds the index, verifies every checksum and determines the length. The
//! distance of points grows with the file, so their memory is bounded. The pass keeps the first spans that
//! it decompresses, so that a reader that follows decompresses only the rest again.
//!
//! An index for the cache has its points at block boundaries, which need only those 32 KiB, and a
//! checksum of the bytes up to the next point.

mod codes;
mod first;
mod inflate;
mod kept;

use std::io;
use std::sync::{Arc, Mutex};

use crc_fast::{CrcAlgorithm, Digest, checksum, checksum_combine};
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;
use quarrier_core::{Error, Result};

use super::Packed;
use super::spans::{Spans, Unpack, first_bytes_max};
use crate::around::Around;
use crate::bytes::u32_le;
use crate::fault::{damaged, invalid};
use crate::scratch::PART_BYTES_MAX;
use first::FirstSpans;
use inflate::{HEADER_BYTES_MAX, Inflate, Snapshot, Stop};
use kept::CachedIndex;

/// Initial distance between points, in decompressed bytes.
const STEP_BYTES: u64 = 1 << 20;
/// Maximum number of points, of 33 KB each.
const POINTS_MAX: usize = 1500;
const INPUT_BYTES: usize = 128 << 10;
/// The window of output that matches can refer to.
const WINDOW_BYTES: usize = 32 << 10;
/// Size of the output ring; a power of two.
const RING_BYTES: usize = 128 << 10;
/// Maximum length of names and comments in the header of a member.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Opens a file. Reads it completely once, unless its index was cached.
pub(super) fn open(file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Packed> {
    let Some(keeper) = around.keeper() else {
        return walked(file, around, false).map(|walked| opened(file, walked));
    };
    let kept = keeper.kept_index().and_then(|bytes| kept::read(&bytes, file.length()));
    if let Some(kept) = kept {
        let walked = Walked { kept, damage: None, first: FirstSpans::default() };
        return Ok(opened(file, walked));
    }
    match walked(file, around, true) {
        Ok(walked) if walked.is_to_be_kept() => {
            if let Some(bytes) = kept::written(file.length(), &walked.kept) {
                keeper.keep_index(&bytes);
            }
            return Ok(opened(file, walked));
        }
        Err(error) if around.is_stopped() => return Err(error),
        _ => {}
    }
    // Not cached: the index of a damaged file, and of one with few blocks, whose points would be far
    // apart. Both are indexed by decoder states on each run.
    walked(file, around, false).map(|walked| opened(file, walked))
}

/// Builds the source.
fn opened(file: &Arc<dyn Source>, walked: Walked) -> Packed {
    let Walked { kept: CachedIndex { index, length, notice }, damage, first } = walked;
    let Index { starts, points, sums, .. } = index;
    let points = Points { file: Arc::clone(file), points, sums, walks: Mutex::default() };
    let spans = Spans::new(file.name(), starts, length, damage, points);
    Packed::Anywhere(Arc::new(spans.holding_first(first.into_spans())), notice)
}

/// The result of reading a file completely.
struct Walked {
    kept: CachedIndex,
    /// The damage at which the file ends.
    damage: Option<String>,
    first: FirstSpans,
}

impl Walked {
    /// Whether the index can be cached.
    fn is_to_be_kept(&self) -> bool {
        self.damage.is_none() && self.kept.index.is_even(self.kept.length)
    }
}

/// Reads a file completely. If its index `is_to_be_kept`, its points are at block boundaries.
fn walked(file: &Arc<dyn Source>, around: &Around<'_>, is_to_be_kept: bool) -> Result<Walked> {
    let mut walk = Walk::new(Arc::clone(file), is_to_be_kept);
    let mut first = FirstSpans::with_room(4 * STEP_BYTES as usize);
    let mut index =
        Index { starts: vec![0], points: vec![None], is_to_be_kept, ..Index::default() };
    let mut damage = None;
    loop {
        if around.is_stopped() {
            let given_up = io::ErrorKind::ConnectionAborted.into();
            return Err(Error::io(file.name(), "unpack", given_up));
        }
        match walk.more(RING_BYTES) {
            Ok(0) => break,
            Ok(_) => index.add(&walk, &mut first),
            Err(error) => {
                first.add(walk.part());
                damage = Some((walk.input_at(), error));
                break;
            }
        }
    }
    let length = walk.written;
    index.end();
    let damage = match damage {
        Some((at, error)) if length == 0 => return Err(damaged(&**file, at, error.to_string())),
        damage => damage.map(|(at, error)| format!(
            "damaged at byte {at} of the file: {error}; nothing after byte {length} could be decompressed"
        )),
    };
    let notice = damage.clone().or_else(|| walk.notice.take());
    Ok(Walked { kept: CachedIndex { index, length, notice }, damage, first })
}

/// A point at which decompression can start, with the decoder's state. The start of the file needs
/// none.
struct Point {
    input_at: u64,
    state: State,
    window: Box<[u8; WINDOW_BYTES]>,
}

enum State {
    Anywhere(Box<Snapshot>),
    /// At a block boundary: the bits of the previous byte that belong to the block, and their number.
    Block {
        bits: u8,
        count: u8,
    },
}

struct Index {
    starts: Vec<u64>,
    points: Vec<Option<Box<Point>>>,
    is_to_be_kept: bool,
    /// Checksums of the bytes between points, if the index is to be cached.
    sums: Vec<u32>,
    /// The running checksum since the last point.
    sum: Digest,
    step_bytes: u64,
}

impl Default for Index {
    fn default() -> Self {
        Index {
            starts: Vec::new(),
            points: Vec::new(),
            is_to_be_kept: false,
            sums: Vec::new(),
            sum: Digest::new(SPAN_SUM),
            step_bytes: STEP_BYTES,
        }
    }
}

/// The checksum of spans in a cached index.
const SPAN_SUM: CrcAlgorithm = CrcAlgorithm::Crc32IsoHdlc;

impl Index {
    /// Adds the last part of a walk, and a point if the walk has advanced far enough.
    fn add(&mut self, walk: &Walk, first: &mut FirstSpans) {
        first.add(walk.part());
        if self.is_to_be_kept {
            self.sum.update(walk.part());
        }
        let last = self.starts.last().copied().unwrap_or(0);
        if walk.written - last < self.step_bytes {
            return;
        }
        let Some(point) = walk.point() else { return };
        self.end();
        self.starts.push(walk.written);
        self.points.push(Some(Box::new(point)));
        first.end_span();
        if self.points.len() == 2 {
            // Looking for the memory left takes longer than decompressing a small file.
            first.set_room(first_bytes_max());
        }
        if self.points.len() > POINTS_MAX {
            self.thin_out();
            first.thin_out();
        }
    }

    /// Whether no two points are much further apart than intended.
    fn is_even(&self, length: u64) -> bool {
        let ends = self.starts.iter().skip(1).copied().chain([length]);
        let mut spans = self.starts.iter().zip(ends).map(|(start, end)| end - start);
        spans.all(|bytes| bytes <= 4 * self.step_bytes + PART_BYTES_MAX / 8)
    }

    /// Ends the span of the last point.
    fn end(&mut self) {
        if self.is_to_be_kept {
            self.sums.push(self.sum.finalize() as u32);
            self.sum = Digest::new(SPAN_SUM);
        }
    }

    /// Drops every other point, except the last, whose span has not ended.
    fn thin_out(&mut self) {
        let spans = self.starts.windows(2).map(|two| two[1] - two[0]);
        let spans: Vec<(u32, u64)> = self.sums.iter().copied().zip(spans).collect();
        let joined = |two: &[(u32, u64)]| match two {
            [(first, _), (second, bytes)] => {
                checksum_combine(SPAN_SUM, (*first).into(), (*second).into(), *bytes) as u32
            }
            _ => two[0].0,
        };
        self.sums = spans.chunks(2).map(joined).collect();
        let mut is_kept = [true, false].into_iter().cycle();
        self.starts.retain(|_| is_kept.next() == Some(true));
        let mut is_kept = [true, false].into_iter().cycle();
        self.points.retain(|_| is_kept.next() == Some(true));
        self.step_bytes *= 2;
    }
}

struct Points {
    file: Arc<dyn Source>,
    points: Vec<Option<Box<Point>>>,
    /// Checksums of the bytes between points; empty if the points are decoder states.
    sums: Vec<u32>,
    /// At most one walk per concurrent reader.
    walks: Mutex<Vec<Walk>>,
}

impl Unpack for Points {
    fn unpack(&self, index: usize, out: &mut [u8]) -> io::Result<()> {
        let kept = lock(&self.walks).pop();
        let is_at_blocks = !self.sums.is_empty();
        let mut walk = kept.unwrap_or_else(|| Walk::new(Arc::clone(&self.file), is_at_blocks));
        walk.begin(self.points[index].as_deref())?;
        let mut filled = 0;
        while filled < out.len() {
            if walk.more(out.len() - filled)? == 0 {
                return Err(invalid("the file is truncated"));
            }
            let part = walk.part();
            let count = part.len().min(out.len() - filled);
            out[filled..filled + count].copy_from_slice(&part[..count]);
            filled += count;
        }
        lock(&self.walks).push(walk);
        match self.sums.get(index) {
            Some(&sum) if checksum(SPAN_SUM, out) as u32 != sum => {
                Err(invalid("the file changed after its index was made"))
            }
            _ => Ok(()),
        }
    }
}

/// Decompresses a file from some point on.
struct Walk {
    file: Arc<dyn Source>,
    input: Vec<u8>,
    /// The number of bytes in `input`, the number of those used, and the offset of the first.
    filled: usize,
    used: usize,
    begins_at: u64,
    is_in_member: bool,
    decoder: Box<Inflate>,
    /// Whether points must be at block boundaries.
    is_at_blocks: bool,
    /// Whether `input` is known to reach the end of the file.
    is_all: bool,
    ring: Box<[u8; RING_BYTES]>,
    ring_at: usize,
    /// The range of the ring that was written last.
    last: (usize, usize),
    /// Bytes decompressed since the walk began.
    written: u64,
    member_bytes: u32,
    checksum: Digest,
    /// Whether to verify checksums, which is possible only from the start of a member.
    verifies: bool,
    notice: Option<String>,
}

impl Walk {
    fn new(file: Arc<dyn Source>, is_at_blocks: bool) -> Self {
        Walk {
            file,
            input: vec![0; INPUT_BYTES],
            filled: 0,
            used: 0,
            begins_at: 0,
            is_in_member: false,
            decoder: Box::default(),
            is_at_blocks,
            is_all: false,
            ring: Box::new([0; RING_BYTES]),
            ring_at: 0,
            last: (0, 0),
            written: 0,
            member_bytes: 0,
            checksum: Digest::new(CrcAlgorithm::Crc32IsoHdlc),
            verifies: true,
            notice: None,
        }
    }

    /// Restarts at a point, or at the start of the file.
    fn begin(&mut self, point: Option<&Point>) -> io::Result<()> {
        (self.filled, self.used, self.last, self.written) = (0, 0, (0, 0), 0);
        (self.begins_at, self.is_in_member, self.ring_at) = (0, false, 0);
        self.is_all = false;
        self.verifies = point.is_none();
        self.notice = None;
        if let Some(point) = point {
            self.begins_at = point.input_at;
            self.is_in_member = true;
            match &point.state {
                State::Anywhere(snapshot) => self.decoder.resume(snapshot).map_err(invalid)?,
                State::Block { bits, count } => self.decoder.begin(WINDOW_BYTES, *bits, *count),
            }
            self.ring[..WINDOW_BYTES].copy_from_slice(&*point.window);
            self.ring_at = WINDOW_BYTES;
        }
        Ok(())
    }

    /// The state of the decoder, if it is inside a member, and at a block boundary where required.
    fn point(&self) -> Option<Point> {
        self.is_in_member.then_some(())?;
        let state = match self.is_at_blocks {
            false => State::Anywhere(Box::new(self.decoder.snapshot())),
            true => self.decoder.block_bits().map(|(bits, count)| State::Block { bits, count })?,
        };
        let mut window = Box::new([0; WINDOW_BYTES]);
        let end = self.ring_at;
        if end >= WINDOW_BYTES {
            window.copy_from_slice(&self.ring[end - WINDOW_BYTES..end]);
        } else {
            let (old, new) = window.split_at_mut(WINDOW_BYTES - end);
            old.copy_from_slice(&self.ring[RING_BYTES - old.len()..]);
            new.copy_from_slice(&self.ring[..end]);
        }
        Some(Point { input_at: self.input_at(), state, window })
    }

    /// The offset of the next unused input byte.
    fn input_at(&self) -> u64 {
        self.begins_at + self.used as u64
    }

    /// The output of the last call of [`more`](Self::more).
    fn part(&self) -> &[u8] {
        &self.ring[self.last.0..self.last.1]
    }

    /// Decompresses up to `room` more bytes, and returns their number; 0 at the end. After an error,
    /// [`part`](Self::part) has the bytes before the damage.
    fn more(&mut self, room: usize) -> io::Result<usize> {
        loop {
            self.last = (0, 0);
            if !self.is_in_member && !self.begin_member()? {
                return Ok(0);
            }
            let at = self.ring_at % RING_BYTES;
            self.fill_for_decoder()?;
            let input = &self.input[self.used..self.filled];
            let end = at.saturating_add(room).min(RING_BYTES);
            let (stop, used, written) =
                self.decoder.decode(input, self.is_all, &mut self.ring, (at, end));
            self.used += used;
            self.last = (at, at + written);
            self.ring_at = at + written;
            self.written += written as u64;
            self.member_bytes = self.member_bytes.wrapping_add(written as u32);
            if self.verifies {
                self.checksum.update(&self.ring[at..at + written]);
            }
            match stop {
                Stop::Stream => self.end_member()?,
                Stop::Damage(why) => return Err(invalid(why)),
                Stop::Input if self.is_all && used + written == 0 => {
                    return Err(invalid("it ends inside the compressed data"));
                }
                Stop::Input | Stop::Output | Stop::Block => {}
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }

    /// Refills the input if the decoder might need more.
    fn fill_for_decoder(&mut self) -> io::Result<()> {
        if self.filled - self.used >= HEADER_BYTES_MAX || self.is_all {
            return Ok(());
        }
        self.input.copy_within(self.used..self.filled, 0);
        self.begins_at += self.used as u64;
        (self.used, self.filled) = (0, self.filled - self.used);
        let at = self.begins_at + self.filled as u64;
        let read = read_full_at(&*self.file, at, &mut self.input[self.filled..])?;
        self.filled += read;
        self.is_all = self.filled < self.input.len();
        Ok(())
    }

    /// Refills the input; it stays empty at the end of the file.
    fn fill(&mut self) -> io::Result<()> {
        self.is_all = false;
        self.begins_at += self.filled as u64;
        (self.used, self.filled) = (0, 0);
        self.filled = read_full_at(&*self.file, self.begins_at, &mut self.input)?;
        Ok(())
    }

    /// Consumes the next `bytes` bytes, at most 64; fewer at the end.
    fn take(&mut self, bytes: usize) -> io::Result<([u8; 64], usize)> {
        let mut taken = [0; 64];
        let mut count = 0;
        while count < bytes {
            if self.used == self.filled {
                self.fill()?;
                if self.filled == 0 {
                    break;
                }
            }
            let more = (self.filled - self.used).min(bytes - count);
            taken[count..count + more].copy_from_slice(&self.input[self.used..self.used + more]);
            self.used += more;
            count += more;
        }
        Ok((taken, count))
    }

    /// Skips the header of the next member; returns whether there is one.
    fn begin_member(&mut self) -> io::Result<bool> {
        let at = self.input_at();
        let (head, count) = self.take(10)?;
        let is_first = at == 0;
        if count == 0 && !is_first {
            return Ok(false);
        }
        if count < 10 || head[..3] != [0x1F, 0x8B, 8] || head[3] & 0xE0 != 0 {
            if is_first {
                return Err(invalid("it does not begin as gzip"));
            }
            // Tapes are padded with zeros. Like gzip itself, ignore other trailing bytes.
            if head[..count].iter().any(|&byte| byte != 0) {
                let rest = self.file.length().saturating_sub(at);
                self.notice = Some(format!(
                    "{rest} bytes after byte {at} of the file are not compressed, and were ignored"
                ));
            }
            return Ok(false);
        }
        let flags = head[3];
        if flags & 4 != 0 {
            let (length, _) = self.take(2)?;
            self.skip(u64::from(u16::from_le_bytes([length[0], length[1]])))?;
        }
        for flag in [8, 16] {
            if flags & flag != 0 {
                self.skip_text()?;
            }
        }
        if flags & 2 != 0 {
            self.take(2)?;
        }
        self.is_in_member = true;
        self.decoder.begin(0, 0, 0);
        self.member_bytes = 0;
        self.checksum = Digest::new(CrcAlgorithm::Crc32IsoHdlc);
        Ok(true)
    }

    fn skip(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            let (_, count) = self.take(bytes.min(64) as usize)?;
            if count == 0 {
                return Err(invalid("it ends inside a header"));
            }
            bytes -= count as u64;
        }
        Ok(())
    }

    fn skip_text(&mut self) -> io::Result<()> {
        for _ in 0..TEXT_BYTES_MAX {
            match self.take(1)? {
                (_, 0) => return Err(invalid("it ends inside a header")),
                (byte, _) if byte[0] == 0 => return Ok(()),
                _ => {}
            }
        }
        Err(invalid("a name in a header does not end"))
    }

    /// Verifies the trailer of a member.
    fn end_member(&mut self) -> io::Result<()> {
        self.is_in_member = false;
        let (end, count) = self.take(8)?;
        if !self.verifies {
            // Later members are read from their start, so their checksums can be verified.
            self.verifies = true;
            return Ok(());
        }
        if count < 8 {
            return Err(invalid("its checksum is missing"));
        }
        let is_right = u64::from(u32_le(&end, 0)) == self.checksum.finalize()
            && u32_le(&end, 4) == self.member_bytes;
        match is_right {
            true => Ok(()),
            false => {
                Err(invalid("its checksum is wrong, so some of the decompressed bytes are wrong"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
