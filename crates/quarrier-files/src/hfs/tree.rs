//! B-trees in forks: a header node, index nodes, and leaves linked in key order.

use std::cmp::Ordering;

use crate::cache::Cache;
use crate::entry::Content;
use crate::error::Result;
use crate::part::{Part, be16, be32};
use crate::walk::Walk;

const LEAF: u8 = 0xFF;
const INDEX: u8 = 0;
const DEPTH_MAX: u8 = 16;
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

impl Node {
    /// Parses a record; `None` if it is damaged.
    pub(super) fn record(&self, index: usize) -> Option<Record<'_>> {
        let offset = |index: usize| {
            let at = self.bytes.len().checked_sub(2 * (index + 1))?;
            Some(usize::from(be16(&self.bytes, at)))
        };
        let (start, end) = (offset(index)?, offset(index + 1)?);
        let record = self.bytes.get(start..end).filter(|_| start >= NODE_HEAD_BYTES)?;
        let key_bytes = usize::from(be16(record, 0));
        let key = record.get(2..2 + key_bytes)?;
        let value_at = (2 + key_bytes).next_multiple_of(2);
        let value = record.get(value_at..)?;
        Some(Record { key, value, value_at: start + value_at })
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
        let fits = node_bytes.is_power_of_two() && (512..=32 << 10).contains(&node_bytes);
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
        let records = usize::from(be16(&bytes, 10));
        if NODE_HEAD_BYTES + 2 * (records + 1) > bytes.len() {
            return Err(self.refused(number));
        }
        Ok(Node { at, kind: bytes[8], height: bytes[9], next: be32(&bytes, 0), records, bytes })
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
