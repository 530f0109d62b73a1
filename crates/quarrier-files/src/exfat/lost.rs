//! Folders whose own entry was overwritten. Their clusters are free; nothing marks them but their
//! entries, and nothing leads to their parents.

use std::collections::HashSet;

use super::set::{FOLDER, Sets};
use super::{Folder, Lister, SLOT_BYTES};
use crate::entry::{Content, State};
use crate::error::Result;
use crate::lost_folders::{Grid, LOST_MAX, ORPHANS, each_free_head};
use crate::walk::Walk;

/// Maximum number of clusters of a folder to take as known.
const CHILD_MAX: u64 = 64;

/// Free clusters with entries of folders.
#[derive(Default)]
struct Lost {
    clusters: Vec<u32>,
    /// Clusters of folders of which these have entries.
    children: HashSet<u32>,
    are_more: bool,
}

impl Lister<'_, '_> {
    /// Lists the files of lost folders.
    pub(super) fn lost_folders(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        let lost = self.find_lost(walk)?;
        if lost.are_more {
            walk.damaged(self.part, 0, "more lost folders than fit into memory");
        }
        // Parents first, since they have the names of the folders in them.
        let tops = lost.clusters.iter().filter(|cluster| !lost.children.contains(cluster));
        for &cluster in tops.chain(&lost.clusters) {
            let is_listed = self.listed.contains(&cluster) || !self.seen.insert(cluster);
            let Some(place) = self.layout.place(cluster).filter(|_| !is_listed) else { continue };
            let mut content = Content::default();
            content.push(Some(self.part.place(place)), self.layout.cluster_bytes);
            let path = ORPHANS.to_string();
            self.folders.push(Folder { path, content, state: State::Deleted, is_lost: true });
            self.drain(walk)?;
        }
        Ok(())
    }

    fn find_lost(&mut self, walk: &mut Walk<'_>) -> Result<Lost> {
        let (part, layout) = (self.part, &self.layout);
        let (clusters_at, cluster_bytes) = (layout.clusters_at, layout.cluster_bytes);
        let grid = Grid { clusters_at, cluster_bytes, clusters: layout.clusters.into() };
        let mut lost = Lost::default();
        let listed = std::mem::take(&mut self.listed);
        let mut heads = |cluster: u32, head: &[u8]| match children(head, cluster_bytes) {
            _ if listed.contains(&cluster) => {}
            Some(_) if lost.clusters.len() == LOST_MAX => lost.are_more = true,
            Some(children) => {
                lost.clusters.push(cluster);
                let room = LOST_MAX - lost.children.len().min(LOST_MAX);
                lost.children.extend(children.into_iter().take(room));
            }
            None => {}
        };
        each_free_head(part, grid, walk, &mut |cluster| self.is_free(cluster), &mut heads)?;
        self.listed = listed;
        Ok(lost)
    }
}

/// The clusters of the folders of which `head` has entries; `None` if it is not part of a folder: it must
/// begin with the entries of a file, which match their checksum.
fn children(head: &[u8], cluster_bytes: u64) -> Option<Vec<u32>> {
    let (mut sets, mut found) = (Sets::default(), None);
    for slot in head.as_chunks::<SLOT_BYTES>().0 {
        if slot[0] == 0 {
            break;
        }
        let Some(set) = sets.add(slot, 0) else { continue };
        if set.is_sound {
            let children = found.get_or_insert_with(Vec::new);
            let more =
                if set.is_contiguous { set.size.div_ceil(cluster_bytes).min(CHILD_MAX) } else { 1 };
            let more = if set.attributes & FOLDER == 0 { 0 } else { more as u32 };
            children.extend(set.first_cluster..set.first_cluster.saturating_add(more));
        } else if found.is_none() {
            return None;
        }
    }
    found
}
