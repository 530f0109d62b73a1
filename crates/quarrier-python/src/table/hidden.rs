//! The hidden columns of a table's messages, loaded when a statement names them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use quarrier::source::Version;
use quarrier::{OpenOptions, Sources, Tables};
use quarrier_core::sync::lock;
use quarrier_messages::{HiddenColumns, Table as Packed};

use crate::errors::{of_facade, raise};
use crate::host;
use crate::interrupt::interruptible;
use crate::sql::Rows;

/// The origin of a table of messages.
pub(super) enum Origin {
    /// A path, glob or URL.
    Source(Box<Loading>),
    /// Bytes in memory, which the table does not keep.
    Bytes,
}

/// A load that can be repeated.
pub(super) struct Loading {
    pub(super) tables: Tables<'static>,
    pub(super) path: PathBuf,
    pub(super) versions: Vec<Option<Version>>,
    /// The table with the hidden columns that statements have named so far.
    pub(super) loaded: Mutex<Option<Arc<Packed>>>,
}

/// The hidden column of the ends of lists. Every table of messages has it if a list needs it.
pub(super) const LIST_ENDS: HiddenColumns =
    HiddenColumns { line: false, offset: false, message: false, list_ends: true };

/// Returns the hidden columns that one of the statements may name.
pub(super) fn named_in<'t>(statements: impl IntoIterator<Item = &'t str>) -> HiddenColumns {
    let named = statements.into_iter().map(HiddenColumns::named_in);
    named.fold(HiddenColumns::default(), |all, one| all | one)
}

impl Origin {
    /// Returns the rows with these hidden columns.
    pub(super) fn rows_with(&self, py: Python<'_>, hidden: HiddenColumns) -> PyResult<Rows> {
        let loading = match self {
            Origin::Source(loading) => loading,
            Origin::Bytes => {
                let message = "_line, _offset and _message: the table does not hold the bytes that \
                               it was loaded from; use quarrier.query(sql, m=data), which loads \
                               them with these columns";
                return Err(raise(py, "QuarrierError", (message,)));
            }
        };
        let before = lock(&loading.loaded).clone();
        let before = before.as_ref();
        if let Some(table) = before.filter(|table| has_columns(table, hidden)) {
            return Ok(Rows::Packed(Arc::clone(table)));
        }
        let hidden = before.map_or(hidden, |table| table.hidden() | hidden) | LIST_ENDS;
        let loaded = interruptible(py, |stop| {
            let opener = host::opener(OpenOptions::default(), stop);
            let sources = Sources::of([&loading.path]);
            let tables = loading.tables.clone().hidden(hidden);
            tables.load_again(&sources, &opener, (stop, &loading.versions))
        })?;
        let loaded = loaded.map_err(|error| of_facade(py, &error))?;
        let table = Arc::new(loaded.table);
        *lock(&loading.loaded) = Some(Arc::clone(&table));
        Ok(Rows::Packed(table))
    }
}

/// Whether a table has the selected hidden columns. It already has the ends of lists if a list
/// needs them.
fn has_columns(table: &Packed, selected: HiddenColumns) -> bool {
    table.hidden().contains(selected.without(LIST_ENDS))
}
