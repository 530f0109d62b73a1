//! The engine of `quarrier serve`: implements [`quarrier_wire::Answers`] for its protocols.
//!
//! ```text
//!  protocols (on their own runtime) ─→ Served ─┬→ engine       on the runtime of statements
//!                                              └→ catalogs     for clients' queries of pg_catalog
//! ```
//!
//! Statements run on another runtime than connections, so that a join that keeps all its threads
//! busy can still be cancelled.

mod again;
mod catalogs;
mod create;
mod failure;
mod ingest;
mod insert;
mod keyed;
mod parameters;
mod pulse;
mod statement;
mod subscribe;
mod write;

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use quarrier::DataFolder;
use quarrier::kept::CopyState;
use quarrier_core::sync::lock;
use quarrier_wire::{
    Answers, Asker, Board, Failure, Ingest, IngestTarget, Prepared, Reply, Result, Sample, Stop,
    TableInfo, Value, state, subscribe_text,
};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::engine::TableState;
use crate::net::caught;
use crate::{Answer, Engine, Error, Rows};

use catalogs::Catalogs;
use failure::failed;
use ingest::IngestSession;
use pulse::Pulse;
use statement::ClientStatement;
use subscribe::Subscribed;
use write::Write;

/// The server's engine and settings.
#[derive(Debug)]
pub struct Serving {
    /// The engine that answers statements.
    pub engine: Arc<Engine>,
    /// The runtime on which statements run.
    pub runtime: Handle,
    /// The registry of connections and running statements.
    pub board: Arc<Board>,
}

/// Serves an engine to clients.
pub struct Served {
    engine: Arc<Engine>,
    runtime: Handle,
    board: Arc<Board>,
    /// Rebuilt by the next query if a table has changed.
    catalogs: Mutex<Arc<Catalogs>>,
    pulse: Pulse,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Served {
    /// Serves the open tables of an engine.
    ///
    /// # Errors
    /// Building the catalogs of these tables fails.
    pub fn new(serving: Serving) -> crate::Result<Self> {
        let Serving { engine, runtime, board } = serving;
        let catalogs = Catalogs::new((&tables(&engine), engine.version()), &board, engine.kept())?;
        Ok(Served {
            engine,
            runtime,
            board,
            catalogs: Mutex::new(Arc::new(catalogs)),
            pulse: Pulse::default(),
        })
    }

    /// Returns the data folder that clients write to.
    pub fn kept(&self) -> Option<&Arc<DataFolder>> {
        self.engine.kept()
    }

    /// Stores what makes the next start faster, at the end of serving.
    pub fn settle(&self) {
        if let Some(kept) = self.engine.kept() {
            kept.settle();
        }
    }

    /// Returns the catalogs of the current tables.
    async fn catalogs(&self) -> Result<Arc<Catalogs>> {
        let (engine, board) = (Arc::clone(&self.engine), Arc::clone(&self.board));
        let known = Arc::clone(&lock(&self.catalogs));
        let newest = self
            .there(async move {
                engine.renew_all().await?;
                let version = engine.version();
                if version == known.version {
                    return Ok(known);
                }
                let catalogs = Catalogs::new((&tables(&engine), version), &board, engine.kept())?;
                Ok(Arc::new(catalogs))
            })
            .await?;
        *lock(&self.catalogs) = Arc::clone(&newest);
        Ok(newest)
    }

    /// Resolves a table name to the table's current state.
    async fn table_of(&self, name: &str) -> Result<TableInfo> {
        let (engine, wanted) = (Arc::clone(&self.engine), name.to_string());
        let shown = self.there(async move {
            engine.renew(&wanted).await?;
            Ok(engine.shown(&wanted))
        });
        shown.await?.map(info).ok_or_else(|| {
            let said = format!("relation \"{name}\" does not exist");
            let failure = Failure::new(state::NO_TABLE, said);
            match self.engine.kept() {
                Some(_) => failure.hint("CREATE TABLE name () creates a table of messages"),
                None => failure,
            }
        })
    }

    async fn taking(&self, target: IngestTarget) -> Result<Box<dyn Ingest>> {
        let table = self.table_of(&target.table).await?;
        if !table.grows {
            return Err(read_only(&table.name));
        }
        let taking = IngestSession::new(&self.engine, &table.name, &target, &self.runtime)?;
        Ok(Box::new(taking.gated(&self.engine)))
    }

    /// Runs work on the runtime of statements; dropping the future cancels it.
    async fn there<T: Send + 'static>(
        &self,
        work: impl Future<Output = crate::Result<T>> + Send + 'static,
    ) -> Result<T> {
        let mut task = Task(self.runtime.spawn(work));
        let done = (&mut task.0).await;
        let done =
            done.map_err(|_| Failure::new(state::INTERNAL, "internal error in the statement"))?;
        done.map_err(|error| failed(&error))
    }

    async fn prepared(
        &self,
        asker: &Asker,
        text: &str,
        declared: &[u32],
        describes: bool,
    ) -> Result<Prepared> {
        if let Some(verb) = write::verb(text) {
            if verb == "INSERT"
                && let Some(prepared) = write::prepare_now(&self.engine, text, declared)
            {
                return Ok(prepared);
            }
            let engine = Arc::clone(&self.engine);
            let (text, declared) = (text.to_string(), declared.to_vec());
            let prepare = async move { Ok(write::prepare(&engine, verb, &text, &declared).await) };
            return self.there(prepare).await?;
        }
        if subscribe_text(text)?.is_some() {
            let (engine, text) = (Arc::clone(&self.engine), text.to_string());
            let prepare = async move { Ok(subscribe::prepare(&engine, &text).await) };
            return self.there(prepare).await?;
        }
        if Catalogs::are_asked(text, |name| self.engine.shown(name).is_some())? {
            return self.catalogs().await?.prepared(asker, text, declared).await;
        }
        let engine = Arc::clone(&self.engine);
        let (text, declared) = (text.to_string(), declared.to_vec());
        self.there(
            async move { Ok(statement::prepare(&engine, &text, &declared, describes).await) },
        )
        .await?
    }

    async fn answered(&self, prepared: &Prepared, values: Vec<Value>) -> Result<Reply> {
        if let Some(asked) = prepared.inner.downcast_ref::<catalogs::CatalogQuery>() {
            return self.catalogs().await?.answered(asked, &values).await;
        }
        if let Ok(write) = Arc::clone(&prepared.inner).downcast::<Write>() {
            if write.is_small() {
                return here(write::run(&self.engine, &self.runtime, &write, &values)).await;
            }
            let (engine, runtime) = (Arc::clone(&self.engine), self.runtime.clone());
            let run = async move { Ok(write::run(&engine, &runtime, &write, &values).await) };
            return self.there(run).await?;
        }
        if let Ok(subscribed) = Arc::clone(&prepared.inner).downcast::<Subscribed>() {
            return subscribe::run(&self.engine, &self.runtime, &self.pulse, &subscribed).await;
        }
        let Some(prepared_statement) = prepared.inner.downcast_ref::<ClientStatement>() else {
            return Err(Failure::new(state::INTERNAL, "a statement of another server"));
        };
        let statement = prepared_statement.with(&self.engine, &values)?;
        let engine = Arc::clone(&self.engine);
        let answer = self.there(async move { engine.run_query(&statement).await }).await?;
        let Answer::Rows(rows) = answer else {
            return Err(Failure::new(state::UNSUPPORTED, "only queries are supported here"));
        };
        Ok(Reply::Rows(statement::as_described(of_engine(rows), prepared.columns.clone())))
    }
}

/// Runs work on the thread of the connection; a panic ends the statement alone.
async fn here<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    caught(async { Ok(work.await) }).await.map_err(|error| failed(&error))?
}

/// Returns the error for a table that is a file, and therefore read-only.
fn read_only(table: &str) -> Failure {
    let said = format!("table {table} is a file and accepts no messages");
    Failure::new(state::READ_ONLY, said).hint("tables of 'quarrier serve --data FOLDER' do")
}

fn info(shown: TableState) -> TableInfo {
    let TableState { name, columns, rows, bytes, grows, is_declared } = shown;
    TableInfo { name, columns, rows, bytes, grows, is_declared }
}

fn tables(engine: &Engine) -> Vec<TableInfo> {
    engine.tables().iter().filter_map(|name| engine.shown(name)).map(info).collect()
}

/// A task that is cancelled when it is dropped.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn of_engine(rows: Rows) -> quarrier_wire::Rows {
    let schema = Arc::clone(rows.schema());
    let batches = stream::unfold(Some(rows), |rows| async {
        let mut rows = rows?;
        let next: std::result::Result<_, Error> = rows.next().await;
        match next {
            Ok(None) => None,
            Ok(Some(batch)) => Some((Ok(batch.into()), Some(rows))),
            Err(error) => Some((Err(failed(&error)), None)),
        }
    });
    quarrier_wire::Rows { schema, batches: batches.boxed(), is_live: false }
}

impl Answers for Served {
    fn prepare<'a>(
        &'a self,
        asker: &'a Asker,
        text: &'a str,
        declared: &'a [u32],
        describes: bool,
    ) -> BoxFuture<'a, Result<Prepared>> {
        self.prepared(asker, text, declared, describes).boxed()
    }

    fn run<'a>(
        &'a self,
        _asker: &'a Asker,
        prepared: &'a Prepared,
        values: Vec<Value>,
        _stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Reply>> {
        // Dropping the future stops the statement.
        self.answered(prepared, values).boxed()
    }

    fn ingest<'a>(
        &'a self,
        _asker: &'a Asker,
        target: IngestTarget,
    ) -> BoxFuture<'a, Result<Box<dyn Ingest>>> {
        self.taking(target).boxed()
    }

    fn table<'a>(&'a self, _asker: &'a Asker, name: &'a str) -> BoxFuture<'a, Result<TableInfo>> {
        self.table_of(name).boxed()
    }

    fn tables(&self) -> Vec<TableInfo> {
        tables(&self.engine)
    }

    fn samples(&self) -> Vec<Sample> {
        self.engine.kept().and_then(|kept| kept.copy_state()).map(copy_samples).unwrap_or_default()
    }
}

/// The state of the log's copy, for `/metrics`.
fn copy_samples(copy: CopyState) -> Vec<Sample> {
    let sample = |name, help, value| Sample { name, help, label: None, value };
    let bytes = copy.lag.bytes.map(|bytes| {
        sample("copy_behind_bytes", "Bytes of the log that are not copied.", bytes as f64)
    });
    let mark = copy.lag.copied_mark as f64;
    let seconds = copy.lag.time.as_secs_f64();
    let rest = [
        sample("copy_behind_seconds", "Time since the copy of the log was complete.", seconds),
        sample("copy_mark", "Messages up to this mark are copied.", mark),
        sample("copy_sent_bytes_total", "Bytes of the log sent.", copy.lag.bytes_copied as f64),
        sample("copy_failures_total", "Failed attempts to copy the log.", copy.failures as f64),
    ];
    bytes.into_iter().chain(rest).collect()
}
