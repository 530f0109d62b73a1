//! Directory entry sets: the file, stream extension and name entries of one file.

use quarrier_core::civil;

use super::SLOT_BYTES;
use crate::entry::Times;
use crate::fat::point;
use crate::part::{u16_at, u32_at, u64_at};
use crate::walk::{name_of_units, units};

pub(super) const FOLDER: u16 = 0x10;
/// The in-use bit of an entry type, and the entry types without it.
const IN_USE: u8 = 0x80;
const FILE: u8 = 0x05;
const STREAM: u8 = 0x40;
const NAME: u8 = 0x41;
const NO_CHAIN: u8 = 0x02;

/// A file as its entry set describes it.
pub(super) struct Set {
    /// The offset of the first entry in the volume.
    pub(super) at: u64,
    pub(super) is_deleted: bool,
    pub(super) name: String,
    pub(super) attributes: u16,
    pub(super) times: Times,
    pub(super) first_cluster: u32,
    pub(super) size: u64,
    /// Bytes that were written (valid data length); later ones read as zeros.
    pub(super) written: u64,
    pub(super) is_contiguous: bool,
    /// Whether the number of entries and the checksum of the set are right.
    pub(super) is_sound: bool,
}

/// Assembles entries into sets.
#[derive(Default)]
pub(super) struct Sets {
    begun: Option<PartialSet>,
}

struct PartialSet {
    set: Set,
    /// Number of entries that must follow.
    entries: u32,
    stored_sum: u16,
    sum: u16,
    name_units: usize,
    has_stream: bool,
    units: Vec<u16>,
}

impl Sets {
    /// Adds the next entry; returns the set if this entry completes it.
    pub(super) fn add(&mut self, slot: &[u8; SLOT_BYTES], at: u64) -> Option<Set> {
        let (kind, is_deleted) = (slot[0] & !IN_USE, slot[0] & IN_USE == 0);
        if kind == FILE {
            self.begun = Some(PartialSet {
                set: Set {
                    at,
                    is_deleted,
                    name: String::new(),
                    attributes: u16_at(slot, 4),
                    times: times(slot),
                    first_cluster: 0,
                    size: 0,
                    written: 0,
                    is_contiguous: false,
                    is_sound: false,
                },
                entries: slot[1].into(),
                stored_sum: u16_at(slot, 2),
                sum: sum(0, slot),
                name_units: 0,
                has_stream: false,
                units: Vec::new(),
            });
            return None;
        }
        let begun = self.begun.as_mut().filter(|begun| begun.set.is_deleted == is_deleted)?;
        begun.entries = begun.entries.wrapping_sub(1);
        begun.sum = sum(begun.sum, slot);
        match kind {
            STREAM if !begun.has_stream => {
                begun.has_stream = true;
                begun.name_units = slot[3].into();
                begun.set.is_contiguous = slot[1] & NO_CHAIN != 0;
                begun.set.written = u64_at(slot, 8);
                begun.set.first_cluster = u32_at(slot, 20);
                begun.set.size = u64_at(slot, 24);
            }
            NAME if begun.has_stream => {
                begun.units.extend(units(&slot[2..]));
                if begun.units.len() >= begun.name_units {
                    let PartialSet { mut set, entries, stored_sum, sum, name_units, units, .. } =
                        self.begun.take()?;
                    set.is_sound = entries == 0 && sum == stored_sum;
                    set.name = name_of_units(units.into_iter().take(name_units));
                    return (!set.name.is_empty()).then_some(set);
                }
            }
            _ => self.begun = None,
        }
        None
    }
}

/// The checksum of a set with its next entry: as if it was in use, and without the stored sum.
fn sum(before: u16, slot: &[u8; SLOT_BYTES]) -> u16 {
    let stored = if slot[0] & !IN_USE == FILE { 2..4 } else { 0..0 };
    slot.iter().enumerate().fold(before, |sum, (at, byte)| match at {
        0 => sum.rotate_right(1).wrapping_add((byte | IN_USE).into()),
        at if stored.contains(&at) => sum,
        _ => sum.rotate_right(1).wrapping_add((*byte).into()),
    })
}

/// The first cluster of the allocation bitmap, from its directory entry.
pub(super) fn bitmap_cluster(slot: &[u8; SLOT_BYTES]) -> u32 {
    u32_at(slot, 20)
}

fn times(slot: &[u8; SLOT_BYTES]) -> Times {
    let at = |place: usize, tenths: u8, zone: u8| {
        let local = point(u16_at(slot, place + 2), u16_at(slot, place))?;
        let local = local.checked_add(i64::from(tenths.min(199)) * 10_000_000)?;
        // A signed 7-bit offset from UTC in quarters of an hour; the highest bit marks it as valid.
        let quarters = i64::from((zone << 1).cast_signed() >> 1);
        let quarters = if zone & 0x80 == 0 { 0 } else { quarters };
        local.checked_sub(quarters * (civil::HOUR_NS / 4))
    };
    Times {
        created: at(8, slot[20], slot[22]),
        modified: at(12, slot[21], slot[23]),
        accessed: at(16, 0, slot[24]),
        changed: None,
    }
}
