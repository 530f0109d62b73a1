//! The messages that one worker loaded.

use crate::column::{SegmentColumn, Strings};

/// The fields and packed segments that one worker loaded.
/// [`Table::assemble`](crate::Table::assemble) combines parts.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// The fields in the order in which the worker met them. Names are unique.
    pub fields: Vec<PartField>,
    /// The segments in any order; [`PartSegment::place`] determines their position.
    pub segments: Vec<PartSegment>,
}

/// A field of one worker.
#[derive(Debug, Clone, Default)]
pub struct PartField {
    /// The field's name, or its path if it is nested.
    pub name: Box<str>,
    /// The dictionary of its columns' codes: each string once, in the order of first appearance.
    pub dictionary: Strings,
    /// The number of its values that lost digits by becoming floats.
    pub rounded: u64,
}

/// Consecutive messages of the source.
#[derive(Debug, Clone)]
pub struct PartSegment {
    /// Determines the position: the segments of all parts are sorted by it. Different for each
    /// segment; the offset of the first message, for example.
    pub place: u64,
    /// The number of rows, 1 to [`SEGMENT_ROWS`](crate::column::raw::SEGMENT_ROWS).
    pub rows: u32,
    /// A column for each field, in the order of [`Part::fields`]; `None`, or absent at the end, if
    /// no message of the segment has the field.
    pub columns: Vec<Option<SegmentColumn>>,
}
