//! bzip2, block by block.
//!
//! A block begins at any bit, with a 48-bit magic number. All of these are located, and each block is
//! decompressed as a separate stream, which verifies its checksum: once to learn its length, and
//! whenever it is read.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ::bzip2::{Decompress, Status};
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::threads::team;
use quarrier_core::{Error, Result};

use super::Packed;
use super::kept::{Packing, Reader, Writer};
use super::spans::{Spans, Unpack};
use crate::around::Around;
use crate::fault::{damaged, invalid};

const BLOCK: u64 = 0x3141_5926_5359;
const END: u64 = 0x1772_4538_5090;
const MAGIC_BITS: u64 = 48;
/// Bytes scanned for block headers at once.
const STEP_BYTES: usize = 1 << 20;
/// Maximum compressed size of a block in bits: compression barely grows its at most 900,000 bytes.
const BLOCK_BITS_MAX: u64 = 8 << 21;
/// Maximum decompressed size of a block: the initial run-length coding turns 255 bytes into five.
const UNPACKED_BYTES_MAX: usize = 50 << 20;
const BLOCKS_MAX: usize = 1 << 22;

/// A magic number at a bit of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    bit: u64,
    is_block: bool,
}

/// A block, in bit offsets of the file.
#[derive(Debug, Clone, Copy)]
struct Block {
    from: u64,
    to: u64,
}

/// Opens a file. Decompresses all of it once, on all cores, unless its index was cached.
pub(super) fn open(file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Packed> {
    let keeper = around.keeper();
    let kept = keeper.and_then(|keeper| keeper.kept_index());
    if let Some((blocks, starts, end)) = kept.and_then(|bytes| read(&bytes, file.length())) {
        let unpack = Blocks { file: Arc::clone(file), blocks };
        let source = Spans::new(file.name(), starts, end, None, unpack);
        return Ok(Packed::Anywhere(Arc::new(source), None));
    }
    let marks = marks(&**file, around)?;
    let last = Mark { bit: file.length() * 8, is_block: false };
    let ends = marks.iter().skip(1).copied().chain([last]);
    let blocks: Vec<Block> = marks
        .iter()
        .zip(ends)
        .filter(|(mark, _)| mark.is_block)
        .map(|(mark, next)| Block { from: mark.bit, to: next.bit })
        .collect();
    let lengths = lengths(&**file, &blocks, around)?;
    let (mut starts, mut end, mut kept, mut damage) = (Vec::new(), 0u64, Vec::new(), None);
    for (block, length) in blocks.iter().zip(lengths) {
        match length {
            Ok(length) => {
                if length > 0 {
                    starts.push(end);
                    kept.push(*block);
                    end += length as u64;
                }
            }
            Err(error) => {
                damage = Some((block.from / 8, error));
                break;
            }
        }
    }
    let has_end = marks.last().is_some_and(|mark| !mark.is_block);
    if damage.is_none() && !has_end {
        damage = Some((file.length(), "it ends inside the compressed data".to_string()));
    }
    let damage = match damage {
        Some((at, error)) if end == 0 => return Err(damaged(&**file, at, error)),
        damage => damage.map(|(at, error)| format!(
            "damaged at byte {at} of the file: {error}; nothing after byte {end} could be decompressed"
        )),
    };
    if let Some(keeper) = keeper.filter(|_| damage.is_none()) {
        keeper.keep_index(&written(file.length(), (&kept[..], &starts[..], end)));
    }
    let notice = damage.clone();
    let unpack = Blocks { file: Arc::clone(file), blocks: kept };
    let source = Spans::new(file.name(), starts, end, damage, unpack);
    Ok(Packed::Anywhere(Arc::new(source), notice))
}

/// Serializes the index: the bit range of each block, and its decompressed length.
fn written(file_bytes: u64, (blocks, starts, end): (&[Block], &[u64], u64)) -> Vec<u8> {
    let mut writer = Writer::new(Packing::Bzip2, file_bytes, end);
    writer.u32(blocks.len() as u32);
    let ends = starts.iter().skip(1).copied().chain([end]);
    for ((block, start), end) in blocks.iter().zip(starts).zip(ends) {
        writer.u64(block.from);
        writer.u64(block.to);
        writer.u32((end - start) as u32);
    }
    writer.finish()
}

/// Parses an index written by [`written`] for a file of this length; `None` if it is invalid.
fn read(bytes: &[u8], file_bytes: u64) -> Option<(Vec<Block>, Vec<u64>, u64)> {
    let (mut reader, unpacked_bytes) = Reader::new(bytes, Packing::Bzip2, file_bytes)?;
    let count = reader.count(20).filter(|&count| count <= BLOCKS_MAX)?;
    let (mut blocks, mut starts, mut end) = (Vec::new(), Vec::new(), 0u64);
    for _ in 0..count {
        let block = Block { from: reader.u64()?, to: reader.u64()? };
        let length = reader.u32()?;
        let is_right = block.from < block.to
            && block.to <= file_bytes.checked_mul(8)?
            && (1..=UNPACKED_BYTES_MAX).contains(&(length as usize));
        blocks.push(Some(block).filter(|_| is_right)?);
        starts.push(end);
        end += u64::from(length);
    }
    (reader.is_at_end() && end == unpacked_bytes).then_some((blocks, starts, end))
}

/// All bit offsets of a block header or stream end.
fn marks(file: &dyn Source, around: &Around<'_>) -> Result<Vec<Mark>> {
    let (mut marks, mut at) = (Vec::new(), 0);
    let mut buffer = vec![0; STEP_BYTES];
    let mut last = 0u64;
    loop {
        stopped(file, around)?;
        let read = read_full_at(file, at, &mut buffer);
        let read =
            read.map_err(|error| Error::io(file.name(), format!("read at byte {at}"), error))?;
        if read == 0 {
            return Ok(marks);
        }
        for (index, &byte) in buffer[..read].iter().enumerate() {
            let bits = last << 8 | u64::from(byte);
            last = bits;
            // Checks the last bits first, so that few candidates are compared in full.
            for shift in 0..8 {
                let found = bits >> shift & ((1 << MAGIC_BITS) - 1);
                if found == BLOCK || found == END {
                    let end = (at + index as u64 + 1) * 8 - shift;
                    if let Some(bit) = end.checked_sub(MAGIC_BITS) {
                        marks.push(Mark { bit, is_block: found == BLOCK });
                    }
                }
            }
            if marks.len() > BLOCKS_MAX {
                return Err(damaged(file, at, "it has too many blocks"));
            }
        }
        at += read as u64;
    }
}

fn stopped(file: &dyn Source, around: &Around<'_>) -> Result<()> {
    match around.is_stopped() {
        true => Err(Error::io(file.name(), "unpack", io::ErrorKind::ConnectionAborted.into())),
        false => Ok(()),
    }
}

/// The decompressed length of each block, or its error.
fn lengths(
    file: &dyn Source,
    blocks: &[Block],
    around: &Around<'_>,
) -> Result<Vec<std::result::Result<usize, String>>> {
    let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(64);
    let found = team(0..workers, |_| {
        let (mut found, mut unpacked) = (Vec::new(), Vec::new());
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(block) = blocks.get(index) else { return found };
            if around.is_stopped() {
                is_stopped.store(true, Ordering::Relaxed);
                return found;
            }
            let length = unpack(file, *block, &mut unpacked).map(|()| unpacked.len());
            found.push((index, length.map_err(|error| error.to_string())));
        }
    });
    if is_stopped.into_inner() {
        stopped(file, around)?;
    }
    let mut all: Vec<_> = found.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, length)| length).collect())
}

/// Decompresses a block into `out`, which is resized to its length.
fn unpack(file: &dyn Source, block: Block, out: &mut Vec<u8>) -> io::Result<()> {
    if block.to - block.from > BLOCK_BITS_MAX {
        return Err(invalid("a block is too long"));
    }
    let stream = stream(file, block)?;
    let mut decoder = Decompress::new(false);
    out.clear();
    out.reserve(1 << 20);
    loop {
        let used = decoder.total_in() as usize;
        let before = out.len();
        let status = decoder.decompress_vec(stream.get(used..).unwrap_or_default(), out);
        match status.map_err(|error| invalid(format!("a block is damaged: {error}")))? {
            Status::StreamEnd => return Ok(()),
            _ if out.len() > UNPACKED_BYTES_MAX => {
                return Err(invalid("a block is too long"));
            }
            _ if out.len() == out.capacity() => out.reserve(out.len().max(1 << 20)),
            _ if out.len() == before && decoder.total_in() as usize == used => {
                return Err(invalid("a block ends before its end"));
            }
            _ => {}
        }
    }
}

/// Builds a stream of this single block: header, bits, end marker, and the block's checksum again as
/// that of the stream.
fn stream(file: &dyn Source, block: Block) -> io::Result<Vec<u8>> {
    let (first, last) = (block.from / 8, block.to.div_ceil(8));
    let mut bytes = vec![0; (last - first) as usize + 1];
    let read = read_full_at(file, first, &mut bytes)?;
    bytes[read..].fill(0);
    let shift = (block.from % 8) as u32;
    let mut stream = b"BZh9".to_vec();
    stream.extend(
        bytes.windows(2).map(|pair| (u16::from_be_bytes([pair[0], pair[1]]) << shift >> 8) as u8),
    );
    let bits = block.to - block.from;
    let whole = 4 + (bits / 8) as usize;
    let mut end = Bits { bytes: stream, at: (whole as u64) * 8 + bits % 8 };
    let sum = end.bytes.get(10..14).and_then(|sum| sum.first_chunk()).copied();
    let sum = u32::from_be_bytes(sum.ok_or_else(|| invalid("a block is too short"))?);
    end.put(END, MAGIC_BITS);
    end.put(u64::from(sum), 32);
    Ok(end.bytes)
}

/// A bit writer.
struct Bits {
    bytes: Vec<u8>,
    at: u64,
}

impl Bits {
    fn put(&mut self, value: u64, bits: u64) {
        let bytes = (self.at + bits).div_ceil(8) as usize;
        self.bytes.truncate(self.at.div_ceil(8) as usize);
        self.bytes.resize(bytes, 0);
        for bit in (0..bits).rev() {
            let (byte, mask) = ((self.at / 8) as usize, 0x80 >> (self.at % 8));
            match value >> bit & 1 {
                1 => self.bytes[byte] |= mask,
                _ => self.bytes[byte] &= !mask,
            }
            self.at += 1;
        }
    }
}

struct Blocks {
    file: Arc<dyn Source>,
    blocks: Vec<Block>,
}

impl Unpack for Blocks {
    fn unpack(&self, index: usize, out: &mut [u8]) -> io::Result<()> {
        let mut unpacked = Vec::new();
        unpack(&*self.file, self.blocks[index], &mut unpacked)?;
        match unpacked.len() == out.len() {
            true => {
                out.copy_from_slice(&unpacked);
                Ok(())
            }
            false => Err(invalid("a block has another length than when it was opened")),
        }
    }
}
