//! Builds a table from the log as of a mark.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Source;

use super::files::Files;
use super::index::Extent;
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
}

/// A table of the first batches of those that exist now.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) table: Arc<Table>,
    pub(super) batches: usize,
    /// For a table with a key, the same rows with their marks as an additional column.
    pub(super) marked: Option<Arc<Table>>,
}

impl Snapshot {
    /// Makes the snapshot of a table without a key.
    pub(super) fn new(table: Table, batches: usize) -> Self {
        Snapshot { table: Arc::new(table), batches, marked: None }
    }

    /// Returns the table to store.
    pub(super) fn stored(&self) -> &Table {
        self.marked.as_ref().unwrap_or(&self.table)
    }
}

impl Making<'_> {
    /// Builds the table of all batches. If `known` covers the first of them, parses only the others, unless
    /// that would give another result than parsing all at once.
    pub(super) fn table(&self, known: Option<&Snapshot>, extents: &[Extent]) -> Result<Snapshot> {
        let batches = extents.len();
        if let Some(known) = known.filter(|known| known.batches <= batches) {
            let more = &extents[known.batches..];
            if more.is_empty() {
                return Ok(known.clone());
            }
            let more = self.parsed(more)?;
            if !differ_in_words(&known.table, &more) {
                let table = Table::concat(&[(*known.table).clone(), more], self.workers);
                if !is_in_pieces(&table) {
                    return Ok(Snapshot::new(table, batches));
                }
            }
        }
        Ok(Snapshot::new(self.parsed(extents)?, batches))
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

/// Returns whether a table that grew in small steps should be compacted: scans process one segment at a time.
fn is_in_pieces(table: &Table) -> bool {
    let packed = table.rows() / SEGMENT_ROWS as u64;
    table.segments() as u64 > PIECES_MIN.max(8 * packed)
}

/// Maximum bytes of messages that one thread parses alone.
const ALONE_BYTES: u64 = 256 << 10;

/// A table with at most this many segments is not compacted.
const PIECES_MIN: u64 = 64;

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
