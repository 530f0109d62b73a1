//! NTFS: the file `$Bitmap`, record 6 of the master file table.

use super::free::{Free, Units};
use super::part::{BOOT_BYTES, Part, u16_at, u32_at, u64_at};
use crate::error::Result;

const BITMAP_RECORD: u64 = 6;
const RECORD_BYTES_MAX: u64 = 64 << 10;
/// Each sector of a record ends with a number whose real bytes are kept in its head.
const STRIDE_BYTES: usize = 512;
const DATA: u32 = 0x80;
const END: u32 = 0xFFFF_FFFF;

pub(super) fn read(
    part: &Part<'_>,
    boot: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    if &boot[3..11] != b"NTFS    " {
        return Ok(None);
    }
    let sector_bytes = u64::from(u16_at(boot, 11));
    let each = match boot[13] {
        each @ 0..=128 => u64::from(each),
        shift => 1 << (256 - u32::from(shift)).min(31),
    };
    let cluster_bytes = sector_bytes * each;
    if !sector_bytes.is_power_of_two() || !each.is_power_of_two() || cluster_bytes > 2 << 20 {
        return Err(part.refused(0, "an NTFS volume with clusters of a size that cannot be"));
    }
    let record_bytes = match boot[64].cast_signed() {
        clusters @ 1.. => u64::from(clusters.unsigned_abs()) * cluster_bytes,
        shift => 1 << u32::from(shift.unsigned_abs()).min(31),
    };
    if !(STRIDE_BYTES as u64..=RECORD_BYTES_MAX).contains(&record_bytes) {
        return Err(part.refused(0, "an NTFS volume with records of a size that cannot be"));
    }
    let table_at = u64_at(boot, 48).saturating_mul(cluster_bytes);
    let at = table_at.saturating_add(BITMAP_RECORD * record_bytes);
    let mut record = vec![0; record_bytes as usize];
    part.read(at, &mut record, "the record of $Bitmap")?;
    mend(&mut record).ok_or_else(|| part.refused(at, "a damaged record of $Bitmap"))?;
    let content = content(&record)
        .ok_or_else(|| part.refused(at, "a record of $Bitmap that does not say where it is"))?;

    let clusters = u64_at(boot, 40) / each;
    let mut units = Units::new(part, free, 0, cluster_bytes, clusters);
    match content {
        Content::Here(bits) => units.bits(bits)?,
        Content::Runs(runs) => {
            let mut runs = Runs { bytes: runs, at: 0 };
            while units.left() > 0 {
                let (start, length) = runs
                    .next()
                    .ok_or_else(|| part.refused(at, "a $Bitmap too short for its clusters"))?;
                let bytes = length.saturating_mul(cluster_bytes).min(units.left().div_ceil(8));
                match start {
                    Some(start) => {
                        let from = start.saturating_mul(cluster_bytes);
                        part.stream(from, bytes, "$Bitmap", &mut |bits| units.bits(bits))?;
                    }
                    None => units.same(true, bytes.saturating_mul(8))?,
                }
            }
        }
    }
    if units.left() > 0 {
        return Err(part.refused(at, "a $Bitmap too short for its clusters"));
    }
    units.finish()?;
    let end = clusters.saturating_mul(cluster_bytes).min(part.length());
    free.add(part.place(end)..part.span().end, part)?;
    Ok(Some("NTFS"))
}

/// Puts the bytes at the ends of sectors back; `None` where the record is not whole.
fn mend(record: &mut [u8]) -> Option<()> {
    (&record[..4] == b"FILE").then_some(())?;
    let (at, count) = (usize::from(u16_at(record, 4)), usize::from(u16_at(record, 6)));
    let numbers = record.get(at..at + count * 2)?.to_vec();
    if count != record.len() / STRIDE_BYTES + 1 {
        return None;
    }
    let stamp = &numbers[..2];
    for (sector, kept) in record.chunks_exact_mut(STRIDE_BYTES).zip(numbers[2..].chunks_exact(2)) {
        let end = &mut sector[STRIDE_BYTES - 2..];
        (end == stamp).then_some(())?;
        end.copy_from_slice(kept);
    }
    Some(())
}

/// What a file holds, in its record or elsewhere.
enum Content<'a> {
    Here(&'a [u8]),
    Runs(&'a [u8]),
}

/// The unnamed data of a record.
fn content(record: &[u8]) -> Option<Content<'_>> {
    let mut at = usize::from(u16_at(record, 20));
    loop {
        let attribute = record.get(at..)?;
        let (kind, length) = (u32_at(attribute, 0), u32_at(attribute, 4) as usize);
        if kind == END || length < 24 {
            return None;
        }
        let attribute = attribute.get(..length)?;
        if kind == DATA && attribute[9] == 0 {
            if attribute[8] == 0 {
                let (bytes, from) =
                    (u32_at(attribute, 16) as usize, usize::from(u16_at(attribute, 20)));
                return attribute.get(from..)?.get(..bytes).map(Content::Here);
            }
            // What begins elsewhere goes on in a record that the attribute list names.
            let begins = u64_at(attribute, 16) == 0;
            let runs = attribute.get(usize::from(u16_at(attribute, 32))..)?;
            return begins.then_some(Content::Runs(runs));
        }
        at += length;
    }
}

/// Runs of clusters: where each begins, or that it is nowhere, and how many clusters it has.
struct Runs<'a> {
    bytes: &'a [u8],
    /// The cluster that the next run counts from.
    at: i64,
}

impl Iterator for Runs<'_> {
    type Item = (Option<u64>, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let (&head, rest) = self.bytes.split_first()?;
        let (length_bytes, place_bytes) = (usize::from(head & 15), usize::from(head >> 4));
        if length_bytes == 0 || length_bytes > 8 || place_bytes > 8 {
            return None;
        }
        let length = number(rest.get(..length_bytes)?, false).cast_unsigned();
        let place = number(rest.get(length_bytes..length_bytes + place_bytes)?, true);
        self.bytes = &rest[length_bytes + place_bytes..];
        if place_bytes == 0 {
            return Some((None, length));
        }
        self.at = self.at.checked_add(place)?;
        Some((Some(u64::try_from(self.at).ok()?), length))
    }
}

/// A number of up to eight bytes.
fn number(bytes: &[u8], is_signed: bool) -> i64 {
    let is_negative = is_signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if is_negative { 0xFF } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}
