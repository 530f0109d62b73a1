//! Deleted files and folders: those of earlier checkpoints that the latest one lacks. Nodes are never
//! changed in place, so an earlier checkpoint can be read until its blocks are overwritten.
//!
//! The maps and trees of checkpoints share most nodes. A map refers to its nodes by block number, so all
//! nodes below one that was seen were seen, too.

use std::collections::HashSet;

use quarrier_core::name;

use super::container::{Container, Superblock};
use super::inode::{Files, Inode, inode, is_inode, lives, origin};
use super::{ROOT, Volume, volume};
use crate::entry::{Entry, Kind, State};
use crate::error::{Result, known};
use crate::part::Part;
use crate::walk::{Walk, joined};

/// The folder of files without a parent, named as in sleuthkit.
const ORPHANS: &str = "/$OrphanFiles";
/// Maximum nesting of folders; a longer path would not fit.
const DEPTH_MAX: usize = 16 << 10;

/// A volume of the latest checkpoint, and the path of its root.
pub(super) struct Latest {
    pub(super) number: u64,
    pub(super) files: Files,
    pub(super) prefix: String,
}

/// The nodes seen and the inodes listed in one volume.
#[derive(Default)]
struct Seen {
    blocks: HashSet<u64>,
    inodes: HashSet<u64>,
}

/// Emits the deleted files of the volumes, each as in the latest checkpoint that has it. `earlier` begins
/// with the latest checkpoint.
///
/// # Errors
/// If the walk was stopped or takes too long, or an entry cannot be passed on.
pub(super) fn list(
    part: &Part<'_>,
    container: &mut Container<'_, '_>,
    volumes: &[Latest],
    earlier: Vec<Superblock>,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let mut seen: Vec<Seen> = volumes.iter().map(|_| Seen::default()).collect();
    for (latest, seen) in volumes.iter().zip(&mut seen) {
        fresh(container, latest.files, &mut seen.blocks, walk)?;
    }
    for superblock in earlier {
        let map = superblock.map;
        let mut old = Container::new(part, superblock);
        let Some(map) = known(old.map_root(map))? else { continue };
        for (latest, seen) in volumes.iter().zip(&mut seen) {
            let found = known(volume(part, &mut old, map, latest.number, walk))?;
            let Some(Volume { files, .. }) = found.filter(|found| !found.is_encrypted) else {
                continue;
            };
            for number in fresh(&mut old, files, &mut seen.blocks, walk)? {
                if !seen.inodes.insert(number) || lives(container, latest.files, number, walk)? {
                    continue;
                }
                let Some(Some(found)) = known(inode(part, &mut old, files, number, walk))? else {
                    // An earlier checkpoint may still have it.
                    seen.inodes.remove(&number);
                    continue;
                };
                let Some(path) = path(&mut old, files, &latest.prefix, number, walk)? else {
                    continue;
                };
                emit(path, number, found, walk)?;
            }
        }
    }
    Ok(())
}

fn emit(path: String, number: u64, found: Inode, walk: &mut Walk<'_>) -> Result<()> {
    let entry = |path, kind, size, content| Entry {
        path,
        inode: number,
        kind,
        state: State::Deleted,
        size,
        times: found.times,
        access: found.access,
        content,
    };
    let stream = found
        .resource
        .map(|(size, content)| entry(format!("{path}:rsrc"), Kind::File, size, content));
    walk.emit(entry(path, found.kind, found.size, found.content))?;
    stream.map_or(Ok(()), |stream| walk.emit(stream))
}

/// The numbers of the inodes in leaves whose blocks are not in `seen`, in order. Skips damaged nodes.
fn fresh(
    container: &mut Container<'_, '_>,
    files: Files,
    seen: &mut HashSet<u64>,
    walk: &mut Walk<'_>,
) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    let mut add = |key: &[u8]| numbers.extend(is_inode(key));
    match files.tree.map {
        None => {
            container.fresh_leaves(files.tree.root, None, seen, walk, &mut |key, _| add(key))?
        }
        Some(map) => {
            let mut nodes = Vec::new();
            container.fresh_objects(map, seen, walk, &mut nodes)?;
            for (number, block) in nodes {
                container.fresh_leaf(block, number, seen, walk, &mut add)?;
            }
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// The path of an inode, made of the names of its folders; `None` if it is too long.
fn path(
    container: &mut Container<'_, '_>,
    files: Files,
    prefix: &str,
    number: u64,
    walk: &mut Walk<'_>,
) -> Result<Option<String>> {
    let (mut names, mut at) = (Vec::new(), number);
    let mut path = prefix.to_string();
    while at != ROOT {
        if names.len() == DEPTH_MAX {
            return Ok(None);
        }
        let Some(Some((parent, name))) = known(origin(container, files, at, walk))? else {
            if names.is_empty() {
                names.push(number.to_string());
            }
            path.push_str(ORPHANS);
            break;
        };
        names.push(name::of_bytes(&name));
        at = parent;
    }
    Ok(names.into_iter().rev().try_fold(path, |path, name| joined(&path, &name)))
}
