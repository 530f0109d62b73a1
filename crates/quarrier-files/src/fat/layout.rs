//! The boot sector of FAT.

use crate::part::{BOOT_BYTES, u16_at, u32_at};

/// The layout of a volume, in bytes from its start.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// `FAT12`, `FAT16` or `FAT32`.
    pub(crate) kind: &'static str,
    /// Bits per FAT entry.
    pub(crate) bits: u64,
    pub(crate) table_at: u64,
    pub(crate) table_bytes: u64,
    /// After the FATs: the root directory of FAT12 and FAT16, then the clusters.
    pub(crate) root_at: u64,
    pub(crate) root_bytes: u64,
    /// The first cluster of the root directory of FAT32.
    pub(crate) root_cluster: u32,
    pub(crate) clusters_at: u64,
    pub(crate) cluster_bytes: u64,
    pub(crate) clusters: u64,
}

/// The layout of a volume that begins with `boot`; `None` if it is not FAT.
pub(crate) fn layout(boot: &[u8; BOOT_BYTES]) -> Option<Layout> {
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
    let root_sector = reserved + tables * table_sectors;
    let clusters_sector = root_sector + root_sectors;
    let clusters = sectors.checked_sub(clusters_sector)? / each;
    let (kind, bits) = match clusters {
        0..4085 => ("FAT12", 12),
        4085..65525 => ("FAT16", 16),
        _ => ("FAT32", 32),
    };
    (table_sectors > 0 && clusters > 0).then(|| Layout {
        kind,
        bits,
        table_at: reserved * sector_bytes,
        table_bytes: table_sectors * sector_bytes,
        root_at: root_sector * sector_bytes,
        root_bytes: root_entries * 32,
        root_cluster: if root_entries == 0 { u32_at(boot, 44) } else { 0 },
        clusters_at: clusters_sector * sector_bytes,
        cluster_bytes: each * sector_bytes,
        clusters,
    })
}
