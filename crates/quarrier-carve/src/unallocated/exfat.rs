//! exFAT: a bitmap of clusters, listed in the root directory.

use super::free::{Free, Units};
use super::part::{BOOT_BYTES, Part, u32_at, u64_at};
use crate::error::Result;

/// A directory's entry is 32 bytes; the one of the bitmap is among the first.
const ENTRY_BYTES: usize = 32;
const BITMAP_ENTRY: u8 = 0x81;
/// Entries of the root directory that are looked at.
const ROOT_BYTES_MAX: u64 = 1 << 20;

struct Layout<'a, 'b> {
    part: &'a Part<'b>,
    table_at: u64,
    clusters_at: u64,
    cluster_bytes: u64,
    clusters: u32,
}

pub(super) fn read(
    part: &Part<'_>,
    boot: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    if &boot[3..11] != b"EXFAT   " {
        return Ok(None);
    }
    let (sector_shift, cluster_shift) = (boot[108], boot[109]);
    if !(9..=12).contains(&sector_shift) || cluster_shift > 25 - sector_shift {
        return Err(part.refused(0, "an exFAT volume with clusters of a size that cannot be"));
    }
    let sectors = |at: usize| u64::from(u32_at(boot, at)) << sector_shift;
    let layout = Layout {
        part,
        table_at: sectors(80),
        clusters_at: sectors(88),
        cluster_bytes: 1 << (sector_shift + cluster_shift),
        clusters: u32_at(boot, 92),
    };
    let (first, bytes) = layout.bitmap(u32_at(boot, 96))?;
    let needed = u64::from(layout.clusters).div_ceil(8);
    if bytes < needed {
        return Err(part.refused(0, "an exFAT bitmap too short for its clusters"));
    }
    let mut units =
        Units::new(part, free, layout.clusters_at, layout.cluster_bytes, layout.clusters.into());
    let (mut cluster, mut left) = (first, needed);
    while left > 0 {
        let step = left.min(layout.cluster_bytes);
        let at = layout.place(cluster)?;
        part.stream(at, step, "the exFAT bitmap", &mut |bits| units.bits(bits))?;
        left -= step;
        if left > 0 {
            cluster = layout.after(cluster)?;
        }
    }
    units.finish()?;
    let end = layout.clusters_at + u64::from(layout.clusters) * layout.cluster_bytes;
    free.add(part.place(end.min(part.length()))..part.span().end, part)?;
    Ok(Some("exFAT"))
}

impl Layout<'_, '_> {
    /// Where a cluster lies; they are numbered from 2.
    fn place(&self, cluster: u32) -> Result<u64> {
        match cluster.checked_sub(2).filter(|&index| index < self.clusters) {
            Some(index) => Ok(self.clusters_at + u64::from(index) * self.cluster_bytes),
            None => Err(self.part.refused(self.table_at, "an exFAT cluster that cannot be")),
        }
    }

    /// The cluster behind one of the same file.
    fn after(&self, cluster: u32) -> Result<u32> {
        let mut entry = [0; 4];
        self.part.read(self.table_at + u64::from(cluster) * 4, &mut entry, "the FAT")?;
        Ok(u32::from_le_bytes(entry))
    }

    /// The first cluster of the bitmap and its length in bytes.
    fn bitmap(&self, root: u32) -> Result<(u32, u64)> {
        let (mut cluster, mut left) = (root, ROOT_BYTES_MAX);
        let mut entry = [0; ENTRY_BYTES];
        while left > 0 {
            let start = self.place(cluster)?;
            for at in (0..self.cluster_bytes.min(left)).step_by(ENTRY_BYTES) {
                self.part.read(start + at, &mut entry, "the root directory")?;
                match entry[0] {
                    0 => {
                        return Err(self
                            .part
                            .refused(start + at, "an exFAT volume without a bitmap"));
                    }
                    // The second bitmap is the one of the second FAT.
                    BITMAP_ENTRY if entry[1] & 1 == 0 => {
                        return Ok((u32_at(&entry, 20), u64_at(&entry, 24)));
                    }
                    _ => {}
                }
            }
            left = left.saturating_sub(self.cluster_bytes);
            cluster = self.after(cluster)?;
        }
        Err(self.part.refused(0, "an exFAT volume without a bitmap"))
    }
}
