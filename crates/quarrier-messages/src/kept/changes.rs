//! The messages of a table that came after a mark.

use std::ops::Range;
use std::sync::Arc;

use super::index::Extent;
use crate::Table;

/// Messages of a table, each with its mark.
#[derive(Debug, Clone)]
pub struct Changes {
    table: Arc<Table>,
    /// The row that each batch begins with, and its marks.
    batches: Vec<(u64, Range<u64>)>,
    mark: u64,
}

impl Changes {
    /// Of a table of these batches, which has all up to `mark`; None where it has other rows than they.
    pub(super) fn new(table: Arc<Table>, extents: &[Extent], mark: u64) -> Option<Self> {
        let mut rows = 0;
        let mut batch = |extent: &Extent| {
            let first = rows;
            rows += extent.marks.end - extent.marks.start;
            (first, extent.marks.clone())
        };
        let batches = extents.iter().map(&mut batch).collect();
        (rows == table.rows()).then_some(Changes { table, batches, mark })
    }

    /// The messages, in the order of their marks.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// No message up to this mark comes after these.
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// The mark of the message in this row of the table.
    pub fn mark_of(&self, row: u64) -> u64 {
        let behind = self.batches.partition_point(|(first, _)| *first <= row);
        let batch = behind.checked_sub(1).and_then(|at| self.batches.get(at));
        batch.map_or(0, |(first, marks)| marks.start + (row - first))
    }
}
