//! B-trees in forks: a header node, index nodes, and leaves linked in key order.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::cache::Cache;
use crate::entry::Content;
use crate::error::Result;
use crate::part::{Part, be16, be32};
use crate::walk::Walk;

const LEAF: u8 = 0xFF;
const INDEX: u8 = 0;
const DEPTH_MAX: u8 = 16;
pub(super) const NODE_BYTES_MAX: usize = 32 << 10;
const NODE_HEAD_BYTES: usize = 14;
const HEADER_BYTES: usize = 64;

/// Random access to the bytes of a fork.
struct Bytes<'p, 's> {
    part: &'p Part<'s>,
    cache: Cache<'p, 's>,
    /// Offset in the fork, offset in the volume, length.
    pieces: Vec<(u64, u64, u64)>,
}

impl Bytes<'_, '_> {
    /// Fills `buffer` from an offset in the fork.
    fn read(&mut self, mut at: u64, buffer: &mut [u8], what: &str) -> Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            let Some((place, room)) = place_of(&self.pieces, at) else {
                return Err(self.part.refused(0, &format!("{what} beyond its end")));
            };
            let bytes = room.min((buffer.len() - filled) as u64) as usize;
            self.cache.read(place, &mut buffer[filled..filled + bytes], what)?;
            filled += bytes;
            at += bytes as u64;
        }
        Ok(())
    }
}

/// The offset in the volume of a byte of the fork, and the number of contiguous bytes from there on.
fn place_of(pieces: &[(u64, u64, u64)], at: u64) -> Option<(u64, u64)> {
    let index = pieces.partition_point(|piece| piece.0 <= at).checked_sub(1)?;
    let &(start, place, length) = pieces.get(index)?;
    let inside = at - start;
    (inside < length).then(|| (place + inside, length - inside))
}

/// An open B-tree.
pub(super) struct Tree<'p, 's> {
    bytes: Bytes<'p, 's>,
    node_bytes: u64,
    root: u32,
    first_leaf: u32,
    nodes: u64,
    what: &'static str,
}

/// A B-tree node.
pub(super) struct Node {
    bytes: Vec<u8>,
    /// Its offset in the fork.
    at: u64,
    kind: u8,
    height: u8,
    next: u32,
    records: usize,
}

/// A key and its value.
pub(super) struct Record<'n> {
    pub(super) key: &'n [u8],
    pub(super) value: &'n [u8],
    /// The offset of the value in the node.
    value_at: usize,
}

impl<'n> Record<'n> {
    /// Parses the record at the start of `bytes`, which may have more bytes after it.
    pub(super) fn of(bytes: &'n [u8]) -> Option<Self> {
        let key_bytes = usize::from(be16(bytes, 0));
        let key = bytes.get(2..2 + key_bytes)?;
        let value_at = (2 + key_bytes).next_multiple_of(2);
        Some(Record { key, value: bytes.get(value_at..)?, value_at })
    }

    /// The offset of the value.
    pub(super) fn value_at(&self) -> usize {
        self.value_at
    }
}

impl Node {
    /// Parses a node; `None` if it has more records than it has room for.
    fn of(bytes: Vec<u8>, at: u64) -> Option<Node> {
        let records = usize::from(be16(&bytes, 10));
        let has_room = NODE_HEAD_BYTES + 2 * (records + 1) <= bytes.len();
        let (kind, height, next) = (*bytes.get(8)?, *bytes.get(9)?, be32(&bytes, 0));
        has_room.then_some(Node { at, kind, height, next, records, bytes })
    }

    /// Recognises a leaf in arbitrary bytes: its records are in order, and the first one follows the
    /// header.
    pub(super) fn leaf(bytes: &[u8]) -> Option<Node> {
        if bytes.get(8..10) != Some(&[LEAF, 1][..]) || be16(bytes, 10) == 0 {
            return None;
        }
        let node = Node::of(bytes.to_vec(), 0)?;
        let first = node.offset(0)? == NODE_HEAD_BYTES;
        let ends = (0..node.records).all(|index| node.offset(index) < node.offset(index + 1));
        (first && ends && node.offset(node.records)? <= node.offsets_at()).then_some(node)
    }

    /// The offset of a record, or of the first byte after all records.
    fn offset(&self, index: usize) -> Option<usize> {
        let at = self.bytes.len().checked_sub(2 * (index + 1))?;
        Some(usize::from(be16(&self.bytes, at)))
    }

    /// The start of the list of offsets at the end of the node.
    fn offsets_at(&self) -> usize {
        self.bytes.len().saturating_sub(2 * (self.records + 1))
    }

    /// The bytes between the records and their offsets.
    pub(super) fn slack(&self) -> &[u8] {
        let start = self.offset(self.records).unwrap_or(0).max(NODE_HEAD_BYTES).next_multiple_of(2);
        self.bytes.get(start..self.offsets_at()).unwrap_or_default()
    }

    /// Its offset in the fork.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Parses a record; `None` if it is damaged.
    pub(super) fn record(&self, index: usize) -> Option<Record<'_>> {
        let (start, end) = (self.offset(index)?, self.offset(index + 1)?);
        let record = self.bytes.get(start..end).filter(|_| start >= NODE_HEAD_BYTES)?;
        let record = Record::of(record)?;
        Some(Record { value_at: start + record.value_at, ..record })
    }

    /// The number of records.
    pub(super) fn records(&self) -> usize {
        self.records
    }
}

impl<'p, 's> Tree<'p, 's> {
    /// Opens the tree in a fork; `None` if the fork is empty.
    pub(super) fn open(
        part: &'p Part<'s>,
        content: &Content,
        what: &'static str,
    ) -> Result<Option<Self>> {
        let base = part.place(0);
        let (mut pieces, mut length) = (Vec::new(), 0u64);
        for run in &content.runs {
            if let Some(place) = run.place {
                pieces.push((length, place - base, run.length));
            }
            length = length.saturating_add(run.length);
        }
        if length == 0 {
            return Ok(None);
        }
        let mut bytes = Bytes { part, cache: Cache::new(part), pieces };
        let mut header = [0; HEADER_BYTES];
        bytes.read(0, &mut header, what)?;
        let node_bytes = u64::from(be16(&header, 32));
        let fits =
            node_bytes.is_power_of_two() && (512..=NODE_BYTES_MAX as u64).contains(&node_bytes);
        if header[8] != 1 || !fits {
            let at = bytes.pieces.first().map_or(0, |piece| piece.1);
            return Err(part.refused(at, &format!("{what} with impossible values")));
        }
        Ok(Some(Tree {
            bytes,
            node_bytes,
            root: be32(&header, 16),
            first_leaf: be32(&header, 24),
            nodes: length / node_bytes,
            what,
        }))
    }

    fn refused(&self, node: u32) -> crate::Error {
        let at = place_of(&self.bytes.pieces, u64::from(node) * self.node_bytes);
        let at = at.map_or(0, |(place, _)| place);
        self.bytes.part.refused(at, &format!("a damaged node in {}", self.what))
    }

    fn node(&mut self, number: u32) -> Result<Node> {
        if u64::from(number) >= self.nodes {
            return Err(self.refused(number));
        }
        let at = u64::from(number) * self.node_bytes;
        let mut bytes = vec![0; self.node_bytes as usize];
        self.bytes.read(at, &mut bytes, self.what)?;
        Node::of(bytes, at).ok_or_else(|| self.refused(number))
    }

    /// Passes each leaf to `see`, in key order.
    ///
    /// # Errors
    /// Errors of `see`, and a damaged node, which makes later leaves unreachable.
    pub(super) fn each_leaf<'w>(
        &mut self,
        walk: &mut Walk<'w>,
        see: &mut dyn FnMut(&Node, &mut Walk<'w>) -> Result<()>,
    ) -> Result<()> {
        let mut number = self.first_leaf;
        for _ in 0..self.nodes {
            if number == 0 {
                return Ok(());
            }
            walk.step(self.bytes.part)?;
            let node = self.node(number)?;
            if node.kind != LEAF {
                return Err(self.refused(number));
            }
            see(&node, walk)?;
            number = node.next;
        }
        match number {
            0 => Ok(()),
            _ => Err(self.bytes.part.refused(0, &format!("a cycle of leaves in {}", self.what))),
        }
    }

    /// The size of a node.
    pub(super) fn node_bytes(&self) -> u64 {
        self.node_bytes
    }

    /// Passes to `see` each node that looks like a leaf and whose offset is not in `used`. Skips nodes that
    /// cannot be read.
    ///
    /// # Errors
    /// If the walk was stopped or takes too long.
    pub(super) fn each_unused_leaf(
        &mut self,
        walk: &mut Walk<'_>,
        used: &HashSet<u64>,
        see: &mut dyn FnMut(&Node),
    ) -> Result<()> {
        let mut bytes = vec![0; self.node_bytes as usize];
        for number in 0..self.nodes {
            walk.check_stop()?;
            walk.step(self.bytes.part)?;
            let at = number * self.node_bytes;
            if !used.contains(&at)
                && self.bytes.read(at, &mut bytes, self.what).is_ok()
                && let Some(node) = Node::leaf(&bytes)
            {
                see(&node);
            }
        }
        Ok(())
    }

    /// Looks up the key for which `compare` returns `Equal`; returns the value and its offset in the
    /// volume. `compare` orders a key of the tree relative to the wanted one.
    pub(super) fn find(
        &mut self,
        walk: &mut Walk<'_>,
        compare: &dyn Fn(&[u8]) -> Ordering,
    ) -> Result<Option<(Vec<u8>, u64)>> {
        let mut number = self.root;
        if number == 0 {
            return Ok(None);
        }
        let mut height = DEPTH_MAX + 1;
        loop {
            walk.step(self.bytes.part)?;
            let node = self.node(number)?;
            if node.height >= height || !matches!(node.kind, LEAF | INDEX) {
                return Err(self.refused(number));
            }
            height = node.height;
            let mut below = None;
            for index in 0..node.records() {
                let record = node.record(index).ok_or_else(|| self.refused(number))?;
                match compare(record.key) {
                    Ordering::Greater => break,
                    Ordering::Equal if node.kind == LEAF => {
                        let at = node.at + record.value_at as u64;
                        let place = place_of(&self.bytes.pieces, at).map_or(0, |(place, _)| place);
                        return Ok(Some((record.value.to_vec(), place)));
                    }
                    _ => below = Some(be32(record.value, 0)),
                }
            }
            match below {
                Some(child) if node.kind == INDEX => number = child,
                _ => return Ok(None),
            }
        }
    }
}
