//! The contents of the trial file: random bytes, with a stamp in each sector.
//!
//! ```text
//!  sector (512 bytes) = stamp of (seed, sector, generation), 8 bytes
//!                     + 504 bytes of a sector of the sheet; each write records which one
//! ```
//!
//! The sheet is 1 MiB of random bytes, so no file system can compress it and no storage has seen it
//! before. A stamp exposes a sector in the wrong place, or one left by an earlier write.
//!
//! A buffer keeps its part of the sheet wherever it is written, and only its stamps are renewed.
//! Filling it for each write costs more than the copy: the storage would then have to fetch every
//! written line from this processor's cache. (Random writes of 4 KiB, 32 in flight, to a virtual disk:
//! 0.85 of fio's rate with a copy for each write, 0.97 without; medians of 7.)

use std::sync::atomic::{AtomicU32, Ordering};

use quarrier_core::region::prefer_large_pages;

use crate::statistics::SplitMix;

/// Bytes covered by one stamp; also the smallest transfer of `O_DIRECT`.
pub(super) const SECTOR_BYTES: usize = 512;
const STAMP_BYTES: usize = 8;
const SHEET_BYTES: usize = 1 << 20;
/// A quick check compares one stamp in each block of this size.
const HASTY_BYTES: usize = 4096;

/// The contents of a sector: the number of the write, modulo 256, and the sector of the sheet.
struct Written {
    generation: u8,
    sheet_sector: u32,
}

impl Written {
    fn packed(&self) -> u32 {
        self.sheet_sector << 8 | u32::from(self.generation)
    }

    fn unpacked(word: u32) -> Written {
        Written { generation: word as u8, sheet_sector: word >> 8 }
    }

    fn sheet_offset(&self) -> usize {
        self.sheet_sector as usize * SECTOR_BYTES
    }
}

/// Returns the sector of the sheet for a sector of a buffer or of the file: the sheet repeats.
fn sheet_sector(sector: u64) -> u32 {
    (sector % (SHEET_BYTES / SECTOR_BYTES) as u64) as u32
}

/// The bytes of a file, by offset.
pub(super) struct Content {
    seed: u64,
    sheet: Vec<u8>,
    /// The smallest write has two to the power of this sectors.
    unit_shift: u32,
    /// The contents of the first sector of each unit, as a [`Written`]; the others follow on the sheet.
    written: Vec<AtomicU32>,
}

impl Content {
    /// Creates contents for a file of `bytes`, whose writes are aligned to `unit_bytes`, a power of two of
    /// sectors; they depend on the seed. They take 4 bytes of memory for each unit.
    pub(super) fn new(bytes: u64, unit_bytes: usize, seed: u64) -> Content {
        let mut random = SplitMix(seed);
        let sheet = (0..SHEET_BYTES / 8).flat_map(|_| random.next().to_le_bytes()).collect();
        let unit_shift = (unit_bytes / SECTOR_BYTES).ilog2();
        let units = bytes.div_ceil(unit_bytes as u64);
        let first =
            |unit| Written { generation: 0, sheet_sector: sheet_sector(unit << unit_shift) };
        let mut written: Vec<AtomicU32> = Vec::with_capacity(units as usize);
        // Lookups are random, so small pages would miss the TLB.
        prefer_large_pages(written.as_ptr().cast(), units as usize * size_of::<AtomicU32>());
        written.extend((0..units).map(|unit| AtomicU32::new(first(unit).packed())));
        Content { seed, sheet, unit_shift, written }
    }

    fn stamp(&self, sector: u64, generation: u8) -> u64 {
        let mut word = self.seed ^ (sector << 8 | u64::from(generation));
        word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        word ^ (word >> 32)
    }

    fn written(&self, sector: u64) -> Written {
        let unit = self.written[(sector >> self.unit_shift) as usize].load(Ordering::Relaxed);
        let Written { generation, sheet_sector: first } = Written::unpacked(unit);
        let within = sector & ((1 << self.unit_shift) - 1);
        Written { generation, sheet_sector: sheet_sector(u64::from(first) + within) }
    }

    /// The length of the start of the file that has been written since its generation 0.
    pub(super) fn written_bytes(&self) -> u64 {
        let is_written =
            |unit: &&AtomicU32| Written::unpacked(unit.load(Ordering::Relaxed)).generation != 0;
        let units = self.written.iter().take_while(is_written).count() as u64;
        (units << self.unit_shift) * SECTOR_BYTES as u64
    }

    /// Records that the units of this range now have the bytes that [`Content::write`] made.
    pub(super) fn mark(&self, offset: u64, bytes: usize, generation: u8, held: u64) {
        let first = ((offset / SECTOR_BYTES as u64) >> self.unit_shift) as usize;
        let units = (bytes / SECTOR_BYTES) >> self.unit_shift;
        let sheet = held / SECTOR_BYTES as u64;
        let places = (sheet..).step_by(1 << self.unit_shift);
        for (at, unit) in places.zip(&self.written[first..first + units]) {
            let now = Written { generation, sheet_sector: sheet_sector(at) };
            unit.store(now.packed(), Ordering::Relaxed);
        }
    }

    /// Fills `bytes` for a write at `offset`; both are whole sectors. If the buffer was filled before,
    /// `held` is the offset of the first time, and only the stamps are renewed. Returns that offset for the
    /// next call and for [`Content::mark`].
    pub(super) fn write(
        &self,
        offset: u64,
        generation: u8,
        bytes: &mut [u8],
        held: Option<u64>,
    ) -> u64 {
        if held.is_none() {
            let mut rest = &mut bytes[..];
            let mut from = (offset % SHEET_BYTES as u64) as usize;
            while !rest.is_empty() {
                let part = rest.len().min(SHEET_BYTES - from);
                let (now, later) = rest.split_at_mut(part);
                now.copy_from_slice(&self.sheet[from..from + part]);
                rest = later;
                from = 0;
            }
        }
        let first = offset / SECTOR_BYTES as u64;
        for (sector, bytes) in (first..).zip(bytes.chunks_exact_mut(SECTOR_BYTES)) {
            bytes[..STAMP_BYTES].copy_from_slice(&self.stamp(sector, generation).to_le_bytes());
        }
        held.unwrap_or(offset)
    }

    /// Returns the byte at `offset`.
    pub(super) fn byte(&self, offset: u64) -> u8 {
        let sector = offset / SECTOR_BYTES as u64;
        let written = self.written(sector);
        match (offset % SECTOR_BYTES as u64) as usize {
            within if within < STAMP_BYTES => {
                self.stamp(sector, written.generation).to_le_bytes()[within]
            }
            within => self.sheet[written.sheet_offset() + within],
        }
    }

    /// Compares all bytes read at `offset`. Returns the offset of the first wrong one.
    pub(super) fn first_wrong(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        if offset.is_multiple_of(SECTOR_BYTES as u64) && bytes.len().is_multiple_of(SECTOR_BYTES) {
            let mut at = offset;
            for sector in bytes.chunks_exact(SECTOR_BYTES) {
                let from = self.written(at / SECTOR_BYTES as u64).sheet_offset();
                let rest = &self.sheet[from + STAMP_BYTES..from + SECTOR_BYTES];
                if !self.has_stamp(at, sector) || sector[STAMP_BYTES..] != *rest {
                    return self.first_wrong_byte(at, sector);
                }
                at += SECTOR_BYTES as u64;
            }
            return None;
        }
        self.first_wrong_byte(offset, bytes)
    }

    /// Like [`Content::first_wrong`], but of large blocks it compares only one stamp per page, and that of
    /// the last sector. This hardly slows down a thread that reads from the page cache.
    pub(super) fn first_wrong_hastily(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        if bytes.len() < HASTY_BYTES || !offset.is_multiple_of(SECTOR_BYTES as u64) {
            return self.first_wrong(offset, bytes);
        }
        let last = (bytes.len() - 1) / SECTOR_BYTES * SECTOR_BYTES;
        (0..bytes.len())
            .step_by(HASTY_BYTES)
            .chain([last])
            .find(|&at| !self.has_stamp(offset + at as u64, &bytes[at..]))
            .map(|at| offset + at as u64)
    }

    fn has_stamp(&self, offset: u64, sector: &[u8]) -> bool {
        let index = offset / SECTOR_BYTES as u64;
        sector[..STAMP_BYTES] == self.stamp(index, self.written(index).generation).to_le_bytes()
    }

    fn first_wrong_byte(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        (offset..).zip(bytes).find(|&(at, &byte)| byte != self.byte(at)).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_the_last_ones_written_whatever_the_unit_of_writes() {
        const FILE_BYTES: usize = 8 << 20;
        for unit_bytes in [512, 4096, 1 << 20, 2 << 20] {
            let content = Content::new(FILE_BYTES as u64, unit_bytes, 1);
            let mut file = vec![0; FILE_BYTES];
            content.write(0, 0, &mut file, None);
            assert_eq!((content.first_wrong(0, &file), content.written_bytes()), (None, 0));
            let mut block = vec![0; 2 << 20];
            let mut held = None;
            for (generation, offset) in [(1, 0), (2, 4 << 20), (3, 2 << 20), (4, 4 << 20)] {
                held = Some(content.write(offset, generation, &mut block, held));
                content.mark(offset, block.len(), generation, held.unwrap());
                let offset = offset as usize;
                assert!(content.first_wrong(0, &file).is_some(), "the write is missing");
                file[offset..offset + block.len()].copy_from_slice(&block);
                assert_eq!(content.first_wrong(0, &file), None, "{unit_bytes} {generation}");
            }
            assert_eq!(content.written_bytes(), 6 << 20);
            for at in (0..FILE_BYTES).step_by(65_521) {
                assert_eq!(content.byte(at as u64), file[at], "{unit_bytes} {at}");
                file[at] = !file[at];
                assert_eq!(content.first_wrong(0, &file), Some(at as u64), "{unit_bytes}");
                file[at] = !file[at];
            }
        }
    }
}
