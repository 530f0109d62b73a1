//! exFAT: a bitmap of clusters, listed in the root directory.

use super::free::{Free, Units};
use crate::error::Result;
use crate::exfat::{Layout, layout};
use crate::part::{BOOT_BYTES, Part, u32_at, u64_at};

/// Size of a directory entry; the bitmap's entry is among the first in the root directory.
const ENTRY_BYTES: usize = 32;
const BITMAP_ENTRY: u8 = 0x81;
/// Maximum bytes of the root directory to search.
const ROOT_BYTES_MAX: u64 = 1 << 20;

struct Volume<'a, 'b> {
    part: &'a Part<'b>,
    layout: Layout,
}

pub(super) fn read(
    part: &Part<'_>,
    boot: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    let Some(layout) = layout(part, boot)? else { return Ok(None) };
    let volume = Volume { part, layout };
    let layout = &volume.layout;
    let (first, bytes) = volume.bitmap(layout.root_cluster)?;
    let needed = u64::from(layout.clusters).div_ceil(8);
    if bytes < needed {
        return Err(part.refused(0, "an exFAT bitmap too short for its clusters"));
    }
    let mut units =
        Units::new(part, free, layout.clusters_at, layout.cluster_bytes, layout.clusters.into());
    let (mut cluster, mut left) = (first, needed);
    while left > 0 {
        let step = left.min(layout.cluster_bytes);
        let at = volume.place(cluster)?;
        part.stream(at, step, "the exFAT bitmap", &mut |bits| units.bits(bits))?;
        left -= step;
        if left > 0 {
            cluster = volume.after(cluster)?;
        }
    }
    units.finish()?;
    let end = layout.clusters_at + u64::from(layout.clusters) * layout.cluster_bytes;
    free.add(part.place(end.min(part.length()))..part.span().end, part)?;
    Ok(Some("exFAT"))
}

impl Volume<'_, '_> {
    /// The offset of a cluster.
    fn place(&self, cluster: u32) -> Result<u64> {
        let cannot = || self.part.refused(self.layout.table_at, "an invalid exFAT cluster number");
        self.layout.place(cluster).ok_or_else(cannot)
    }

    /// The next cluster in the FAT chain.
    fn after(&self, cluster: u32) -> Result<u32> {
        let mut entry = [0; 4];
        self.part.read(self.layout.table_at + u64::from(cluster) * 4, &mut entry, "the FAT")?;
        Ok(u32::from_le_bytes(entry))
    }

    /// The first cluster of the bitmap and its length in bytes.
    fn bitmap(&self, root: u32) -> Result<(u32, u64)> {
        let (mut cluster, mut left) = (root, ROOT_BYTES_MAX);
        let mut entry = [0; ENTRY_BYTES];
        while left > 0 {
            let start = self.place(cluster)?;
            for at in (0..self.layout.cluster_bytes.min(left)).step_by(ENTRY_BYTES) {
                self.part.read(start + at, &mut entry, "the root directory")?;
                match entry[0] {
                    0 => {
                        return Err(self
                            .part
                            .refused(start + at, "an exFAT volume without a bitmap"));
                    }
                    // The second bitmap belongs to the second FAT.
                    BITMAP_ENTRY if entry[1] & 1 == 0 => {
                        return Ok((u32_at(&entry, 20), u64_at(&entry, 24)));
                    }
                    _ => {}
                }
            }
            left = left.saturating_sub(self.layout.cluster_bytes);
            cluster = self.after(cluster)?;
        }
        Err(self.part.refused(0, "an exFAT volume without a bitmap"))
    }
}
