//! The file allocation table: chains of clusters.

use super::Layout;
use crate::cache::Cache;
use crate::entry::Content;
use crate::error::Result;
use crate::part::Part;
use crate::walk::Walk;

pub(super) struct Table<'v, 'p, 's> {
    part: &'p Part<'s>,
    layout: &'v Layout,
    cache: Cache<'p, 's>,
}

impl<'v, 'p, 's> Table<'v, 'p, 's> {
    pub(super) fn new(part: &'p Part<'s>, layout: &'v Layout) -> Self {
        Table { part, layout, cache: Cache::new(part) }
    }

    /// The offset of a cluster in the source; `None` for an invalid number.
    fn place(&self, cluster: u32) -> Option<u64> {
        let index = u64::from(cluster).checked_sub(2)?;
        let at = self.layout.clusters_at + index * self.layout.cluster_bytes;
        (index < self.layout.clusters).then(|| self.part.place(at))
    }

    /// Reads the table entry of a cluster.
    fn entry(&mut self, cluster: u32) -> Result<u32> {
        let (number, what) = (u64::from(cluster), "the FAT");
        let at = self.layout.table_at;
        Ok(match self.layout.bits {
            12 => {
                let pair = self.cache.array::<2>(at + number + number / 2, what)?;
                let pair = u16::from_le_bytes(pair);
                u32::from(if cluster & 1 == 0 { pair & 0xFFF } else { pair >> 4 })
            }
            16 => u16::from_le_bytes(self.cache.array(at + number * 2, what)?).into(),
            _ => u32::from_le_bytes(self.cache.array(at + number * 4, what)?) & 0x0FFF_FFFF,
        })
    }

    pub(super) fn is_free(&mut self, cluster: u32) -> Result<bool> {
        Ok(self.entry(cluster)? == 0)
    }

    /// The cluster chain of a file of `bytes` bytes; shorter if the chain ends early.
    pub(super) fn chain(&mut self, first: u32, bytes: u64, walk: &mut Walk<'_>) -> Result<Content> {
        let mut content = Content::default();
        // A chain longer than the volume has a cycle.
        let most = self.layout.clusters * self.layout.cluster_bytes;
        let (mut cluster, mut left) = (first, bytes.min(most));
        while left > 0 {
            let Some(place) = self.place(cluster) else { break };
            walk.step(self.part)?;
            content.push(Some(place), self.layout.cluster_bytes);
            left = left.saturating_sub(self.layout.cluster_bytes);
            if left > 0 {
                cluster = self.entry(cluster)?;
            }
        }
        Ok(content)
    }

    /// The free clusters, from the first one on, that a deleted file of `bytes` bytes is assumed to
    /// have had.
    pub(super) fn deleted(
        &mut self,
        first: u32,
        bytes: u64,
        walk: &mut Walk<'_>,
    ) -> Result<Content> {
        const TAKEN: &str = "another file has its clusters";
        let mut content = Content::default();
        let (mut cluster, mut left) = (first, bytes);
        while left > 0 {
            let Some(place) = self.place(cluster) else { return Ok(Content::lost(TAKEN)) };
            if !walk.spend(self.part) {
                return Ok(Content::lost("too many deleted files name the same clusters"));
            }
            if self.is_free(cluster)? {
                content.push(Some(place), self.layout.cluster_bytes);
                left = left.saturating_sub(self.layout.cluster_bytes);
            } else if cluster == first {
                return Ok(Content::lost(TAKEN));
            }
            cluster += 1;
        }
        Ok(content)
    }
}
