//! The search of free clusters for lost folders: those whose own entry was overwritten, so that no
//! folder leads to them.

use std::ops::Range;

use crate::error::Result;
use crate::part::Part;
use crate::walk::Walk;

/// The folder of files without a parent, named as in sleuthkit.
pub(crate) const ORPHANS: &str = "/$OrphanFiles";
/// Maximum number of clusters with lost folders, of each kind.
pub(crate) const LOST_MAX: usize = 1 << 20;
/// Bytes at the beginning of a cluster that decide whether it holds entries.
const HEAD_BYTES: usize = 4096;
/// Free bytes read at once.
const STEP_BYTES: u64 = 1 << 20;
/// From this size on only the beginnings of clusters are read, one at a time.
const SPARSE_BYTES: u64 = 64 << 10;

/// Clusters of equal size; the first has number 2.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) clusters_at: u64,
    pub(crate) cluster_bytes: u64,
    pub(crate) clusters: u64,
}

impl Grid {
    fn place(&self, cluster: u64) -> u64 {
        self.clusters_at.saturating_add((cluster - 2) * self.cluster_bytes)
    }
}

/// Passes the beginning of each free cluster to `take`, in order of their numbers, except those that are
/// holes of the source. Unreadable clusters are damage.
///
/// # Errors
/// The errors of `is_free` and of the walk.
pub(crate) fn each_free_head(
    part: &Part<'_>,
    grid: Grid,
    walk: &mut Walk<'_>,
    is_free: &mut dyn FnMut(u32) -> Result<bool>,
    take: &mut dyn FnMut(u32, &[u8]),
) -> Result<()> {
    let room = part.length().saturating_sub(grid.clusters_at) / grid.cluster_bytes.max(1);
    let end = grid.clusters.min(room).min(u64::from(u32::MAX) - 2) + 2;
    let step = match grid.cluster_bytes >= SPARSE_BYTES {
        true => 1,
        false => STEP_BYTES / grid.cluster_bytes,
    };
    let mut heads = Heads { part, grid, data: Some(0..0), bytes: Vec::new() };
    let mut first = 2;
    while first < end {
        walk.check_stop()?;
        let mut last = first;
        // The number fits, as `end` does.
        while last < end.min(first + step) && is_free(last as u32)? {
            last += 1;
        }
        if last > first {
            heads.pass(first..last, walk, take)?;
        }
        // The cluster that ended the run, if one did, is allocated.
        first = if last - first < step { last + 1 } else { last };
    }
    Ok(())
}

struct Heads<'p, 's> {
    part: &'p Part<'s>,
    grid: Grid,
    /// The last range of data found; `None` if only holes follow.
    data: Option<Range<u64>>,
    bytes: Vec<u8>,
}

impl Heads<'_, '_> {
    fn pass(
        &mut self,
        clusters: Range<u64>,
        walk: &mut Walk<'_>,
        take: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<()> {
        let (each, count) = (self.grid.cluster_bytes, clusters.end - clusters.start);
        let head = each.min(HEAD_BYTES as u64) as usize;
        let at = self.grid.place(clusters.start);
        if self.is_hole(&(at..at + count * each)) {
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(if count == 1 { head } else { (count * each) as usize }, 0);
        if self.part.read(at, &mut bytes, "a free cluster").is_ok() {
            for (cluster, bytes) in clusters.zip(bytes.chunks(each as usize)) {
                take(cluster as u32, &bytes[..head]);
            }
        } else {
            // Only some of them may be unreadable.
            for cluster in clusters {
                let read =
                    self.part.read(self.grid.place(cluster), &mut bytes[..head], "a free cluster");
                if read.is_ok() {
                    take(cluster as u32, &bytes[..head]);
                }
                walk.tolerate(read)?;
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Whether a range is a hole. The ranges are in order.
    fn is_hole(&mut self, range: &Range<u64>) -> bool {
        if self.data.as_ref().is_some_and(|data| data.end <= range.start) {
            self.data = self.part.next_data(range.start);
        }
        self.data.as_ref().is_none_or(|data| data.start >= range.end)
    }
}
