//! exFAT: directory entry sets, an allocation bitmap, and FAT chains only for fragmented files.
//!
//! *exFAT File System Specification*, Microsoft.

mod layout;
mod lost;
mod set;

use std::collections::HashSet;

pub(crate) use layout::{Layout, layout};
use set::{FOLDER, Set, Sets};

use crate::cache::Cache;
use crate::entry::{Access, Content, Entry, Kind, State, Times};
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part};
use crate::walk::{Walk, joined};

const SLOT_BYTES: usize = 32;
/// The inode number that sleuthkit gives the root directory.
const ROOT_INODE: u64 = 2;
const FIRST_INODE: u64 = 3;
/// Maximum size of a directory, by the specification.
const FOLDER_BYTES_MAX: u64 = 256 << 20;

/// A folder still to list.
struct Folder {
    path: String,
    content: Content,
    state: State,
    /// Whether its only known cluster was found without an entry: it is unclear what follows in it.
    is_lost: bool,
}

struct Lister<'p, 's> {
    part: &'p Part<'s>,
    layout: Layout,
    cache: Cache<'p, 's>,
    /// The first cluster of the allocation bitmap, which is assumed to be contiguous.
    bitmap_at: Option<u64>,
    /// First clusters of folders already visited.
    seen: HashSet<u32>,
    /// All clusters of deleted ones, if folders without an entry are requested.
    listed: HashSet<u32>,
    folders: Vec<Folder>,
}

/// Lists the volume in `part`.
///
/// # Errors
/// Errors of the walk. Damage is recorded in the walk and is not an error.
pub(crate) fn list(part: &Part<'_>, boot: &[u8; BOOT_BYTES], walk: &mut Walk<'_>) -> Result<()> {
    let Some(layout) = layout(part, boot)? else { return Ok(()) };
    let root_cluster = layout.root_cluster;
    let mut lister = Lister {
        part,
        layout,
        cache: Cache::new(part),
        bitmap_at: None,
        seen: [root_cluster].into(),
        listed: HashSet::new(),
        folders: Vec::new(),
    };
    let content = lister.chain(root_cluster, FOLDER_BYTES_MAX, walk)?;
    walk.emit(Entry {
        path: "/".to_string(),
        inode: ROOT_INODE,
        kind: Kind::Folder,
        state: State::Allocated,
        size: content.runs.iter().map(|run| run.length).sum(),
        times: Times::default(),
        access: Access::of_attributes(0),
        content: content.clone(),
    })?;
    let (path, state) = (String::new(), State::Allocated);
    lister.folders.push(Folder { path, content, state, is_lost: false });
    lister.drain(walk)?;
    if walk.free_clusters { lister.lost_folders(walk) } else { Ok(()) }
}

impl Lister<'_, '_> {
    /// Lists the queued folders, and all below them.
    fn drain(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        while let Some(folder) = self.folders.pop() {
            let at = self.folders.len();
            let listed = self.folder(&folder, walk);
            walk.tolerate(listed)?;
            self.folders[at..].reverse();
        }
        Ok(())
    }

    fn folder(&mut self, folder: &Folder, walk: &mut Walk<'_>) -> Result<()> {
        let base = self.part.place(0);
        let mut sets = Sets::default();
        let mut bytes = vec![0; self.layout.cluster_bytes.min(64 << 10) as usize];
        for run in &folder.content.runs {
            let start = run.place.unwrap_or(base) - base;
            let mut done = 0;
            while done < run.length {
                let is_next = done % self.layout.cluster_bytes == 0;
                if is_next && walk.free_clusters && !self.is_new(start + done, folder.state) {
                    done += self.layout.cluster_bytes;
                    continue;
                }
                let step = bytes.len().min((run.length - done) as usize);
                self.part.read(start + done, &mut bytes[..step], "a folder")?;
                for (index, slot) in bytes[..step].chunks_exact(SLOT_BYTES).enumerate() {
                    if slot[0] == 0 {
                        return Ok(());
                    }
                    walk.step(self.part)?;
                    let at = start + done + (index * SLOT_BYTES) as u64;
                    let slot = <&[u8; SLOT_BYTES]>::try_from(slot).unwrap_or(&[0; SLOT_BYTES]);
                    if slot[0] == 0x81 && slot[1] & 1 == 0 && folder.path.is_empty() {
                        self.bitmap_at = self.layout.place(set::bitmap_cluster(slot));
                    }
                    let set = sets.add(slot, at);
                    if let Some(set) = set.filter(|set| !folder.is_lost || set.is_sound) {
                        self.entry(folder, set, walk)?;
                    }
                }
                done += step as u64;
            }
        }
        Ok(())
    }

    /// Whether no deleted folder before this one had the cluster at an offset in the volume.
    fn is_new(&mut self, at: u64, state: State) -> bool {
        let index = at.saturating_sub(self.layout.clusters_at) / self.layout.cluster_bytes;
        state == State::Allocated
            || u32::try_from(index + 2).is_ok_and(|cluster| self.listed.insert(cluster))
    }

    fn entry(&mut self, folder: &Folder, set: Set, walk: &mut Walk<'_>) -> Result<()> {
        let state = if set.is_deleted { State::Deleted } else { folder.state };
        if state == State::Deleted && !walk.deleted {
            return Ok(());
        }
        let Some(path) = joined(&folder.path, &set.name) else {
            walk.damaged(self.part, set.at, "folders nested too deeply");
            return Ok(());
        };
        let is_folder = set.attributes & FOLDER != 0;
        let most = if is_folder { FOLDER_BYTES_MAX } else { u64::MAX };
        let bytes = set.size.min(most);
        let mut content = match (set.first_cluster, state) {
            _ if bytes == 0 => Content::default(),
            (first, State::Deleted) => self.deleted(first, bytes, set.is_contiguous, walk)?,
            (first, State::Allocated) if set.is_contiguous => self.contiguous(first, bytes),
            (first, State::Allocated) => self.chain(first, bytes, walk)?,
        };
        let found: u64 = content.runs.iter().map(|run| run.length).sum();
        if found < bytes {
            content.lost = content.lost.or(Some("its clusters end before its last byte"));
        }
        if !is_folder && set.written < set.size {
            content.written = Some(set.written);
        }
        if is_folder && bytes > 0 && content.lost.is_none() && self.seen.insert(set.first_cluster) {
            let (path, content) = (path.clone(), content.clone());
            self.folders.push(Folder { path, content, state, is_lost: false });
        }
        walk.emit(Entry {
            path,
            inode: FIRST_INODE + set.at.saturating_sub(self.layout.clusters_at) / SLOT_BYTES as u64,
            kind: if is_folder { Kind::Folder } else { Kind::File },
            state,
            size: set.size,
            times: set.times,
            access: Access::of_attributes(set.attributes.into()),
            content,
        })
    }

    /// The content of a file stored in contiguous clusters.
    fn contiguous(&self, first: u32, bytes: u64) -> Content {
        let mut content = Content::default();
        let clusters = bytes.div_ceil(self.layout.cluster_bytes);
        let room = (u64::from(self.layout.clusters) + 2).saturating_sub(first.into());
        if let Some(place) = self.layout.place(first) {
            let bytes = clusters.min(room) * self.layout.cluster_bytes;
            content.push(Some(self.part.place(place)), bytes);
        }
        content
    }

    /// The content of a file whose clusters follow a FAT chain.
    fn chain(&mut self, first: u32, bytes: u64, walk: &mut Walk<'_>) -> Result<Content> {
        let mut content = Content::default();
        // A chain longer than the volume has a cycle.
        let most = u64::from(self.layout.clusters) * self.layout.cluster_bytes;
        let (mut cluster, mut left) = (first, bytes.min(most));
        while left > 0 {
            let Some(place) = self.layout.place(cluster) else { break };
            walk.step(self.part)?;
            content.push(Some(self.part.place(place)), self.layout.cluster_bytes);
            left = left.saturating_sub(self.layout.cluster_bytes);
            if left > 0 {
                cluster = self.after(cluster)?;
            }
        }
        Ok(content)
    }

    fn after(&mut self, cluster: u32) -> Result<u32> {
        let at = self.layout.table_at + u64::from(cluster) * 4;
        Ok(u32::from_le_bytes(self.cache.array(at, "the FAT")?))
    }

    /// The content of a deleted file. Its FAT chain stays until other files need the clusters; if it is
    /// gone, the free clusters from the first one on are assumed.
    fn deleted(
        &mut self,
        first: u32,
        bytes: u64,
        is_contiguous: bool,
        walk: &mut Walk<'_>,
    ) -> Result<Content> {
        const TAKEN: &str = "another file has its clusters";
        let mut content = Content::default();
        let (mut cluster, mut left) = (first, bytes);
        while left > 0 {
            let Some(place) = self.layout.place(cluster) else { return Ok(Content::lost(TAKEN)) };
            if !walk.spend(self.part) {
                return Ok(Content::lost("too many deleted files name the same clusters"));
            }
            if self.is_free(cluster)? {
                content.push(Some(self.part.place(place)), self.layout.cluster_bytes);
                left = left.saturating_sub(self.layout.cluster_bytes);
            } else if is_contiguous || cluster == first {
                return Ok(Content::lost(TAKEN));
            }
            let next = if is_contiguous || left == 0 { 0 } else { self.after(cluster)? };
            cluster = if self.layout.place(next).is_some() { next } else { cluster + 1 };
        }
        Ok(content)
    }

    fn is_free(&mut self, cluster: u32) -> Result<bool> {
        let Some(bitmap_at) = self.bitmap_at else { return Ok(false) };
        let index = u64::from(cluster) - 2;
        let [byte] = self.cache.array(bitmap_at + index / 8, "the exFAT bitmap")?;
        Ok(byte >> (index % 8) & 1 == 0)
    }
}
