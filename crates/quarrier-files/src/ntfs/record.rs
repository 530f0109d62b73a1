//! A record of the master file table.

use super::attribute::{Attribute, END};
use super::boot::RECORD_BYTES_MAX;
use crate::part::{u16_at, u32_at, u64_at};

/// Each sector of a record ends with an update sequence number. The bytes that it replaced are stored
/// in the record header (fixup array).
pub(crate) const STRIDE_BYTES: usize = 512;
/// Attributes of most records, at most.
const ATTRIBUTES: usize = 6;
const IN_USE: u16 = 1;
const FOLDER: u16 = 2;

/// The record number in a reference; the upper 16 bits are the sequence number.
pub(super) fn number_of(reference: u64) -> u64 {
    reference & 0xFFFF_FFFF_FFFF
}

/// The sequence number in a reference.
pub(super) fn count_of(reference: u64) -> u16 {
    (reference >> 48) as u16
}

/// A complete record.
pub(crate) struct Record<'b> {
    /// Its number in the table.
    pub(crate) number: u64,
    /// The offset of the record in the volume, in bytes; if it is fragmented, that of its first byte.
    pub(crate) at: u64,
    bytes: &'b [u8],
}

impl<'b> Record<'b> {
    /// Parses a record and applies the fixups at the ends of its sectors; `None` if it is incomplete.
    pub(crate) fn mend(number: u64, at: u64, bytes: &'b mut [u8]) -> Option<Self> {
        (bytes.get(..4)? == b"FILE").then_some(())?;
        let (from, count) = (usize::from(u16_at(bytes, 4)), usize::from(u16_at(bytes, 6)));
        if count != bytes.len() / STRIDE_BYTES + 1 {
            return None;
        }
        // The array may lie where it is applied.
        let mut numbers = [0; 2 * (RECORD_BYTES_MAX as usize / STRIDE_BYTES + 1)];
        let numbers = numbers.get_mut(..count * 2)?;
        numbers.copy_from_slice(bytes.get(from..from + count * 2)?);
        let stamp = &numbers[..2];
        for (sector, kept) in bytes.chunks_exact_mut(STRIDE_BYTES).zip(numbers[2..].chunks_exact(2))
        {
            let end = &mut sector[STRIDE_BYTES - 2..];
            (end == stamp).then_some(())?;
            end.copy_from_slice(kept);
        }
        Some(Record { number, at, bytes })
    }

    pub(super) fn is_in_use(&self) -> bool {
        u16_at(self.bytes, 22) & IN_USE != 0
    }

    pub(super) fn is_folder(&self) -> bool {
        u16_at(self.bytes, 22) & FOLDER != 0
    }

    /// The sequence number, which grows when the record is reused.
    pub(super) fn count(&self) -> u16 {
        u16_at(self.bytes, 16)
    }

    /// The reference to the base record that this one extends; 0 in a base record.
    pub(super) fn base(&self) -> u64 {
        u64_at(self.bytes, 32)
    }

    /// Its attributes, up to the first damaged one.
    pub(crate) fn attributes(&self) -> Vec<Attribute<'b>> {
        let mut attributes = Vec::with_capacity(ATTRIBUTES);
        let mut at = usize::from(u16_at(self.bytes, 20));
        let all = self.bytes;
        while let Some(rest) = all.get(at..) {
            let (kind, length) = (u32_at(rest, 0), u32_at(rest, 4) as usize);
            if kind == END || length < 24 {
                break;
            }
            let Some(bytes) = rest.get(..length) else { break };
            attributes.extend(Attribute::read(kind, bytes, self.at + at as u64));
            at += length;
        }
        attributes
    }
}
