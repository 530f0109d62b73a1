//! What the trial file holds: random bytes, and in each sector the word that belongs there.
//!
//! ```text
//!  sector (512 bytes) = stamp of (seed, sector, generation), 8 bytes
//!                     + the sheet's bytes at the same place, 504 bytes
//! ```
//!
//! The sheet is 1 MiB of random bytes: no file system finds them shorter, and no storage knows
//! them from before. A stamp tells a sector that lies in the wrong place, or that an earlier
//! write left there.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::statistics::SplitMix;

/// Bytes that carry one stamp; also the least that `O_DIRECT` may move.
pub(super) const SECTOR_BYTES: usize = 512;
const STAMP_BYTES: usize = 8;
const SHEET_BYTES: usize = 1 << 20;
/// A hasty check looks at one stamp in so many bytes.
const HASTY_BYTES: usize = 4096;

/// The bytes of a file, by their offset.
pub(super) struct Content {
    seed: u64,
    sheet: Vec<u8>,
    /// For each sector, which write it holds, modulo 256.
    written: Vec<AtomicU8>,
}

impl Content {
    /// For a file of `bytes`, of which each differs from seed to seed.
    pub(super) fn new(bytes: u64, seed: u64) -> Content {
        let mut random = SplitMix(seed);
        let sheet = (0..SHEET_BYTES / 8).flat_map(|_| random.next().to_le_bytes()).collect();
        let sectors = bytes.div_ceil(SECTOR_BYTES as u64);
        Content { seed, sheet, written: (0..sectors).map(|_| AtomicU8::new(0)).collect() }
    }

    fn stamp(&self, sector: u64, generation: u8) -> u64 {
        let mut word = self.seed ^ (sector << 8 | u64::from(generation));
        word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        word ^ (word >> 32)
    }

    /// From now on the sectors of this range hold `generation`. The range is one of sectors.
    pub(super) fn mark(&self, offset: u64, bytes: usize, generation: u8) {
        let first = (offset / SECTOR_BYTES as u64) as usize;
        for sector in &self.written[first..first + bytes / SECTOR_BYTES] {
            sector.store(generation, Ordering::Relaxed);
        }
    }

    /// Writes what belongs to `offset` into `bytes`; both are of whole sectors. `held` is the
    /// offset for which they were written before, or none: only what changes is written.
    pub(super) fn write(&self, offset: u64, generation: u8, bytes: &mut [u8], held: Option<u64>) {
        let place = (offset % SHEET_BYTES as u64) as usize;
        if held.is_none_or(|held| held % SHEET_BYTES as u64 != place as u64) {
            let mut rest = &mut bytes[..];
            let mut from = place;
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
    }

    /// The byte that belongs to `offset`.
    pub(super) fn byte(&self, offset: u64) -> u8 {
        let sector = offset / SECTOR_BYTES as u64;
        match (offset % SECTOR_BYTES as u64) as usize {
            within if within < STAMP_BYTES => {
                let generation = self.written[sector as usize].load(Ordering::Relaxed);
                self.stamp(sector, generation).to_le_bytes()[within]
            }
            _ => self.sheet[(offset % SHEET_BYTES as u64) as usize],
        }
    }

    /// Compares every byte read at `offset`. Returns the offset of the first that is wrong.
    pub(super) fn first_wrong(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        if offset.is_multiple_of(SECTOR_BYTES as u64) && bytes.len().is_multiple_of(SECTOR_BYTES) {
            let mut at = offset;
            for sector in bytes.chunks_exact(SECTOR_BYTES) {
                let from = (at % SHEET_BYTES as u64) as usize + STAMP_BYTES;
                let rest = &self.sheet[from..from + SECTOR_BYTES - STAMP_BYTES];
                if !self.has_stamp(at, sector) || sector[STAMP_BYTES..] != *rest {
                    return self.first_wrong_byte(at, sector);
                }
                at += SECTOR_BYTES as u64;
            }
            return None;
        }
        self.first_wrong_byte(offset, bytes)
    }

    /// As [`Content::first_wrong`], but of large blocks only one stamp a page is compared, and
    /// the last sector's: what a thread can do while it reads from the page cache without being
    /// much slower.
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
        let generation = self.written[index as usize].load(Ordering::Relaxed);
        sector[..STAMP_BYTES] == self.stamp(index, generation).to_le_bytes()
    }

    fn first_wrong_byte(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        (offset..).zip(bytes).find(|&(at, &byte)| byte != self.byte(at)).map(|(at, _)| at)
    }
}
