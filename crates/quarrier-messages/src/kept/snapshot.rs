//! Builds a table from the log as of a mark.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Source;

use super::definition::Definition;
use super::files::Files;
use super::index::{Extent, Listed};
use super::run::Run;
use crate::column::raw::SEGMENT_ROWS;
use crate::{Format, Kind, Limits, Load, Result, Schema, Table};

/// How to build snapshots.
pub(super) struct Making<'m> {
    pub(super) name: &'m str,
    pub(super) files: &'m Arc<Files>,
    pub(super) workers: usize,
    pub(super) stop: &'m AtomicBool,
    /// The declared columns of the table.
    pub(super) schema: Option<&'m Schema>,
    /// Whether another thread merges small segments.
    pub(super) is_tended: bool,
}

/// A table of the first batches of those that exist now.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) table: Arc<Table>,
    /// The mark after the last message; 0 without any.
    pub(super) end: u64,
    /// Number of messages that retention had removed before the first row, as in [`Listed`].
    pub(super) gone: u64,
    /// For a table with a key, the same rows with their marks as an additional column.
    pub(super) marked: Option<Arc<Table>>,
}

impl Snapshot {
    /// Makes the snapshot of a table without a key.
    pub(super) fn new(table: Table, end: u64, gone: u64) -> Self {
        Snapshot { table: Arc::new(table), end, gone, marked: None }
    }

    /// Returns whether the snapshot has all of these messages and no others.
    pub(super) fn is_of(&self, listed: &Listed) -> bool {
        self.gone == listed.gone && listed.end() <= self.end
    }

    /// Returns the snapshot without rows that retention removed since; None if the remaining messages must be
    /// parsed again, because alone they may have other columns.
    pub(super) fn trimmed(
        self,
        listed: &Listed,
        definition: Option<&Definition>,
        workers: usize,
    ) -> Option<Snapshot> {
        let gone = listed.gone.checked_sub(self.gone)?;
        if gone == 0 {
            return Some(self);
        }
        // Next to a string, a number keeps all of its digits.
        let is_fixed = |kind| !matches!(kind, Kind::Null | Kind::Text);
        definition.filter(|it| it.columns().iter().all(|column| is_fixed(column.kind)))?;
        let dead: Vec<u64> = (0..gone.min(self.table.rows())).collect();
        Some(Snapshot::new(self.table.without(&dead, workers), self.end, listed.gone))
    }

    /// Returns the table to store.
    pub(super) fn stored(&self) -> &Table {
        self.marked.as_ref().unwrap_or(&self.table)
    }
}

impl Making<'_> {
    /// Builds the table of all batches. If `known` covers the first of them, parses only the others, unless
    /// that would give another result than parsing all at once.
    pub(super) fn table(&self, known: Option<&Snapshot>, listed: &Listed) -> Result<Snapshot> {
        let (extents, end) = (listed.extents.as_slice(), listed.end());
        let snapshot = |table| Snapshot::new(table, end, listed.gone);
        if let Some(known) = known.filter(|known| known.gone == listed.gone) {
            let more = extents.get(listed.before(known.end)..).unwrap_or_default();
            if more.is_empty() {
                return Ok(known.clone());
            }
            let more = self.parsed(more)?;
            if !differ_in_words(&known.table, &more) {
                let table = Table::concat(&[(*known.table).clone(), more], self.workers);
                return Ok(snapshot(match is_in_pieces(&table, self.is_tended) {
                    true => table.repacked(self.workers),
                    false => table,
                }));
            }
        }
        Ok(snapshot(self.parsed(extents)?))
    }

    /// Parses the messages of batches into one table.
    pub(super) fn parsed(&self, extents: &[Extent]) -> Result<Table> {
        let runs = runs(self.name, self.files, extents)?;
        let mut tables = Vec::new();
        for alike in runs.chunk_by(|one, next| one.goes_with(next)) {
            let Some(first) = alike.first() else { continue };
            let sources: Vec<&dyn Source> = alike.iter().map(|run| run as &dyn Source).collect();
            let bytes: u64 = sources.iter().map(|source| source.length()).sum();
            tables.push(self.load(first.format(), bytes).run(&sources)?.table);
        }
        Ok(match tables.len() {
            0 => self.load(&Format::Json, 0).run(&[])?.table,
            1 => tables.pop().unwrap_or_default(),
            _ => Table::concat(&tables, self.workers),
        })
    }

    fn load(&self, format: &Format, bytes: u64) -> Load<'_> {
        // One thread finishes a few messages before others have started.
        let workers = if bytes < ALONE_BYTES { 1 } else { self.workers };
        let load = Load::new(format.clone()).workers(workers).limits(Limits::default());
        self.schema.cloned().into_iter().fold(load.cancel(self.stop), Load::schema)
    }
}

/// Returns the messages of batches as sources.
///
/// # Errors
/// [`Error::Store`](crate::Error::Store) if some batches have an encoding without a format.
pub(super) fn runs(name: &str, files: &Arc<Files>, extents: &[Extent]) -> Result<Vec<Run>> {
    let alike = extents.chunk_by(Extent::goes_with);
    let runs = alike.map(|alike| {
        Run::of(name, files, alike).ok_or_else(|| {
            let encoding = alike.first().map(|extent| extent.encoding);
            let reason = format!(
                "it has batches of the encoding {encoding:?}, which this version does not read"
            );
            crate::Error::Store { place: name.to_string(), reason }
        })
    });
    runs.collect()
}

/// Returns whether the small segments of a table that grew in small steps should be merged: scans process one
/// segment at a time. If another thread does that meanwhile, only far more segments are too many.
pub(super) fn is_in_pieces(table: &Table, is_tended: bool) -> bool {
    let packed = table.rows() / SEGMENT_ROWS as u64;
    let patience = if is_tended { TENDED_FACTOR } else { 1 };
    table.segments() as u64 > patience * PIECES_MIN.max(PIECES_SHARE * packed)
}

/// Maximum bytes of messages that one thread parses alone.
const ALONE_BYTES: u64 = 256 << 10;

/// A table is merged when it has more segments than this, and more than eight for each full one.
const PIECES_MIN: u64 = 64;
const PIECES_SHARE: u64 = 8;
/// A request merges segments itself if there are this many times as many.
pub(super) const TENDED_FACTOR: u64 = 8;

/// Returns whether a column has strings in one of the tables and another type in the other. Then all messages
/// must be parsed together, since next to strings, a time keeps its original form and a number all of its
/// digits.
fn differ_in_words(one: &Table, other: &Table) -> bool {
    let is_time = |kind: Kind| matches!(kind, Kind::Date | Kind::Timestamp);
    one.schema().fields.iter().any(|field| {
        let Some(at) = other.schema().position(&field.name) else { return false };
        let kinds = (field.kind, other.schema().fields[at].kind);
        match kinds {
            // Numbers lost digits before the first string of their part arrived.
            (_, Kind::Text) if other.columns()[at].rounded() > 0 => true,
            (Kind::Null, _) | (_, Kind::Null) => false,
            (one, other) if one == other => false,
            (Kind::Text, _) | (_, Kind::Text) => true,
            (one, other) => is_time(one) != is_time(other),
        }
    })
}
