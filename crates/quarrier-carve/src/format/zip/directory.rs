//! The central directory, and the end record.

use super::local::wide_sizes;
use crate::view::View;

/// The fixed part of an entry, in bytes.
const ENTRY_BYTES: u64 = 46;
/// The end record without its comment, in bytes.
pub(super) const END_BYTES: u64 = 22;

/// An entry of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) packed: u64,
    pub(super) unpacked: u64,
    /// The offset of its local header in the file.
    pub(super) offset: u64,
    pub(super) name_at: u64,
    pub(super) name_bytes: u16,
    /// The start of the next entry.
    pub(super) end: u64,
}

impl Entry {
    pub(super) fn read(view: &mut View<'_>, at: u64) -> Option<Entry> {
        let entry = view.array::<{ ENTRY_BYTES as usize }>(at)?;
        if entry[..4] != *b"PK\x01\x02" {
            return None;
        }
        let u16_at = |place: usize| u16::from_le_bytes([entry[place], entry[place + 1]]);
        let u32_at = |place: usize| u32::from(u16_at(place)) | u32::from(u16_at(place + 2)) << 16;
        let (name_bytes, extra_bytes, comment_bytes) = (u16_at(28), u16_at(30), u16_at(32));
        let name_at = at + ENTRY_BYTES;
        let extra_at = name_at + u64::from(name_bytes);
        let mut read = Entry {
            flags: u16_at(8),
            method: u16_at(10),
            crc: u32_at(16),
            packed: u32_at(20).into(),
            unpacked: u32_at(24).into(),
            offset: u32_at(42).into(),
            name_at,
            name_bytes,
            end: extra_at + u64::from(extra_bytes) + u64::from(comment_bytes),
        };
        if [read.packed, read.unpacked, read.offset].contains(&0xFFFF_FFFF) {
            let extra = view.take(extra_at, extra_bytes.into())?.to_vec();
            let wide = super::local::extra_field(&extra, 1)?;
            let before = [read.unpacked, read.packed].iter().filter(|n| **n == 0xFFFF_FFFF).count();
            (read.unpacked, read.packed) = wide_sizes(&extra, read.unpacked, read.packed)?;
            if read.offset == 0xFFFF_FFFF {
                let bytes = wide.get(before * 8..before * 8 + 8)?;
                read.offset = u64::from_le_bytes(bytes.try_into().ok()?);
            }
        }
        Some(read)
    }
}

/// The contents of an archive's end record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) entries: u64,
    /// The length of the directory in bytes.
    pub(super) size: u64,
    /// The offset of the directory in the file.
    pub(super) offset: u64,
    /// The end of the archive: after its comment.
    pub(super) end: u64,
    /// Bytes between the directory and the end record, for archives beyond 4 GiB.
    pub(super) wide_bytes: u64,
}

impl End {
    /// Reads the end record after the directory, at `at`.
    pub(super) fn read(view: &mut View<'_>, at: u64) -> Option<End> {
        if view.is_at(at, b"PK\x06\x06") {
            let record_bytes = view.u64_le(at + 4)?.checked_add(12)?;
            let locator = at.checked_add(record_bytes)?;
            if !view.is_at(locator, b"PK\x06\x07") || view.u64_le(locator + 8)? != at {
                return None;
            }
            let (entries, size) = (view.u64_le(at + 32)?, view.u64_le(at + 40)?);
            let offset = view.u64_le(at + 48)?;
            let narrow = End::read_narrow(view, locator + 20)?;
            let wide_bytes = record_bytes + 20;
            return Some(End { entries, size, offset, wide_bytes, ..narrow });
        }
        End::read_narrow(view, at)
    }

    /// Reads the record that every archive has.
    pub(super) fn read_narrow(view: &mut View<'_>, at: u64) -> Option<End> {
        let record = view.array::<{ END_BYTES as usize }>(at)?;
        if record[..8] != *b"PK\x05\x06\0\0\0\0" || record[8..10] != record[10..12] {
            return None;
        }
        let u16_at = |place: usize| u16::from_le_bytes([record[place], record[place + 1]]);
        let u32_at = |place: usize| u32::from(u16_at(place)) | u32::from(u16_at(place + 2)) << 16;
        Some(End {
            entries: u16_at(10).into(),
            size: u32_at(12).into(),
            offset: u32_at(16).into(),
            end: at + END_BYTES + u64::from(u16_at(20)),
            wide_bytes: 0,
        })
    }
}
