//! Folders whose own entry was overwritten. Their clusters are free; the first begins with `.`, which has
//! its own number, and `..`, which has that of the parent.

use super::{FOLDER, Folder, LABEL, LONG_NAME, Layout, Lister, SLOT_BYTES, cluster_of, names};
use crate::entry::State;
use crate::error::Result;
use crate::lost_folders::{Grid, LOST_MAX, ORPHANS, each_free_head};
use crate::part::u32_at;
use crate::walk::Walk;

/// Maximum number of lost parents of a lost folder to go up to.
const DEPTH_MAX: usize = 64;

/// Free clusters with entries of folders, by number.
#[derive(Default)]
struct Lost {
    /// First clusters of folders, with those of their parents.
    starts: Vec<(u32, u32)>,
    /// Clusters that can only be later parts of folders.
    others: Vec<u32>,
    are_more: bool,
}

impl Lost {
    fn parent(&self, cluster: u32) -> Option<u32> {
        let index = self.starts.binary_search_by_key(&cluster, |start| start.0).ok()?;
        self.starts.get(index).map(|start| start.1)
    }
}

impl Lister<'_, '_, '_> {
    /// Lists the files of lost folders.
    pub(super) fn lost_folders(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        let lost = self.find_lost(walk)?;
        if lost.are_more {
            walk.damaged(self.part, 0, "more lost folders than fit into memory");
        }
        let starts = lost.starts.iter().map(|start| start.0);
        // Parents first, since they have the names of the folders in them.
        let roots = lost.starts.iter().filter(|(_, parent)| lost.parent(*parent).is_none());
        let roots = roots.map(|start| start.0);
        let tops = starts.map(|cluster| self.top(&lost, cluster)).collect::<Vec<_>>();
        let all = roots.chain(tops).chain(lost.starts.iter().map(|start| start.0));
        for cluster in all.chain(lost.others.iter().copied()) {
            if self.seen.insert(cluster) {
                let path = ORPHANS.to_string();
                let folder =
                    Folder { path, cluster: Some(cluster), state: State::Deleted, is_lost: true };
                self.folders.push(folder);
                self.drain(walk)?;
            }
        }
        Ok(())
    }

    /// The uppermost lost parent of a lost folder.
    fn top(&self, lost: &Lost, cluster: u32) -> u32 {
        let mut top = cluster;
        for _ in 0..DEPTH_MAX {
            match lost.parent(top) {
                Some(parent) if lost.parent(parent).is_some() => top = parent,
                _ => break,
            }
        }
        top
    }

    fn find_lost(&mut self, walk: &mut Walk<'_>) -> Result<Lost> {
        let Lister { part, layout, table, seen, .. } = self;
        let Layout { clusters_at, cluster_bytes, clusters, .. } = **layout;
        let grid = Grid { clusters_at, cluster_bytes, clusters };
        let mut lost = Lost::default();
        each_free_head(
            part,
            grid,
            walk,
            &mut |cluster| table.is_free(cluster),
            &mut |cluster, head| {
                if seen.contains(&cluster) {
                    return;
                }
                let parent = parent(layout, cluster, head);
                let found = match parent {
                    Some(_) => lost.starts.len(),
                    None if is_part_of_folder(layout, head) => lost.others.len(),
                    None => return,
                };
                match parent {
                    _ if found == LOST_MAX => lost.are_more = true,
                    Some(parent) => lost.starts.push((cluster, parent)),
                    None => lost.others.push(cluster),
                }
            },
        )?;
        Ok(lost)
    }
}

/// The parent's first cluster, if `head` is the beginning of a folder in `cluster`.
fn parent(layout: &Layout, cluster: u32, head: &[u8]) -> Option<u32> {
    let (own, rest) = head.split_first_chunk::<SLOT_BYTES>()?;
    let (parent, _) = rest.split_first_chunk::<SLOT_BYTES>()?;
    let is_folder = |slot: &[u8; SLOT_BYTES]| slot[11] & (FOLDER | LABEL) == FOLDER;
    let is_start = own.starts_with(b".          ")
        && parent.starts_with(b"..         ")
        && is_folder(own)
        && is_folder(parent)
        && cluster_of(layout, own) == cluster;
    is_start.then(|| cluster_of(layout, parent))
}

/// Whether `head` has only valid entries, at least one of them of a file or folder, with zeros after the
/// last.
fn is_part_of_folder(layout: &Layout, head: &[u8]) -> bool {
    let mut slots = head.as_chunks::<SLOT_BYTES>().0.iter();
    let mut has_names = false;
    for slot in slots.by_ref() {
        match slot {
            [0, ..] => return has_names && slots.all(|slot| *slot == [0; SLOT_BYTES]),
            slot if is_long_name(slot) => {}
            slot if is_entry(layout, slot) => has_names |= slot[11] & LABEL == 0,
            _ => return false,
        }
    }
    has_names
}

fn is_long_name(slot: &[u8; SLOT_BYTES]) -> bool {
    let is_number = slot[0] == 0xE5 || (slot[0] & 0x80 == 0 && matches!(slot[0] & 0x3F, 1..=20));
    slot[11] == LONG_NAME && is_number && slot[12] == 0 && slot[26..28] == [0, 0]
}

/// Whether a slot that may contain anything is an entry with a short name: each field has a valid value.
pub(super) fn is_entry(layout: &Layout, slot: &[u8; SLOT_BYTES]) -> bool {
    let (cluster, size) = (u64::from(cluster_of(layout, slot)), u64::from(u32_at(slot, 28)));
    let times = names::times(slot);
    let is_zero = |at: usize| slot[at..at + 2] == [0, 0];
    let bytes_max = layout.clusters.saturating_mul(layout.cluster_bytes);
    let is_special = slot[11] & (FOLDER | LABEL) != 0;
    names::is_plausible(slot)
        && (matches!(slot[0], 0x05 | 0xE5) || names::is_name(&slot[0]) && slot[0] != b' ')
        && slot[11] & (FOLDER | LABEL) != FOLDER | LABEL
        && slot[12] & !0x18 == 0
        && slot[13] < 200
        && times.modified.is_some()
        && (times.accessed.is_some() || is_zero(18))
        && (times.created.is_some() || is_zero(16))
        && (cluster == 0 || (2..layout.clusters + 2).contains(&cluster))
        && if is_special { size == 0 } else { size <= bytes_max && (size == 0 || cluster != 0) }
}
