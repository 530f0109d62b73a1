//! The messages of a table after a mark, and the rows that they replaced or removed.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use super::index::Extent;
use super::keyed::mark_of;
use super::memo::Memo;
use crate::Table;

/// Derived values may take this many times the bytes of the table, and some more.
const MEMO_FACTOR: u64 = 8;
const MEMO_BYTES_MIN: u64 = 256 << 10;

/// Messages of a table, each with its mark. For a table with a key, also the rows that these messages
/// replaced or removed. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Changes {
    inner: Arc<Inner>,
    mark: u64,
}

#[derive(Debug)]
struct Inner {
    table: Arc<Table>,
    places: Places,
    memo: Memo,
}

/// Changes that need no reading.
#[derive(Debug, Clone)]
pub enum ReadyChanges {
    /// Changes that another reader has parsed.
    Parsed(Changes),
    /// There are none up to this mark.
    Nothing(u64),
}

/// How the rows of the table map to marks.
#[derive(Debug)]
enum Places {
    /// Messages: the first row of each batch, and the batch's marks.
    Batches(Vec<(u64, Range<u64>)>),
    /// Rows of this table, whose last column has their marks.
    Marked(Arc<Table>),
    /// For each row its mark, and whether that message replaced or removed it.
    Listed(Vec<(u64, bool)>),
}

impl Changes {
    fn of(table: Arc<Table>, places: Places, mark: u64) -> Self {
        let memo = Memo::new(MEMO_FACTOR * table.nbytes() as u64 + MEMO_BYTES_MIN);
        Changes { inner: Arc::new(Inner { table, places, memo }), mark }
    }

    /// Makes the changes from a table of these batches, complete up to `mark`; None if the table has another
    /// number of rows than the batches.
    pub(super) fn new(table: Arc<Table>, extents: &[Extent], mark: u64) -> Option<Self> {
        let mut rows = 0;
        let mut batch = |extent: &Extent| {
            let first = rows;
            rows += extent.marks.end - extent.marks.start;
            (first, extent.marks.clone())
        };
        let places = Places::Batches(extents.iter().map(&mut batch).collect());
        (rows == table.rows()).then(|| Changes::of(table, places, mark))
    }

    /// Makes the changes from the rows of a table with a key as of `mark`.
    pub(super) fn marked(table: Arc<Table>, marked: Arc<Table>, mark: u64) -> Self {
        Changes::of(table, Places::Marked(marked), mark)
    }

    /// Makes the changes from added and gone rows, each with the mark of the message that caused the change.
    pub(super) fn listed(table: Table, rows: Vec<(u64, bool)>, mark: u64) -> Self {
        Changes::of(Arc::new(table), Places::Listed(rows), mark)
    }

    /// Returns the same changes, complete up to another mark.
    pub(super) fn up_to(&self, mark: u64) -> Self {
        Changes { inner: Arc::clone(&self.inner), mark }
    }

    /// Returns the messages in the order of their marks. In a table with a key, a gone row precedes the row
    /// that replaced it.
    pub fn table(&self) -> &Arc<Table> {
        &self.inner.table
    }

    /// Returns the mark up to which these changes are complete.
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Returns the mark of the message in this row of the table. For a gone row, that is the mark of the
    /// message that replaced or removed it.
    pub fn mark_of(&self, row: u64) -> u64 {
        match &self.inner.places {
            Places::Batches(batches) => {
                let next = batches.partition_point(|(first, _)| *first <= row);
                let batch = next.checked_sub(1).and_then(|at| batches.get(at));
                batch.map_or(0, |(first, marks)| marks.start + (row - first))
            }
            Places::Marked(table) => mark_of(table, row),
            Places::Listed(_) => self.listed_at(row).map_or(0, |(mark, _)| mark),
        }
    }

    /// Returns whether this row of the table is gone, because the message with its mark replaced or removed
    /// it.
    pub fn is_gone(&self, row: u64) -> bool {
        self.listed_at(row).is_some_and(|(_, is_gone)| is_gone)
    }

    fn listed_at(&self, row: u64) -> Option<(u64, bool)> {
        match &self.inner.places {
            Places::Listed(rows) => {
                usize::try_from(row).ok().and_then(|row| rows.get(row)).copied()
            }
            Places::Batches(_) | Places::Marked(_) => None,
        }
    }

    /// Returns a value that a reader of the same changes derived from all of them, with the same key. Does not
    /// wait: None if there is none yet, or it has another type.
    pub fn derived<T: Any + Send + Sync>(&self, key: &str) -> Option<Arc<T>> {
        self.inner.memo.get(key)
    }

    /// Returns a value that depends only on all of these changes and the key. The first of many readers of the
    /// same changes makes it, with its size in bytes; large values are not kept for the others.
    ///
    /// # Errors
    /// The error of `make`; the next reader tries again.
    pub fn derive<T: Any + Send + Sync, E>(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<(T, u64), E>,
    ) -> Result<Arc<T>, E> {
        self.inner.memo.get_or_make(key, make)
    }
}
