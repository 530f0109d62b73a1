//! XFS: inodes in groups, and folders that name them.
//!
//! *XFS Algorithms & Data Structures*, 3rd edition. The inode of a deleted file loses its type, length
//! and extent count, but not the extents. Its name remains unless the directory is inline.

mod blocks;
mod folder;
mod freed;
mod inode;
mod layout;

use std::collections::HashSet;

pub(crate) use layout::{Layout, layout};

use blocks::{content, freed};
use folder::{Name, of_block, of_inode};
use inode::{Form, Inode, Inodes};

use crate::entry::{Content, Entry, Kind, State};
use crate::error::{Error, Result};
use crate::part::{BOOT_BYTES, Part};
use crate::walk::{Walk, joined_bytes};

/// The folder of files without a parent, named as in sleuthkit.
const ORPHANS: &str = "/$OrphanFiles";

/// A folder still to list.
struct Folder {
    path: String,
    inode: Inode,
    content: Content,
}

struct Lister<'v, 'p, 's> {
    part: &'p Part<'s>,
    layout: &'v Layout,
    inodes: Inodes<'v, 'p, 's>,
    /// Folders already visited, and deleted inodes already found by name.
    seen: HashSet<u64>,
    folders: Vec<Folder>,
}

/// Lists the volume in `part`.
///
/// # Errors
/// Errors of the walk. Damage is recorded in the walk and is not an error.
pub(crate) fn list(part: &Part<'_>, boot: &[u8; BOOT_BYTES], walk: &mut Walk<'_>) -> Result<()> {
    let Some(layout) = layout(part, boot)? else { return Ok(()) };
    let mut lister = Lister {
        part,
        layout: &layout,
        inodes: Inodes::new(part, &layout),
        seen: HashSet::from([layout.root]),
        folders: Vec::new(),
    };
    let root = lister.inodes.read(layout.root)?;
    if root.kind() != Kind::Folder {
        return Err(part.refused(0, "an XFS volume without a root directory"));
    }
    lister.emit("/".to_string(), root, walk)?;
    while let Some(folder) = lister.folders.pop() {
        let at = lister.folders.len();
        let listed = lister.folder(&folder, walk);
        walk.tolerate(listed)?;
        // Depth first: the first subfolder is listed next.
        lister.folders[at..].reverse();
    }
    if !walk.deleted {
        return Ok(());
    }
    for group in 0..layout.groups {
        if layout.place_in(group, 0).is_none() {
            break;
        }
        let listed = freed::each(part, &layout, group, walk, &mut |number, walk| {
            let path = format!("{ORPHANS}/OrphanFile-{number}");
            let listed = lister.deleted(path, number, false, walk);
            walk.tolerate(listed)
        });
        walk.tolerate(listed)?;
    }
    Ok(())
}

impl Lister<'_, '_, '_> {
    /// Emits an inode, and queues folders for listing.
    fn emit(&mut self, path: String, inode: Inode, walk: &mut Walk<'_>) -> Result<()> {
        let kind = inode.kind();
        let content = content(self.part, self.layout, &inode, walk)?;
        let entry = Entry {
            path,
            inode: inode.number,
            kind,
            state: State::Allocated,
            size: if kind == Kind::Other { 0 } else { inode.size },
            times: inode.times,
            access: inode.access,
            content,
        };
        if kind == Kind::Folder {
            let path =
                if inode.number == self.layout.root { String::new() } else { entry.path.clone() };
            self.folders.push(Folder { path, inode, content: entry.content.clone() });
        }
        walk.emit(entry)
    }

    fn folder(&mut self, folder: &Folder, walk: &mut Walk<'_>) -> Result<()> {
        let mut found = Vec::new();
        if folder.inode.form == Form::Local {
            if !of_inode(self.layout, &folder.inode.fork, &mut found) {
                let at = self.layout.inode_at(folder.inode.number).unwrap_or(0);
                walk.damaged(self.part, at, "a folder with damaged names");
            }
            return self.names(folder, found, walk);
        }
        let base = self.part.place(0);
        let mut block = vec![0; self.layout.folder_block_bytes as usize];
        let mut filled = 0;
        for run in &folder.content.runs {
            // Holes of a directory have no names; their length is a multiple of the directory block
            // size.
            let Some(place) = run.place else { continue };
            let mut done = 0;
            while done < run.length {
                let step = (block.len() - filled).min((run.length - done) as usize);
                let at = place - base + done;
                walk.step(self.part)?;
                self.part.read(at, &mut block[filled..filled + step], "a folder")?;
                done += step as u64;
                filled += step;
                if filled == block.len() {
                    filled = 0;
                    if !of_block(self.layout, &block, walk.deleted, &mut found) {
                        walk.damaged(self.part, at, "a folder with damaged names");
                    }
                    self.names(folder, std::mem::take(&mut found), walk)?;
                }
            }
        }
        Ok(())
    }

    fn names(&mut self, folder: &Folder, names: Vec<Name>, walk: &mut Walk<'_>) -> Result<()> {
        for name in names {
            walk.step(self.part)?;
            let named = self.name(folder, &name, walk);
            walk.tolerate(named)?;
        }
        Ok(())
    }

    fn name(&mut self, folder: &Folder, name: &Name, walk: &mut Walk<'_>) -> Result<()> {
        let Some(path) = joined_bytes(&folder.path, &name.name) else {
            walk.damaged(self.part, 0, "folders nested too deeply");
            return Ok(());
        };
        if name.is_deleted {
            // Usually the inode is in the same group as its folder, so the upper half is the same.
            let upper = folder.inode.number & !u64::from(u32::MAX);
            let number = if name.inode >> 32 == 0 { name.inode | upper } else { name.inode };
            return self.deleted(path, number, true, walk);
        }
        let inode = self.inodes.read(name.inode)?;
        if !inode.is_used() {
            let at = self.layout.inode_at(name.inode).unwrap_or(0);
            walk.damaged(self.part, at, &format!("{path}: its inode is not in use"));
            return Ok(());
        }
        let is_new = inode.kind() != Kind::Folder || self.seen.insert(inode.number);
        if is_new { self.emit(path, inode, walk) } else { Ok(()) }
    }

    /// Emits a deleted inode, under its remaining name or without one.
    fn deleted(
        &mut self,
        path: String,
        number: u64,
        is_named: bool,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        let inode = match self.inodes.read(number) {
            Ok(inode) => Some(inode),
            // The blocks of its chunk may have been reused.
            Err(Error::FileSystem { .. }) => None,
            Err(error) => return Err(error),
        };
        let free = inode.filter(|inode| !inode.is_used());
        let left = match &free {
            Some(inode) if self.seen.insert(number) => freed(self.part, self.layout, inode, walk)?,
            _ => None,
        };
        let is_left = left.is_some();
        if !is_left && !is_named {
            return Ok(());
        }
        let lost = match free {
            Some(_) => "its inode does not say where it was",
            None => "another file has its inode",
        };
        let (size, content) = left.unwrap_or_else(|| (0, Content::lost(lost)));
        let left = free.filter(|_| is_left).map(|inode| (inode.times, inode.access));
        let (times, access) = left.unwrap_or_default();
        walk.emit(Entry {
            path,
            inode: number,
            kind: Kind::File,
            state: State::Deleted,
            size,
            times,
            access,
            content,
        })
    }
}
