//! Runs statements on the engine of `quarrier query`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use quarrier_filter::Query;
use quarrier_messages::{HiddenColumns, Schema};
use quarrier_native::sql::{self, Answers, InputTable, Refused, StatementBatch};
use quarrier_sql::{Answer, Engine, Options, Rows, Statement, scan_answers, usable_memory};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::packed::packed;
use crate::refused::refused;

/// The engine. It exists for one call: no thread outlives the call, and files are read again each
/// time.
#[derive(Debug)]
pub(crate) struct Full;

/// How often a waiting call checks whether it was cancelled.
const PERIOD: Duration = Duration::from_millis(20);

/// How long threads may take to finish their current work.
const GRACE: Duration = Duration::from_secs(1);

/// Stack size for statements of the maximum depth.
const STACK_BYTES: usize = 256 << 20;

impl sql::Engine for Full {
    fn leaves_to_scan(&self, query: &Query, schema: &Schema) -> bool {
        scan_answers(query, schema)
    }

    fn answer(&self, asked: StatementBatch, stop: &Arc<AtomicBool>) -> Result<Answers, Refused> {
        let runtime = runtime(asked.workers)?;
        let (sender, answer) = sync_channel(1);
        let its_stop = Arc::clone(stop);
        let task = runtime.spawn(async move {
            // Sending fails if the call was cancelled.
            let _ = sender.send(answers(asked, its_stop).await);
        });
        let answers = loop {
            match answer.recv_timeout(PERIOD) {
                Ok(answers) => break answers,
                Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
                Err(RecvTimeoutError::Timeout) => break Err(Refused::Stopped),
                Err(RecvTimeoutError::Disconnected) => {
                    let reason = "the engine ended before there was an answer".to_string();
                    break Err(Refused::Engine { reason });
                }
            }
        };
        task.abort();
        runtime.shutdown_timeout(GRACE);
        answers
    }
}

fn runtime(workers: usize) -> Result<Runtime, Refused> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).thread_stack_size(STACK_BYTES).thread_name("quarrier-sql");
    let failed = |error| Refused::Engine { reason: format!("no threads to work with: {error}") };
    builder.build().map_err(failed)
}

async fn answers(asked: StatementBatch, stop: Arc<AtomicBool>) -> Result<Answers, Refused> {
    let StatementBatch { tables, statements, workers, environment, machine } = asked;
    let memory_bytes_max = usable_memory();
    let named = statements.iter().map(|text| HiddenColumns::named_in(text));
    let hidden = named.fold(HiddenColumns::default(), |all, one| all | one);
    let options = Options {
        workers,
        memory_bytes_max,
        hidden,
        stop,
        environment,
        machine,
        ..Options::default()
    };
    let engine = Engine::new(options).map_err(refused)?;
    for (name, table) in tables {
        match table {
            InputTable::Rows(sql::Rows::Packed(table)) => engine.add(&name, table),
            InputTable::Rows(sql::Rows::Arrow(shown)) => {
                let (schema, batches) = (Arc::clone(&shown.schema), shown.batches.clone());
                engine.add_batches(&name, schema, batches)
            }
            InputTable::File(file) => engine.open(&name, &file).await,
        }
        .map_err(refused)?;
    }
    let begun = match statements.as_slice() {
        [one] => vec![alone(&engine, one).await?],
        several => together(&engine, several).await?,
    };
    let mut rows = Vec::with_capacity(begun.len());
    for answer in begun {
        let handle = Handle::current();
        let packing = tokio::task::spawn_blocking(move || packed(answer, &handle, workers));
        let failed = |error| Refused::Engine { reason: format!("an answer ended early: {error}") };
        rows.push(packing.await.map_err(failed)??);
    }
    let (loaded, notes, notices) =
        (engine.take_loaded(), engine.take_notes(), engine.take_notices());
    let rejected = loaded.rejects_by_file.iter().map(|file| file.count).sum();
    Ok(Answers { rows, rejects: loaded.rejects, rejected, notes, notices })
}

/// Begins to run a single statement.
async fn alone(engine: &Engine, text: &str) -> Result<Rows, Refused> {
    if let Some(rows) = engine.run_at_once(text) {
        return rows.map_err(refused);
    }
    match engine.run(&only(engine, text)?).await.map_err(refused)? {
        Answer::Rows(rows) => Ok(rows),
        Answer::Copy { .. } => Err(wrong("COPY cannot write files here; write the rows yourself")),
    }
}

/// Begins to run several statements together.
async fn together(engine: &Engine, queries: &[String]) -> Result<Vec<Rows>, Refused> {
    let statements =
        queries.iter().map(|text| only(engine, text)).collect::<Result<Vec<_>, _>>()?;
    let rows = engine.run_together(&statements).await.map_err(refused)?;
    rows.into_iter().map(|rows| rows.map_err(refused)).collect()
}

/// Parses a text that must hold exactly one statement.
fn only(engine: &Engine, text: &str) -> Result<Statement, Refused> {
    let mut statements = engine.statements(text).map_err(refused)?;
    match (statements.pop(), statements.len()) {
        (Some(statement), 0) => Ok(statement),
        (None, _) => Err(wrong("the text contains no statement")),
        (_, more) => Err(wrong(&format!("{} statements in one text; run one at a time", more + 1))),
    }
}

fn wrong(reason: &str) -> Refused {
    Refused::Statement { reason: reason.to_string(), place: None }
}
