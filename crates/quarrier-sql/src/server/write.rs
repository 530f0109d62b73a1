//! Statements that write: CREATE TABLE and INSERT, over the tables of the data folder.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use futures::{FutureExt, StreamExt};
use quarrier_wire::{
    Bytes, Durable, Failure, IngestTarget, Prepared, Reply, Result, Value, literal,
    parameter_count, state, values, with_parameters,
};
use tokio::runtime::Handle;

use super::create::{Create, create};
use super::failure::{failed, of_folder};
use super::ingest::Taking;
use super::insert::{Insert, Rows, insert, table_of};
use super::{info, of_engine, parameters, read_only, statement};
use crate::{Answer, Engine};

/// Rows of a query are passed on once they have this many bytes.
const HANDED_BYTES: usize = 128 << 10;

/// A statement that writes.
pub(super) enum Write {
    Create(Create),
    Insert { insert: Insert, are_all: bool },
}

/// The first word of a statement that changes tables, in capitals; None of another one.
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
        "UPDATE" | "DELETE" => failure.hint("kept tables grow by INSERT, COPY and POST alone"),
        "CREATE" => failure.hint("CREATE TABLE makes tables"),
        _ => failure,
    }
}

/// Reads a statement, on a thread of statements: trees may be deep.
pub(super) async fn prepare(
    engine: &Engine,
    verb: &'static str,
    text: &str,
    told: &[u32],
) -> Result<Prepared> {
    let parsed = statement::parsed(engine, text)?;
    let (tag, parameters, write) = match parsed.tree() {
        Some(ast::Statement::CreateTable(tree)) => {
            if engine.kept().is_none() {
                let said = "there is no data folder to make tables in";
                let failure = Failure::new(state::READ_ONLY, said);
                return Err(failure.hint("start the server with --data FOLDER"));
            }
            ("CREATE TABLE", Vec::new(), Write::Create(create(tree)?))
        }
        Some(ast::Statement::Insert(tree)) => {
            let name = table_of(tree)?;
            engine.renew(&name).await.map_err(|error| failed(&error))?;
            let Some(table) = engine.shown(&name).map(info) else {
                let said = format!("relation \"{name}\" does not exist");
                return Err(Failure::new(state::NO_TABLE, said));
            };
            if !table.grows {
                return Err(read_only(&table.name));
            }
            let are_all = tree.columns.is_empty();
            let insert = insert(tree, &table)?;
            let count = parameter_count(text)?;
            let kinds = match &insert.rows {
                _ if count == 0 => Vec::new(),
                Rows::Values(_) => insert.kinds(text, told)?,
                Rows::Query(query) => parameters::kinds(engine, query, count, told).await?,
            };
            ("INSERT 0", kinds, Write::Insert { insert, are_all })
        }
        _ => return Err(not_there(verb)),
    };
    let (tag, inner) = (tag.to_string(), Arc::new(write));
    Ok(Prepared { parameters, columns: None, tag, changes: true, inner })
}

/// Runs a statement that changes tables, on the runtime of statements, whose handle it gets.
pub(super) async fn run(
    engine: &Engine,
    runtime: &Handle,
    write: &Write,
    values: &[Value],
) -> Result<Reply> {
    match write {
        Write::Create(create) => made(engine, create).await,
        Write::Insert { insert, are_all } => {
            let format = Some("json".to_string());
            let target = IngestTarget {
                table: insert.table.clone(),
                format,
                is_whole: true,
                ..IngestTarget::default()
            };
            let mut taking = Taking::new(engine, &insert.table, &target, runtime)?;
            let rows = match &insert.rows {
                Rows::Values(rows) => {
                    let (messages, rows) = insert.messages(rows, values)?;
                    taking.pushed(Bytes::from(messages)).await?;
                    rows
                }
                Rows::Query(query) => {
                    selected(engine, (insert, *are_all), query, values, &mut taking).await?
                }
            };
            let sent = taking.sent().await?;
            let durable: Durable = async move {
                let taken = sent.durable().await;
                taken.map(drop).map_err(|error| of_folder(&error.into()))
            }
            .boxed();
            Ok(Reply::Sent(Some(rows), durable))
        }
    }
}

async fn made(engine: &Engine, create: &Create) -> Result<Reply> {
    let Create { name, definition, is_optional } = create;
    let is_made = match engine.shown(name) {
        Some(_) => false,
        None => {
            let made = engine.make(name, definition.clone()).await;
            made.map_err(|error| failed(&error))?.map_err(|error| of_folder(&error))?
        }
    };
    if !is_made && !is_optional {
        let said = format!("relation \"{name}\" already exists");
        return Err(Failure::new(state::TABLE_TAKEN, said));
    }
    Ok(Reply::Done(None))
}

/// Takes the rows of a query. Returns how many they are.
async fn selected(
    engine: &Engine,
    (insert, are_all): (&Insert, bool),
    query: &str,
    parameters: &[Value],
    taking: &mut Taking,
) -> Result<u64> {
    let text = with_parameters(query, |place| parameters.get(place).map(literal))?;
    let statement = statement::parsed(engine, &text)?;
    let answer = engine.run_query(&statement).await.map_err(|error| failed(&error))?;
    let Answer::Rows(rows) = answer else {
        return Err(Failure::new(state::SYNTAX, "INSERT takes the rows of a query"));
    };
    let mut rows = of_engine(rows);
    insert.check(rows.schema.fields().len(), are_all)?;
    let (mut count, mut messages) = (0, Vec::new());
    while let Some(batch) = rows.batches.next().await {
        for row in values(&batch?)? {
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
    fn statements_that_write_are_told_by_their_first_word() {
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
