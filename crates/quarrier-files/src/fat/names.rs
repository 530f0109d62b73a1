//! Names and times of FAT: 8.3 names, and long names in the entries before them.

use quarrier_core::{civil, name};

use super::SLOT_BYTES;
use crate::entry::Times;
use crate::part::u16_at;
use crate::walk::{name_of_units, units};

/// Maximum entries of a long name: 255 UTF-16 units, 13 in each entry.
const SLOTS_MAX: usize = 20;

/// A partial long name. Its entries come last part first.
#[derive(Default)]
pub(super) struct LongName {
    parts: Vec<[u8; 26]>,
    checksum: u8,
    /// The expected sequence number of the next entry, unless the name is deleted.
    next: u8,
}

impl LongName {
    /// Adds the next entry.
    pub(super) fn add(&mut self, slot: &[u8; SLOT_BYTES]) {
        let (number, checksum) = (slot[0], slot[13]);
        let is_deleted = number == 0xE5;
        let goes_on = !self.parts.is_empty() && checksum == self.checksum && {
            if is_deleted { self.next == 0xE5 } else { number == self.next }
        };
        if !goes_on {
            self.parts.clear();
            self.checksum = checksum;
            if !is_deleted && number & 0x40 == 0 {
                return;
            }
        }
        if self.parts.len() == SLOTS_MAX {
            self.parts.clear();
            return;
        }
        self.next = if is_deleted { 0xE5 } else { (number & 0x3F).wrapping_sub(1) };
        let mut part = [0; 26];
        part[..10].copy_from_slice(&slot[1..11]);
        part[10..22].copy_from_slice(&slot[14..26]);
        part[22..].copy_from_slice(&slot[28..32]);
        self.parts.push(part);
    }

    /// The long name of the entry that follows, if complete.
    pub(super) fn finish(self, slot: &[u8; SLOT_BYTES], is_deleted: bool) -> Option<String> {
        let is_whole = match is_deleted {
            // Deletion overwrites the first character of the short name, so its checksum cannot match.
            true => self.next == 0xE5,
            false => self.next == 0 && checksum(slot) == self.checksum,
        };
        (is_whole && !self.parts.is_empty()).then_some(())?;
        let all = self.parts.iter().rev().flat_map(|part| units(part));
        let name = name_of_units(all.take_while(|&unit| unit != 0 && unit != 0xFFFF));
        (!name.is_empty() && name != "." && name != "..").then_some(name)
    }
}

/// The checksum of the short name that long name entries store.
fn checksum(slot: &[u8; SLOT_BYTES]) -> u8 {
    slot[..11].iter().fold(0u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte))
}

/// The short name; that of a deleted file begins with `_`.
pub(super) fn short(slot: &[u8; SLOT_BYTES]) -> String {
    let mut bytes = *slot;
    bytes[0] = match bytes[0] {
        0xE5 => b'_',
        0x05 => 0xE5,
        other => other,
    };
    let part = |bytes: &[u8], is_lower: bool| {
        let end = bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
        let part = &bytes[..end];
        name::of_bytes(&if is_lower { part.to_ascii_lowercase() } else { part.to_vec() })
    };
    let name = part(&bytes[..8], bytes[12] & 0x08 != 0);
    let ending = part(&bytes[8..11], bytes[12] & 0x10 != 0);
    if ending.is_empty() { name } else { format!("{name}.{ending}") }
}

/// Whether an entry marked as deleted is plausible: unused directory space may contain anything.
pub(super) fn is_plausible(slot: &[u8; SLOT_BYTES]) -> bool {
    slot[11] & 0xC0 == 0 && slot[1..11].iter().all(is_name)
}

/// Whether a short name may contain a byte.
pub(super) fn is_name(byte: &u8) -> bool {
    *byte >= 0x20 && !b"\"*+,/:;<=>?[\\]|".contains(byte)
}

/// The times of an entry.
pub(super) fn times(slot: &[u8; SLOT_BYTES]) -> Times {
    let tenths = i64::from(slot[13].min(199)) * 10_000_000;
    let at = |day: usize, time: Option<usize>| {
        point(u16_at(slot, day), time.map_or(0, |time| u16_at(slot, time)))
    };
    Times {
        modified: at(24, Some(22)),
        accessed: at(18, None),
        changed: None,
        created: at(16, Some(14)).and_then(|at| at.checked_add(tenths)),
    }
}

/// Converts a date and time of FAT or exFAT to nanoseconds since 1970.
pub(crate) fn point(day: u16, time: u16) -> Option<i64> {
    let (day, time) = (i64::from(day), i64::from(time));
    let day = civil::day(1980 + (day >> 9), day >> 5 & 15, day & 31)?;
    let (hour, minute, second) = (time >> 11, time >> 5 & 63, (time & 31) * 2);
    let is_time = hour < 24 && minute < 60 && second < 60;
    let seconds = is_time.then_some(hour * 3600 + minute * 60 + second)?;
    civil::join(day, seconds * 1_000_000_000)
}
