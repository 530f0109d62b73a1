//! FAT12, FAT16 and FAT32: a cluster whose entry is zero is free. Those of deleted files are.

use super::free::{Free, Units};
use super::part::{BOOT_BYTES, Part, u16_at, u32_at};
use crate::error::Result;

/// What the boot sector says.
struct Layout {
    table_at: u64,
    table_bytes: u64,
    clusters_at: u64,
    cluster_bytes: u64,
    clusters: u64,
}

pub(super) fn read(
    part: &Part<'_>,
    boot: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    let Some(layout) = layout(boot) else { return Ok(None) };
    let (kind, bits) = match layout.clusters {
        0..4085 => ("FAT12", 12),
        4085..65525 => ("FAT16", 16),
        _ => ("FAT32", 32),
    };
    // The first two entries stand for no cluster.
    let entries_bytes = ((layout.clusters + 2) * bits).div_ceil(8);
    if entries_bytes > layout.table_bytes {
        return Err(part.refused(layout.table_at, "a FAT too short for its clusters"));
    }
    let mut units =
        Units::new(part, free, layout.clusters_at, layout.cluster_bytes, layout.clusters);
    let mut passed_over = 2;
    part.stream(layout.table_at, entries_bytes, "the FAT", &mut |bytes| {
        let mut next = |entry: u32| match passed_over {
            0 => units.next(entry == 0),
            _ => {
                passed_over -= 1;
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

fn layout(boot: &[u8; BOOT_BYTES]) -> Option<Layout> {
    let sector_bytes = u64::from(u16_at(boot, 11));
    let (each, reserved) = (u64::from(boot[13]), u64::from(u16_at(boot, 14)));
    let (tables, root_entries) = (u64::from(boot[16]), u64::from(u16_at(boot, 17)));
    let is_boot_sector = matches!(boot[0], 0xEB | 0xE9)
        && matches!(sector_bytes, 512 | 1024 | 2048 | 4096)
        && each.is_power_of_two()
        && reserved > 0
        && matches!(tables, 1..=4)
        && boot[21] >= 0xF0;
    is_boot_sector.then_some(())?;
    let or = |short: u16, long: u32| if short == 0 { u64::from(long) } else { u64::from(short) };
    let sectors = or(u16_at(boot, 19), u32_at(boot, 32));
    let table_sectors = or(u16_at(boot, 22), u32_at(boot, 36));
    let root_sectors = (root_entries * 32).div_ceil(sector_bytes);
    let clusters_at = reserved + tables * table_sectors + root_sectors;
    let clusters = sectors.checked_sub(clusters_at)? / each;
    (table_sectors > 0 && clusters > 0).then(|| Layout {
        table_at: reserved * sector_bytes,
        table_bytes: table_sectors * sector_bytes,
        clusters_at: clusters_at * sector_bytes,
        cluster_bytes: each * sector_bytes,
        clusters,
    })
}
