//! The rows that a query selects of new messages, found once for all equal subscriptions.

use std::any::Any;
use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;
use quarrier_filter::Query;
use quarrier_messages::Table;
use quarrier_messages::kept::Changes;

use super::matching::Matched;
use crate::Result;

/// Shared rows also have the forms in which doors send them; together they take about this many times the
/// bytes of the rows.
const FORMS_FACTOR: u64 = 4;

/// Rows of a subscription. Equal subscriptions share them.
#[derive(Debug)]
#[non_exhaustive]
pub struct Changed {
    /// Whether the rows belong to the snapshot.
    pub is_snapshot: bool,
    /// The mark of each row, rising; for a row that is gone, the mark of the message that replaced or
    /// removed it.
    pub marks: Vec<u64>,
    /// Whether each row is gone; only in a table with a key. Such a row comes before its replacement, which
    /// has the same mark, in the same result.
    pub are_gone: Vec<bool>,
    /// With standing conditions, the condition of each row: a row that several match is there once for
    /// each. Otherwise empty.
    pub matched: Vec<Matched>,
    /// The selected columns of the rows.
    pub rows: Table,
    derived: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl Changed {
    /// Makes the rows of a result from rows of changes and the same rows projected.
    pub(super) fn new(
        (changes, rows): (&Changes, &[u64]),
        projected: Table,
        is_snapshot: bool,
        matched: Vec<Matched>,
    ) -> Self {
        let marks = rows.iter().map(|row| changes.mark_of(*row)).collect();
        let are_gone = rows.iter().map(|row| changes.is_gone(*row)).collect();
        let derived = Mutex::default();
        Changed { is_snapshot, marks, are_gone, matched, rows: projected, derived }
    }

    /// Returns a form of these rows, such as rows to send. All who share the rows share it: the first makes
    /// it, and others wait. There is one form; of another type, each call makes a new one.
    ///
    /// # Errors
    /// The error of `make`; the next call tries again.
    pub fn derive<T: Any + Send + Sync, E>(
        &self,
        make: impl FnOnce(&Changed) -> std::result::Result<T, E>,
    ) -> std::result::Result<Arc<T>, E> {
        let mut derived = lock(&self.derived);
        if let Some(form) = derived.as_ref().and_then(|form| Arc::clone(form).downcast().ok()) {
            return Ok(form);
        }
        let form = Arc::new(make(self)?);
        if derived.is_none() {
            *derived = Some(Arc::clone(&form) as _);
        }
        Ok(form)
    }

    fn nbytes(&self) -> u64 {
        let marks = size_of::<u64>() + size_of::<bool>();
        (self.rows.nbytes() + self.marks.len() * marks) as u64
    }
}

/// All rows of some changes that a query selects, in pieces.
#[derive(Debug)]
pub(super) struct FoundRows {
    /// Its text does not determine it: it has the time of CURRENT_TIMESTAMP.
    query: Query,
    pieces: Vec<Arc<Changed>>,
}

impl FoundRows {
    /// Returns the rows of a query, with its text, if an equal subscription found them.
    pub(super) fn known(
        changes: &Changes,
        (text, query): (&str, &Query),
    ) -> Option<Arc<FoundRows>> {
        changes.derived(text).filter(|found: &Arc<FoundRows>| found.query == *query)
    }

    /// Returns the rows of a query, with its text. The first subscription finds them, in pieces; `None` if it
    /// has another query of this text.
    pub(super) fn of(
        changes: &Changes,
        (text, query): (&str, &Query),
        find: impl FnOnce() -> Result<Vec<Changed>>,
    ) -> Result<Option<Arc<FoundRows>>> {
        let found: Result<Arc<FoundRows>> = changes.derive(text, || {
            let pieces: Vec<_> = find()?.into_iter().map(Arc::new).collect();
            let bytes: u64 = pieces.iter().map(|piece| piece.nbytes()).sum();
            Ok((FoundRows { query: query.clone(), pieces }, FORMS_FACTOR * bytes))
        });
        found.map(|found| Some(found).filter(|found| found.query == *query))
    }

    pub(super) fn piece(&self, number: usize) -> Option<Arc<Changed>> {
        self.pieces.get(number).map(Arc::clone)
    }
}
