//! One worker's share of the messages.

use crate::column::{SegmentColumn, Texts};

/// The work of one worker: fields as it met them, and packed segments. Parts are put together by
/// [`Table::assemble`](crate::Table::assemble).
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// In the order in which the worker met them. Names differ.
    pub fields: Vec<PartField>,
    /// Any order; [`PartSegment::place`] says where they belong.
    pub segments: Vec<PartSegment>,
}

/// A field as one worker knows it.
#[derive(Debug, Clone, Default)]
pub struct PartField {
    /// The name; the path, if it is nested.
    pub name: Box<str>,
    /// The dictionary of its columns' codes, each string once, in the order of first appearance.
    pub dictionary: Texts,
    /// How many of its values lost digits because they became floats.
    pub rounded: u64,
}

/// Messages that follow one another in the source.
#[derive(Debug, Clone)]
pub struct PartSegment {
    /// Where they stand: segments of all parts are put in the order of this. Differs from
    /// segment to segment; the offset of the first message, for example.
    pub place: u64,
    /// How many, 1 to [`SEGMENT_ROWS`](crate::column::raw::SEGMENT_ROWS).
    pub rows: u32,
    /// A column for each field, in the order of [`Part::fields`]; `None`, or none at the end,
    /// where no message of the segment has the field.
    pub columns: Vec<Option<SegmentColumn>>,
}
