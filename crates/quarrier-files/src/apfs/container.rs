//! An APFS container: its latest checkpoint, its objects, and the map from object numbers to blocks.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use super::node::{Node, Sizes};
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::part::{BOOT_BYTES, Part, u32_at, u64_at};
use crate::walk::Walk;

const MAGIC: &[u8] = b"NXSB";
const MAGIC_AT: usize = 32;
const HEAD_BYTES: usize = 1280;
const FUSION: u64 = 0x100;
/// The object type of a checkpoint map block, which lists the checkpoint's objects.
const CHECKPOINT_MAP: u32 = 0xC;
/// Set in the length of a checkpoint area that is a tree rather than contiguous.
const IN_PIECES: u32 = 1 << 31;
const CHECKPOINTS_MAX: u32 = 1 << 16;
/// Maximum number of earlier checkpoints to read; a ring has a few hundred.
const EARLIER_MAX: usize = 512;
const VOLUMES_MAX: usize = 100;
const LEVELS_MAX: u16 = 16;
/// Capacity of the node cache.
const NODES_MAX: usize = 2048;
/// Key and value sizes in object maps.
const MAP_SIZES: Sizes = Sizes { key: 16, value: 16 };

/// The superblock of a container.
#[derive(Debug, Clone)]
pub(crate) struct Superblock {
    pub(crate) block_bytes: u64,
    /// The number of blocks, capped by the size of the part.
    pub(crate) blocks: u64,
    /// The transaction number of the checkpoint, which only grows.
    pub(super) checkpoint: u64,
    /// The ring of checkpoint blocks: its first block and its length.
    ring: (u64, u32),
    /// The ring blocks that list this checkpoint's objects: the first one, and their number.
    lists: (u32, u32),
    /// The number of the space manager, which tracks free blocks.
    pub(crate) space: u64,
    /// The block of the object map.
    pub(super) map: u64,
    pub(super) volumes: Vec<u64>,
}

/// Whether `boot` has the superblock of an APFS container.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) if it has impossible values, and for containers of
/// several devices.
pub(crate) fn is_apfs(part: &Part<'_>, boot: &[u8; BOOT_BYTES]) -> Result<bool> {
    if !boot[MAGIC_AT..].starts_with(MAGIC) {
        return Ok(false);
    }
    let block_bytes = u64::from(u32_at(boot, 36));
    if !block_bytes.is_power_of_two() || !(4 << 10..=64 << 10).contains(&block_bytes) {
        return Err(wrong(part));
    }
    if u64_at(boot, 64) & FUSION != 0 {
        return Err(part.refused(0, "an APFS container on several devices"));
    }
    Ok(true)
}

fn wrong(part: &Part<'_>) -> Error {
    part.refused(0, "an APFS superblock with impossible values")
}

/// The superblock of the latest valid checkpoint.
///
/// # Errors
/// Those of [`is_apfs`], and [`Error::FileSystem`](crate::Error::FileSystem) if none is valid.
pub(crate) fn superblock(part: &Part<'_>, boot: &[u8; BOOT_BYTES]) -> Result<Superblock> {
    let (mut latest, block_bytes) = first(part, boot)?;
    each_checkpoint(part, latest.ring, block_bytes, &mut |other| {
        if other.checkpoint > latest.checkpoint {
            latest = other;
        }
    });
    Ok(latest)
}

/// Returns the superblocks of the checkpoints before `latest`, the newest first, with one for each object
/// map.
///
/// # Errors
/// As [`superblock`].
pub(super) fn earlier(
    part: &Part<'_>,
    boot: &[u8; BOOT_BYTES],
    latest: &Superblock,
) -> Result<Vec<Superblock>> {
    let (first, block_bytes) = first(part, boot)?;
    let ring = first.ring;
    let mut all = vec![first];
    each_checkpoint(part, ring, block_bytes, &mut |other| {
        all.push(other);
        if all.len() > 2 * EARLIER_MAX {
            keep_latest(&mut all);
        }
    });
    all.retain(|other| other.checkpoint < latest.checkpoint);
    keep_latest(&mut all);
    let mut maps = HashSet::from([latest.map]);
    all.retain(|other| maps.insert(other.map));
    Ok(all)
}

fn keep_latest(all: &mut Vec<Superblock>) {
    all.sort_unstable_by_key(|superblock| std::cmp::Reverse(superblock.checkpoint));
    all.truncate(EARLIER_MAX);
}

/// The superblock in the first block, which may be older than those in the ring.
fn first(part: &Part<'_>, boot: &[u8; BOOT_BYTES]) -> Result<(Superblock, u64)> {
    if !is_apfs(part, boot)? {
        return Err(wrong(part));
    }
    let block_bytes = u64::from(u32_at(boot, 36));
    let mut block = vec![0; block_bytes as usize];
    part.read(0, &mut block, "an APFS superblock")?;
    let first = parsed(part, &block).ok_or_else(|| wrong(part))?;
    Ok((first, block_bytes))
}

/// Passes each valid superblock of the ring to `see`.
fn each_checkpoint(
    part: &Part<'_>,
    (first, count): (u64, u32),
    block_bytes: u64,
    see: &mut dyn FnMut(Superblock),
) {
    let mut block = vec![0; block_bytes as usize];
    let mut cache = Cache::new(part);
    for index in 0..u64::from(count) {
        let at = first.checked_add(index).and_then(|block| block.checked_mul(block_bytes));
        let Some(at) = at.filter(|at| *at < part.length()) else { break };
        // Unreadable blocks in the ring are skipped like outdated ones.
        if cache.read(at, &mut block, "a checkpoint").is_err() || !is_sound(&block) {
            continue;
        }
        if let Some(other) = parsed(part, &block)
            && other.block_bytes == block_bytes
        {
            see(other);
        }
    }
}

fn parsed(part: &Part<'_>, block: &[u8]) -> Option<Superblock> {
    let count = u32_at(block, 104);
    let is_it = block.get(MAGIC_AT..)?.starts_with(MAGIC) && block.len() >= HEAD_BYTES;
    if !is_it || count & IN_PIECES != 0 || count > CHECKPOINTS_MAX {
        return None;
    }
    let block_bytes = u64::from(u32_at(block, 36));
    let volumes = (0..VOLUMES_MAX).map(|index| u64_at(block, 184 + index * 8));
    Some(Superblock {
        block_bytes,
        blocks: u64_at(block, 40).min(part.length() / block_bytes.max(1)),
        checkpoint: u64_at(block, 16),
        ring: (u64_at(block, 112), count),
        lists: (u32_at(block, 136), u32_at(block, 140)),
        space: u64_at(block, 152),
        map: u64_at(block, 160),
        volumes: volumes.filter(|volume| *volume != 0).collect(),
    })
}

/// Whether the 64-bit Fletcher checksum at the start of an object is right.
fn is_sound(object: &[u8]) -> bool {
    const MODULUS: u64 = u32::MAX as u64;
    const SUMMED_BYTES: usize = 4096;
    let rest = object.get(8..).unwrap_or_default();
    let (mut low, mut high) = (0, 0);
    // The sums cannot overflow within one chunk.
    for some in rest.chunks(SUMMED_BYTES) {
        for word in some.chunks_exact(4) {
            low += u64::from(u32_at(word, 0));
            high += low;
        }
        (low, high) = (low % MODULUS, high % MODULUS);
    }
    let first = MODULUS - (low + high) % MODULUS;
    let second = MODULUS - (low + first) % MODULUS;
    u64_at(object, 0) == second << 32 | first
}

/// The root of a tree, and how its object numbers map to blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree {
    /// The number of its root node.
    pub(super) root: u64,
    /// The root of the object map; `None` if object numbers are block numbers.
    pub(super) map: Option<u64>,
    /// The sizes of keys and values, if fixed.
    pub(super) sizes: Option<Sizes>,
}

/// Receives a key, a value and the value's offset; returns false to stop.
pub(super) type See<'s> = dyn FnMut(&[u8], &[u8], u64) -> bool + 's;

/// An opened container.
pub(crate) struct Container<'p, 's> {
    part: &'p Part<'s>,
    superblock: Superblock,
    kept: HashMap<u64, Rc<Node>>,
    order: VecDeque<u64>,
}

impl<'p, 's> Container<'p, 's> {
    pub(crate) fn new(part: &'p Part<'s>, superblock: Superblock) -> Self {
        Container { part, superblock, kept: HashMap::new(), order: VecDeque::new() }
    }

    pub(crate) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Reads an object of `blocks` blocks and verifies its checksum.
    ///
    /// # Errors
    /// As [`Part::read`]; [`Error::FileSystem`](crate::Error::FileSystem) if it is damaged.
    pub(crate) fn object(&self, block: u64, blocks: u64, what: &str) -> Result<Vec<u8>> {
        let block_bytes = self.superblock.block_bytes;
        let is_there = block.checked_add(blocks).is_some_and(|end| end <= self.superblock.blocks);
        if !is_there {
            return Err(self.part.refused(0, &format!("{what} beyond the end")));
        }
        let at = block * block_bytes;
        let mut bytes = vec![0; (blocks * block_bytes) as usize];
        self.part.read(at, &mut bytes, what)?;
        if is_sound(&bytes) {
            Ok(bytes)
        } else {
            Err(self.part.refused(at, &format!("{what}, damaged")))
        }
    }

    /// The block of the object map's root, given the map's own block.
    pub(super) fn map_root(&self, block: u64) -> Result<u64> {
        Ok(u64_at(&self.object(block, 1, "an object map")?, 48))
    }

    /// The block of an object by its number, as of the checkpoint.
    pub(super) fn block_of(
        &mut self,
        map: u64,
        number: u64,
        walk: &mut Walk<'_>,
    ) -> Result<Option<u64>> {
        let mut at = map;
        let mut levels = LEVELS_MAX;
        let wanted = (number, self.superblock.checkpoint);
        loop {
            walk.step(self.part)?;
            let node = self.node(at, at, Some(MAP_SIZES))?;
            let is_before = |index: usize| {
                node.entry(index).is_some_and(|(key, _)| (u64_at(key, 0), u64_at(key, 8)) <= wanted)
            };
            let index = node.count(is_before).checked_sub(1);
            let Some((key, value)) = index.and_then(|index| node.entry(index)) else {
                return Ok(None);
            };
            if node.level() == 0 {
                let is_it = u64_at(key, 0) == number && value.len() >= 16;
                return Ok(is_it.then(|| u64_at(value, 8)));
            }
            if node.level() >= levels {
                return Err(self.part.refused(0, "an APFS object map with a cycle"));
            }
            levels = node.level();
            at = u64_at(value, 0);
        }
    }

    /// Passes entries to `see` in key order, from the first one for which `is_before` is false, each
    /// with the offset of its value in the part.
    ///
    /// # Errors
    /// A damaged node, after the entries before it.
    pub(super) fn range(
        &mut self,
        tree: Tree,
        is_before: &dyn Fn(&[u8]) -> bool,
        walk: &mut Walk<'_>,
        see: &mut See<'_>,
    ) -> Result<()> {
        let mut seen = HashSet::new();
        self.visit(tree, tree.root, LEVELS_MAX, &mut seen, is_before, walk, see).map(|_| ())
    }

    /// Passes to `see` the entries of those leaves of a tree whose blocks are not in `seen`. The tree must
    /// refer to its nodes by block number. Skips damaged nodes.
    ///
    /// # Errors
    /// If the walk was stopped or takes too long.
    pub(super) fn fresh_leaves(
        &mut self,
        root: u64,
        sizes: Option<Sizes>,
        seen: &mut HashSet<u64>,
        walk: &mut Walk<'_>,
        see: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        let mut left = vec![root];
        while let Some(block) = left.pop() {
            walk.check_stop()?;
            walk.step(self.part)?;
            if !seen.insert(block) {
                continue;
            }
            let Ok(node) = self.node(block, block, sizes) else { continue };
            for index in 0..node.entries() {
                walk.step(self.part)?;
                match (node.entry(index), node.level()) {
                    (Some((key, value)), 0) => see(key, value),
                    (Some((_, value)), _) => left.push(u64_at(value, 0)),
                    (None, _) => {}
                }
            }
        }
        Ok(())
    }

    /// Adds the number and block of each object in those leaves of an object map whose blocks are not in
    /// `seen`.
    ///
    /// # Errors
    /// As [`fresh_leaves`](Self::fresh_leaves).
    pub(super) fn fresh_objects(
        &mut self,
        map: u64,
        seen: &mut HashSet<u64>,
        walk: &mut Walk<'_>,
        objects: &mut Vec<(u64, u64)>,
    ) -> Result<()> {
        self.fresh_leaves(map, Some(MAP_SIZES), seen, walk, &mut |key, value| {
            objects.push((u64_at(key, 0), u64_at(value, 8)));
        })
    }

    /// Passes the keys of a node to `see` if it is a leaf and its block is not in `seen`.
    ///
    /// # Errors
    /// As [`fresh_leaves`](Self::fresh_leaves).
    pub(super) fn fresh_leaf(
        &mut self,
        block: u64,
        number: u64,
        seen: &mut HashSet<u64>,
        walk: &mut Walk<'_>,
        see: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        walk.check_stop()?;
        walk.step(self.part)?;
        if !seen.insert(block) {
            return Ok(());
        }
        let node = self.node(block, number, None).ok();
        if let Some(node) = node.filter(|node| node.level() == 0) {
            (0..node.entries()).filter_map(|index| node.entry(index)).for_each(|(key, _)| see(key));
        }
        Ok(())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the recursive call passes most of them unchanged"
    )]
    fn visit(
        &mut self,
        tree: Tree,
        number: u64,
        levels: u16,
        seen: &mut HashSet<u64>,
        is_before: &dyn Fn(&[u8]) -> bool,
        walk: &mut Walk<'_>,
        see: &mut See<'_>,
    ) -> Result<bool> {
        let part = self.part;
        walk.step(part)?;
        let block = match tree.map {
            Some(map) => self.block_of(map, number, walk)?,
            None => Some(number),
        };
        let damaged = || part.refused(0, "a damaged APFS tree");
        let block = block.ok_or_else(damaged)?;
        let node = self.node(block, number, tree.sizes)?;
        // A node must not occur twice in a tree: a cycle would never end.
        let level = node.level();
        if level >= levels || !seen.insert(block) {
            return Err(damaged());
        }
        let before = node.count(|index| node.entry(index).is_some_and(|(key, _)| is_before(key)));
        let first = if level == 0 { before } else { before.saturating_sub(1) };
        for index in first..node.entries() {
            walk.step(part)?;
            let (key, value) = node.entry(index).ok_or_else(damaged)?;
            let goes_on = match level {
                0 => see(key, value, node.place_of(value)),
                _ => {
                    let child = u64_at(value, 0);
                    self.visit(tree, child, level, seen, is_before, walk, see)?
                }
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads a node and checks its object number.
    fn node(&mut self, block: u64, number: u64, sizes: Option<Sizes>) -> Result<Rc<Node>> {
        if let Some(node) = self.kept.get(&block) {
            return Ok(Rc::clone(node));
        }
        let bytes = self.object(block, 1, "an APFS node")?;
        let at = block * self.superblock.block_bytes;
        let node = Node::new(bytes, at, number, sizes);
        let node = node.ok_or_else(|| self.part.refused(at, "a damaged APFS node"))?;
        let node = Rc::new(node);
        if self.order.len() == NODES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.kept.remove(&oldest);
        }
        self.order.push_back(block);
        self.kept.insert(block, Rc::clone(&node));
        Ok(node)
    }

    /// The block and length, in blocks, of an ephemeral object, which every checkpoint rewrites.
    ///
    /// # Errors
    /// [`Error::FileSystem`](crate::Error::FileSystem) if the checkpoint does not list it.
    pub(crate) fn ephemeral(&self, number: u64) -> Result<(u64, u64)> {
        let ((first, count), (start, lists)) = (self.superblock.ring, self.superblock.lists);
        let block_bytes = self.superblock.block_bytes;
        for list in 0..lists.min(count) {
            let index = (u64::from(start) + u64::from(list)) % u64::from(count);
            let block = self.object(first.saturating_add(index), 1, "a checkpoint")?;
            if u32_at(&block, 24) & 0xFFFF != CHECKPOINT_MAP {
                continue;
            }
            let entries = block[40..].chunks_exact(40).take(u32_at(&block, 36) as usize);
            for entry in entries {
                if u64_at(entry, 24) == number {
                    let blocks = u64::from(u32_at(entry, 8)).div_ceil(block_bytes);
                    return Ok((u64_at(entry, 32), blocks));
                }
            }
        }
        Err(self.part.refused(0, "an APFS container with an incomplete checkpoint"))
    }
}
