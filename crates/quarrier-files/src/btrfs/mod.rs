//! Btrfs on one device: chunks, trees, and the subvolumes below the first one.
//!
//! The *Btrfs on-disk format* of its documentation. A subvolume or snapshot appears as a folder inside
//! its parent subvolume. `remains` finds deleted files in old leaves.

mod chunks;
mod inode;
mod remains;
mod superblock;
mod tree;

use std::collections::{HashMap, HashSet};

pub(crate) use superblock::{PLACES, superblock};
pub(crate) use tree::{Key, Trees};

use inode::{Inode, inode};
use remains::{Remains, reference};
use superblock::Root;

use crate::entry::{Entry, Kind, State};
use crate::error::{Result, known};
use crate::part::{Part, u16_at, u64_at};
use crate::walk::{Walk, joined, joined_bytes};

/// The number of the top-level file tree, which contains all subvolumes.
const FILES: u64 = 5;
const EXTENTS: u64 = 2;
const ROOT_ITEM: u8 = 132;
const ROOT_ITEM_BYTES: usize = 239;
const INODE_ITEM: u8 = 1;
const NAME: u8 = 96;
const LEVEL_MAX: u8 = 7;
/// The folder of files without a parent, named as in sleuthkit.
const ORPHANS: &str = "/$OrphanFiles";
/// Maximum nesting of folders; a longer path would not fit.
const DEPTH_MAX: usize = 16 << 10;

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
    /// The file trees found so far, and the paths of their root directories.
    roots: HashMap<u64, (Files, String)>,
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
    let mut lister =
        Lister { part, trees, seen: HashSet::new(), folders: Vec::new(), roots: HashMap::new() };
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
    if walk.deleted { lister.deleted(walk) } else { Ok(()) }
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
            if number == files.folder {
                self.roots.insert(files.id, (files, path.clone()));
            }
            self.folders.push(Folder { path, files, inode: number });
        }
        walk.emit(Entry {
            path,
            inode: number,
            kind: inode.kind,
            state: State::Allocated,
            size: inode.size,
            times: inode.times,
            access: inode.access,
            content: inode.content,
        })
    }

    /// Emits the deleted files and folders of the trees found.
    fn deleted(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        let remains = self.remains(walk)?;
        for id in remains.all() {
            let Some(files) = self.roots.get(&id.0).map(|(files, _)| *files) else { continue };
            let Some(path) = self.deleted_path(files, &remains, id.1, walk)? else { continue };
            let Some(inode) = remains.inode(self.part, &self.trees, id) else { continue };
            walk.emit(Entry {
                path,
                inode: id.1,
                kind: inode.kind,
                state: State::Deleted,
                size: inode.size,
                times: inode.times,
                access: inode.access,
                content: inode.content,
            })?;
        }
        if remains.are_more() {
            walk.damaged(self.part, 0, "more deleted files than can be listed");
        }
        Ok(())
    }

    /// Reads all leaves that are no longer part of their trees.
    fn remains(&mut self, walk: &mut Walk<'_>) -> Result<Remains> {
        let mut remains = Remains::default();
        let chunks = self.trees.chunks().all().to_vec();
        let step = self.trees.superblock().node_bytes() as usize;
        for chunk in chunks.iter().filter(|chunk| chunk.has_nodes) {
            for at in (chunk.start..chunk.start + chunk.length).step_by(step) {
                walk.check_stop()?;
                walk.step(self.part)?;
                let Some(leaf) = self.trees.any_leaf(at) else { continue };
                let Some(files) = self.roots.get(&leaf.owner()).map(|(files, _)| *files) else {
                    continue;
                };
                // If this cannot be decided, skip the leaf: the tree may still have it.
                let used = known(self.trees.leaf_of(files.root, leaf.first_key(), walk))?;
                if used.is_some_and(|used| used != at) {
                    remains.add(&mut self.trees, files, &leaf, walk)?;
                }
            }
        }
        Ok(remains)
    }

    /// The path of a deleted inode; `None` if it is too long.
    fn deleted_path(
        &mut self,
        files: Files,
        remains: &Remains,
        number: u64,
        walk: &mut Walk<'_>,
    ) -> Result<Option<String>> {
        let Some((mut at, name)) = remains.name((files.id, number)).cloned() else {
            return Ok(joined(ORPHANS, &number.to_string()));
        };
        let mut names = vec![name];
        let mut path = None;
        while at != files.folder {
            if names.len() == DEPTH_MAX || !walk.spend(self.part) {
                return Ok(None);
            }
            let above = match remains.name((files.id, at)) {
                Some(named) => Some(named.clone()),
                None => known(reference(&mut self.trees, files, at, walk))?.flatten(),
            };
            let Some((parent, name)) = above else {
                path = Some(ORPHANS.to_string());
                break;
            };
            names.push(name);
            at = parent;
        }
        let root = self.roots.get(&files.id).map(|(_, path)| path.clone());
        let mut path = path.or(root);
        for name in names.into_iter().rev() {
            path = path.and_then(|path| joined_bytes(&path, &name));
        }
        Ok(path)
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
        let Some(path) = joined_bytes(&folder.path, &name.name) else {
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
