//! Messages that one worker has parsed.

use std::collections::HashSet;

use super::keep::MessageColumns;
use super::reject::{Origin, Rejects};
use super::run::Lines;
use super::times::{TimeFields, Times};
use crate::build::{FieldId, Refused, RowBuilder};
use crate::column::SegmentColumn;
use crate::frame::{Rejected, Taker};
use crate::{HiddenColumns, Limits, Packing, Part, PartSegment, Schema};

/// Rows, packed as segments fill up, and rejects.
#[derive(Debug)]
pub(super) struct Batch {
    rows: RowBuilder,
    segments: Vec<PartSegment>,
    rejects: Rejects,
    origin: Origin,
    /// The offset of the chunk's bytes in their source.
    offset: u64,
    /// Number of segments of this claim so far.
    number: u64,
    messages: u64,
    /// Bytes of memory of the segments, without dictionaries.
    packed_bytes: usize,
    times: Times,
    /// The messages' positions and original bytes, if requested.
    kept: Option<MessageColumns>,
}

/// Claim and segment are combined in a number that orders segments; these are the bits of the
/// segment's number in its claim.
const SEGMENT_BITS: u32 = 20;

impl Batch {
    pub(super) fn new(
        limits: &Limits,
        packing: Packing,
        schema: Option<&Schema>,
        kept: HiddenColumns,
    ) -> Self {
        let rows = match schema {
            Some(schema) => RowBuilder::with_fields_packed(schema, packing),
            None => RowBuilder::new(limits.columns_max).packing(packing),
        };
        Batch {
            rows: rows.finding_times().keeping_list_ends(kept.list_ends),
            segments: Vec::new(),
            rejects: Rejects::new(limits),
            origin: Origin::default(),
            offset: 0,
            number: 0,
            messages: 0,
            packed_bytes: 0,
            times: Times::default(),
            kept: (!kept.is_none()).then(|| MessageColumns::new(kept)),
        }
    }

    /// Begins a claim.
    pub(super) fn begin(&mut self, origin: Origin) {
        self.origin = origin;
        self.number = 0;
    }

    /// Sets the offset of the chunk's bytes in the source.
    pub(super) fn at(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Ends the claim: later messages do not continue it.
    pub(super) fn end(&mut self) {
        self.pack();
    }

    /// Returns the number of messages so far.
    pub(super) fn messages(&self) -> u64 {
        self.messages + self.rows.rows() as u64
    }

    /// Returns the bytes of memory of the packed messages, with an estimate for hidden columns.
    pub(super) fn nbytes(&self) -> usize {
        let dictionaries = (0..self.rows.fields()).map(|at| {
            let (ends, strings) = self.rows.dictionary(FieldId::new(at));
            size_of_val(ends) + strings.len()
        });
        self.packed_bytes + dictionaries.sum::<usize>()
    }

    pub(super) fn times(&self) -> TimeFields<'_> {
        TimeFields::new(&self.rows, &self.segments, &self.times)
    }

    /// Restores the strings of these fields, in which not all strings are times.
    pub(super) fn write_again(&mut self, names: &HashSet<Box<str>>) {
        let times = std::mem::take(&mut self.times);
        times.write_again(names, &mut self.rows, &mut self.segments);
    }

    pub(super) fn into_parts(self, lines: &Lines) -> (Part, Rejects, Refused) {
        let mut refused = self.rows.refused().clone();
        let fields = self.rows.into_fields();
        let mut segments = self.segments;
        if fields.iter().any(Option::is_none) {
            for segment in &mut segments {
                // A field that no message has must not become a column.
                let mut is_used = fields.iter().map(Option::is_some);
                segment.columns.retain(|_| is_used.next().unwrap_or(true));
            }
        }
        let fields = fields.into_iter().flatten().collect();
        let mut part = Part { fields, segments };
        if let Some(kept) = self.kept {
            let before = |place: u64| lines.before_claim((place >> SEGMENT_BITS) as usize);
            let names = kept.join(&mut part, before);
            if !names.is_empty() {
                let count = names.len() as u64;
                refused.add(Refused { names, count });
            }
        }
        (part, self.rejects, refused)
    }

    #[cold]
    #[inline(never)]
    fn pack(&mut self) {
        let rows = self.rows.rows();
        if rows == 0 {
            return;
        }
        let mut columns = Vec::new();
        self.times.keep(self.segments.len(), &mut self.rows);
        self.rows.finish_segment(|field, raw| {
            columns.resize(field.index(), None);
            let column = SegmentColumn::pack(raw);
            self.packed_bytes += column.nbytes();
            columns.push(Some(column));
        });
        if let Some(kept) = &mut self.kept {
            kept.pack();
        }
        let place = (self.origin.claim as u64) << SEGMENT_BITS | self.number;
        self.segments.push(PartSegment { place, rows: rows as u32, columns });
        self.number += 1;
        self.messages += rows as u64;
    }
}

impl Taker for Batch {
    type Row = RowBuilder;

    #[inline(always)]
    fn row(&mut self) -> &mut RowBuilder {
        &mut self.rows
    }

    #[inline(always)]
    fn commit(&mut self, message: &[u8], at: usize, line: u64) {
        self.rows.commit();
        let mut is_full = self.rows.is_full();
        if let Some(kept) = &mut self.kept {
            let place = (self.offset + at as u64, line);
            self.packed_bytes += kept.add(message, place, self.rows.list_ends());
            self.rows.clear_list_ends();
            is_full |= kept.is_full();
        }
        if is_full {
            self.pack();
        }
    }

    fn reject(&mut self, reject: Rejected<'_>) {
        self.rows.rollback();
        self.rejects.add(self.origin, self.offset, reject);
    }
}
