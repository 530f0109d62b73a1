//! Tables with a key: among messages with the same key, the rows contain only the latest (upsert).
//!
//! ```text
//!  batches ─→ rows with their marks ─→ key in the index? ─→ that row is dead: note when
//!             or keys of removed rows                          │
//!                                     segments with dead rows are compacted
//! ```
//!
//! The table excludes dead rows when it is built, so queries need not know about keys. The log does not
//! record which row a message replaces: that follows from the order of the messages, and a writer that had to
//! look it up first would have to wait for each commit.

use super::Definition;
use super::history::History;
use super::index::Extent;
use super::key::{Keys, put};
use super::snapshot;
use super::snapshot::{Making, TENDED_FACTOR};
use crate::log::rows::Rows;
use crate::log::{self, Encoding};
use crate::{Error, Result, Table, Value};

/// The column with the marks of rows. No field of a message has this name.
const MARKS: &str = "mark\0";
/// Bytes of messages to process at once.
const STEP_BYTES: u64 = 256 << 20;
/// A table is merged when more rows are gone than this, and than are left.
const GONE_MIN: u64 = 4_096;

/// The live rows of a table.
#[derive(Debug)]
pub(super) struct Keyed {
    /// The positions of the key's columns.
    key: Vec<usize>,
    /// The rows in the order of their marks, which are the last column.
    table: Table,
    keys: Keys,
    /// The mark after the last message that was applied; 0 without any.
    end: u64,
    /// Rows of messages before this mark were removed by retention.
    from: u64,
    /// Number of rows gone since the last merge.
    gone: u64,
    history: History,
}

/// A change of rows.
enum Change {
    /// Messages with these marks.
    Rows(std::ops::Range<u64>),
    /// Keys of removed rows; the removals have consecutive marks from this one on.
    Removed(u64, Vec<Vec<u8>>),
}

impl Keyed {
    /// Makes a table without rows.
    ///
    /// # Errors
    /// Never fails, since there are no messages to read.
    pub(super) fn new(making: &Making<'_>, definition: &Definition, from: u64) -> Result<Self> {
        let (table, key) = (making.marked(&[])?, definition.key().to_vec());
        let (keys, history) = (Keys::default(), History::default());
        Ok(Keyed { key, table, keys, end: 0, from, gone: 0, history })
    }

    /// Restores a stored table, which has the messages with marks from `from` to before `end_mark`; None if it
    /// is not such a table.
    pub(super) fn stored(
        table: &Table,
        definition: &Definition,
        (from, end_mark): (u64, u64),
    ) -> Option<Self> {
        let mut fields = definition.schema().fields;
        fields.push(crate::Field { name: MARKS.into(), kind: crate::Kind::Integer });
        if table.schema().fields != fields {
            return None;
        }
        let mut keyed = Keyed {
            key: definition.key().to_vec(),
            table: table.clone(),
            keys: Keys::default(),
            end: end_mark,
            from,
            gone: 0,
            history: History::since(end_mark),
        };
        let (mut last, mut key) = (from.saturating_sub(1), Vec::new());
        for row in 0..table.rows() {
            let mark = mark_of(table, row);
            if mark <= last || mark >= end_mark {
                return None;
            }
            last = mark;
            put_key(table, row, &keyed.key, &mut key);
            let Keyed { table, keys, key: places, .. } = &mut keyed;
            if keys.put(&key, mark, |mark| is_key_of(table, places, mark, &key)).is_some() {
                return None;
            }
        }
        Some(keyed)
    }

    /// Returns the mark after the last message that was applied; 0 without any.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the mark before which retention has removed all rows.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    /// Removes the rows of messages before this mark. The messages from there on produce exactly the other
    /// rows: each replaces the row with its key, whatever row that is.
    pub(super) fn forget_before(&mut self, from: u64, workers: usize) {
        let dead: Vec<u64> = (0..first_from(&self.table, from)).collect();
        let mut key = Vec::new();
        for row in &dead {
            let old = mark_of(&self.table, *row);
            put_key(&self.table, *row, &self.key, &mut key);
            self.keys.remove(&key, |mark| mark == old);
        }
        self.table = self.table.without(&dead, workers);
        self.gone += dead.len() as u64;
        self.from = from;
    }

    /// Returns the rows, with their marks as the last column.
    pub(super) fn marked(&self) -> &Table {
        &self.table
    }

    /// Returns the deaths of rows.
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// Forgets the deaths caused by messages before this mark.
    pub(super) fn forget_history(&mut self, from: u64) {
        self.history = History::since(from);
    }

    /// Returns the deaths of rows.
    pub(super) fn into_history(self) -> History {
        self.history
    }

    /// Applies the rest of these batches, the first of which were applied before.
    ///
    /// # Errors
    /// An error if the batches cannot be read. All whole steps before it remain applied.
    pub(super) fn advance(&mut self, making: &Making<'_>, extents: &[Extent]) -> Result<()> {
        while let Some(rest) = Some(self.rest(extents)).filter(|rest| !rest.is_empty()) {
            let mut bytes = 0;
            let more = rest.iter().take_while(|extent| {
                bytes += extent.message_bytes();
                bytes <= STEP_BYTES
            });
            let step = more.count().max(1);
            self.take(making, &rest[..step], u64::MAX)?;
        }
        if self.is_in_pieces(making.is_tended) {
            self.merged(self.table.repacked(making.workers));
        }
        Ok(())
    }

    /// Returns the batches that are still to be applied.
    fn rest<'e>(&self, extents: &'e [Extent]) -> &'e [Extent] {
        let applied = extents.partition_point(|extent| extent.marks.end <= self.end);
        extents.get(applied..).unwrap_or_default()
    }

    /// Returns whether small segments should be merged, and unused strings dropped.
    pub(super) fn is_in_pieces(&self, is_tended: bool) -> bool {
        let patience = if is_tended { TENDED_FACTOR } else { 1 };
        let is_hollow = self.gone > patience * GONE_MIN.max(self.table.rows());
        is_hollow || snapshot::is_in_pieces(&self.table, is_tended)
    }

    /// Takes the same rows in fewer segments.
    pub(super) fn merged(&mut self, table: Table) {
        (self.table, self.gone) = (table, 0);
    }

    /// Applies the next batches, up to the mark `until`.
    ///
    /// # Errors
    /// An error if the batches cannot be read. Then nothing is applied.
    pub(super) fn take(
        &mut self,
        making: &Making<'_>,
        extents: &[Extent],
        until: u64,
    ) -> Result<()> {
        let messages: Vec<Extent> = extents.iter().filter(|it| !is_removal(it)).cloned().collect();
        let fresh = making.marked(&messages)?;
        if fresh.schema() != self.table.schema() {
            return Err(making.uneven());
        }
        let mut changes = Vec::with_capacity(extents.len());
        for extent in extents {
            changes.push(match is_removal(extent) {
                true => Change::Removed(extent.marks.start, removed_keys(making, extent)?),
                false => Change::Rows(extent.marks.clone()),
            });
        }
        let first = extents.first().map_or(0, |extent| extent.marks.start);
        let died = self.fold(&fresh, (first, until), changes);
        let mut dead: [Vec<u64>; 2] = Default::default();
        for (at, old) in died {
            self.history.note(at, old);
            let (table, dead) = match old < first {
                true => (&self.table, &mut dead[0]),
                false => (&fresh, &mut dead[1]),
            };
            dead.extend(row_of(table, old));
        }
        if until < u64::MAX {
            let (rows, dead) = (0..fresh.rows(), &mut dead[1]);
            dead.extend(rows.filter(|row| mark_of(&fresh, *row) > until));
        }
        dead.iter_mut().for_each(|dead| dead.sort_unstable());
        self.gone += dead.iter().map(|dead| dead.len() as u64).sum::<u64>();
        let table = self.table.without(&dead[0], making.workers);
        let fresh = fresh.without(&dead[1], making.workers);
        self.table = match (table.rows(), fresh.rows()) {
            (_, 0) => table,
            (0, _) => fresh,
            _ => Table::concat(&[table, fresh], making.workers),
        };
        self.end = extents.last().map_or(self.end, |last| last.marks.end);
        Ok(())
    }

    /// Adds new rows to the index. Returns the deaths: for each the mark that caused it, and the row's own.
    fn fold(
        &mut self,
        fresh: &Table,
        (first, until): (u64, u64),
        changes: Vec<Change>,
    ) -> Vec<(u64, u64)> {
        let Keyed { key: places, table, keys, .. } = self;
        let is_key_of = |mark: u64, key: &[u8]| {
            let table = if mark < first { &*table } else { fresh };
            is_key_of(table, places, mark, key)
        };
        let (mut died, mut row, mut key) = (Vec::new(), 0, Vec::new());
        for change in changes {
            match change {
                Change::Rows(marks) => {
                    for mark in marks.take_while(|mark| *mark <= until) {
                        put_key(fresh, row, places, &mut key);
                        row += 1;
                        let old = keys.put(&key, mark, |mark| is_key_of(mark, &key));
                        died.extend(old.map(|old| (mark, old)));
                    }
                }
                Change::Removed(from, gone) => {
                    for (mark, key) in (from..).zip(gone).take_while(|(mark, _)| *mark <= until) {
                        let old = keys.remove(&key, |mark| is_key_of(mark, &key));
                        died.extend(old.map(|old| (mark, old)));
                    }
                }
            }
        }
        died
    }
}

/// Returns whether a batch consists of keys of removed rows.
pub(super) fn is_removal(extent: &Extent) -> bool {
    extent.encoding == Encoding::KeysRemoved
}

impl Making<'_> {
    /// Parses the messages of batches, with their marks as an additional column.
    pub(super) fn marked(&self, extents: &[Extent]) -> Result<Table> {
        let table = self.parsed(extents)?;
        let messages: u64 = extents.iter().map(|it| it.marks.end - it.marks.start).sum();
        if messages != table.rows() {
            return Err(self.uneven());
        }
        let marks = extents.iter().flat_map(|extent| extent.marks.clone());
        Ok(table.with_numbers(MARKS, marks.map(u64::cast_signed)))
    }

    /// Makes the error for batches whose contents contradict their headers.
    pub(super) fn uneven(&self) -> Error {
        let reason = "batches have other messages than their headers say; 'quarrier reindex' looks \
                      through the log";
        Error::Store { place: self.name.to_string(), reason: reason.to_string() }
    }
}

/// Returns the rows without their marks.
pub(super) fn unmarked(table: &Table) -> Table {
    table.with_columns(table.columns().len().saturating_sub(1))
}

/// Returns the mark of a row in a table with marks.
pub(super) fn mark_of(table: &Table, row: u64) -> u64 {
    match table.columns().len().checked_sub(1).map(|last| table.value(row, last)) {
        Some(Value::Integer(mark)) => mark.cast_unsigned(),
        _ => 0,
    }
}

/// Returns the row with a mark, in a table with ascending marks.
pub(super) fn row_of(table: &Table, mark: u64) -> Option<u64> {
    let row = first_from(table, mark);
    (row < table.rows() && mark_of(table, row) == mark).then_some(row)
}

/// Returns the first row with this mark or a greater one; the number of rows if no row has.
pub(super) fn first_from(table: &Table, mark: u64) -> u64 {
    let Some(marks) = table.columns().last() else { return 0 };
    let (segments, mark) = (marks.segments(), i128::from(mark));
    let number = segments.partition_point(|segment| segment.zone().max < mark);
    let Some(segment) = segments.get(number) else { return table.rows() };
    let (mut low, mut high) = (0, segment.rows());
    while low < high {
        let middle = low.midpoint(high);
        match segment.number(middle).is_some_and(|it| it < mark) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    table.segment_start(number) + low as u64
}

fn put_key(table: &Table, row: u64, places: &[usize], key: &mut Vec<u8>) {
    key.clear();
    let (segment, row) = table.locate(row);
    for place in places {
        put(&table.columns()[*place].value(segment, row), key);
    }
}

fn is_key_of(table: &Table, places: &[usize], mark: u64, key: &[u8]) -> bool {
    let mut other = Vec::with_capacity(key.len());
    let Some(row) = row_of(table, mark) else { return false };
    put_key(table, row, places, &mut other);
    other == key
}

/// Reads the keys that a batch removes.
fn removed_keys(making: &Making<'_>, extent: &Extent) -> Result<Vec<Vec<u8>>> {
    let messages = making.files.messages(&extent.place);
    let fail =
        |error| log::Error::io(making.name, "read the keys of rows that were removed", error);
    let messages = messages.map_err(fail)?;
    let mut rows = Rows::read(messages.bytes())?;
    let (mut row, mut keys) = (Vec::new(), Vec::new());
    while rows.next_row(&mut row)? {
        let mut key = Vec::new();
        row.iter().for_each(|value| put(value, &mut key));
        keys.push(key);
    }
    match keys.len() as u64 == extent.marks.end - extent.marks.start {
        true => Ok(keys),
        false => Err(making.uneven()),
    }
}
