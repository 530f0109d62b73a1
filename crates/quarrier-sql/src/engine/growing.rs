//! Tables of a data folder that grow while statements query them. Before a statement is planned,
//! the tables that it names are refreshed. The statement sees that version until it ends.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use quarrier::DataFolder;
use quarrier::kept::{Definition, Retention};
use quarrier_core::sync::lock;
use quarrier_messages::Table;
use tokio::sync::{Mutex, RwLock};

use super::tender::Tender;
use super::{Engine, Statement};
use crate::net::{blocking, caught_now};
use crate::{Error, Messages, Result};

/// A data folder that is open for writing.
pub(super) struct GrowingFolder {
    /// Ends before the folder is closed.
    _tender: Tender,
    kept: Arc<DataFolder>,
    /// The tables as statements see them. They are rebuilt one at a time, since that uses all
    /// threads.
    made: Mutex<HashMap<String, Arc<Table>>>,
    /// For tables with a key: statements that change the rows they read run one at a time.
    gates: std::sync::Mutex<HashMap<String, Arc<RwLock<()>>>>,
    version: AtomicU64,
}

/// The current state of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableState {
    pub(crate) name: String,
    pub(crate) columns: SchemaRef,
    pub(crate) rows: Option<u64>,
    pub(crate) bytes: Option<u64>,
    /// Whether messages may be appended.
    pub(crate) grows: bool,
    /// Whether its columns were declared.
    pub(crate) is_declared: bool,
}

impl Engine {
    /// Opens a data folder, creating it if it does not exist, and lets its tables grow: see
    /// [`Engine::kept`]. New segments of its log have `segment_bytes`, or 256 MiB by default.
    ///
    /// # Errors
    /// Another process writes to the folder, or the system refuses.
    pub async fn open_folder_to_grow(
        &self,
        folder: &Path,
        segment_bytes: Option<u64>,
    ) -> Result<()> {
        let kept = caught_now(|| {
            let opened = match segment_bytes {
                Some(bytes) => DataFolder::open_with(folder, bytes),
                None => DataFolder::open(folder),
            };
            let kept = opened.map_err(|error| Error::text(error.to_string()))?;
            self.name_tables_of(&kept)?;
            Ok(kept)
        })?;
        let (made, gates, version) = (Mutex::default(), Default::default(), AtomicU64::new(1));
        let kept = Arc::new(kept);
        let tender = Tender::begin(Arc::clone(&kept));
        let no_thread = |error| Error::text(format!("no thread to work with: {error}"));
        let tender = tender.map_err(no_thread)?;
        let growing = GrowingFolder { _tender: tender, kept, made, gates, version };
        if self.growing.set(growing).is_err() {
            return Err(Error::text("a data folder is open already"));
        }
        self.renew_all().await
    }

    /// The data folder, if it was opened with [`Engine::open_folder_to_grow`].
    pub fn kept(&self) -> Option<&Arc<DataFolder>> {
        self.growing.get().map(|growing| &growing.kept)
    }

    /// Creates a table with these bounds in the data folder. Returns false if a table of this name exists.
    ///
    /// # Errors
    /// There is no data folder, the name is not allowed, or the disk is full or fails.
    pub(crate) async fn make(
        &self,
        name: &str,
        (definition, retention): (Definition, Retention),
    ) -> Result<std::result::Result<bool, quarrier::Error>> {
        let Some(growing) = self.growing.get() else {
            return Err(Error::text("there is no data folder"));
        };
        let kept = Arc::clone(&growing.kept);
        let wanted = name.to_string();
        let make = move || {
            let made = kept.create(&wanted, &definition);
            Ok(match made {
                Ok(true) if retention != Retention::default() => {
                    kept.set_retention(&wanted, retention).map(|()| true)
                }
                made => made,
            })
        };
        let made = blocking(make).await?;
        if matches!(made, Ok(true)) {
            {
                let mut state = lock(&self.state);
                state.kept_names.push(name.to_string());
                state.known.add(name);
            }
            self.renew(name).await?;
        }
        Ok(made)
    }

    /// The lock on which statements that write to a table wait for each other; `None` without a
    /// data folder.
    pub(crate) fn gate(&self, table: &str) -> Option<Arc<RwLock<()>>> {
        let growing = self.growing.get()?;
        Some(Arc::clone(lock(&growing.gates).entry(table.to_string()).or_default()))
    }

    /// The number of times that any table was replaced by a newer version.
    pub(crate) fn version(&self) -> u64 {
        self.growing.get().map_or(0, |growing| growing.version.load(Ordering::Acquire))
    }

    /// Refreshes all tables of the data folder.
    pub(crate) async fn renew_all(&self) -> Result<()> {
        let names = lock(&self.state).kept_names.clone();
        for name in names {
            self.renew(&name).await?;
        }
        Ok(())
    }

    /// Refreshes the tables that a statement names.
    pub(super) async fn renew_named(&self, statement: &Statement) -> Result<()> {
        if self.growing.get().is_some() {
            for name in statement.clone().named().names {
                self.renew(&name).await?;
            }
        }
        Ok(())
    }

    /// Refreshes the table with this name. Returns whether it is a growing table.
    pub(crate) async fn renew(&self, name: &str) -> Result<bool> {
        let Some(growing) = self.growing.get() else { return Ok(false) };
        let Some(name) = self.grown_name(name) else { return Ok(false) };
        let newest = growing.kept.known(&name);
        if let (Some(newest), Some(shown)) = (&newest, self.names.get(&name))
            && shown.downcast_ref::<Messages>().is_some_and(|it| Arc::ptr_eq(it.table(), newest))
        {
            return Ok(true);
        }
        let mut made = growing.made.lock().await;
        let kept = Arc::clone(&growing.kept);
        let (workers, stop) = (self.opening.workers, Arc::clone(&self.opening.stop));
        let wanted = name.clone();
        let fail = |error: quarrier::Error| Error::table(&name, error.to_string());
        let make = move || Ok(kept.table(&wanted, workers, &stop));
        let table = blocking(make).await?.map_err(fail)?;
        let before = made.get(&name);
        if before.is_some_and(|before| Arc::ptr_eq(before, &table)) {
            return Ok(true);
        }
        let (bytes, bytes_before) = (table.nbytes(), before.map_or(0, |before| before.nbytes()));
        match bytes.checked_sub(bytes_before) {
            Some(more) => self.room.take(more)?,
            None => self.room.give_back(bytes_before - bytes),
        }
        let shown = Arc::new(Messages::new(Arc::clone(&table)));
        {
            let mut state = lock(&self.state);
            state.tables.insert(name.clone());
            shown.schema().fields().iter().for_each(|field| state.known.add(field.name()));
        }
        self.names.replace(&name, shown);
        made.insert(name, table);
        growing.version.fetch_add(1, Ordering::AcqRel);
        Ok(true)
    }

    /// The messages of a table, as of its last refresh.
    pub(crate) fn messages_of(&self, name: &str) -> Option<Arc<Table>> {
        let provider = self.names.get(name)?;
        provider.downcast_ref::<Messages>().map(|messages| Arc::clone(messages.table()))
    }

    /// The table of the data folder that this name refers to, by an exact or unambiguous match.
    fn grown_name(&self, name: &str) -> Option<String> {
        let state = lock(&self.state);
        let names = &state.kept_names;
        let exact = names.iter().find(|known| *known == name);
        let mut alike = names.iter().filter(|known| known.eq_ignore_ascii_case(name));
        let only = || alike.next().filter(|_| alike.next().is_none());
        exact.or_else(only).cloned()
    }

    /// The table that this name refers to, as of its last refresh.
    pub(crate) fn shown(&self, name: &str) -> Option<TableState> {
        let grown = self.growing.get().and_then(|_| self.grown_name(name));
        let grows = grown.is_some();
        let name = match grown {
            Some(name) => name,
            None => {
                let state = lock(&self.state);
                let mut alike = state.tables.iter().filter(|it| it.eq_ignore_ascii_case(name));
                let only = || alike.next().filter(|_| alike.next().is_none());
                let exact = state.tables.get(name);
                exact.or_else(only)?.clone()
            }
        };
        let provider = self.names.get(&name)?;
        let defined = match self.kept() {
            Some(kept) if grows => kept.definition(&name).ok().flatten(),
            _ => None,
        };
        let is_declared = defined.is_some();
        let columns = match defined {
            Some(definition) => as_declared(&provider.schema(), &definition),
            None => provider.schema(),
        };
        let (rows, bytes) = match provider.downcast_ref::<Messages>() {
            Some(messages) => {
                let table = messages.table();
                (Some(table.rows()), Some(table.nbytes() as u64))
            }
            None => {
                let statistics = provider.statistics();
                (statistics.and_then(|it| Some(*it.num_rows.get_value()? as u64)), None)
            }
        };
        Some(TableState { name, columns, rows, bytes, grows, is_declared })
    }
}

/// The columns with their declared digits and nullability.
fn as_declared(columns: &SchemaRef, definition: &Definition) -> SchemaRef {
    let fields = columns.fields().iter().map(|field| {
        let name = field.name();
        let declared = definition.columns().iter().find(|column| *column.name == **name);
        let Some(declared) = declared else { return Arc::clone(field) };
        let data = match field.data_type() {
            DataType::Decimal128(_, scale) => DataType::Decimal128(declared.digits, *scale),
            other => other.clone(),
        };
        Arc::new(Field::new(name, data, !declared.is_required))
    });
    Arc::new(Schema::new(fields.collect::<Fields>()))
}
