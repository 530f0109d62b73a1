//! The VHDX log: metadata updates that a crash prevented from being written in place.
//!
//! The image itself is not modified: a source shows the file as it would be after the replay.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use quarrier_core::Result;
use quarrier_core::source::{Source, read_full_at};

use super::{KIB, MIB, is_sealed};
use crate::bytes::{u32_le, u64_le};
use crate::fault::{damaged, refused, structure};

const SECTOR: u64 = 4 * KIB;
/// Maximum size of a log; writers create 1 MiB.
const LOG_BYTES_MAX: u64 = 64 * MIB;
/// Maximum number of zeroed ranges over all entries: metadata updates have far fewer.
const ZERO_RANGES_MAX: usize = 1 << 16;

/// The file as it would be after the replay.
pub(super) struct Replayed {
    file: Arc<dyn Source>,
    length: u64,
    /// Sectors replaced by the log, by number; `None` for a zeroed one.
    sectors: BTreeMap<u64, Option<Box<[u8; SECTOR as usize]>>>,
}

/// A complete log entry.
struct Entry {
    at: u64,
    bytes: u64,
    tail: u64,
    sequence: u64,
    descriptors: u32,
    flushed_bytes: u64,
    last_bytes: u64,
}

/// Returns `file` with the updates of its log applied.
///
/// # Errors
/// If the log cannot be replayed.
pub(super) fn replayed(
    file: &Arc<dyn Source>,
    log_id: [u8; 16],
    log_at: u64,
    log_bytes: u64,
) -> Result<Replayed> {
    let is_log = log_bytes.is_multiple_of(MIB) && log_at.is_multiple_of(MIB) && log_bytes > 0;
    if !is_log {
        return Err(damaged(&**file, log_at, "the log is at an impossible offset"));
    }
    if log_bytes > LOG_BYTES_MAX {
        let reason = format!("has a log of {log_bytes} bytes to be replayed, which is too long");
        return Err(refused(&**file, reason));
    }
    let log = structure(&**file, log_at, log_bytes, "the log")?;
    let entries: BTreeMap<u64, Entry> = (0..log_bytes / SECTOR)
        .filter_map(|number| entry(&log, number * SECTOR, &log_id))
        .collect();
    let Some(active) = active(&entries, log_bytes) else {
        let reason = "the log must be replayed, but has no complete entries";
        return Err(damaged(&**file, log_at, reason));
    };
    let mut replayed =
        Replayed { file: Arc::clone(file), length: file.length(), sectors: BTreeMap::new() };
    for entry in active {
        replayed
            .apply(&log, entry)
            .map_err(|reason| damaged(&**file, log_at + entry.at, reason))?;
        if entry.flushed_bytes > file.length() {
            let reason =
                format!("the file had {} bytes when the log was written", entry.flushed_bytes);
            return Err(damaged(&**file, file.length(), reason));
        }
        replayed.length = replayed.length.max(entry.last_bytes.min(i64::MAX as u64));
    }
    Ok(replayed)
}

/// Parses the entry at `at`; `None` if it is incomplete.
fn entry(log: &[u8], at: u64, log_id: &[u8; 16]) -> Option<(u64, Entry)> {
    let head = log.get(at as usize..)?;
    let bytes = u64::from(u32_le(head, 8));
    let is_entry = head.starts_with(b"loge")
        && head.get(32..48)? == log_id
        && bytes.is_multiple_of(SECTOR)
        && (SECTOR..=log.len() as u64).contains(&bytes);
    if !is_entry || !is_sealed(&round(log, at, bytes)) {
        return None;
    }
    let entry = Entry {
        at,
        bytes,
        tail: u64::from(u32_le(head, 12)),
        sequence: u64_le(head, 16),
        descriptors: u32_le(head, 24),
        flushed_bytes: u64_le(head, 48),
        last_bytes: u64_le(head, 56),
    };
    Some((at, entry))
}

/// `bytes` bytes from `at` on, in a circular log.
fn round(log: &[u8], at: u64, bytes: u64) -> Vec<u8> {
    let at = at as usize % log.len();
    let first = (bytes as usize).min(log.len() - at);
    [&log[at..at + first], &log[..bytes as usize - first]].concat()
}

/// The entries of the newest complete sequence, from its tail to its head.
fn active(entries: &BTreeMap<u64, Entry>, log_bytes: u64) -> Option<Vec<&Entry>> {
    let mut heads: Vec<&Entry> = entries.values().collect();
    heads.sort_by_key(|entry| std::cmp::Reverse(entry.sequence));
    heads.into_iter().find_map(|head| {
        let mut sequence: Vec<&Entry> = Vec::new();
        let mut at = head.tail;
        // Terminates, since sequence numbers must increase by one.
        loop {
            let entry = entries.get(&at)?;
            if sequence
                .last()
                .is_some_and(|last| last.sequence.checked_add(1) != Some(entry.sequence))
            {
                return None;
            }
            sequence.push(entry);
            if entry.at == head.at {
                return Some(sequence);
            }
            at = (entry.at + entry.bytes) % log_bytes;
        }
    })
}

impl Replayed {
    /// Applies the updates of an entry: 32-byte descriptors after its header, then a data sector for
    /// each data descriptor.
    fn apply(&mut self, log: &[u8], entry: &Entry) -> std::result::Result<(), &'static str> {
        let bytes = round(log, entry.at, entry.bytes);
        let described = (64 + u64::from(entry.descriptors) * 32).next_multiple_of(SECTOR);
        let list = bytes.get(64..described as usize).ok_or("an entry of the log is too short")?;
        let mut data = bytes[described as usize..].chunks_exact(SECTOR as usize);
        for descriptor in list.chunks_exact(32).take(entry.descriptors as usize) {
            let at = u64_le(descriptor, 16);
            if u64_le(descriptor, 24) != entry.sequence || !at.is_multiple_of(SECTOR) {
                return Err("a descriptor of the log is not of its entry");
            }
            match &descriptor[..4] {
                b"zero" => self.zero(at, u64_le(descriptor, 8))?,
                b"desc" => {
                    let sector =
                        data.next().ok_or("the log has less data than its descriptors state")?;
                    let (high, low) = (u32_le(sector, 4), u32_le(sector, 4092));
                    let sequence = u64::from(high) << 32 | u64::from(low);
                    if !sector.starts_with(b"data") || sequence != entry.sequence {
                        return Err("a sector of the log is not of its entry");
                    }
                    let mut changed = Box::new([0; SECTOR as usize]);
                    changed.copy_from_slice(sector);
                    changed[..8].copy_from_slice(&descriptor[8..16]);
                    changed[4092..].copy_from_slice(&descriptor[4..8]);
                    self.sectors.insert(at / SECTOR, Some(changed));
                }
                _ => return Err("the log has an unknown descriptor"),
            }
        }
        Ok(())
    }

    fn zero(&mut self, at: u64, bytes: u64) -> std::result::Result<(), &'static str> {
        if !bytes.is_multiple_of(SECTOR) || at.checked_add(bytes).is_none() {
            return Err("the log zeroes an impossible range");
        }
        let sectors = bytes / SECTOR;
        if sectors > (ZERO_RANGES_MAX - self.sectors.len().min(ZERO_RANGES_MAX)) as u64 {
            return Err("the log zeroes too much");
        }
        self.sectors.extend((at / SECTOR..at / SECTOR + sectors).map(|sector| (sector, None)));
        Ok(())
    }
}

impl Source for Replayed {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        let buffer = &mut buffer[..count];
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = read_full_at(&*self.file, offset, buffer)?;
        // Where the replay makes the file longer, it has zeros.
        buffer[read..].fill(0);
        let end = offset + count as u64;
        for (number, sector) in self.sectors.range(offset / SECTOR..end.div_ceil(SECTOR)) {
            let start = number * SECTOR;
            let (from, to) = (offset.max(start), end.min(start + SECTOR));
            let changed = &mut buffer[(from - offset) as usize..(to - offset) as usize];
            match sector {
                Some(sector) => {
                    changed
                        .copy_from_slice(&sector[(from - start) as usize..(to - start) as usize]);
                }
                None => changed.fill(0),
            }
        }
        Ok(count)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        Ok((offset < self.length).then_some(offset..self.length))
    }

    fn sector_bytes(&self) -> usize {
        self.file.sector_bytes().max(SECTOR as usize)
    }
}
