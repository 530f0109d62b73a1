//! The messages' original bytes as a column.

use crate::column::SegmentColumn;
use crate::column::raw::{RawColumn, RawData};
use crate::{Field, Kind, Part, PartField, Schema};

/// The name of the column of the messages' original bytes: see
/// [`Load::keep_bytes`](super::Load::keep_bytes).
pub const MESSAGE_COLUMN: &str = "_message";

/// A segment is packed after this many bytes, so that long messages need no more memory.
const SEGMENT_BYTES_MAX: usize = 64 << 20;

/// The original bytes of a worker's messages: those of the rows being written, and a column for
/// each packed segment.
#[derive(Debug, Default)]
pub(super) struct OriginalBytes {
    ends: Vec<u32>,
    bytes: Vec<u8>,
    segments: Vec<SegmentColumn>,
}

impl OriginalBytes {
    /// Adds the bytes of a complete row.
    pub(super) fn add(&mut self, message: &[u8]) {
        match std::str::from_utf8(message) {
            Ok(text) => self.bytes.extend_from_slice(text.as_bytes()),
            // No format accepts a message that is not UTF-8.
            Err(_) => self.bytes.extend_from_slice(String::from_utf8_lossy(message).as_bytes()),
        }
        self.ends.push(self.bytes.len() as u32);
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= SEGMENT_BYTES_MAX
    }

    /// Packs the bytes of the rows, at least one.
    pub(super) fn pack(&mut self) {
        let (ends, bytes) = (std::mem::take(&mut self.ends), std::mem::take(&mut self.bytes));
        let raw = RawColumn { valid: Vec::new(), data: RawData::Text { ends, bytes } };
        self.segments.push(SegmentColumn::pack(&raw));
        if let RawData::Text { mut ends, mut bytes } = raw.data {
            ends.clear();
            bytes.clear();
            (self.ends, self.bytes) = (ends, bytes);
        }
    }

    /// Adds the column to the part, after its fields. Returns whether it replaces a field of the same
    /// name.
    pub(super) fn join(self, part: &mut Part) -> bool {
        let hidden = part.fields.iter().position(|field| &*field.name == MESSAGE_COLUMN);
        if let Some(hidden) = hidden {
            part.fields.remove(hidden);
        }
        let fields = part.fields.len();
        part.fields.push(PartField { name: MESSAGE_COLUMN.into(), ..PartField::default() });
        for (segment, kept) in part.segments.iter_mut().zip(self.segments) {
            if let Some(hidden) = hidden.filter(|&hidden| hidden < segment.columns.len()) {
                segment.columns.remove(hidden);
            }
            segment.columns.resize(fields, None);
            segment.columns.push(Some(kept));
        }
        hidden.is_some()
    }
}

/// Returns the wanted columns, including that of the bytes.
pub(super) fn with_messages(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    schema.fields.retain(|field| &*field.name != MESSAGE_COLUMN);
    schema.fields.push(Field { name: MESSAGE_COLUMN.into(), kind: Kind::Text });
    schema
}
