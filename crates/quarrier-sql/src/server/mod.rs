//! What `quarrier serve` answers with: the wires ask ([`quarrier_wire::Answers`]), the engine answers.
//!
//! ```text
//!  wires (a runtime of their own) ─→ Served ─┬→ engine       on the runtime of statements
//!                                            └→ catalogs     what clients ask of pg_catalog
//! ```
//!
//! Statements run on another runtime than connections: a join that keeps all its threads busy must
//! not keep anybody from cancelling it.

mod catalogs;
mod failure;
mod parameters;
mod statement;

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use quarrier_wire::{
    Answers, Asker, Board, Failure, Ingest, Prepared, Reply, Result, Stop, TableInfo, Value, Wish,
    state,
};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::{Answer, Engine, Error, Rows};

use catalogs::Catalogs;
use failure::failed;
use statement::Understood;

/// What is served.
#[derive(Debug)]
pub struct Serving {
    /// What answers.
    pub engine: Arc<Engine>,
    /// Where statements run.
    pub runtime: Handle,
    /// Who is here and what runs.
    pub board: Arc<Board>,
}

/// An engine that is served.
pub struct Served {
    engine: Arc<Engine>,
    runtime: Handle,
    catalogs: Catalogs,
    tables: Vec<TableInfo>,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Served {
    /// Serves the tables that are open in an engine.
    ///
    /// # Errors
    /// Where catalogs cannot be made of them.
    pub async fn new(serving: Serving) -> crate::Result<Self> {
        let Serving { engine, runtime, board } = serving;
        let mut tables = Vec::new();
        for name in engine.tables() {
            let Some(columns) = engine.columns_of(&name).await else { continue };
            let rows = engine.rows_of(&name).await;
            tables.push(TableInfo { name, columns, rows, bytes: None, grows: false });
        }
        let catalogs = Catalogs::new(&tables, board)?;
        Ok(Served { engine, runtime, catalogs, tables })
    }

    /// Does work on the runtime of statements; it ends when nobody waits for it any more.
    async fn there<T: Send + 'static>(
        &self,
        work: impl Future<Output = crate::Result<T>> + Send + 'static,
    ) -> Result<T> {
        let mut task = Task(self.runtime.spawn(work));
        let done = (&mut task.0).await;
        let done = done.map_err(|_| Failure::new(state::INTERNAL, "the statement met a defect"))?;
        done.map_err(|error| failed(&error))
    }

    async fn prepared(
        &self,
        asker: &Asker,
        text: &str,
        told: &[u32],
        describes: bool,
    ) -> Result<Prepared> {
        if self.catalogs.is_asked(text)? {
            return self.catalogs.prepared(asker, text, told).await;
        }
        let engine = Arc::clone(&self.engine);
        let (text, told) = (text.to_string(), told.to_vec());
        self.there(async move { Ok(statement::understood(&engine, &text, &told, describes).await) })
            .await?
    }

    async fn answered(&self, prepared: &Prepared, values: Vec<Value>) -> Result<Reply> {
        if let Some(asked) = prepared.inner.downcast_ref::<catalogs::Asked>() {
            return self.catalogs.answered(asked, &values).await;
        }
        let Some(understood) = prepared.inner.downcast_ref::<Understood>() else {
            return Err(Failure::new(state::INTERNAL, "a statement of another server"));
        };
        let statement = understood.with(&self.engine, &values)?;
        let engine = Arc::clone(&self.engine);
        let answer = self.there(async move { engine.run_query(&statement).await }).await?;
        let Answer::Rows(rows) = answer else {
            return Err(Failure::new(state::UNSUPPORTED, "only queries are answered here"));
        };
        Ok(Reply::Rows(statement::as_described(of_engine(rows), prepared.columns.clone())))
    }
}

/// Ends when it is dropped.
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
            Ok(Some(batch)) => Some((Ok(batch), Some(rows))),
            Err(error) => Some((Err(failed(&error)), None)),
        }
    });
    quarrier_wire::Rows { schema, batches: batches.boxed() }
}

impl Answers for Served {
    fn prepare<'a>(
        &'a self,
        asker: &'a Asker,
        text: &'a str,
        told: &'a [u32],
        describes: bool,
    ) -> BoxFuture<'a, Result<Prepared>> {
        self.prepared(asker, text, told, describes).boxed()
    }

    fn run<'a>(
        &'a self,
        _asker: &'a Asker,
        prepared: &'a Prepared,
        values: Vec<Value>,
        _stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Reply>> {
        // What runs is dropped when it is stopped.
        self.answered(prepared, values).boxed()
    }

    fn ingest<'a>(
        &'a self,
        _asker: &'a Asker,
        wish: Wish,
    ) -> BoxFuture<'a, Result<Box<dyn Ingest>>> {
        let known = self.tables.iter().any(|table| table.name == wish.table);
        let failure = match known {
            false => {
                let said = format!("relation \"{}\" does not exist", wish.table);
                Failure::new(state::NO_TABLE, said)
            }
            true => {
                let said = format!("table {} is a file, and takes no messages", wish.table);
                Failure::new(state::UNSUPPORTED, said)
            }
        };
        async { Err(failure) }.boxed()
    }

    fn tables(&self) -> Vec<TableInfo> {
        self.tables.clone()
    }
}
