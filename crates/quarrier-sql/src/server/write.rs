//! Statements that write: CREATE TABLE, INSERT, UPDATE and DELETE on tables of the data folder.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::sql::sqlparser::ast;
use futures::{FutureExt, StreamExt};
use quarrier::kept::{AppendResult, PendingAppend};
use quarrier_wire::{
    Bytes, Durable, Failure, IngestTarget, Prepared, Reply, Result, TableInfo, Value, message,
    state, values,
};
use tokio::runtime::Handle;

use super::create::{Create, create};
use super::failure::{failed, of_folder};
use super::ingest::IngestSession;
use super::insert::{Insert, Rows, insert, table_of};
use super::keyed::{
    Removal, TableLock, alone, delete, key_of, shared, table_of_delete, table_of_update, update,
};
use super::{info, of_engine, parameters, read_only, statement};
use crate::{Answer, Engine};

/// Minimum size of the pieces in which rows of a query are passed on, in bytes.
const HANDED_BYTES: usize = 128 << 10;

/// A statement that writes.
pub(super) enum Write {
    Create(Create),
    Insert {
        insert: Insert,
        are_all: bool,
    },
    /// Rows that replace those they were computed from.
    Update(Insert),
    Delete(Removal),
}

/// Maximum number of rows of a small INSERT.
const SMALL_ROWS_MAX: usize = 64;

/// Maximum size of the keys of a DELETE, which are held in memory.
const KEYS_BYTES_MAX: usize = 256 << 20;

/// Returns the verb of a statement that changes tables, in capitals; `None` for others.
pub(super) fn verb(text: &str) -> Option<&'static str> {
    const VERBS: [&str; 8] =
        ["INSERT", "CREATE", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "DROP", "ALTER"];
    let mut rest = text.trim_start();
    loop {
        let end = match rest.as_bytes() {
            [b'-', b'-', ..] => rest.find('\n')?,
            [b'/', b'*', ..] => rest.find("*/")? + 2,
            _ => break,
        };
        rest = rest.get(end..)?.trim_start();
    }
    let word = rest.split(|letter: char| !letter.is_ascii_alphabetic()).next()?;
    VERBS.into_iter().find(|verb| verb.eq_ignore_ascii_case(word))
}

fn not_there(verb: &str) -> Failure {
    let failure = Failure::new(state::UNSUPPORTED, format!("{verb} is not supported here"));
    match verb {
        "CREATE" => failure.hint("only CREATE TABLE is supported"),
        _ => failure,
    }
}

/// Checks a statement and converts it, on the runtime of statements, since its tree may be deep.
pub(super) async fn prepare(
    engine: &Engine,
    verb: &'static str,
    text: &str,
    declared: &[u32],
) -> Result<Prepared> {
    let parsed = statement::parsed(engine, text)?;
    let (tag, parameters, write) = match parsed.tree() {
        Some(ast::Statement::CreateTable(tree)) => {
            if engine.kept().is_none() {
                let said = "there is no data folder to create tables in";
                let failure = Failure::new(state::READ_ONLY, said);
                return Err(failure.hint("start the server with --data FOLDER"));
            }
            ("CREATE TABLE", Vec::new(), Write::Create(create(tree)?))
        }
        Some(ast::Statement::Insert(tree)) => {
            let table = written_to(engine, &table_of(tree)?).await?;
            let insert = insert(tree, &table, &key_of(engine, &table.name)?)?;
            let count = parameters::count(text)?;
            let kinds = match &insert.rows {
                _ if count == 0 => Vec::new(),
                Rows::Values(_) => insert.kinds(text, declared)?,
                Rows::Query(query) => parameters::kinds(engine, query, count, declared).await?,
            };
            return Ok(insertion(insert, tree, kinds));
        }
        Some(ast::Statement::Update(tree)) => {
            let table = written_to(engine, &table_of_update(tree)?).await?;
            let query = update(tree, &table, &key_of(engine, &table.name)?)?;
            let kinds = kinds_of(engine, text, &query, declared).await?;
            ("UPDATE", kinds, Write::Update(Insert::of_query(&table, query)))
        }
        Some(ast::Statement::Delete(tree)) => {
            let table = written_to(engine, &table_of_delete(tree)?).await?;
            let removal = delete(tree, &table, key_of(engine, &table.name)?)?;
            let kinds = kinds_of(engine, text, &removal.query, declared).await?;
            ("DELETE", kinds, Write::Delete(removal))
        }
        _ => return Err(not_there(verb)),
    };
    let (tag, inner) = (tag.to_string(), Arc::new(write));
    Ok(Prepared { parameters, columns: None, tag, changes: true, inner })
}

fn insertion(insert: Insert, tree: &ast::Insert, parameters: Vec<u32>) -> Prepared {
    let are_all = tree.columns.is_empty();
    let (tag, inner) = ("INSERT 0".to_string(), Arc::new(Write::Insert { insert, are_all }));
    Prepared { parameters, columns: None, tag, changes: true, inner }
}

/// Converts an INSERT of a few values into a declared table, which takes less time than a switch to another
/// thread. `None` for other statements, and for invalid ones.
pub(super) fn prepare_now(engine: &Engine, text: &str, declared: &[u32]) -> Option<Prepared> {
    let mut statements = engine.shallow_statements(text)?;
    let statement = statements.pop().filter(|_| statements.is_empty())?;
    let Some(ast::Statement::Insert(tree)) = statement.tree() else { return None };
    let table = engine.shown(&table_of(tree).ok()?).map(info)?;
    if !(table.is_declared && table.grows) {
        return None;
    }
    let insert = insert(tree, &table, &key_of(engine, &table.name).ok()?).ok()?;
    let kinds = match parameters::count(text).ok()? {
        0 => Vec::new(),
        _ => insert.kinds(text, declared).ok()?,
    };
    match insert.rows {
        Rows::Values(_) => Some(insertion(insert, tree, kinds)),
        Rows::Query(_) => None,
    }
}

impl Write {
    /// Whether it takes less time than a switch to another thread.
    pub(super) fn is_small(&self) -> bool {
        match self {
            Write::Insert { insert: Insert { rows: Rows::Values(rows), .. }, .. } => {
                rows.len() <= SMALL_ROWS_MAX
            }
            _ => false,
        }
    }
}

/// Returns the current state of a table, if it accepts messages.
async fn written_to(engine: &Engine, name: &str) -> Result<TableInfo> {
    // Messages change no declared columns, and renewing the table takes longer than an INSERT.
    let is_known = engine.shown(name).is_some_and(|table| table.is_declared);
    if !is_known {
        engine.renew(name).await.map_err(|error| failed(&error))?;
    }
    let Some(table) = engine.shown(name).map(info) else {
        let said = format!("relation \"{name}\" does not exist");
        return Err(Failure::new(state::NO_TABLE, said));
    };
    if table.grows { Ok(table) } else { Err(read_only(&table.name)) }
}

/// Returns the types of a statement's parameters, inferred from its query.
async fn kinds_of(engine: &Engine, text: &str, query: &str, declared: &[u32]) -> Result<Vec<u32>> {
    match parameters::count(text)? {
        0 => Ok(Vec::new()),
        count => parameters::kinds(engine, query, count, declared).await,
    }
}

/// Executes a statement on `runtime`, the runtime of statements.
pub(super) async fn run(
    engine: &Engine,
    runtime: &Handle,
    write: &Write,
    values: &[Value],
) -> Result<Reply> {
    match write {
        Write::Create(create) => made(engine, create).await,
        Write::Insert { insert, are_all } => {
            inserted((engine, runtime), (insert, *are_all), values, None).await
        }
        Write::Update(insert) => {
            let held = alone(engine, &insert.table).await;
            inserted((engine, runtime), (insert, true), values, held).await
        }
        Write::Delete(removal) => removed((engine, runtime), removal, values).await,
    }
}

/// Inserts rows. The lock `held` is kept until they are durable.
async fn inserted(
    (engine, runtime): (&Engine, &Handle),
    (insert, are_all): (&Insert, bool),
    values: &[Value],
    mut held: Option<TableLock>,
) -> Result<Reply> {
    let format = Some("json".to_string());
    let target = IngestTarget {
        table: insert.table.clone(),
        format,
        is_whole: true,
        ..IngestTarget::default()
    };
    let mut taking = IngestSession::new(engine, &insert.table, &target, runtime)?;
    let rows = match &insert.rows {
        Rows::Values(rows) => {
            let (messages, rows) = insert.messages(rows, values)?;
            taking.pushed(Bytes::from(messages)).await?;
            rows
        }
        Rows::Query(query) => {
            selected(engine, (insert, are_all), query, values, &mut taking).await?
        }
    };
    if held.is_none() {
        held = shared(engine, &insert.table).await?;
    }
    let sent = taking.sent().await?;
    Ok(Reply::Sent(Some(rows), durable(runtime, sent, held)))
}

/// Waits until rows are durable. A client may poll this much later, at its COMMIT, so a task
/// releases the lock.
fn durable(runtime: &Handle, sent: PendingAppend, held: Option<TableLock>) -> Durable {
    let done = |taken: quarrier_messages::Result<AppendResult>| {
        taken.map(drop).map_err(|error| of_folder(&error.into()))
    };
    if held.is_none() {
        return async move { done(sent.durable().await) }.boxed();
    }
    let waiting = runtime.spawn(async move {
        let taken = sent.durable().await;
        drop(held);
        taken
    });
    let defect = || Failure::new(state::INTERNAL, "internal error while storing the rows");
    async move { done(waiting.await.map_err(|_| defect())?) }.boxed()
}

/// Removes the rows whose keys a query returns.
async fn removed(
    (engine, runtime): (&Engine, &Handle),
    removal: &Removal,
    parameters: &[Value],
) -> Result<Reply> {
    let Some(kept) = engine.kept() else { return Err(read_only(&removal.table)) };
    let held = alone(engine, &removal.table).await;
    let mut rows = queried(engine, &removal.query, parameters).await?;
    let (mut count, mut lines) = (0, Vec::new());
    while let Some(batch) = rows.batches.next().await {
        let batch = batch?;
        for row in values(&batch)? {
            message(removal.key.iter().map(String::as_str).zip(&row), &mut lines)?;
            count += 1;
        }
        if lines.len() > KEYS_BYTES_MAX {
            let said = format!("the keys of these rows take more than {KEYS_BYTES_MAX} bytes");
            return Err(Failure::new(state::LIMIT, said).hint("delete some of them at a time"));
        }
    }
    let (kept, table) = (Arc::clone(kept), removal.table.clone());
    let remove = move || kept.remove_lines(&table, &lines, &AtomicBool::new(false));
    let sent = runtime.spawn_blocking(remove).await;
    let sent =
        sent.map_err(|_| Failure::new(state::INTERNAL, "internal error while removing the rows"))?;
    let sent = sent.map_err(|error| of_folder(&error))?;
    Ok(Reply::Sent(Some(count), durable(runtime, sent, held)))
}

/// Runs a query with values for its parameters, and returns its rows.
async fn queried(engine: &Engine, query: &str, values: &[Value]) -> Result<quarrier_wire::Rows> {
    let text = parameters::with_values(query, values)?;
    let statement = statement::parsed(engine, &text)?;
    let answer = engine.run_query(&statement).await.map_err(|error| failed(&error))?;
    match answer {
        Answer::Rows(rows) => Ok(of_engine(rows)),
        _ => Err(Failure::new(state::SYNTAX, "expected the rows of a query")),
    }
}

async fn made(engine: &Engine, create: &Create) -> Result<Reply> {
    let Create { name, definition, retention, is_optional } = create;
    let is_made = match engine.shown(name) {
        Some(_) => false,
        None => {
            let made = engine.make(name, (definition.clone(), *retention)).await;
            made.map_err(|error| failed(&error))?.map_err(|error| of_folder(&error))?
        }
    };
    if !is_made && !is_optional {
        let said = format!("relation \"{name}\" already exists");
        return Err(Failure::new(state::TABLE_TAKEN, said));
    }
    Ok(Reply::Done(None))
}

/// Appends the rows of a query. Returns their number.
async fn selected(
    engine: &Engine,
    (insert, are_all): (&Insert, bool),
    query: &str,
    parameters: &[Value],
    taking: &mut IngestSession,
) -> Result<u64> {
    let mut rows = queried(engine, query, parameters).await?;
    insert.check(rows.schema.fields().len(), are_all)?;
    let (mut count, mut messages) = (0, Vec::new());
    while let Some(batch) = rows.batches.next().await {
        let batch = batch?;
        for row in values(&batch)? {
            insert.message(row, &mut messages)?;
            count += 1;
            if messages.len() >= HANDED_BYTES {
                taking.pushed(Bytes::from(std::mem::take(&mut messages))).await?;
            }
        }
    }
    taking.pushed(Bytes::from(messages)).await?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::verb;

    #[test]
    fn writing_statements_are_detected_by_their_first_word() {
        for (text, expected) in [
            ("insert into t values (1)", Some("INSERT")),
            (" /* a */ -- b\n CREATE TABLE t ()", Some("CREATE")),
            ("inserted", None),
            ("SELECT 'INSERT'", None),
            ("-- INSERT", None),
            ("/* INSERT", None),
            ("", None),
        ] {
            assert_eq!(verb(text), expected, "{text}");
        }
    }
}
