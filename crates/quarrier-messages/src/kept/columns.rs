//! Checkpoints of tables: their columns in files of the data folder, so that opening a table need not parse
//! all messages again.
//!
//! ```text
//!    0  8  "QUARRCOL"                       40  8  bytes of these batches' messages
//!   12  4  table                            48  8  rows
//!   16  8  number of the table's first        the rest of the head: `whole`
//!          batches that it covers          4096    the columns: `table/stored`
//!   24  8  the mark after them
//!   32  8  CRC-64/NVME of their places
//! ```
//!
//! The log has all of this data, so a damaged file is ignored with a notice. A file belongs to this log if
//! its batches are the table's first ones there, by their places, marks and checksums.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crc_fast::{CrcAlgorithm, Digest};
use quarrier_core::sync::lock;

use super::index::{Extent, Listed};
use super::snapshot::Snapshot;
use super::whole::{self, Head, Unused};
use crate::Table;
use crate::log::Result;
use crate::log::disk::Disk;

pub(super) const MAGIC: &[u8; 8] = b"QUARRCOL";
/// With fewer bytes of messages, parsing is preferred to reading such a file.
pub(super) const BYTES_MIN: u64 = 1 << 20;
/// A file is rewritten when the bytes of new messages reach this fraction (1/4) of its contents.
const SHARE: u64 = 4;

/// The files of a data folder.
pub(super) struct ColumnFiles {
    disk: Arc<dyn Disk>,
    /// What the files cover, by table: the mark of the first message, and the bytes of the messages.
    stored: Mutex<HashMap<u32, (u64, u64)>>,
    notices: Mutex<Vec<String>>,
}

fn file_name(table: u32) -> String {
    format!("table{table}.columns")
}

impl ColumnFiles {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        ColumnFiles { disk, stored: Mutex::default(), notices: Mutex::default() }
    }

    /// Returns notices for users, each once.
    pub(super) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notices))
    }

    pub(super) fn note(&self, table: u32, what: &str) {
        let path = self.disk.path(&file_name(table));
        let notice = format!("{path}: {what}; the columns are rebuilt from the log");
        let mut notices = lock(&self.notices);
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    /// Reads the table of the first of these batches from its file. `is_whole` means that no other batches
    /// exist, and `is_cut` that retention has removed earlier ones, which the file may still have.
    pub(super) fn read(
        &self,
        (table, listed): (u32, &Listed),
        (is_whole, is_cut): (bool, bool),
    ) -> Option<Snapshot> {
        let extents = listed.extents.as_slice();
        let is_wanted = |head: &Head| match is_of(head, (table, extents), is_whole) {
            Err(Unused::For(_)) if is_cut => Err(Unused::Silently),
            other => other,
        };
        let body = |bytes: &mut dyn std::io::Read, count| Table::read_from(bytes, count);
        match whole::read(self.disk.as_ref(), &file_name(table), MAGIC, is_wanted, body) {
            Ok((head, read)) => {
                let [_, end, _, message_bytes, rows] = head.numbers;
                if read.rows() != rows {
                    self.note(table, "is damaged");
                    return None;
                }
                lock(&self.stored).insert(table, (first_mark(extents), message_bytes));
                Some(Snapshot::new(read, end, listed.gone))
            }
            Err(Unused::Silently) => None,
            Err(Unused::For(reason)) => {
                self.note(table, &reason);
                None
            }
        }
    }

    /// Returns whether the columns of these batches should be written: if at least `every` bytes of messages
    /// are new, and a share of all; or any, with None.
    pub(super) fn is_due(&self, table: u32, extents: &[Extent], every: Option<u64>) -> bool {
        let all: u64 = extents.iter().map(Extent::message_bytes).sum();
        // After retention, a file with older messages is useless.
        let stored = lock(&self.stored).get(&table).copied();
        let stored = stored.filter(|(first, _)| *first == first_mark(extents));
        let stored = stored.map_or(0, |(_, bytes)| bytes);
        let more = all.saturating_sub(stored);
        more > 0 && every.is_none_or(|every| more >= every.max(stored / SHARE))
    }

    /// Replaces the columns on the disk with those of these batches, all of which are durable.
    ///
    /// # Errors
    /// [`Error::Full`](crate::log::Error::Full), [`Error::Io`](crate::log::Error::Io); the old columns then
    /// remain.
    pub(super) fn write(&self, number: u32, snapshot: &Snapshot, listed: &Listed) -> Result<()> {
        let before = listed.before(snapshot.end);
        let Some(extents) = listed.extents.get(..before) else { return Ok(()) };
        // Serialize writers: they write to the same file.
        let mut stored = lock(&self.stored);
        let message_bytes = extents.iter().map(Extent::message_bytes).sum();
        let end_mark = extents.last().map_or(0, |last| last.marks.end);
        let table = snapshot.stored();
        let (batches, rows) = (extents.len() as u64, table.rows());
        let numbers = [batches, end_mark, places(extents), message_bytes, rows];
        let head = Head { magic: MAGIC, table: number, numbers };
        let name = file_name(number);
        let about = (name.as_str(), table.nbytes());
        whole::replace(self.disk.as_ref(), about, head, |sink| table.write_to(sink))?;
        stored.insert(number, (first_mark(extents), message_bytes));
        Ok(())
    }
}

fn first_mark(extents: &[Extent]) -> u64 {
    extents.first().map_or(0, |first| first.marks.start)
}

/// Checks that a file covers the first of these batches.
fn is_of(
    head: &Head,
    (table, extents): (u32, &[Extent]),
    is_whole: bool,
) -> std::result::Result<(), Unused> {
    let [batches, end_mark, places_sum, ..] = head.numbers;
    let batches = usize::try_from(batches).unwrap_or(usize::MAX);
    let Some(first) = extents.get(..batches) else {
        // A reader may have seen fewer batches than a concurrent writer.
        return Err(match is_whole {
            true => Unused::For("has messages that the log lacks".to_string()),
            false => Unused::Silently,
        });
    };
    let is_of_these = head.table == table
        && places_sum == places(first)
        && first.last().map(|last| last.marks.end) == Some(end_mark);
    if is_of_these { Ok(()) } else { Err(Unused::For("belongs to another log".to_string())) }
}

/// Hashes the places and contents of batches.
fn places(extents: &[Extent]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    for extent in extents {
        let place = &extent.place;
        for number in [
            extent.marks.start,
            extent.marks.end,
            place.segment,
            place.offset,
            u64::from(place.bytes),
            place.checksum,
        ] {
            digest.update(&number.to_le_bytes());
        }
        digest.update(&[extent.encoding.code(), u8::from(place.is_compressed)]);
    }
    digest.finalize()
}
