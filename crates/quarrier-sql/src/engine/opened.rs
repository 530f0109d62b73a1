//! Tables opened from sources. A table is opened again when a statement names hidden columns, so
//! that only such statements pay for them.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::common::{Column, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use quarrier::DataFolder;
use quarrier_core::sync::lock;
use quarrier_messages::HiddenColumns;

use super::Engine;
use crate::files::{self, Loaded, Opening};
use crate::net::caught;
use crate::rewrite::{HiddenTables, TableColumns, TypedMessages, name_with_hidden};
use crate::{Messages, Result};

/// Where a table comes from.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// A source of any kind, or a glob.
    Source(String),
    /// Messages of a named format.
    Typed(TypedMessages),
    /// A table of a data folder.
    Stored(Arc<DataFolder>, String),
    /// Memory.
    Memory,
}

/// A table that was opened from a source.
#[derive(Debug)]
pub(super) struct OpenedTable {
    origin: Origin,
    /// The hidden columns requested when it was opened, even if its source has none.
    asked: HiddenColumns,
    /// The hidden columns that the table has.
    hidden: HiddenColumns,
    /// Memory of the table in bytes, with and without hidden columns.
    memory_bytes: usize,
}

impl Engine {
    /// Opens a table under `name`, with at least these hidden columns.
    ///
    /// # Errors
    /// The source cannot be opened, or there is not enough memory for it.
    pub(super) async fn open_from(
        &self,
        name: &str,
        origin: Origin,
        hidden: HiddenColumns,
    ) -> Result<()> {
        let before = lock(&self.state).opened.get(name).map(|table| table.asked);
        let asked = match before {
            // A table with hidden columns exists already.
            Some(_) if hidden.is_none() => hidden,
            before => hidden | self.opening.hidden | before.unwrap_or_default(),
        };
        let Some(opened) = self.opened_with(&origin, asked).await? else { return Ok(()) };
        if hidden.is_none() && opened.1.has_replaced {
            // The statement means the fields that the hidden columns replace.
            let hidden = HiddenColumns::default();
            let Some(opened) = self.opened_with(&origin, hidden).await? else { return Ok(()) };
            return self.keep_opened(name, (origin, hidden), opened);
        }
        self.keep_opened(name, (origin, asked), opened)
    }

    /// Opens a table with these hidden columns; `None` if it is in memory.
    async fn opened_with(
        &self,
        origin: &Origin,
        hidden: HiddenColumns,
    ) -> Result<Option<(Arc<dyn TableProvider>, Loaded)>> {
        let opening = Opening { hidden, ..self.opening.clone() };
        Ok(Some(match origin {
            Origin::Source(source) => caught(files::open(&self.context, source, &opening)).await?,
            Origin::Typed(typed) => {
                files::open_typed(&self.context, typed.clone(), &opening).await?
            }
            Origin::Stored(kept, table) => {
                files::open_kept(&self.context, (kept, table), &opening).await?
            }
            Origin::Memory => return Ok(None),
        }))
    }

    /// Opens a table again if it lacks these hidden columns.
    ///
    /// # Errors
    /// As [`open_from`](Self::open_from).
    pub(super) async fn add_hidden(&self, name: &str, hidden: HiddenColumns) -> Result<()> {
        let found = {
            let state = lock(&self.state);
            let exact = state.opened.get_key_value(name);
            let mut alike = state.opened.iter().filter(|(it, _)| it.eq_ignore_ascii_case(name));
            let found = exact.or_else(|| alike.next().filter(|_| alike.next().is_none()));
            found.map(|(name, table)| (name.clone(), table.origin.clone(), table.asked))
        };
        match found {
            Some((name, origin, asked)) if !asked.contains(hidden) => {
                self.open_from(&name, origin, hidden).await
            }
            _ => Ok(()),
        }
    }

    /// Whether a table was opened with these hidden columns.
    pub(super) fn is_open_with(&self, name: &str, hidden: HiddenColumns) -> bool {
        let state = lock(&self.state);
        !hidden.is_none()
            && state.opened.get(name).is_some_and(|table| table.asked.contains(hidden))
    }

    /// The tables that have hidden columns.
    pub(super) fn hidden_tables(&self) -> HiddenTables {
        let state = lock(&self.state);
        let tables = state.opened.iter().filter(|(_, table)| !table.hidden.is_none());
        tables.map(|(name, table)| (name.clone(), table.hidden)).collect()
    }

    /// The columns of all open tables, without hidden columns.
    pub(super) fn columns_of_tables(&self) -> TableColumns {
        let names: Vec<String> = {
            let state = lock(&self.state);
            state.tables.iter().chain(state.opened.keys()).cloned().collect()
        };
        let columns = |name: String| {
            let table = self.names.get(&name);
            let table = table.or_else(|| self.names.get(&name_with_hidden(&name)))?;
            let schema = table.schema();
            let fields = schema.fields().iter().map(|field| field.name().clone());
            let columns = fields.filter(|field| HiddenColumns::of_name(field).is_none()).collect();
            Some((name, columns))
        };
        names.into_iter().filter_map(columns).collect()
    }

    /// Registers an opened table under `name`. If it has hidden columns, it is registered with them
    /// under another name, and `name` gets the table without them unless they replace fields of messages.
    pub(super) fn keep_opened(
        &self,
        name: &str,
        (origin, asked): (Origin, HiddenColumns),
        (table, mut loaded): (Arc<dyn TableProvider>, Loaded),
    ) -> Result<()> {
        let Loaded { hidden, has_replaced, bytes, memory_bytes, .. } = loaded;
        let (is_open, is_known) = {
            let state = lock(&self.state);
            (state.tables.contains(name), state.opened.contains_key(name))
        };
        if is_known {
            // Its problems were reported when it was first opened.
            loaded = Loaded { bytes, memory_bytes, ..Loaded::default() };
        }
        let mut known = OpenedTable { origin, asked, hidden, memory_bytes };
        if let Some(before) = lock(&self.state).opened.remove(name) {
            known.asked = asked | before.asked;
            known.hidden = hidden | before.hidden;
            known.memory_bytes += before.memory_bytes;
        }
        if hidden.is_none() {
            match is_open {
                // Its source has no hidden columns.
                true => known.memory_bytes -= memory_bytes,
                false => self.keep(name, (table, loaded))?,
            }
        } else {
            let visible = match has_replaced {
                true => None,
                false => Some(visible(name, &table, hidden)?),
            };
            self.room.take(memory_bytes)?;
            {
                let mut state = lock(&self.state);
                state.loaded.add(loaded);
                state.known.add(name);
                let fields = table.schema();
                fields.fields().iter().for_each(|field| state.known.add(field.name()));
            }
            self.names.replace(&name_with_hidden(name), table);
            if let Some(visible) = visible {
                self.names.replace(name, visible);
                lock(&self.state).tables.insert(name.to_string());
                self.room.give_back(known.memory_bytes - memory_bytes);
                known.memory_bytes = memory_bytes;
            }
        }
        lock(&self.state).opened.insert(name.to_string(), known);
        Ok(())
    }
}

/// The table `name` without its hidden columns.
fn visible(
    name: &str,
    table: &Arc<dyn TableProvider>,
    hidden: HiddenColumns,
) -> Result<Arc<dyn TableProvider>> {
    if let Some(messages) = table.downcast_ref::<Messages>() {
        return Ok(Arc::new(Messages::new(Arc::new(messages.table().without_hidden()))));
    }
    let schema = table.schema();
    let columns = schema.fields().iter().filter(|field| !hidden.has(field.name()));
    let columns = columns.map(|field| Expr::Column(Column::new_unqualified(field.name())));
    let (name, source) = (TableReference::bare(name), provider_as_source(Arc::clone(table)));
    let scan = LogicalPlanBuilder::scan(name, source, None)?.project(columns)?;
    Ok(Arc::new(ViewTable::new(scan.build()?, None)))
}
