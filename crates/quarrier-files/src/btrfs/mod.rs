//! Btrfs on one device: chunks, trees, and the subvolumes below the first one.
//!
//! The *Btrfs on-disk format* of its documentation. A subvolume or snapshot appears as a folder inside
//! its parent subvolume. Deleted files are not listed, since the copy-on-write trees are rewritten
//! without them.

mod chunks;
mod inode;
mod superblock;
mod tree;

use std::collections::HashSet;

pub(crate) use superblock::{PLACES, superblock};
pub(crate) use tree::{Key, Trees};

use inode::{Inode, inode};
use superblock::Root;

use crate::entry::{Entry, Kind, State};
use crate::error::Result;
use crate::part::{Part, u16_at, u64_at};
use crate::walk::{Walk, joined, name_of_bytes};

/// The number of the top-level file tree, which contains all subvolumes.
const FILES: u64 = 5;
const EXTENTS: u64 = 2;
const ROOT_ITEM: u8 = 132;
const ROOT_ITEM_BYTES: usize = 239;
const INODE_ITEM: u8 = 1;
const NAME: u8 = 96;
const LEVEL_MAX: u8 = 7;

/// A file tree: the top level, a subvolume or a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Files {
    id: u64,
    root: Root,
    /// The inode of its root directory.
    folder: u64,
}

/// A folder still to list.
struct Folder {
    path: String,
    files: Files,
    inode: u64,
}

/// A name in a folder.
struct Name {
    name: Vec<u8>,
    target: Key,
}

struct Lister<'p, 's> {
    part: &'p Part<'s>,
    trees: Trees<'p, 's>,
    /// Folders already visited, as tree and inode.
    seen: HashSet<(u64, u64)>,
    folders: Vec<Folder>,
}

/// Lists the volume in `part`.
///
/// # Errors
/// Errors of the walk. Damage is recorded in the walk and is not an error.
pub(crate) fn list(part: &Part<'_>, walk: &mut Walk<'_>) -> Result<()> {
    let Some(superblock) = superblock(part)? else { return Ok(()) };
    let mut trees = Trees::open(part, superblock, walk)?;
    let missing = || part.refused(0, "a Btrfs volume without a file tree");
    let files = files(&mut trees, FILES, walk)?.ok_or_else(missing)?;
    let mut lister = Lister { part, trees, seen: HashSet::new(), folders: Vec::new() };
    let root = inode(part, &mut lister.trees, files.root, files.folder, walk)?;
    let root = root.filter(|root| root.kind == Kind::Folder).ok_or_else(missing)?;
    lister.emit("/".to_string(), files, files.folder, root, walk)?;
    while let Some(folder) = lister.folders.pop() {
        let at = lister.folders.len();
        let listed = lister.folder(&folder, walk);
        walk.tolerate(listed)?;
        // Depth first: the first subfolder is listed next.
        lister.folders[at..].reverse();
    }
    Ok(())
}

/// Finds the file tree with the given number.
fn files(trees: &mut Trees<'_, '_>, id: u64, walk: &mut Walk<'_>) -> Result<Option<Files>> {
    let item = root_item(trees, id, walk)?;
    Ok(item.map(|item| Files { id, root: root(&item), folder: u64_at(&item, 168) }))
}

/// The root of the extent tree, which is keyed by address.
///
/// # Errors
/// As [`Trees::range`].
pub(crate) fn extents(trees: &mut Trees<'_, '_>, walk: &mut Walk<'_>) -> Result<Option<Root>> {
    Ok(root_item(trees, EXTENTS, walk)?.map(|item| root(&item)))
}

fn root_item(trees: &mut Trees<'_, '_>, id: u64, walk: &mut Walk<'_>) -> Result<Option<Vec<u8>>> {
    let mut found = None;
    let from = Key { object: id, kind: ROOT_ITEM, offset: 0 };
    let root = trees.superblock().trees;
    trees.range(root, from, walk, &mut |item| {
        if item.key.object == id && item.key.kind == ROOT_ITEM {
            found = Some(item.data.to_vec());
        }
        false
    })?;
    Ok(found.filter(|item| item.len() >= ROOT_ITEM_BYTES && item[238] <= LEVEL_MAX))
}

fn root(item: &[u8]) -> Root {
    Root { at: u64_at(item, 176), level: item[238] }
}

impl Lister<'_, '_> {
    /// Emits an inode, and queues folders for listing.
    fn emit(
        &mut self,
        path: String,
        files: Files,
        number: u64,
        inode: Inode,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        if inode.kind == Kind::Folder {
            if !self.seen.insert((files.id, number)) {
                return Ok(());
            }
            let path = if path == "/" { String::new() } else { path.clone() };
            self.folders.push(Folder { path, files, inode: number });
        }
        walk.emit(Entry {
            path,
            inode: number,
            kind: inode.kind,
            state: State::Allocated,
            size: inode.size,
            times: inode.times,
            content: inode.content,
        })
    }

    fn folder(&mut self, folder: &Folder, walk: &mut Walk<'_>) -> Result<()> {
        let mut names = Vec::new();
        let from = Key { object: folder.inode, kind: NAME, offset: 0 };
        let read = self.trees.range(folder.files.root, from, walk, &mut |item| {
            let is_name = (item.key.object, item.key.kind) == (folder.inode, NAME);
            if is_name {
                names.push(name(item.data));
            }
            is_name
        });
        for name in names {
            match name {
                Some(name) => {
                    let named = self.name(folder, &name, walk);
                    walk.tolerate(named)?;
                }
                None => walk.damaged(self.part, 0, "a folder with damaged names"),
            }
        }
        read
    }

    fn name(&mut self, folder: &Folder, name: &Name, walk: &mut Walk<'_>) -> Result<()> {
        walk.step(self.part)?;
        let Some(path) = joined(&folder.path, &name_of_bytes(&name.name)) else {
            walk.damaged(self.part, 0, "folders nested too deeply");
            return Ok(());
        };
        let target = match name.target.kind {
            INODE_ITEM => Some((folder.files, name.target.object)),
            ROOT_ITEM => {
                let files = files(&mut self.trees, name.target.object, walk)?;
                files.map(|files| (files, files.folder))
            }
            _ => None,
        };
        let inode = match target {
            Some((files, number)) => inode(self.part, &mut self.trees, files.root, number, walk)?,
            None => None,
        };
        match (target, inode) {
            (Some((files, number)), Some(inode)) => self.emit(path, files, number, inode, walk),
            // A snapshot keeps the names of nested subvolumes but not the subvolumes.
            _ if name.target.kind == ROOT_ITEM => Ok(()),
            _ => {
                walk.damaged(self.part, 0, &format!("{path}: its inode is missing"));
                Ok(())
            }
        }
    }
}

/// Parses the name in a directory item; `None` if it is damaged.
fn name(item: &[u8]) -> Option<Name> {
    let name = item.get(30..)?.get(..usize::from(u16_at(item, 27)))?;
    let is_name = !name.is_empty();
    is_name.then(|| Name { name: name.to_vec(), target: Key::of(item) })
}
