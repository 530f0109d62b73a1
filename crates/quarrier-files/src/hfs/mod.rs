//! HFS+ and HFSX: a catalog of all folders and files, sorted by parent folder.
//!
//! Apple's *Technical Note TN1150*. The catalog is read twice: first for folder names and targets of
//! hard links, then for the entries. `remains` finds deleted files by records that remain outside of the
//! catalog's order. The journal is not replayed.

mod forks;
mod packed;
mod record;
mod remains;
mod tree;
mod volume;

use std::collections::{HashMap, HashSet};

pub(crate) use volume::{Volume, volume};

use forks::{DATA, Forks, RESOURCE};
use packed::packed;
use record::{Item, Named, named};
use remains::Remains;
use tree::{Node, Tree};

use crate::entry::{Content, Entry, Kind, State};
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part};
use crate::walk::{Walk, alone, joined};

const ROOT: u32 = 2;
/// Reserved file numbers.
const CATALOG: u32 = 4;
const ALLOCATION: u32 = 6;
const ATTRIBUTES: u32 = 8;
/// The folders that hold the targets of hard links to files and to folders.
const LINKED_FILES: &str = "\0\0\0\0HFS+ Private Data";
const LINKED_FOLDERS: &str = ".HFS+ Private Directory Data\r";
/// The folder of files without a parent, named as in sleuthkit.
const ORPHANS: &str = "/$OrphanFiles";
/// Maximum nesting of folders; a longer path would not fit.
const DEPTH_MAX: usize = 16 << 10;

/// The results of the first pass.
#[derive(Default)]
struct Folders {
    /// The parent and name of each folder.
    names: HashMap<u32, (u32, String)>,
    linked_files: Option<u32>,
    linked_folders: Option<u32>,
    /// Targets of hard links to files, by link number.
    files: HashMap<u32, Item>,
    /// Targets of hard links to folders.
    folders: HashMap<u32, Item>,
    /// The last folder path looked up: entries of a folder are adjacent.
    last: Option<(u32, Option<String>)>,
}

struct Lister<'v, 'p, 's> {
    part: &'p Part<'s>,
    forks: Forks<'v, 'p, 's>,
    attributes: Option<Tree<'p, 's>>,
    folders: Folders,
    remains: Remains,
}

/// Lists the volume in `part`.
///
/// # Errors
/// Errors of the walk. Damage is recorded in the walk and is not an error.
pub(crate) fn list(part: &Part<'_>, boot: &[u8; BOOT_BYTES], walk: &mut Walk<'_>) -> Result<()> {
    let Some(volume) = volume(part, boot)? else { return Ok(()) };
    let mut forks = Forks::open(part, &volume, walk)?;
    let content = forks.content(CATALOG, DATA, &volume.catalog, walk)?;
    let catalog = Tree::open(part, &content, "the catalog")?;
    let mut catalog = catalog.ok_or_else(|| part.refused(0, "an HFS+ volume without a catalog"))?;
    let content = forks.content(ATTRIBUTES, DATA, &volume.attributes, walk)?;
    let attributes = match Tree::open(part, &content, "the attributes file") {
        Ok(attributes) => attributes,
        Err(error) => {
            walk.tolerate(Err(error))?;
            None
        }
    };
    let (mut folders, mut remains) = (Folders::default(), Remains::default());
    let (wants_deleted, mut used) = (walk.deleted, HashSet::new());
    // Damage is reported by the second pass.
    let first = catalog.each_leaf(walk, &mut |leaf, walk| {
        if wants_deleted {
            used.insert(leaf.at());
            remains.add_slack(leaf, &volume);
        }
        each(part, leaf, walk, &mut |named, _| {
            folders.add(named);
            Ok(())
        })
        .map(|_| ())
    });
    if let Err(error @ (crate::Error::TooMuch { .. } | crate::Error::Taken(_))) = first {
        return Err(error);
    }
    // If some leaves could not be read, a record elsewhere does not prove a deletion.
    let has_remains = wants_deleted && first.is_ok();
    if has_remains {
        catalog.each_unused_leaf(walk, &used, &mut |node| remains.add_node(node, &volume))?;
        remains.add_journal(part, &volume, catalog.node_bytes() as usize, walk)?;
    }
    let mut lister = Lister { part, forks, attributes, folders, remains };
    let second = catalog.each_leaf(walk, &mut |leaf, walk| {
        let damaged = each(part, leaf, walk, &mut |named, walk| {
            lister.remains.exists(named.item.id);
            let listed = lister.entry(named, State::Allocated, walk);
            walk.tolerate(listed)
        })?;
        for _ in 0..damaged {
            walk.damaged(part, 0, "a damaged catalog record");
        }
        Ok(())
    });
    if has_remains && second.is_ok() {
        lister.deleted(walk)?;
    }
    walk.tolerate(second)
}

/// The offset in the volume and length of each piece of the allocation bitmap.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) if their locations are unknown.
pub(crate) fn allocation(part: &Part<'_>, volume: &Volume) -> Result<Vec<(u64, u64)>> {
    let content = alone(part, |walk| {
        let mut forks = Forks::open(part, volume, walk)?;
        forks.content(ALLOCATION, DATA, &volume.allocation, walk)
    })?;
    if content.lost.is_some() {
        return Err(part.refused(0, "a damaged block bitmap"));
    }
    let base = part.place(0);
    let pieces = content.runs.iter().filter_map(|run| Some((run.place? - base, run.length)));
    Ok(pieces.collect())
}

/// Passes the folders and files of a leaf to `see`; returns the number of damaged records.
fn each<'w>(
    part: &Part<'_>,
    leaf: &Node,
    walk: &mut Walk<'w>,
    see: &mut dyn FnMut(Named, &mut Walk<'w>) -> Result<()>,
) -> Result<usize> {
    let mut damaged = 0;
    for index in 0..leaf.records() {
        walk.step(part)?;
        match leaf.record(index).ok_or(()).and_then(|record| named(&record)) {
            Ok(Some(named)) => see(named, walk)?,
            Ok(None) => {}
            Err(()) => damaged += 1,
        }
    }
    Ok(damaged)
}

impl Folders {
    fn add(&mut self, named: Named) {
        let Named { parent, name, item } = named;
        let number = |prefix: &str| name.strip_prefix(prefix)?.parse().ok();
        if Some(parent) == self.linked_files
            && let Some(number) = number("iNode")
        {
            self.files.insert(number, item);
        } else if Some(parent) == self.linked_folders
            && let Some(number) = number("dir_")
        {
            self.folders.insert(number, item);
        }
        if !item.is_folder {
            return;
        }
        match (parent, &*name) {
            (ROOT, LINKED_FILES) => self.linked_files = Some(item.id),
            (ROOT, LINKED_FOLDERS) => self.linked_folders = Some(item.id),
            _ => {}
        }
        self.names.insert(item.id, (parent, name));
    }

    /// Adds a deleted folder, or the deleted target of a hard link, unless its number is known already.
    fn add_deleted(&mut self, named: &Named) {
        let Named { parent, name, item } = named;
        if item.is_folder {
            self.names.entry(item.id).or_insert_with(|| (*parent, name.clone()));
        } else if Some(*parent) == self.linked_files
            && let Some(number) = name.strip_prefix("iNode").and_then(|number| number.parse().ok())
        {
            self.files.entry(number).or_insert(*item);
        }
    }

    /// The path of a folder, empty for the root; `None` for a cycle or a path that is too long.
    fn path(&mut self, part: &Part<'_>, id: u32, walk: &mut Walk<'_>) -> Result<Option<String>> {
        if let Some((last, path)) = &self.last
            && *last == id
        {
            return Ok(path.clone());
        }
        let (mut names, mut at) = (Vec::new(), id);
        let mut path = Some(String::new());
        while at != ROOT {
            walk.step(part)?;
            match self.names.get(&at) {
                _ if names.len() == DEPTH_MAX => {
                    path = None;
                    break;
                }
                Some((parent, name)) => {
                    names.push(name);
                    at = *parent;
                }
                None => {
                    path = Some(ORPHANS.to_string());
                    break;
                }
            }
        }
        for name in names.into_iter().rev() {
            path = path.and_then(|parent| joined(&parent, name));
        }
        self.last = Some((id, path.clone()));
        Ok(path)
    }
}

impl Lister<'_, '_, '_> {
    /// Emits the deleted folders and files.
    fn deleted(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        let (all, are_more) = std::mem::take(&mut self.remains).finish();
        all.iter().for_each(|named| self.folders.add_deleted(named));
        // The last path may have been that of a folder whose name was unknown.
        self.folders.last = None;
        for named in all {
            let listed = self.entry(named, State::Deleted, walk);
            walk.tolerate(listed)?;
        }
        if are_more {
            walk.damaged(self.part, 0, "more deleted files than can be listed");
        }
        Ok(())
    }

    /// Emits a folder or file, and its resource fork.
    fn entry(&mut self, named: Named, state: State, walk: &mut Walk<'_>) -> Result<()> {
        let Named { parent, name, item } = named;
        let path = match item.id {
            ROOT => Some("/".to_string()),
            _ => {
                let folder = self.folders.path(self.part, parent, walk)?;
                folder.and_then(|folder| joined(&folder, &name))
            }
        };
        let Some(path) = path else {
            if state == State::Allocated {
                walk.damaged(self.part, 0, "folders nested too deeply");
            }
            return Ok(());
        };
        let target = match (item.linked_file(), item.linked_folder()) {
            (Some(number), _) => self.folders.files.get(&number),
            (_, Some(number)) => self.folders.folders.get(&number),
            _ => Some(&item),
        };
        let Some(&target) = target else {
            let content = Content::lost("the target of its hard link is missing");
            return walk.emit(entry(path, &item, state, 0, content));
        };
        if target.is_folder {
            return walk.emit(entry(path, &target, state, 0, Content::default()));
        }
        let mut is_packed = false;
        let (size, content) = match self.packed(&target, walk)? {
            Some(found) => {
                is_packed = true;
                found
            }
            None if state == State::Deleted && target.is_packed && target.data.size == 0 => {
                (0, Content::lost("its compression attribute is deleted"))
            }
            None if target.kind() == Kind::Other => (0, Content::default()),
            None => {
                let content = self.forks.content(target.id, DATA, &target.data, walk)?;
                (target.data.size, content)
            }
        };
        if target.resource.size > 0 && !is_packed {
            let fork = self.forks.content(target.id, RESOURCE, &target.resource, walk)?;
            let (name, bytes) = (format!("{path}:rsrc"), target.resource.size);
            let mut stream = entry(name, &target, state, bytes, fork);
            stream.kind = Kind::File;
            walk.emit(entry(path, &target, state, size, content))?;
            return walk.emit(stream);
        }
        walk.emit(entry(path, &target, state, size, content))
    }

    fn packed(&mut self, item: &Item, walk: &mut Walk<'_>) -> Result<Option<(u64, Content)>> {
        match &mut self.attributes {
            Some(attributes) if item.is_packed && item.kind() == Kind::File => {
                packed(self.part, &mut self.forks, attributes, item, walk)
            }
            _ => Ok(None),
        }
    }
}

fn entry(path: String, item: &Item, state: State, size: u64, content: Content) -> Entry {
    Entry {
        path,
        inode: item.id.into(),
        kind: item.kind(),
        state,
        size,
        times: item.times,
        access: item.access(),
        content,
    }
}
