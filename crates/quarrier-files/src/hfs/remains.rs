//! Deleted folders and files. Deletion removes the record from its node without clearing the bytes, so
//! copies remain in three places: after the records of a node, in nodes that the catalog no longer uses,
//! and in the journal, which has earlier copies of whole nodes.

use std::collections::HashMap;
use std::ops::Range;

use super::record::{Named, named};
use super::tree::{NODE_BYTES_MAX, Node, Record};
use super::volume::Volume;
use crate::error::Result;
use crate::part::{Part, be16, be32, be64};
use crate::walk::Walk;

/// The first number of the user's folders and files (`kHFSFirstUserCatalogNodeID`).
const FIRST_ID: u32 = 16;
const KEY_BYTES: std::ops::RangeInclusive<usize> = 8..=516;
/// Maximum number of deleted folders and files, at about 400 bytes each.
const FOUND_MAX: usize = 1 << 20;
/// Maximum number of bytes of the journal to read.
const JOURNAL_BYTES_MAX: u64 = 1 << 30;
/// Blocks in the journal begin at multiples of this.
const STEP_BYTES: usize = 512;
const READ_BYTES: usize = 1 << 20;
const IN_VOLUME: u32 = 1;

/// Records of folders and files that may be deleted, by number.
#[derive(Default)]
pub(super) struct Remains {
    found: HashMap<u32, Named>,
    are_more: bool,
}

impl Remains {
    /// Adds the records in the slack of a node, after its own records.
    pub(super) fn add_slack(&mut self, node: &Node, volume: &Volume) {
        let slack = node.slack();
        let mut at = 0;
        while at < slack.len() {
            match record(&slack[at..], volume) {
                Some((named, bytes)) => {
                    self.add(named);
                    at += bytes;
                }
                // Records begin at even offsets.
                None => at += 2,
            }
        }
    }

    /// Adds all records of a node that the catalog does not use.
    pub(super) fn add_node(&mut self, node: &Node, volume: &Volume) {
        for index in 0..node.records() {
            let found = node.record(index).and_then(|record| named(&record).ok().flatten());
            if let Some(named) = found.filter(|named| is_plausible(named, volume)) {
                self.add(named);
            }
        }
        self.add_slack(node, volume);
    }

    /// Adds the records of the catalog nodes in the journal. Skips bytes that cannot be read.
    ///
    /// # Errors
    /// If the walk was stopped.
    pub(super) fn add_journal(
        &mut self,
        part: &Part<'_>,
        volume: &Volume,
        node_bytes: usize,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        let Some(journal) = journal(part, volume) else { return Ok(()) };
        let mut buffer = vec![0; READ_BYTES + NODE_BYTES_MAX];
        let mut at = journal.start;
        while at < journal.end {
            walk.check_stop()?;
            // Each piece includes the rest of a node that begins in it.
            let length = (journal.end - at).min((READ_BYTES + node_bytes) as u64) as usize;
            let piece = &mut buffer[..length];
            if part.read(at, piece, "the journal").is_ok() {
                for from in (0..length.min(READ_BYTES)).step_by(STEP_BYTES) {
                    let node = piece.get(from..from + node_bytes).and_then(Node::leaf);
                    if let Some(node) = node {
                        self.add_node(&node, volume);
                    }
                }
            }
            at += READ_BYTES as u64;
        }
        Ok(())
    }

    /// Keeps the latest record of each number.
    fn add(&mut self, named: Named) {
        let age = |named: &Named| (named.item.times.changed, named.item.times.modified);
        let is_full = self.found.len() == FOUND_MAX;
        match self.found.get_mut(&named.item.id) {
            Some(known) if age(known) >= age(&named) => {}
            Some(known) => *known = named,
            None if is_full => self.are_more = true,
            None => {
                self.found.insert(named.item.id, named);
            }
        }
    }

    /// Removes a record, since its folder or file still exists.
    pub(super) fn exists(&mut self, id: u32) {
        self.found.remove(&id);
    }

    /// The deleted folders and files by parent and number, and whether there are more.
    pub(super) fn finish(self) -> (Vec<Named>, bool) {
        let mut all: Vec<Named> = self.found.into_values().collect();
        all.sort_unstable_by_key(|named| (named.parent, named.item.id));
        (all, self.are_more)
    }
}

/// Returns the record at the start of `bytes`, and its length; `None` if there is none.
fn record(bytes: &[u8], volume: &Volume) -> Option<(Named, usize)> {
    let key_bytes = usize::from(be16(bytes, 0));
    // The parent, the length of the name, the name.
    if !KEY_BYTES.contains(&key_bytes) || key_bytes != 6 + 2 * usize::from(be16(bytes, 6)) {
        return None;
    }
    let record = Record::of(bytes)?;
    let named = named(&record).ok().flatten()?;
    let bytes = record.value_at() + named.item.record_bytes();
    is_plausible(&named, volume).then_some((named, bytes))
}

/// Whether a record can be one that the file system wrote, rather than bytes of other records.
fn is_plausible(named: &Named, volume: &Volume) -> bool {
    let Named { parent, name, item } = named;
    let is_numbered =
        item.id >= FIRST_ID && *parent != item.id && (*parent == 2 || *parent >= FIRST_ID);
    let is_named = !name.is_empty() && name.encode_utf16().count() <= 255;
    let is_dated = item.times.created.is_some() || item.times.modified.is_some();
    let are_right = |fork| volume.is_plausible(fork);
    is_numbered
        && is_named
        && is_dated
        && item.has_type()
        && are_right(&item.data)
        && are_right(&item.resource)
}

/// The range of the journal in the volume; `None` if there is none, or if it is on another device.
fn journal(part: &Part<'_>, volume: &Volume) -> Option<Range<u64>> {
    let at = u64::from(volume.journal_info?).checked_mul(volume.block_bytes)?;
    let mut info = [0; 52];
    part.read(at, &mut info, "the place of the journal").ok()?;
    let (start, bytes) = (be64(&info, 36), be64(&info, 44));
    let end = start.checked_add(bytes.min(JOURNAL_BYTES_MAX))?.min(part.length());
    (be32(&info, 0) & IN_VOLUME != 0).then_some(start..end)
}
