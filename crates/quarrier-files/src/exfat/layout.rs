//! The boot sector of exFAT.

use crate::error::Result;
use crate::part::{BOOT_BYTES, Part, u32_at};

/// The layout of a volume, in bytes from its start.
pub(crate) struct Layout {
    pub(crate) table_at: u64,
    pub(crate) clusters_at: u64,
    pub(crate) cluster_bytes: u64,
    pub(crate) clusters: u32,
    pub(crate) root_cluster: u32,
}

/// The layout of a volume that begins with `boot`; `None` if it is not exFAT.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) where it has impossible values.
pub(crate) fn layout(part: &Part<'_>, boot: &[u8; BOOT_BYTES]) -> Result<Option<Layout>> {
    if &boot[3..11] != b"EXFAT   " {
        return Ok(None);
    }
    let (sector_shift, cluster_shift) = (boot[108], boot[109]);
    if !(9..=12).contains(&sector_shift) || cluster_shift > 25 - sector_shift {
        return Err(part.refused(0, "an exFAT volume with an invalid cluster size"));
    }
    let sectors = |at: usize| u64::from(u32_at(boot, at)) << sector_shift;
    Ok(Some(Layout {
        table_at: sectors(80),
        clusters_at: sectors(88),
        cluster_bytes: 1 << (sector_shift + cluster_shift),
        clusters: u32_at(boot, 92).min(0xFFFF_FFF5),
        root_cluster: u32_at(boot, 96),
    }))
}

impl Layout {
    /// The offset of a cluster; numbers start at 2. `None` for an invalid number.
    pub(crate) fn place(&self, cluster: u32) -> Option<u64> {
        let index = cluster.checked_sub(2).filter(|&index| index < self.clusters)?;
        Some(self.clusters_at + u64::from(index) * self.cluster_bytes)
    }
}
