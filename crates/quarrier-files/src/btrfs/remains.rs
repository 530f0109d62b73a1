//! Deleted files and folders. Trees are never changed in place: each commit writes new nodes, and the
//! old ones remain until something overwrites them. So if a chunk of metadata has a leaf that its tree
//! lacks, that leaf is an earlier state of a part of the tree.

use std::collections::BTreeMap;

use super::Files;
use super::inode::{EXTENT, INODE, Inode, Stored, of_items, stored};
use super::tree::{Key, Node, Trees};
use crate::error::{Result, known};
use crate::part::{Part, u16_at, u32_at};
use crate::walk::Walk;

/// The type of items with the name of an inode. Their keys have the parent.
const REFERENCE: u8 = 12;
/// Maximum number of inodes and of extents in old leaves.
const FOUND_MAX: usize = 1 << 19;
const EXTENTS_MAX: usize = 1 << 20;

/// A name, and the folder that has it.
pub(super) type Named = (u64, Vec<u8>);

/// The inodes in old leaves, by tree and number.
#[derive(Default)]
pub(super) struct Remains {
    /// `None` for inodes that still exist.
    found: BTreeMap<(u64, u64), Option<Gone>>,
    extents: usize,
    are_more: bool,
}

/// The latest items of a deleted inode, each with the generation of its leaf.
#[derive(Default)]
struct Gone {
    /// Whether the inode had a name, its generation, and its item.
    inode: Option<(bool, u64, Vec<u8>)>,
    name: Option<(u64, Named)>,
    extents: BTreeMap<u64, (u64, Option<Stored>)>,
}

impl Remains {
    /// Adds the items of a leaf that is no longer part of the tree `files`.
    ///
    /// # Errors
    /// If the walk was stopped or takes too long.
    pub(super) fn add(
        &mut self,
        trees: &mut Trees<'_, '_>,
        files: Files,
        leaf: &Node,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        let generation = leaf.generation();
        for index in 0..leaf.items() {
            let Some(item) = leaf.item(index) else { return Ok(()) };
            if !matches!(item.key.kind, INODE | REFERENCE | EXTENT) {
                continue;
            }
            let id = (files.id, item.key.object);
            if !self.found.contains_key(&id) {
                if self.found.len() == FOUND_MAX {
                    self.are_more = true;
                    return Ok(());
                }
                let exists = exists(trees, files, item.key.object, walk)?;
                self.found.insert(id, (!exists).then(Gone::default));
            }
            let Some(Some(gone)) = self.found.get_mut(&id) else { continue };
            match item.key.kind {
                INODE => {
                    // The deletion of an inode without a name had begun.
                    let has_name = u32_at(item.data, 40) > 0;
                    let is_newer = gone.inode.as_ref().is_none_or(|(had_name, before, _)| {
                        (has_name, generation) > (*had_name, *before)
                    });
                    if is_newer {
                        gone.inode = Some((has_name, generation, item.data.to_vec()));
                    }
                }
                REFERENCE => {
                    let bytes = item.data.get(10..).unwrap_or_default();
                    let name = bytes.get(..usize::from(u16_at(item.data, 8)));
                    let is_newer = gone.name.as_ref().is_none_or(|known| generation > known.0);
                    if let Some(name) = name.filter(|name| !name.is_empty() && is_newer) {
                        gone.name = Some((generation, (item.key.offset, name.to_vec())));
                    }
                }
                _ => {
                    let known = gone.extents.get(&item.key.offset);
                    if known.is_some_and(|known| known.0 >= generation) {
                        continue;
                    }
                    if known.is_none() {
                        self.extents += 1;
                    }
                    if self.extents > EXTENTS_MAX {
                        self.are_more = true;
                        return Ok(());
                    }
                    gone.extents.insert(item.key.offset, (generation, stored(&item)));
                }
            }
        }
        Ok(())
    }

    /// Whether there are more deleted inodes than are kept.
    pub(super) fn are_more(&self) -> bool {
        self.are_more
    }

    /// The trees and numbers of all deleted inodes.
    pub(super) fn all(&self) -> Vec<(u64, u64)> {
        let gone = self
            .found
            .iter()
            .filter(|(_, gone)| gone.as_ref().is_some_and(|gone| gone.inode.is_some()));
        gone.map(|(id, _)| *id).collect()
    }

    /// The name of a deleted inode, if it is known.
    pub(super) fn name(&self, id: (u64, u64)) -> Option<&Named> {
        let gone = self.found.get(&id)?.as_ref()?;
        gone.name.as_ref().map(|(_, named)| named)
    }

    /// A deleted inode with the locations of its bytes.
    pub(super) fn inode(
        &self,
        part: &Part<'_>,
        trees: &Trees<'_, '_>,
        id: (u64, u64),
    ) -> Option<Inode> {
        let gone = self.found.get(&id)?.as_ref()?;
        let (.., bytes) = gone.inode.as_ref()?;
        let extents: Option<Vec<Stored>> = gone.extents.values().map(|extent| extent.1).collect();
        of_items(part, trees, bytes, extents.as_deref())
    }
}

/// Whether the tree has an inode; true if that cannot be decided.
fn exists(
    trees: &mut Trees<'_, '_>,
    files: Files,
    number: u64,
    walk: &mut Walk<'_>,
) -> Result<bool> {
    let key = Key { object: number, kind: INODE, offset: 0 };
    let mut found = false;
    let read = trees.range(files.root, key, walk, &mut |item| {
        found = item.key == key;
        false
    });
    Ok(known(read)?.is_none_or(|()| found))
}

/// The name of an inode that exists, and its folder.
///
/// # Errors
/// As [`Trees::range`].
pub(super) fn reference(
    trees: &mut Trees<'_, '_>,
    files: Files,
    number: u64,
    walk: &mut Walk<'_>,
) -> Result<Option<Named>> {
    let from = Key { object: number, kind: REFERENCE, offset: 0 };
    let mut found = None;
    trees.range(files.root, from, walk, &mut |item| {
        if (item.key.object, item.key.kind) == (number, REFERENCE) {
            let bytes = item.data.get(10..).unwrap_or_default();
            let name = bytes.get(..usize::from(u16_at(item.data, 8))).unwrap_or_default();
            found = Some((item.key.offset, name.to_vec()));
        }
        false
    })?;
    Ok(found)
}
