//! Tables with a key: their current rows, their rows as of a mark, and the changes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Memory;
use quarrier_core::sync::lock;

use super::Store;
use crate::kept::changes::Changes;
use crate::kept::columns::ColumnFiles;
use crate::kept::definition::Definition;
use crate::kept::history::History;
use crate::kept::index::{Extent, Listed};
use crate::kept::intake::PendingAppend;
use crate::kept::keyed::{Keyed, first_from, is_removal, mark_of, row_of, unmarked};
use crate::kept::removal::send_keys;
use crate::kept::run::{Alive, Run};
use crate::kept::snapshot::{Making, Snapshot};
use crate::log;
use crate::{Error, Format, Load, Result, Schema, Table, Value};

/// Bytes of batches to parse at once for gone rows.
const PARSED_BYTES: u64 = 16 << 20;
/// Number of deaths to collect when the log has to be read for them.
const DEATHS_WANTED: usize = 1 << 18;

impl Store {
    /// Removes the rows with these keys. Each key has a value for each column of the table's key, in the
    /// key's order. It removes rows that exist when the removal is on the disk, and no later row. Returns
    /// once the removal is on its way; each key takes a mark.
    ///
    /// # Errors
    /// [`Error::Store`] if there is no such table, it has no key, or the type of a value differs from that of
    /// its column; [`Error::Log`] if the disk is full or fails.
    pub fn remove(&self, name: &str, keys: &[Vec<Value>]) -> Result<PendingAppend> {
        let log = self.writer()?;
        let number = self.number(&lock(&self.state), name)?;
        let definition = self.keyed_definition(number).ok_or_else(|| Error::Store {
            place: self.named(name),
            reason: "the table has no key, which removing rows requires".to_string(),
        })?;
        send_keys(log, (number, &definition), keys)
    }

    /// Like [`Store::remove`], for keys written as JSON lines: objects with a field for each column of the
    /// key. Ignores other fields.
    ///
    /// # Errors
    /// As [`Store::remove`]; [`Error::Store`] for an invalid line.
    ///
    /// # Panics
    /// If a worker panics.
    pub fn remove_lines(
        &self,
        name: &str,
        lines: &[u8],
        stop: &AtomicBool,
    ) -> Result<PendingAppend> {
        let number = self.number(&lock(&self.state), name)?;
        let Some(definition) = self.keyed_definition(number) else {
            return self.remove(name, &[]);
        };
        let all = definition.schema().fields;
        let fields = definition.key().iter().filter_map(|place| all.get(*place)).cloned();
        let load = Load::new(Format::Json).schema(Schema { fields: fields.collect() });
        let source = Memory::new("keys", lines.to_vec());
        let loaded = load.workers(1).cancel(stop).run(&[&source])?;
        if let Some(reject) = loaded.rejects.first() {
            let reason = format!("key {}: {}", reject.line, reject.fault);
            return Err(Error::Store { place: self.named(name), reason });
        }
        let table = loaded.table;
        let key = |row| (0..table.columns().len()).map(|at| table.value(row, at)).collect();
        self.remove(name, &(0..table.rows()).map(key).collect::<Vec<_>>())
    }

    /// Counts the rows of a table with a key that the messages with these marks replaced or removed.
    ///
    /// # Errors
    /// As [`Store::table`].
    ///
    /// # Panics
    /// If a worker panics.
    pub fn gone(&self, name: &str, marks: Range<u64>, stop: &AtomicBool) -> Result<u64> {
        self.table(name, 1, stop)?;
        let number = self.number(&lock(&self.state), name)?;
        let Some(definition) = self.keyed_definition(number) else { return Ok(0) };
        let table = (name, number, &*definition);
        let deaths = self.deaths(table, marks, stop)?;
        Ok(deaths.len() as u64)
    }

    /// Returns the definition of a table that has a key.
    pub(super) fn keyed_definition(&self, number: u32) -> Option<Arc<Definition>> {
        self.definition_of(number).filter(|definition| !definition.key().is_empty())
    }

    /// Returns the table of these batches, or of more: built from its rows at the last request, or else from
    /// the checkpoint, and from newer messages. None if retention has removed some of the batches meanwhile.
    pub(super) fn keyed_snapshot<'c>(
        &self,
        (number, definition, from): (u32, &Definition, u64),
        making: &Making<'_>,
        listed: &Listed,
        read: impl FnOnce() -> Option<(Snapshot, &'c ColumnFiles)>,
    ) -> Result<Option<Snapshot>> {
        let cell = Arc::clone(lock(&self.state).keyed.entry(number).or_default());
        let mut held = lock(&cell);
        let keyed = match &mut *held {
            Some(keyed) => keyed,
            None => {
                let stored = read().and_then(|(stored, files)| {
                    let keyed = Keyed::stored(&stored.table, definition, (from, stored.end));
                    if keyed.is_none() {
                        files.note(number, "is damaged");
                    }
                    keyed
                });
                held.insert(match stored {
                    Some(keyed) => keyed,
                    None => {
                        let mut keyed = Keyed::new(making, definition, from)?;
                        if from > 1 {
                            // Which earlier rows these messages replaced is unknown.
                            keyed.advance(making, &listed.extents)?;
                            keyed.forget_history(listed.end());
                        }
                        keyed
                    }
                })
            }
        };
        if keyed.from() > from {
            return Ok(None);
        }
        if keyed.from() < from {
            keyed.forget_before(from, making.workers);
        }
        keyed.advance(making, &listed.extents)?;
        Ok(Some(snapshot_of(keyed, listed.gone)))
    }

    /// Returns the messages of these batches, and the rows that they replaced or removed, ordered by mark.
    pub(super) fn keyed_changes(
        &self,
        (name, number, definition): (&str, u32, &Definition),
        (extents, mark): (&[Extent], u64),
        stop: &AtomicBool,
    ) -> Result<Changes> {
        let (schema, place) = (definition.schema(), self.named(name));
        let making = self.making(&place, (1, stop), &schema);
        let marks = match (extents.first(), extents.last()) {
            (Some(first), Some(last)) => first.marks.start..last.marks.end,
            _ => 0..0,
        };
        let deaths = match marks.is_empty() {
            true => Vec::new(),
            false => self.deaths((name, number, definition), marks.clone(), stop)?,
        };
        let new: Vec<Extent> = extents.iter().filter(|it| !is_removal(it)).cloned().collect();
        let new = making.marked(&new)?;
        let old = deaths.iter().map(|(_, old)| *old).filter(|old| *old < marks.start);
        let old = self.rows_of((number, &making), old.collect())?;
        // Each row has the mark of the message that adds, replaces or removes it.
        let mut rows: Vec<(u64, bool, u64)> = Vec::new();
        for (at, mark) in deaths {
            let row = match mark < marks.start {
                true => row_of(&old, mark),
                false => row_of(&new, mark).map(|row| old.rows() + row),
            };
            rows.push((at, false, row.ok_or_else(|| making.uneven())?));
        }
        let came = (old.rows()..)
            .zip(extents.iter().filter(|it| !is_removal(it)).flat_map(|it| it.marks.clone()));
        rows.extend(came.map(|(row, mark)| (mark, true, row)));
        rows.sort_unstable();
        let all = unmarked(&Table::concat(&[old, new], 1));
        let columns: Vec<usize> = (0..all.columns().len()).collect();
        let places: Vec<u64> = rows.iter().map(|(_, _, row)| *row).collect();
        let table = all.take(&places, &columns, 1);
        let rows = rows.into_iter().map(|(mark, has_come, _)| (mark, !has_come)).collect();
        Ok(Changes::listed(table, rows, mark))
    }

    fn making<'m>(
        &'m self,
        name: &'m str,
        (workers, stop): (usize, &'m AtomicBool),
        schema: &'m Schema,
    ) -> Making<'m> {
        let files = &self.files;
        Making { name, files, workers, stop, schema: Some(schema), is_tended: false }
    }

    /// Returns the deaths caused by messages with these marks, all of which are durable.
    fn deaths(
        &self,
        (name, number, definition): (&str, u32, &Definition),
        marks: Range<u64>,
        stop: &AtomicBool,
    ) -> Result<Vec<(u64, u64)>> {
        self.table(name, 1, stop)?;
        let cell = lock(&self.state).keyed.get(&number).cloned();
        let oldest = {
            let held = cell.as_ref().map(|cell| lock(cell));
            let history = held.as_ref().and_then(|held| held.as_ref()).map(Keyed::history);
            match history {
                Some(history) if history.from() <= marks.start => {
                    return Ok(history.of(marks).to_vec());
                }
                history => history.map_or(0, History::from),
            }
        };
        if self.first_mark(&lock(&self.state), number) > 1 {
            return Err(Error::Log(log::Error::Gone { mark: marks.start, oldest }));
        }
        let mut past = lock(&self.past);
        let known = past
            .get(&number)
            .filter(|(history, end)| history.from() <= marks.start && marks.end <= *end);
        if let Some((history, _)) = known {
            return Ok(history.of(marks).to_vec());
        }
        let (history, end) = self.history_from((name, number, definition), &marks, stop)?;
        let deaths = history.of(marks).to_vec();
        past.insert(number, (history, end));
        Ok(deaths)
    }

    /// Reads the log from its start to find the deaths from a mark on: as many as one pass collects, and at
    /// least those of all these marks. Returns them, and the mark up to which they are complete.
    fn history_from(
        &self,
        (name, number, definition): (&str, u32, &Definition),
        marks: &Range<u64>,
        stop: &AtomicBool,
    ) -> Result<(History, u64)> {
        let (schema, place) = (definition.schema(), self.named(name));
        let making = self.making(&place, (0, stop), &schema);
        let listed = lock(&self.state).index.listed(number);
        let (extents, before) = (&listed.extents, listed.before(marks.start));
        let mut keyed = Keyed::new(&making, definition, 1)?;
        keyed.advance(&making, extents.get(..before).unwrap_or_default())?;
        keyed.forget_history(marks.start);
        // More batches may follow.
        let mut taken = before;
        while let Some(rest) = extents.get(taken..).filter(|rest| !rest.is_empty()) {
            if keyed.end() >= marks.end && keyed.history().len() >= DEATHS_WANTED {
                break;
            }
            taken += some_of(rest);
            keyed.advance(&making, extents.get(..taken).unwrap_or_default())?;
        }
        let end = keyed.end().max(marks.start);
        Ok((keyed.into_history(), end))
    }

    /// Reads the rows with these marks from the log, in ascending order, with the marks as a column.
    fn rows_of(&self, (number, making): (u32, &Making<'_>), mut marks: Vec<u64>) -> Result<Table> {
        marks.sort_unstable();
        let mut extents: Vec<Extent> = Vec::new();
        {
            let state = lock(&self.state);
            let all = state.index.extents(number);
            for mark in &marks {
                if extents.last().is_some_and(|last| last.marks.contains(mark)) {
                    continue;
                }
                let place = all.partition_point(|extent| extent.marks.end <= *mark);
                let extent = all.get(place).filter(|it| it.marks.contains(mark) && !is_removal(it));
                let oldest = all.first().map_or(0, |first| first.marks.start);
                let gone = || Error::Log(log::Error::Gone { mark: *mark, oldest });
                extents.push(extent.ok_or_else(gone)?.clone());
            }
        }
        let mut found = vec![making.marked(&[])?];
        let mut rest = &extents[..];
        let mut wanted = marks.iter().copied().peekable();
        while !rest.is_empty() {
            let (some, others) = rest.split_at(some_of(rest));
            rest = others;
            let table = making.marked(some)?;
            let end = some.last().map_or(0, |last| last.marks.end);
            let mut rows = Vec::new();
            while let Some(mark) = wanted.next_if(|mark| *mark < end) {
                rows.push(row_of(&table, mark).ok_or_else(|| making.uneven())?);
            }
            let columns: Vec<usize> = (0..table.columns().len()).collect();
            found.push(table.take(&rows, &columns, 1));
        }
        Ok(Table::concat(&found, 1))
    }

    /// Returns the messages that are current rows of a table with a key.
    pub(super) fn alive_runs(&self, name: &str, number: u32) -> Result<Vec<Run>> {
        self.table(name, 0, &AtomicBool::new(false))?;
        let (listed, snapshot) = {
            let state = lock(&self.state);
            let snapshot = state.snapshots.get(&number).cloned();
            let Some(snapshot) = snapshot else { return Ok(Vec::new()) };
            (state.index.listed(number), snapshot)
        };
        let Some(marked) = snapshot.marked else { return Ok(Vec::new()) };
        let extents = listed.extents.get(..listed.before(snapshot.end)).unwrap_or_default();
        let mut some = Vec::new();
        for extent in extents.iter().filter(|it| !is_removal(it)) {
            let rows =
                first_from(&marked, extent.marks.start)..first_from(&marked, extent.marks.end);
            let count = rows.end - rows.start;
            if count == extent.marks.end - extent.marks.start {
                some.push((extent, None));
            } else if count > 0 {
                let numbers = rows.map(|row| mark_of(&marked, row) - extent.marks.start);
                let fail = |error| log::Error::io(self.named(name), "read its messages", error);
                let alive = Alive::of(&self.files, extent, numbers).map_err(fail)?;
                some.push((extent, Some(Arc::new(alive))));
            }
        }
        let alike = some.chunk_by(|(one, _), (next, _)| one.goes_with(next));
        let place = self.named(name);
        let run = |alike| Run::of_alive(&place, &self.files, alike);
        let unread = || Error::Store {
            place: place.clone(),
            reason: "it has batches that this version does not read".to_string(),
        };
        alike.map(|alike| run(alike).ok_or_else(unread)).collect()
    }

    /// Returns the rows of a table with a key as of a mark, at which all messages up to it were applied. None
    /// if the table has no key.
    ///
    /// # Errors
    /// As [`Store::table`]; [`Error::Log`] with [`log::Error::Gone`] if retention removed needed messages.
    ///
    /// # Panics
    /// If a worker panics.
    pub fn whole_at(
        &self,
        name: &str,
        mark: u64,
        (workers, stop): (usize, &AtomicBool),
    ) -> Result<Option<Changes>> {
        self.refresh();
        let number = self.number(&lock(&self.state), name)?;
        let Some(definition) = self.keyed_definition(number) else { return Ok(None) };
        self.keyed_at((name, number, &definition), mark, (workers, stop)).map(Some)
    }

    fn keyed_at(
        &self,
        (name, number, definition): (&str, u32, &Definition),
        mark: u64,
        (workers, stop): (usize, &AtomicBool),
    ) -> Result<Changes> {
        // Bring the table's rows, and the history of their deaths, up to date.
        self.table(name, workers, stop)?;
        let (schema, place) = (definition.schema(), self.named(name));
        let making = self.making(&place, (workers, stop), &schema);
        let (listed, cell, oldest) = {
            let state = lock(&self.state);
            let cell = state.keyed.get(&number).cloned();
            (state.index.listed(number), cell, self.first_mark(&state, number))
        };
        if mark.saturating_add(1) < oldest {
            return Err(Error::Log(log::Error::Gone { mark, oldest }));
        }
        let known = cell.and_then(|cell| {
            let held = lock(&cell);
            let keyed = held.as_ref().filter(|keyed| keyed.history().from() <= mark + 1)?;
            let deaths = keyed.history().of(mark + 1..u64::MAX).iter();
            let was_there = |old: &u64| *old >= oldest && *old <= mark;
            let old: Vec<u64> = deaths.map(|(_, old)| *old).filter(was_there).collect();
            Some((keyed.marked().clone(), old))
        });
        let table = match known {
            Some((now, old)) => {
                let later: Vec<u64> = (first_from(&now, mark + 1)..now.rows()).collect();
                let alive = now.without(&later, workers);
                let gone = self.rows_of((number, &making), old)?;
                let all = Table::concat(&[alive, gone], workers);
                in_order(&all, workers)
            }
            None => {
                let (extents, before) = (&listed.extents, listed.before(mark + 1));
                let mut keyed = Keyed::new(&making, definition, oldest)?;
                keyed.advance(&making, extents.get(..before).unwrap_or_default())?;
                if let Some(within) = extents.get(before).filter(|it| it.marks.start <= mark) {
                    keyed.take(&making, std::slice::from_ref(within), mark)?;
                }
                keyed.marked().clone()
            }
        };
        let table = Arc::new(table);
        Ok(Changes::marked(Arc::new(unmarked(&table)), table, mark))
    }
}

/// Makes a snapshot of the rows; retention had removed `gone` messages before them.
pub(super) fn snapshot_of(keyed: &Keyed, gone: u64) -> Snapshot {
    let marked = Arc::new(keyed.marked().clone());
    let (table, end) = (Arc::new(unmarked(&marked)), keyed.end());
    Snapshot { table, end, gone, marked: Some(marked) }
}

/// Sorts the rows by their marks.
fn in_order(table: &Table, workers: usize) -> Table {
    let mut rows: Vec<(u64, u64)> =
        (0..table.rows()).map(|row| (mark_of(table, row), row)).collect();
    if rows.is_sorted() {
        return table.clone();
    }
    rows.sort_unstable();
    let rows: Vec<u64> = rows.into_iter().map(|(_, row)| row).collect();
    let columns: Vec<usize> = (0..table.columns().len()).collect();
    table.take(&rows, &columns, workers)
}

/// Returns the number of these batches to parse at once, at least one.
fn some_of(extents: &[Extent]) -> usize {
    let mut bytes = 0;
    let some = extents.iter().take_while(|extent| {
        bytes += extent.message_bytes();
        bytes <= PARSED_BYTES
    });
    some.count().max(1)
}
