//! B-trees: inner nodes with pointers, and leaves with items in key order.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::chunks::{Chunk, Chunks, chunk};
use super::superblock::{Root, Superblock, has_checksum};
use crate::error::Result;
use crate::part::{Part, u32_at, u64_at};
use crate::walk::Walk;

const HEAD_BYTES: usize = 101;
const KEY_BYTES: usize = 17;
const ITEM_BYTES: usize = 25;
const POINTER_BYTES: usize = 33;
const CHUNK: u8 = 228;
/// Capacity of the node cache; a node takes up to 64 KiB.
const NODES_MAX: usize = 512;

/// The key of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// An inode number, a tree number or an address.
    pub(crate) object: u64,
    pub(crate) kind: u8,
    /// Its meaning depends on the item type.
    pub(crate) offset: u64,
}

impl Key {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let kind = bytes.get(8).copied().unwrap_or(0);
        Key { object: u64_at(bytes, 0), kind, offset: u64_at(bytes, 9) }
    }
}

/// An item of a leaf.
pub(crate) struct Item<'n> {
    pub(crate) key: Key,
    pub(crate) data: &'n [u8],
    /// The offset of the data in the part.
    pub(super) place: u64,
}

/// A node: its bytes, and their offset in the part.
pub(super) struct Node {
    bytes: Box<[u8]>,
    place: u64,
    items: usize,
}

impl Node {
    /// The key of a pointer or item; `each` is the size of one.
    fn key(&self, index: usize, each: usize) -> Key {
        Key::of(self.bytes.get(HEAD_BYTES + index * each..).unwrap_or_default())
    }

    /// The number of leading keys for which `is_before` holds, by binary search.
    fn count(&self, each: usize, is_before: impl Fn(Key) -> bool) -> usize {
        let (mut low, mut high) = (0, self.items);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.key(middle, each)) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The number of its items or pointers.
    pub(super) fn items(&self) -> usize {
        self.items
    }

    /// The transaction that wrote it.
    pub(super) fn generation(&self) -> u64 {
        u64_at(&self.bytes, 80)
    }

    /// The number of its tree.
    pub(super) fn owner(&self) -> u64 {
        u64_at(&self.bytes, 88)
    }

    /// The key of its first item.
    pub(super) fn first_key(&self) -> Key {
        self.key(0, ITEM_BYTES)
    }

    /// An item of a leaf; `None` if it is damaged.
    pub(super) fn item(&self, index: usize) -> Option<Item<'_>> {
        let at = HEAD_BYTES + index * ITEM_BYTES + KEY_BYTES;
        let from = HEAD_BYTES.checked_add(u32_at(&self.bytes, at) as usize)?;
        let end = from.checked_add(u32_at(&self.bytes, at + 4) as usize)?;
        let data = self.bytes.get(from..end)?;
        Some(Item { key: self.key(index, ITEM_BYTES), data, place: self.place + from as u64 })
    }
}

/// Receives an item; returns false to stop.
type See<'s> = dyn FnMut(&Item<'_>) -> bool + 's;

/// The trees of a volume.
pub(crate) struct Trees<'p, 's> {
    part: &'p Part<'s>,
    superblock: Superblock,
    chunks: Chunks,
    kept: HashMap<u64, Rc<Node>>,
    order: VecDeque<u64>,
}

impl<'p, 's> Trees<'p, 's> {
    /// Builds the chunk map: the superblock's chunks lead to the chunk tree, and that to all others.
    pub(crate) fn open(
        part: &'p Part<'s>,
        superblock: Superblock,
        walk: &mut Walk<'_>,
    ) -> Result<Self> {
        let mut first = Vec::new();
        let mut rest = &superblock.first_chunks[..];
        while rest.len() > KEY_BYTES {
            let (key, item) = rest.split_at(KEY_BYTES);
            let found = chunk(Key::of(key).offset, item);
            let (chunk, bytes) =
                found.ok_or_else(|| part.refused(0, "a Btrfs volume with damaged chunks"))?;
            first.push(chunk);
            rest = item.get(bytes..).unwrap_or_default();
        }
        let (root, chunks) = (superblock.chunks, Chunks::new(first));
        let mut trees =
            Trees { part, superblock, chunks, kept: HashMap::new(), order: VecDeque::new() };
        let mut all: Vec<Chunk> = Vec::new();
        let mut is_damaged = false;
        let from = Key { object: 0, kind: 0, offset: 0 };
        trees.range(root, from, walk, &mut |item| {
            if item.key.kind == CHUNK {
                match chunk(item.key.offset, item.data) {
                    Some((chunk, _)) => all.push(chunk),
                    None => is_damaged = true,
                }
            }
            true
        })?;
        if is_damaged {
            let found = "a Btrfs volume with damaged or striped chunks";
            return Err(part.refused(0, found));
        }
        trees.chunks = Chunks::new(all);
        trees.kept.clear();
        trees.order.clear();
        Ok(trees)
    }

    pub(crate) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    pub(crate) fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// Passes items to `see` in key order, starting at a key.
    ///
    /// # Errors
    /// A damaged node, after the items before it were passed, and an exhausted step budget.
    pub(crate) fn range(
        &mut self,
        root: Root,
        from: Key,
        walk: &mut Walk<'_>,
        see: &mut See<'_>,
    ) -> Result<()> {
        self.visit(root, from, &mut None, walk, see).map(|_| ())
    }

    fn visit(
        &mut self,
        root: Root,
        from: Key,
        last: &mut Option<Key>,
        walk: &mut Walk<'_>,
        see: &mut See<'_>,
    ) -> Result<bool> {
        walk.step(self.part)?;
        let node = self.node(root)?;
        let (part, place) = (self.part, node.place);
        let damaged = || part.refused(place, "a damaged Btrfs node");
        let Some(level) = root.level.checked_sub(1) else {
            for index in node.count(ITEM_BYTES, |key| key < from)..node.items {
                walk.step(self.part)?;
                let item = node.item(index).ok_or_else(damaged)?;
                // Keys must increase, or a cycle would pass the same leaf for ever.
                if last.is_some_and(|last| item.key <= last) {
                    return Err(damaged());
                }
                *last = Some(item.key);
                if !see(&item) {
                    return Ok(false);
                }
            }
            return Ok(true);
        };
        let first = node.count(POINTER_BYTES, |key| key <= from).saturating_sub(1);
        for index in first..node.items {
            let at = u64_at(&node.bytes, HEAD_BYTES + index * POINTER_BYTES + KEY_BYTES);
            if !self.visit(Root { at, level }, from, last, walk, see)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads a node from its first valid copy.
    fn node(&mut self, root: Root) -> Result<Rc<Node>> {
        if let Some(node) = self.kept.get(&root.at)
            && node.bytes[HEAD_BYTES - 1] == root.level
        {
            return Ok(Rc::clone(node));
        }
        let node_bytes = self.superblock.node_bytes();
        let mut failed = self.part.refused(0, "a Btrfs node outside of all chunks");
        let places: Vec<u64> = self.chunks.places(root.at, node_bytes).collect();
        for place in places {
            let mut bytes = vec![0; node_bytes as usize].into_boxed_slice();
            if let Err(error) = self.part.read(place, &mut bytes, "a Btrfs node") {
                failed = error;
                continue;
            }
            let each = if root.level == 0 { ITEM_BYTES } else { POINTER_BYTES };
            let items = u32_at(&bytes, HEAD_BYTES - 5) as usize;
            let is_sound = u64_at(&bytes, 48) == root.at
                && bytes[HEAD_BYTES - 1] == root.level
                && items <= (bytes.len() - HEAD_BYTES) / each
                && (!self.superblock.has_crc32c || has_checksum(&bytes));
            if !is_sound {
                failed = self.part.refused(place, "a damaged Btrfs node");
                continue;
            }
            let node = Rc::new(Node { bytes, place, items });
            self.keep(root.at, &node);
            return Ok(node);
        }
        Err(failed)
    }

    fn keep(&mut self, at: u64, node: &Rc<Node>) {
        if self.order.len() == NODES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.kept.remove(&oldest);
        }
        if self.kept.insert(at, Rc::clone(node)).is_none() {
            self.order.push_back(at);
        }
    }

    /// The address of the leaf of a tree in which the key is, or would be.
    ///
    /// # Errors
    /// A damaged node, and an exhausted step budget.
    pub(super) fn leaf_of(&mut self, root: Root, key: Key, walk: &mut Walk<'_>) -> Result<u64> {
        let mut root = root;
        while let Some(level) = root.level.checked_sub(1) {
            walk.step(self.part)?;
            let node = self.node(root)?;
            let index = node.count(POINTER_BYTES, |other| other <= key).saturating_sub(1);
            let at = u64_at(&node.bytes, HEAD_BYTES + index * POINTER_BYTES + KEY_BYTES);
            root = Root { at, level };
        }
        Ok(root.at)
    }

    /// The leaf at an address, whether or not it is part of a tree; `None` if there is no valid one.
    pub(super) fn any_leaf(&self, at: u64) -> Option<Node> {
        let node_bytes = self.superblock.node_bytes();
        let place = self.chunks.places(at, node_bytes).next()?;
        let mut bytes = vec![0; node_bytes as usize].into_boxed_slice();
        self.part.read(place, &mut bytes, "a Btrfs node").ok()?;
        let items = u32_at(&bytes, HEAD_BYTES - 5) as usize;
        let is_leaf = u64_at(&bytes, 48) == at
            && bytes[HEAD_BYTES - 1] == 0
            && items > 0
            && items <= (bytes.len() - HEAD_BYTES) / ITEM_BYTES
            && (!self.superblock.has_crc32c || has_checksum(&bytes));
        is_leaf.then_some(Node { bytes, place, items })
    }

    /// The offset in the part of a logical range.
    pub(super) fn place(&self, at: u64, length: u64) -> Option<u64> {
        self.chunks.places(at, length).next()
    }
}
