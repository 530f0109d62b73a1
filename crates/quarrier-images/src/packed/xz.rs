//! xz, using the index at the end of each stream.
//!
//! *The .xz File Format 1.2.1*. A block is decompressed as a separate stream, with a generated index,
//! so that its checksum is verified.

use std::io::{self, Read};
use std::sync::Arc;

use crc_fast::{CrcAlgorithm, checksum};
use lzma_rust2::XzReader;
use quarrier_core::Result;
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::varint;

use super::Packed;
use super::sequential::{Sequential, XZ_MEMORY_KIB_MAX as MEMORY_KIB_MAX};
use super::spans::{Spans, Unpack};
use crate::around::Around;
use crate::bytes::u32_le;
use crate::fault::{damaged, invalid, structure};
use crate::kind::Kind;

const HEADER_BYTES: u64 = 12;
/// Maximum size of a number, which has seven bits per byte.
const NUMBER_BYTES_MAX: u32 = 9;
const MAGIC: &[u8; 6] = b"\xFD7zXZ\0";
/// Maximum size of an index, which has a few bytes per block.
const INDEX_BYTES_MAX: u64 = 256 << 20;
const BLOCKS_MAX: usize = 1 << 24;

/// A block in the file.
struct Block {
    at: u64,
    /// Without padding.
    bytes: u64,
    unpacked_bytes: u64,
    flags: [u8; 2],
}

/// Opens a file with random access, unless one of its blocks is too long to cache, as in a file
/// compressed by a single thread, or its end is damaged.
pub(super) fn open(file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Packed> {
    let in_order = |length| Sequential::new(Kind::Xz, file, length);
    let blocks = match blocks(&**file) {
        Ok(blocks) => blocks,
        Err(error) if around.is_stopped() => return Err(error),
        Err(error) => {
            let rest = Some(in_order(None)).filter(Sequential::begins);
            return rest.map(Packed::InOrder).ok_or(error);
        }
    };
    let bytes_max = around.part_bytes_max();
    if blocks.iter().any(|block| block.unpacked_bytes.max(block.bytes) > bytes_max) {
        let length = blocks.iter().map(|block| block.unpacked_bytes).sum();
        return Ok(Packed::InOrder(in_order(Some(length))));
    }
    let (mut starts, mut end) = (Vec::new(), 0u64);
    for block in &blocks {
        starts.push(end);
        end += block.unpacked_bytes;
    }
    let unpack = Blocks { file: Arc::clone(file), blocks };
    Ok(Packed::Anywhere(Arc::new(Spans::new(file.name(), starts, end, None, unpack)), None))
}

/// The blocks of all streams, in order.
fn blocks(file: &dyn Source) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    // Backwards, since each stream's footer leads to its start.
    let mut end = file.length();
    while end > 0 {
        let filled = structure(file, end.saturating_sub(4), end.min(4), "the end of a stream")?;
        if filled == [0; 4] {
            end -= 4;
            continue;
        }
        end = stream(file, end, &mut blocks)?;
    }
    blocks.reverse();
    // Empty blocks would share their start with the next.
    blocks.retain(|block: &Block| block.unpacked_bytes > 0);
    let total = blocks.iter().try_fold(0u64, |sum, block| sum.checked_add(block.unpacked_bytes));
    match total {
        Some(total) if total < i64::MAX as u64 => Ok(blocks),
        _ => Err(damaged(file, 0, "the total length of its blocks is too large")),
    }
}

/// Adds the blocks of the stream that ends at `end`, last one first; returns the start of the stream.
fn stream(file: &dyn Source, end: u64, blocks: &mut Vec<Block>) -> Result<u64> {
    let wrong = |at: u64, why: &str| damaged(file, at, why);
    let footer_at = end.checked_sub(HEADER_BYTES).filter(|&at| at >= HEADER_BYTES);
    let footer_at = footer_at.ok_or_else(|| wrong(end, "the end of a stream is missing"))?;
    let footer = structure(file, footer_at, HEADER_BYTES, "the end of a stream")?;
    let flags = [footer[8], footer[9]];
    if &footer[10..] != b"YZ" || crc32(&footer[4..10]) != u32_le(&footer, 0) {
        return Err(wrong(footer_at, "the end of a stream is damaged or missing"));
    }
    let index_bytes = (u64::from(u32_le(&footer, 4)) + 1) * 4;
    let index_at = footer_at.checked_sub(index_bytes).filter(|_| index_bytes <= INDEX_BYTES_MAX);
    let index_at = index_at
        .ok_or_else(|| wrong(footer_at, "the index of a stream has an impossible length"))?;
    let index = structure(file, index_at, index_bytes, "the index of a stream")?;
    let (list, sum) = index.split_at(index.len() - 4);
    if index[0] != 0 || crc32(list) != u32_le(sum, 0) {
        return Err(wrong(index_at, "the index of a stream is damaged"));
    }
    let mut list = &list[1..];
    let count = varint::take(NUMBER_BYTES_MAX, &mut list)
        .ok_or_else(|| wrong(index_at, "the index of a stream is damaged"))?;
    let mut found: Vec<Block> = Vec::new();
    let mut at = 0u64;
    for _ in 0..count {
        let both = varint::take(NUMBER_BYTES_MAX, &mut list)
            .zip(varint::take(NUMBER_BYTES_MAX, &mut list));
        let Some((bytes, unpacked_bytes)) = both.filter(|(bytes, _)| *bytes > 0) else {
            return Err(wrong(index_at, "the index of a stream is damaged"));
        };
        if blocks.len() + found.len() == BLOCKS_MAX {
            return Err(wrong(index_at, "it has too many blocks"));
        }
        found.push(Block { at, bytes, unpacked_bytes, flags });
        let next = bytes.checked_next_multiple_of(4).and_then(|bytes| at.checked_add(bytes));
        at = next
            .filter(|&at| at <= index_at)
            .ok_or_else(|| wrong(index_at, "the index is damaged"))?;
    }
    let start = index_at.checked_sub(at).and_then(|start| start.checked_sub(HEADER_BYTES));
    let start =
        start.ok_or_else(|| wrong(index_at, "the blocks of a stream are longer than the file"))?;
    let header = structure(file, start, HEADER_BYTES, "the start of a stream")?;
    if !header.starts_with(MAGIC) || header[6..8] != flags {
        return Err(wrong(start, "a stream does not begin where its index says"));
    }
    let placed = |block: Block| Block { at: start + HEADER_BYTES + block.at, ..block };
    blocks.extend(found.into_iter().rev().map(placed));
    Ok(start)
}

fn put_number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn crc32(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

struct Blocks {
    file: Arc<dyn Source>,
    blocks: Vec<Block>,
}

impl Unpack for Blocks {
    fn unpack(&self, index: usize, out: &mut [u8]) -> io::Result<()> {
        let block = &self.blocks[index];
        let padded = block.bytes.next_multiple_of(4);
        let mut stream = MAGIC.to_vec();
        stream.extend(block.flags);
        stream.extend(crc32(&block.flags).to_le_bytes());
        let start = stream.len();
        stream.resize(start + padded as usize, 0);
        if read_full_at(&*self.file, block.at, &mut stream[start..])? as u64 != padded {
            return Err(invalid("a block ends beyond the file"));
        }
        stream.extend(ending(block));
        let mut reader = XzReader::new_mem_limit(&stream[..], false, MEMORY_KIB_MAX);
        let at = block.at;
        let wrong = |error: io::Error| {
            invalid(format!("the block at byte {at} of the file is damaged: {error}"))
        };
        reader.read_exact(out).map_err(wrong)?;
        // The decoder verifies the checksum only on the read at the end.
        match reader.read(&mut [0]).map_err(wrong)? {
            0 => Ok(()),
            _ => Err(invalid(format!(
                "the block at byte {at} of the file is longer than its index states"
            ))),
        }
    }
}

/// Builds an index of one block, and a stream footer.
fn ending(block: &Block) -> Vec<u8> {
    let mut index = vec![0, 1];
    put_number(&mut index, block.bytes);
    put_number(&mut index, block.unpacked_bytes);
    index.resize(index.len().next_multiple_of(4), 0);
    index.extend(crc32(&index).to_le_bytes());
    let mut end = (index.len() as u32 / 4 - 1).to_le_bytes().to_vec();
    end.extend(block.flags);
    index.extend(crc32(&end).to_le_bytes());
    index.extend(end);
    index.extend(b"YZ");
    index
}
