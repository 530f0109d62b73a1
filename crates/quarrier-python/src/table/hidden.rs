//! The hidden columns of a table's messages: loaded when a statement names them.

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
    /// Bytes in memory, which the table does not hold.
    Bytes,
}

/// A load that can be repeated.
pub(super) struct Loading {
    pub(super) tables: Tables<'static>,
    pub(super) path: PathBuf,
    pub(super) versions: Vec<Option<Version>>,
    /// The table with the hidden columns that statements named so far.
    pub(super) loaded: Mutex<Option<Arc<Packed>>>,
}

/// The ends of lists, which every table of messages has, if there are such.
pub(super) const LIST_ENDS: HiddenColumns =
    HiddenColumns { line: false, offset: false, message: false, list_ends: true };

/// The hidden columns that one of the statements may name.
pub(super) fn named_in<'t>(statements: impl IntoIterator<Item = &'t str>) -> HiddenColumns {
    let named = statements.into_iter().map(HiddenColumns::named_in);
    named.fold(HiddenColumns::default(), |all, one| all | one)
}

impl Origin {
    /// The rows with these hidden columns.
    pub(super) fn rows_with(&self, py: Python<'_>, hidden: HiddenColumns) -> PyResult<Rows> {
        let loading = match self {
            Origin::Source(loading) => loading,
            Origin::Bytes => {
                let message = "_line, _offset and _message: the table does not hold the bytes that \
                               it was loaded from; ask quarrier.query(sql, m=data), which loads \
                               them with these columns";
                return Err(raise(py, "QuarrierError", (message,)));
            }
        };
        let before = lock(&loading.loaded).clone();
        let before = before.as_ref();
        if let Some(table) = before.filter(|table| has_places(table, hidden)) {
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

/// Whether a table has the places of messages that are selected. It has the ends of lists where there are
/// such.
fn has_places(table: &Packed, selected: HiddenColumns) -> bool {
    table.hidden().contains(selected.without(LIST_ENDS))
}
