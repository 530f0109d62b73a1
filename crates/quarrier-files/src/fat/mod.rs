//! FAT12, FAT16 and FAT32: names, and chains of clusters.
//!
//! *Microsoft FAT Specification* (2005). A deleted entry keeps its first cluster and size, but its
//! chain is wiped. Its bytes are assumed to lie in the free clusters from the first one on, as most
//! forensic tools assume.

mod layout;
mod lost;
mod names;
mod table;

use std::collections::HashSet;

pub(crate) use layout::{Layout, layout};
use names::LongName;
pub(crate) use names::point;
use table::Table;

use crate::entry::{Access, Content, Entry, Kind, State};
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part, u16_at, u32_at};
use crate::walk::{Walk, joined};

pub(crate) const SLOT_BYTES: usize = 32;
const DELETED: u8 = 0xE5;
const LONG_NAME: u8 = 0x0F;
const LABEL: u8 = 0x08;
const FOLDER: u8 = 0x10;
/// The inode number of the root directory. Entries are numbered after it, as in sleuthkit.
const ROOT_INODE: u64 = 2;
const FIRST_INODE: u64 = 3;
/// Maximum size of a directory: 65,536 entries.
const FOLDER_BYTES_MAX: u64 = 2 << 20;

/// A folder still to list.
struct Folder {
    path: String,
    /// Its first cluster; `None` for the root of FAT12 and FAT16.
    cluster: Option<u32>,
    state: State,
    /// Whether its first cluster was found without an entry: it is unclear what follows in it.
    is_lost: bool,
}

struct Lister<'v, 'p, 's> {
    part: &'p Part<'s>,
    layout: &'v Layout,
    table: Table<'v, 'p, 's>,
    /// First clusters of folders already visited.
    seen: HashSet<u32>,
    folders: Vec<Folder>,
}

/// Lists the volume in `part`.
///
/// # Errors
/// Errors of the walk. Damage is recorded in the walk and is not an error.
pub(crate) fn list(part: &Part<'_>, boot: &[u8; BOOT_BYTES], walk: &mut Walk<'_>) -> Result<()> {
    let Some(layout) = layout(boot) else { return Ok(()) };
    let entries_bytes = ((layout.clusters + 2) * layout.bits).div_ceil(8);
    if entries_bytes > layout.table_bytes {
        return Err(part.refused(layout.table_at, "a FAT too short for its clusters"));
    }
    let root = (layout.root_bytes == 0).then_some(layout.root_cluster);
    let mut lister = Lister {
        part,
        layout: &layout,
        table: Table::new(part, &layout),
        seen: root.into_iter().collect(),
        folders: vec![Folder {
            path: String::new(),
            cluster: root,
            state: State::Allocated,
            is_lost: false,
        }],
    };
    lister.root(walk)?;
    lister.drain(walk)?;
    if walk.free_clusters { lister.lost_folders(walk) } else { Ok(()) }
}

impl Lister<'_, '_, '_> {
    /// Emits the root directory.
    fn root(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        let mut content = Content::default();
        match self.folders[0].cluster {
            Some(cluster) => content = self.table.chain(cluster, FOLDER_BYTES_MAX, walk)?,
            None => {
                content.push(Some(self.part.place(self.layout.root_at)), self.layout.root_bytes)
            }
        }
        let size = content.runs.iter().map(|run| run.length).sum();
        walk.emit(Entry {
            path: "/".to_string(),
            inode: ROOT_INODE,
            kind: Kind::Folder,
            state: State::Allocated,
            size,
            times: Default::default(),
            access: Access::of_attributes(0),
            content,
        })
    }

    /// Lists the queued folders, and all below them.
    fn drain(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        while let Some(folder) = self.folders.pop() {
            let at = self.folders.len();
            let listed = self.folder(&folder, walk);
            walk.tolerate(listed)?;
            // Depth first: the first subfolder is listed next.
            self.folders[at..].reverse();
        }
        Ok(())
    }

    /// Lists the entries of a folder; queues the folders in it.
    fn folder(&mut self, folder: &Folder, walk: &mut Walk<'_>) -> Result<()> {
        let runs = match folder.cluster {
            None => {
                let mut content = Content::default();
                content.push(Some(self.part.place(self.layout.root_at)), self.layout.root_bytes);
                content.runs
            }
            // The chain of a deleted folder is lost; only its first cluster is known.
            Some(cluster) if folder.state == State::Deleted => {
                match self.table.deleted(cluster, self.layout.cluster_bytes, walk)? {
                    content if content.lost.is_none() => content.runs,
                    _ => return Ok(()),
                }
            }
            Some(cluster) => self.table.chain(cluster, FOLDER_BYTES_MAX, walk)?.runs,
        };
        let base = self.part.place(0);
        let mut long = LongName::default();
        let mut bytes = vec![0; self.layout.cluster_bytes.min(64 << 10) as usize];
        let mut is_first = true;
        for run in runs {
            let start = run.place.unwrap_or(base) - base;
            let mut done = 0;
            while done < run.length {
                let step = bytes.len().min((run.length - done) as usize);
                self.part.read(start + done, &mut bytes[..step], "a folder")?;
                for (index, slot) in bytes[..step].chunks_exact(SLOT_BYTES).enumerate() {
                    if std::mem::take(&mut is_first)
                        && folder.state == State::Deleted
                        && !folder.is_lost
                        && !slot.starts_with(b".          ")
                    {
                        return Ok(());
                    }
                    if slot[0] == 0 {
                        return Ok(());
                    }
                    walk.step(self.part)?;
                    let at = start + done + (index * SLOT_BYTES) as u64;
                    let slot = <&[u8; SLOT_BYTES]>::try_from(slot).unwrap_or(&[0; SLOT_BYTES]);
                    self.slot(folder, slot, at, &mut long, walk)?;
                }
                done += step as u64;
            }
        }
        Ok(())
    }

    /// Processes one directory entry at an offset in the volume.
    fn slot(
        &mut self,
        folder: &Folder,
        slot: &[u8; SLOT_BYTES],
        at: u64,
        long: &mut LongName,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        let attributes = slot[11];
        if attributes & 0x3F == LONG_NAME {
            long.add(slot);
            return Ok(());
        }
        let long = std::mem::take(long);
        let is_deleted = slot[0] == DELETED;
        if attributes & LABEL != 0 || slot[0] == b'.' {
            return Ok(());
        }
        if folder.is_lost && !lost::is_entry(self.layout, slot) {
            return Ok(());
        }
        let state = if is_deleted { State::Deleted } else { folder.state };
        if state == State::Deleted && (!walk.deleted || !names::is_plausible(slot)) {
            return Ok(());
        }
        let name = long.finish(slot, is_deleted).unwrap_or_else(|| names::short(slot));
        let Some(path) = joined(&folder.path, &name) else {
            walk.damaged(self.part, at, "folders nested too deeply");
            return Ok(());
        };
        let cluster = cluster_of(self.layout, slot);
        let is_folder = attributes & FOLDER != 0;
        let size = u64::from(u32_at(slot, 28));
        let content = self.content(cluster, size, is_folder, state, walk)?;
        let size = match is_folder {
            true => content.runs.iter().map(|run| run.length).sum(),
            false => size,
        };
        if is_folder && cluster != 0 && content.lost.is_none() && self.seen.insert(cluster) {
            let (path, cluster) = (path.clone(), Some(cluster));
            self.folders.push(Folder { path, cluster, state, is_lost: false });
        }
        walk.emit(Entry {
            path,
            inode: FIRST_INODE + (at - self.layout.root_at) / SLOT_BYTES as u64,
            kind: if is_folder { Kind::Folder } else { Kind::File },
            state,
            size,
            times: names::times(slot),
            access: Access::of_attributes(attributes.into()),
            content,
        })
    }

    fn content(
        &mut self,
        cluster: u32,
        size: u64,
        is_folder: bool,
        state: State,
        walk: &mut Walk<'_>,
    ) -> Result<Content> {
        let bytes_max = if is_folder { FOLDER_BYTES_MAX } else { size };
        match (state, is_folder) {
            _ if bytes_max == 0 => Ok(Content::default()),
            (State::Allocated, _) => {
                let mut content = self.table.chain(cluster, bytes_max, walk)?;
                let bytes: u64 = content.runs.iter().map(|run| run.length).sum();
                if !is_folder && bytes < size {
                    content.lost = Some("its cluster chain ends before its last byte");
                } else if is_folder && bytes == 0 && cluster != 0 {
                    content.lost = Some("its first cluster number is invalid");
                }
                Ok(content)
            }
            (State::Deleted, true) => self.table.deleted(cluster, self.layout.cluster_bytes, walk),
            (State::Deleted, false) => self.table.deleted(cluster, size, walk),
        }
    }
}

/// The first cluster of an entry.
fn cluster_of(layout: &Layout, slot: &[u8; SLOT_BYTES]) -> u32 {
    let high = if layout.bits == 32 { u16_at(slot, 20) } else { 0 };
    u32::from(high) << 16 | u32::from(u16_at(slot, 26))
}
