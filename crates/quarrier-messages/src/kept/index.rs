//! Maps each table to the places of its batches in the log.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::encoding::{header_of, name_of};
use crate::log::{Encoding, Entry, Place, Publication};

/// A batch of a table.
#[derive(Debug, Clone)]
pub(super) struct Extent {
    pub(super) place: Place,
    pub(super) marks: Range<u64>,
    /// The time of the commit, in microseconds since 1970.
    pub(super) time_us: i64,
    pub(super) encoding: Encoding,
    pub(super) publication: Option<Publication>,
    /// For CSV, the header before its messages.
    pub(super) header: Arc<[u8]>,
}

impl Extent {
    /// Returns whether one reader can read both batches.
    pub(super) fn goes_with(&self, next: &Extent) -> bool {
        self.encoding == next.encoding && self.header == next.header
    }

    /// Returns the bytes of its messages, without the header.
    pub(super) fn message_bytes(&self) -> u64 {
        u64::from(self.place.bytes_unpacked).saturating_sub(self.header.len() as u64)
    }
}

/// The batches of a table, as of one moment. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed {
    pub(super) extents: Arc<Vec<Extent>>,
    /// Number of messages before these batches that retention removed since the folder was opened.
    pub(super) gone: u64,
}

impl Listed {
    /// Returns the number of batches whose messages have marks below `end`.
    pub(super) fn before(&self, end: u64) -> usize {
        self.extents.partition_point(|extent| extent.marks.end <= end)
    }

    /// Returns the mark after the last message; 0 without any.
    pub(super) fn end(&self) -> u64 {
        self.extents.last().map_or(0, |last| last.marks.end)
    }
}

/// A table and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptTable {
    /// The name.
    pub name: String,
    /// Messages appended and not yet removed by retention; for a table with a key, including those replaced or
    /// removed since.
    pub messages: u64,
    /// The messages' bytes as received.
    pub bytes: u64,
    /// The bytes that they take in the log, excluding headers of batches.
    pub stored_bytes: u64,
    /// The formats of the messages, each once, in order of first appearance.
    pub formats: Vec<&'static str>,
}

/// The batches of all tables, in the order of the log.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    tables: BTreeMap<u32, Listed>,
    headers: HashMap<Box<[u8]>, Arc<[u8]>>,
    /// The mark after the last message.
    pub(super) next_mark: u64,
    /// Bytes of all batches in the log, without their headers.
    pub(super) stored_bytes: u64,
}

impl Index {
    /// Adds a batch, unless it was added before.
    pub(super) fn add(&mut self, entry: &Entry) {
        // A payload that cannot be decompressed yields an error when it is read.
        self.add_with(entry, || entry.payload().unwrap_or_default());
    }

    /// Like `add`, with another source of the payload.
    pub(super) fn add_with<'p>(&mut self, entry: &Entry, payload: impl FnOnce() -> Cow<'p, [u8]>) {
        let marks = entry.marks();
        if marks.start < self.next_mark {
            return;
        }
        self.next_mark = marks.end;
        let encoding = entry.encoding();
        let header = match encoding {
            Encoding::Csv => self.header(&payload()),
            _ => Arc::default(),
        };
        let extent = Extent {
            place: entry.place(),
            marks,
            time_us: entry.time_us(),
            encoding,
            publication: entry.publication(),
            header,
        };
        self.stored_bytes += u64::from(extent.place.bytes);
        let listed = self.tables.entry(entry.table()).or_default();
        Arc::make_mut(&mut listed.extents).push(extent);
    }

    fn header(&mut self, payload: &[u8]) -> Arc<[u8]> {
        let header = header_of(payload).and_then(|(end, _)| payload.get(..end));
        let header = header.unwrap_or_default();
        if let Some(known) = self.headers.get(header) {
            return Arc::clone(known);
        }
        let shared: Arc<[u8]> = header.into();
        self.headers.insert(header.into(), Arc::clone(&shared));
        shared
    }

    /// Returns the CSV headers of batches, and the empty header that all others have.
    pub(super) fn headers(&self) -> Vec<Arc<[u8]>> {
        let mut headers: Vec<Arc<[u8]>> = self.headers.values().cloned().collect();
        if !self.headers.contains_key(&[][..]) {
            headers.push(Arc::default());
        }
        headers
    }

    /// Adds all batches of a table.
    pub(super) fn put(&mut self, number: u32, extents: Vec<Extent>) {
        for extent in &extents {
            self.stored_bytes += u64::from(extent.place.bytes);
            self.headers
                .entry((*extent.header).into())
                .or_insert_with(|| Arc::clone(&extent.header));
        }
        self.tables.insert(number, Listed { extents: Arc::new(extents), gone: 0 });
    }

    /// Removes batches of segments that no longer exist: those before the segment that begins with this mark.
    pub(super) fn forget_before(&mut self, segment: u64) {
        for listed in self.tables.values_mut() {
            Arc::make_mut(&mut listed.extents).retain(|extent| extent.place.segment >= segment);
        }
        self.tables.retain(|_, listed| !listed.extents.is_empty());
        let left = self.tables.values().flat_map(|listed| listed.extents.iter());
        self.stored_bytes = left.map(|extent| u64::from(extent.place.bytes)).sum();
    }

    /// Removes the first batches of a table. Returns the number of their messages.
    pub(super) fn forget_first(&mut self, number: u32, batches: usize) -> u64 {
        let Some(listed) = self.tables.get_mut(&number) else { return 0 };
        let extents = Arc::make_mut(&mut listed.extents);
        let (mut messages, mut bytes) = (0, 0);
        for extent in extents.drain(..batches.min(extents.len())) {
            messages += extent.marks.end - extent.marks.start;
            bytes += u64::from(extent.place.bytes);
        }
        listed.gone += messages;
        self.stored_bytes -= bytes;
        messages
    }

    /// Returns the lowest mark of any message; the next mark without any.
    pub(super) fn oldest_mark(&self) -> u64 {
        let firsts = self.tables.values().filter_map(|listed| listed.extents.first());
        firsts.map(|first| first.marks.start).min().unwrap_or(self.next_mark)
    }

    /// Returns the numbers of all tables that have messages.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.tables.keys().copied()
    }

    /// Returns the batches of a table.
    pub(super) fn extents(&self, number: u32) -> &[Extent] {
        self.tables.get(&number).map_or(&[], |listed| listed.extents.as_slice())
    }

    /// Returns the number of messages of a table that retention removed since the folder was opened.
    pub(super) fn gone(&self, number: u32) -> u64 {
        self.tables.get(&number).map_or(0, |listed| listed.gone)
    }

    /// Returns the batches of a table as of now.
    pub(super) fn listed(&self, number: u32) -> Listed {
        self.tables.get(&number).cloned().unwrap_or_default()
    }

    /// Returns the batch with this publication.
    pub(super) fn published(&self, number: u32, publication: &Publication) -> Option<&Extent> {
        let mut extents = self.extents(number).iter().rev();
        extents.find(|extent| extent.publication.as_ref() == Some(publication))
    }

    /// Summarizes a table.
    pub(super) fn table(&self, number: u32, name: String) -> KeptTable {
        let extents = self.extents(number);
        let mut table =
            KeptTable { name, messages: 0, bytes: 0, stored_bytes: 0, formats: Vec::new() };
        for extent in extents {
            table.stored_bytes += u64::from(extent.place.bytes);
            if extent.encoding == Encoding::KeysRemoved {
                continue;
            }
            table.messages += extent.marks.end - extent.marks.start;
            table.bytes += extent.message_bytes();
            let name = name_of(extent.encoding);
            if !table.formats.contains(&name) {
                table.formats.push(name);
            }
        }
        table
    }
}
