//! ext2, ext3 and ext4: inodes, and folders that name them.
//!
//! Directories with hash trees are read linearly. Deleted names remain between live ones until they are
//! overwritten.

mod blocks;
mod folder;
mod inode;
mod layout;

use std::collections::HashSet;

pub(crate) use layout::{Layout, SUPERBLOCK_AT, is_ext, layout};

use blocks::content;
use folder::{Name, Names};
use inode::{Inode, Inodes};

use crate::entry::{Access, Content, Entry, Kind, State, Times};
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part};
use crate::walk::{Walk, joined_bytes};

const ROOT: u32 = 2;
/// The first inode that is not reserved.
const FIRST_FREE: u32 = 11;
/// The folder of files without a parent, named as in sleuthkit.
const ORPHANS: &str = "/$OrphanFiles";

/// A folder still to list.
struct Folder {
    path: String,
    inode: Inode,
    content: Content,
    state: State,
}

struct Lister<'v, 'p, 's> {
    part: &'p Part<'s>,
    layout: &'v Layout,
    inodes: Inodes<'v, 'p, 's>,
    /// Folders already visited, and deleted inodes already found by name.
    seen: HashSet<u32>,
    folders: Vec<Folder>,
}

/// Lists the volume in `part`.
///
/// # Errors
/// Errors of the walk. Damage is recorded in the walk and is not an error.
pub(crate) fn list(part: &Part<'_>, boot: &[u8; BOOT_BYTES], walk: &mut Walk<'_>) -> Result<()> {
    if !is_ext(boot) {
        return Ok(());
    }
    let at = SUPERBLOCK_AT as u64;
    let mut layout = layout(&boot[SUPERBLOCK_AT..])
        .filter(|layout| layout.inode_bytes >= 128 && layout.inodes_a_group > 0)
        .ok_or_else(|| part.refused(at, "an ext superblock with impossible values"))?;
    layout.blocks = layout.blocks.min(part.length() / layout.block_bytes);
    let mut lister = Lister {
        part,
        layout: &layout,
        inodes: Inodes::new(part, &layout),
        seen: HashSet::new(),
        folders: Vec::new(),
    };
    let root = lister.inodes.read(ROOT)?;
    lister.seen.insert(ROOT);
    lister.emit("/".to_string(), &root, State::Allocated, walk)?;
    while let Some(folder) = lister.folders.pop() {
        let at = lister.folders.len();
        let listed = lister.folder(&folder, walk);
        walk.tolerate(listed)?;
        lister.folders[at..].reverse();
    }
    if walk.deleted { lister.orphans(walk) } else { Ok(()) }
}

impl Lister<'_, '_, '_> {
    /// Emits an inode, and queues folders for listing.
    fn emit(
        &mut self,
        path: String,
        inode: &Inode,
        state: State,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        let kind = inode.kind();
        let content = content(self.part, self.layout, inode, walk)?;
        let entry = Entry {
            path,
            inode: inode.number.into(),
            kind,
            state,
            size: if kind == Kind::Other { 0 } else { inode.size },
            times: inode.times,
            access: inode.access(),
            content,
        };
        if kind == Kind::Folder {
            let path = if inode.number == ROOT { String::new() } else { entry.path.clone() };
            let (inode, content) = (inode.clone(), entry.content.clone());
            self.folders.push(Folder { path, inode, content, state });
        }
        walk.emit(entry)
    }

    fn folder(&mut self, folder: &Folder, walk: &mut Walk<'_>) -> Result<()> {
        let mut names = Names::new(self.layout, &folder.inode);
        if let Some(inline) = &folder.content.inline {
            let mut found = Vec::new();
            names.inline(inline, &mut found);
            return self.names(folder, &found, walk);
        }
        let base = self.part.place(0);
        let mut block = vec![0; self.layout.block_bytes as usize];
        let mut left = folder.inode.size;
        for run in &folder.content.runs {
            let mut done = 0;
            while done < run.length && left > 0 {
                if let Some(place) = run.place {
                    walk.step(self.part)?;
                    self.part.read(place - base + done, &mut block, "a folder")?;
                    let mut found = Vec::new();
                    names.block(&block, walk.deleted, &mut found);
                    self.names(folder, &found, walk)?;
                }
                done += self.layout.block_bytes;
                left = left.saturating_sub(self.layout.block_bytes);
                if run.place.is_none() {
                    // Holes in a directory have no names.
                    left = left.saturating_sub(run.length - done);
                    break;
                }
            }
        }
        Ok(())
    }

    fn names(&mut self, folder: &Folder, names: &[Name<'_>], walk: &mut Walk<'_>) -> Result<()> {
        for name in names {
            walk.step(self.part)?;
            let named = self.name(folder, name, walk);
            walk.tolerate(named)?;
        }
        Ok(())
    }

    fn name(&mut self, folder: &Folder, name: &Name<'_>, walk: &mut Walk<'_>) -> Result<()> {
        let is_deleted = name.is_deleted || folder.state == State::Deleted;
        if is_deleted && !walk.deleted {
            return Ok(());
        }
        let Some(path) = joined_bytes(&folder.path, name.name) else {
            walk.damaged(self.part, 0, "folders nested too deeply");
            return Ok(());
        };
        let inode = match name.inode {
            0 => None,
            number => Some(self.inodes.read(number)?),
        };
        match &inode {
            Some(inode) if !is_deleted => {
                let is_new = inode.kind() != Kind::Folder || self.seen.insert(inode.number);
                if is_new { self.emit(path, inode, State::Allocated, walk) } else { Ok(()) }
            }
            // The remaining name of a deleted file whose inode was not reused.
            Some(inode) if inode.is_deleted() && self.seen.insert(inode.number) => {
                self.emit(path, inode, State::Deleted, walk)
            }
            _ => walk.emit(Entry {
                path,
                inode: name.inode.into(),
                kind: name.kind.unwrap_or(Kind::File),
                state: State::Deleted,
                size: 0,
                times: Times::default(),
                access: Access::default(),
                content: Content::lost("another file has its inode"),
            }),
        }
    }

    /// Emits deleted inodes that no name refers to.
    fn orphans(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        let (layout, part) = (self.layout, self.part);
        let groups = layout.inodes.div_ceil(layout.inodes_a_group);
        let blocks = part.length() / layout.block_bytes;
        // The superblock may claim more groups than fit.
        for group in (0..groups).take_while(|group| layout.start_of(*group) < blocks) {
            walk.step(self.part)?;
            let numbers = match self.inodes.used(group) {
                Ok(numbers) => numbers,
                Err(error) => {
                    walk.tolerate(Err(error))?;
                    continue;
                }
            };
            for number in numbers {
                walk.step(self.part)?;
                if number < FIRST_FREE {
                    continue;
                }
                let inode = match self.inodes.read(number) {
                    Ok(inode) => inode,
                    Err(error) => {
                        walk.tolerate(Err(error))?;
                        break;
                    }
                };
                if inode.is_deleted() && self.seen.insert(number) {
                    let path = format!("{ORPHANS}/OrphanFile-{number}");
                    let emitted = self.emit(path, &inode, State::Deleted, walk);
                    walk.tolerate(emitted)?;
                    // Entries of a deleted folder lost their parent, too.
                    while let Some(folder) = self.folders.pop() {
                        let listed = self.folder(&folder, walk);
                        walk.tolerate(listed)?;
                    }
                }
            }
        }
        Ok(())
    }
}
