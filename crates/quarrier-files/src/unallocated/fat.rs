//! FAT12, FAT16 and FAT32: a cluster is free if its entry is zero. This includes clusters of deleted
//! files.

use super::free::{Free, Units};
use crate::error::Result;
use crate::fat::layout;
use crate::part::{BOOT_BYTES, Part, u16_at, u32_at};

pub(super) fn read(
    part: &Part<'_>,
    boot: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    let Some(layout) = layout(boot) else { return Ok(None) };
    let (kind, bits) = (layout.kind, layout.bits);
    // The first two entries are reserved.
    let entries_bytes = ((layout.clusters + 2) * bits).div_ceil(8);
    if entries_bytes > layout.table_bytes {
        return Err(part.refused(layout.table_at, "a FAT too short for its clusters"));
    }
    let mut units =
        Units::new(part, free, layout.clusters_at, layout.cluster_bytes, layout.clusters);
    let mut reserved_left = 2;
    part.stream(layout.table_at, entries_bytes, "the FAT", &mut |bytes| {
        let mut next = |entry: u32| match reserved_left {
            0 => units.next(entry == 0),
            _ => {
                reserved_left -= 1;
                Ok(())
            }
        };
        match bits {
            12 => bytes.chunks(3).try_for_each(|pair| {
                let byte = |at: usize| u32::from(pair.get(at).copied().unwrap_or(0));
                next(byte(0) | (byte(1) & 0x0F) << 8)?;
                if pair.len() == 3 { next(byte(1) >> 4 | byte(2) << 4) } else { Ok(()) }
            }),
            16 => bytes.chunks_exact(2).try_for_each(|entry| next(u16_at(entry, 0).into())),
            _ => bytes.chunks_exact(4).try_for_each(|entry| next(u32_at(entry, 0) & 0x0FFF_FFFF)),
        }
    })?;
    units.finish()?;
    let end = layout.clusters_at.saturating_add(layout.clusters * layout.cluster_bytes);
    free.add(part.place(end.min(part.length()))..part.span().end, part)?;
    Ok(Some(kind))
}
