//! The positions and original bytes of messages as columns.

use crate::column::SegmentColumn;
use crate::column::raw::{RawColumn, RawData};
use crate::{HiddenColumns, Part, PartField, Schema};

/// A segment is packed after this many bytes, to limit the memory for long messages.
const SEGMENT_BYTES_MAX: usize = 64 << 20;

/// The positions and bytes of a worker's messages: of the rows being written, and as columns of
/// each packed segment.
#[derive(Debug, Default)]
pub(super) struct MessageColumns {
    selected: HiddenColumns,
    lines: Vec<u64>,
    offsets: Vec<i64>,
    ends: Vec<u32>,
    bytes: Vec<u8>,
    list_ends: ListEnds,
    segments: Vec<Segment>,
}

/// The columns of one segment.
#[derive(Debug, Default)]
struct Segment {
    /// For each row, the number of lines of its claim before its own: the number of lines before
    /// the claim is known only at the end.
    lines: Vec<u64>,
    offsets: Option<SegmentColumn>,
    messages: Option<SegmentColumn>,
    /// `None` also if no list of the segment ends without a value.
    list_ends: Option<SegmentColumn>,
}

/// The ends of the lists of each row, NULL for most.
#[derive(Debug, Default)]
struct ListEnds {
    valid: Vec<u64>,
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl ListEnds {
    fn add(&mut self, list_ends: &str) {
        let row = self.ends.len();
        if row.is_multiple_of(64) {
            self.valid.push(0);
        }
        if let Some(last) = self.valid.last_mut().filter(|_| !list_ends.is_empty()) {
            *last |= 1 << (row % 64);
        }
        self.bytes.extend_from_slice(list_ends.as_bytes());
        self.ends.push(self.bytes.len() as u32);
    }

    /// Returns the column of the rows so far; `None` if it has no value.
    fn pack(&mut self) -> Option<SegmentColumn> {
        let ListEnds { valid, ends, bytes } = std::mem::take(self);
        let has_values = !bytes.is_empty();
        let raw = RawColumn { valid, data: RawData::Text { ends, bytes } };
        has_values.then(|| SegmentColumn::pack(&raw))
    }
}

impl MessageColumns {
    pub(super) fn new(selected: HiddenColumns) -> Self {
        MessageColumns { selected, ..MessageColumns::default() }
    }

    /// Adds a complete row: the message's bytes, its offset in the source, the number of lines of
    /// the claim before its own, and the ends of its lists. Returns the bytes of memory that it
    /// takes.
    pub(super) fn add(
        &mut self,
        message: &[u8],
        (offset, line): (u64, u64),
        list_ends: &str,
    ) -> usize {
        let mut taken = 0;
        if self.selected.line {
            self.lines.push(line);
            taken += size_of::<u64>();
        }
        if self.selected.offset {
            self.offsets.push(i64::try_from(offset).unwrap_or(i64::MAX));
            taken += size_of::<i64>();
        }
        if self.selected.message {
            match std::str::from_utf8(message) {
                Ok(text) => self.bytes.extend_from_slice(text.as_bytes()),
                // Formats accept only messages in UTF-8.
                Err(_) => {
                    self.bytes.extend_from_slice(String::from_utf8_lossy(message).as_bytes());
                }
            }
            self.ends.push(self.bytes.len() as u32);
            taken += message.len();
        }
        if self.selected.list_ends {
            self.list_ends.add(list_ends);
            taken += list_ends.len();
        }
        taken
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len().max(self.list_ends.bytes.len()) >= SEGMENT_BYTES_MAX
    }

    /// Packs the rows, at least one.
    pub(super) fn pack(&mut self) {
        let mut segment = Segment { lines: std::mem::take(&mut self.lines), ..Segment::default() };
        if self.selected.offset {
            segment.offsets = Some(whole_numbers(std::mem::take(&mut self.offsets)));
        }
        if self.selected.message {
            let (ends, bytes) = (std::mem::take(&mut self.ends), std::mem::take(&mut self.bytes));
            let raw = RawColumn { valid: Vec::new(), data: RawData::Text { ends, bytes } };
            segment.messages = Some(SegmentColumn::pack(&raw));
            if let RawData::Text { mut ends, mut bytes } = raw.data {
                ends.clear();
                bytes.clear();
                (self.ends, self.bytes) = (ends, bytes);
            }
        }
        if self.selected.list_ends {
            segment.list_ends = self.list_ends.pack();
        }
        self.segments.push(segment);
    }

    /// Adds the columns to the part, after its fields; `lines_before` returns the number of lines
    /// of the source before a segment's claim, given the segment's place. Returns the names of the
    /// fields that the columns replace.
    pub(super) fn join(self, part: &mut Part, lines_before: impl Fn(u64) -> u64) -> Vec<Box<str>> {
        let selected = self.selected;
        let is_replaced = |field: &PartField| selected.has(&field.name);
        let replaced: Vec<bool> = part.fields.iter().map(is_replaced).collect();
        let names = part.fields.iter().filter(|field| is_replaced(field));
        let names = names.map(|field| field.name.clone()).collect();
        part.fields.retain(|field| !is_replaced(field));
        let fields = part.fields.len();
        let named = |field: crate::Field| PartField { name: field.name, ..PartField::default() };
        part.fields.extend(selected.fields().map(named));
        for (segment, kept) in part.segments.iter_mut().zip(self.segments) {
            let mut is_replaced = replaced.iter().copied();
            segment.columns.retain(|_| !is_replaced.next().unwrap_or(false));
            segment.columns.resize(fields, None);
            if selected.line {
                let first = lines_before(segment.place) + 1;
                let number = |line: u64| i64::try_from(first + line).unwrap_or(i64::MAX);
                let lines = kept.lines.into_iter().map(number).collect();
                segment.columns.push(Some(whole_numbers(lines)));
            }
            let others = [kept.offsets, kept.messages];
            segment.columns.extend(others.into_iter().filter(Option::is_some));
            if selected.list_ends {
                segment.columns.push(kept.list_ends);
            }
        }
        names
    }
}

fn whole_numbers(values: Vec<i64>) -> SegmentColumn {
    SegmentColumn::pack(&RawColumn { valid: Vec::new(), data: RawData::Integer(values) })
}

/// Returns the requested columns, including the selected hidden ones.
pub(super) fn with_columns(schema: &Schema, selected: HiddenColumns) -> Schema {
    let mut schema = schema.clone();
    selected.add_to(&mut schema);
    schema
}
