//! gzip, with an index of points at which decompression can begin.
//!
//! Deflate can be resumed anywhere if the state of its decoder is copied: its tables and bits, and the 32 KiB
//! before. One pass builds the index, verifies every checksum and determines the length. The points grow
//! apart with the file, so their memory is bounded.

use std::io;
use std::sync::{Arc, Mutex};

use crc_fast::{CrcAlgorithm, Digest};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;
use quarrier_core::{Error, Result};

use super::Packed;
use super::spans::{Spans, Unpack};
use crate::around::Around;
use crate::bytes::u32_le;
use crate::fault::{damaged, invalid};

/// The initial distance between points, in decompressed bytes.
const STEP_BYTES: u64 = 1 << 20;
/// Maximum number of points, of 43 KB each.
const POINTS_MAX: usize = 1500;
const INPUT_BYTES: usize = 128 << 10;
/// The window of output that a decoder can refer to.
const WINDOW_BYTES: usize = 32 << 10;
/// Size of the ring that is filled before it is passed on; a power of two.
const RING_BYTES: usize = 128 << 10;
/// Maximum length of names and comments in the header of a member.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Opens a file, and reads it completely once.
pub(super) fn open(file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Packed> {
    let mut walk = Walk::new(Arc::clone(file), 0);
    let mut index = Index { starts: vec![0], points: vec![None], step_bytes: STEP_BYTES };
    let mut damage = None;
    loop {
        if around.is_stopped() {
            let given_up = io::ErrorKind::ConnectionAborted.into();
            return Err(Error::io(file.name(), "unpack", given_up));
        }
        match walk.more() {
            Ok(0) => break,
            Ok(_) => index.add(&walk),
            Err(error) => {
                damage = Some((walk.input_at(), error));
                break;
            }
        }
    }
    let length = walk.written;
    let damage = match damage {
        Some((at, error)) if length == 0 => return Err(damaged(&**file, at, error.to_string())),
        damage => damage.map(|(at, error)| format!(
            "damaged at byte {at} of the file: {error}; nothing behind byte {length} could be unpacked"
        )),
    };
    let notice = damage.clone().or_else(|| walk.notice.take());
    let points = Points { file: Arc::clone(file), points: index.points, walks: Mutex::default() };
    let source = Spans::new(file.name(), index.starts, length, damage, points);
    Ok(Packed::Anywhere(Arc::new(source), notice))
}

/// A point at which decompression can begin: the decoder's state there. The start of the file needs none.
struct Point {
    input_at: u64,
    decoder: DecompressorOxide,
    window: Box<[u8; WINDOW_BYTES]>,
}

struct Index {
    starts: Vec<u64>,
    points: Vec<Option<Box<Point>>>,
    step_bytes: u64,
}

impl Index {
    /// Adds a point if the walk has advanced far enough.
    fn add(&mut self, walk: &Walk) {
        let last = self.starts.last().copied().unwrap_or(0);
        let Some(point) = walk.point().filter(|_| walk.written - last >= self.step_bytes) else {
            return;
        };
        self.starts.push(walk.written);
        self.points.push(Some(Box::new(point)));
        if self.points.len() > POINTS_MAX {
            let mut is_kept = [true, false].into_iter().cycle();
            self.starts.retain(|_| is_kept.next() == Some(true));
            let mut is_kept = [true, false].into_iter().cycle();
            self.points.retain(|_| is_kept.next() == Some(true));
            self.step_bytes *= 2;
        }
    }
}

struct Points {
    file: Arc<dyn Source>,
    points: Vec<Option<Box<Point>>>,
    /// One walk for each thread that has decompressed at the same time.
    walks: Mutex<Vec<Walk>>,
}

impl Unpack for Points {
    fn unpack(&self, index: usize, out: &mut [u8]) -> io::Result<()> {
        let kept = lock(&self.walks).pop();
        let mut walk = kept.unwrap_or_else(|| Walk::new(Arc::clone(&self.file), 0));
        walk.begin(self.points[index].as_deref());
        let mut filled = 0;
        while filled < out.len() {
            if walk.more()? == 0 {
                return Err(invalid("the file ends before"));
            }
            let part = walk.part();
            let count = part.len().min(out.len() - filled);
            out[filled..filled + count].copy_from_slice(&part[..count]);
            filled += count;
        }
        lock(&self.walks).push(walk);
        Ok(())
    }
}

/// Decompresses a file from some point on.
struct Walk {
    file: Arc<dyn Source>,
    input: Vec<u8>,
    /// The number of bytes in `input`, how many of them were used, and the offset of the first.
    filled: usize,
    used: usize,
    begins_at: u64,
    is_in_member: bool,
    decoder: Box<DecompressorOxide>,
    ring: Box<[u8; RING_BYTES]>,
    ring_at: usize,
    /// The range of the ring that was written last.
    last: (usize, usize),
    /// The bytes decompressed since the walk began.
    written: u64,
    member_bytes: u32,
    checksum: Digest,
    /// Whether to verify checksums: that is possible only from the start of a member.
    verifies: bool,
    notice: Option<String>,
}

impl Walk {
    fn new(file: Arc<dyn Source>, at: u64) -> Self {
        Walk {
            file,
            input: vec![0; INPUT_BYTES],
            filled: 0,
            used: 0,
            begins_at: at,
            is_in_member: false,
            decoder: Box::default(),
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

    /// Restarts at a point, or at the start.
    fn begin(&mut self, point: Option<&Point>) {
        (self.filled, self.used, self.last, self.written) = (0, 0, (0, 0), 0);
        (self.begins_at, self.is_in_member, self.ring_at) = (0, false, 0);
        self.verifies = point.is_none();
        self.notice = None;
        if let Some(point) = point {
            self.begins_at = point.input_at;
            self.is_in_member = true;
            *self.decoder = point.decoder.clone();
            self.ring[..WINDOW_BYTES].copy_from_slice(&*point.window);
            self.ring_at = WINDOW_BYTES;
        }
    }

    /// Returns the state of the decoder, if it is inside a member.
    fn point(&self) -> Option<Point> {
        self.is_in_member.then_some(())?;
        let mut window = Box::new([0; WINDOW_BYTES]);
        let end = self.ring_at;
        if end >= WINDOW_BYTES {
            window.copy_from_slice(&self.ring[end - WINDOW_BYTES..end]);
        } else {
            let (old, new) = window.split_at_mut(WINDOW_BYTES - end);
            old.copy_from_slice(&self.ring[RING_BYTES - old.len()..]);
            new.copy_from_slice(&self.ring[..end]);
        }
        Some(Point { input_at: self.input_at(), decoder: (*self.decoder).clone(), window })
    }

    /// Returns the offset of the next unused byte.
    fn input_at(&self) -> u64 {
        self.begins_at + self.used as u64
    }

    /// Returns the output of the last call of [`more`](Self::more).
    fn part(&self) -> &[u8] {
        &self.ring[self.last.0..self.last.1]
    }

    /// Decompresses more, and returns how many bytes; none at the end.
    fn more(&mut self) -> io::Result<usize> {
        loop {
            if !self.is_in_member && !self.begin_member()? {
                return Ok(0);
            }
            if self.used == self.filled {
                self.fill()?;
            }
            let at = self.ring_at % RING_BYTES;
            let has_more = self.filled > 0;
            let flags = if has_more { TINFL_FLAG_HAS_MORE_INPUT } else { 0 };
            let input = &self.input[self.used..self.filled];
            let (status, used, written) =
                decompress(&mut self.decoder, input, &mut self.ring[..], at, flags);
            self.used += used;
            self.last = (at, at + written);
            self.ring_at = at + written;
            self.written += written as u64;
            self.member_bytes = self.member_bytes.wrapping_add(written as u32);
            if self.verifies {
                self.checksum.update(&self.ring[at..at + written]);
            }
            match status {
                TINFLStatus::Done => self.end_member()?,
                TINFLStatus::HasMoreOutput => {}
                TINFLStatus::NeedsMoreInput if has_more => {}
                TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                    return Err(invalid("it ends inside what is packed"));
                }
                _ => return Err(invalid("what is packed is damaged")),
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }

    /// Refills the input; at the end of the file it stays empty.
    fn fill(&mut self) -> io::Result<()> {
        self.begins_at += self.filled as u64;
        (self.used, self.filled) = (0, 0);
        self.filled = read_full_at(&*self.file, self.begins_at, &mut self.input)?;
        Ok(())
    }

    /// Consumes the next `bytes` bytes, up to 64; fewer at the end.
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

    /// Skips the header of the next member, if there is one. Returns whether there is.
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
            // Tapes are padded with zeros. gzip, too, ignores other trailing bytes.
            if head[..count].iter().any(|&byte| byte != 0) {
                let rest = self.file.length().saturating_sub(at);
                self.notice = Some(format!(
                    "{rest} bytes behind byte {at} of the file are not packed, and left out"
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
        self.decoder.init();
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

    /// Compares the trailer of a member with the decompressed bytes.
    fn end_member(&mut self) -> io::Result<()> {
        self.is_in_member = false;
        let (end, count) = self.take(8)?;
        if !self.verifies {
            // The checksums of later members can be verified again.
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
            false => Err(invalid("its checksum is wrong, so some of what was unpacked is")),
        }
    }
}
