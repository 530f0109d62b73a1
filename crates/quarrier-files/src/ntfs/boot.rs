//! The boot sector of NTFS.

use super::record::STRIDE_BYTES;
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part, u16_at, u64_at};

pub(super) const RECORD_BYTES_MAX: u64 = 64 << 10;

/// Sizes and offsets, in bytes from the start of the volume.
pub(crate) struct Boot {
    pub(crate) cluster_bytes: u64,
    pub(crate) clusters: u64,
    pub(crate) record_bytes: u64,
    /// The offset of the master file table.
    pub(crate) table_at: u64,
}

/// Parses the boot sector; `None` if it is not NTFS.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) where it has impossible values.
pub(crate) fn boot(part: &Part<'_>, boot: &[u8; BOOT_BYTES]) -> Result<Option<Boot>> {
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
        return Err(part.refused(0, "an NTFS volume with an invalid cluster size"));
    }
    let record_bytes = match boot[64].cast_signed() {
        clusters @ 1.. => u64::from(clusters.unsigned_abs()) * cluster_bytes,
        shift => 1 << u32::from(shift.unsigned_abs()).min(31),
    };
    if !(STRIDE_BYTES as u64..=RECORD_BYTES_MAX).contains(&record_bytes) {
        return Err(part.refused(0, "an NTFS volume with an invalid record size"));
    }
    Ok(Some(Boot {
        cluster_bytes,
        clusters: u64_at(boot, 40) / each,
        record_bytes,
        table_at: u64_at(boot, 48).saturating_mul(cluster_bytes),
    }))
}
