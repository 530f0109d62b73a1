//! Statements over tables: the scan answers the simple statements over one table, an engine all
//! others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use quarrier_core::parallel::planned_workers;
use quarrier_filter::{Error, Query, Scan, sql as filter};
use quarrier_messages::Table as Packed;

use super::{Table, arrow, hidden, parameters};
use crate::count::Count;
use crate::errors::{of_filter, of_sql, raise, warn};
use crate::host;
use crate::interrupt::interruptible;
use crate::source::path_of;
use crate::sql::{self, Answers, Engine, InputTable, Refused, Rows, StatementBatch};

/// Why a statement has no answer.
enum Failure {
    Filter(Error),
    Sql(Refused),
}

/// A table, and the statements bound over it, or the error of the first invalid one.
type Queries = (Arc<Packed>, Result<Vec<Query>, Error>);

/// Answers statements over a table of this name.
pub(super) fn of_table(
    py: Python<'_>,
    rows: &Rows,
    name: &str,
    statements: Vec<String>,
    workers: Option<Count>,
) -> PyResult<Vec<Table>> {
    let tables = vec![(name.to_string(), InputTable::Rows(rows.clone()))];
    answer(py, Some(name), tables, statements, Count::or_auto(workers))
}

/// Answers a statement over tables passed by name, over files (`FROM 'orders.ndjson'`), and over
/// the results of `search('disk.img', 'patterns.txt')`, `carve('disk.img')` and `gauge('memory')`.
///
/// A table is a path, a `Table`, or any object that exports Arrow data: pyarrow, pandas, polars.
/// The shared scan of a table answers `SELECT … FROM … [WHERE …] [ORDER BY …] [LIMIT …]`. All other
/// SQL needs the engine of `quarrier query`, which `quarrier[sql]` installs.
///
/// >>> orders = b'{"side": "B", "qty": 7}\n{"side": "S", "qty": 8}\n'
/// >>> query("SELECT qty FROM orders WHERE side = 'S'", orders=orders).to_pylist()
/// [{'qty': 8}]
///
/// `params` are the values of `?`, or of `$1`, `$2` and so on. They never change the structure of
/// the statement.
///
/// >>> query("SELECT side FROM orders WHERE qty < ?", params=[8], orders=orders).to_pylist()
/// [{'side': 'B'}]
#[pyfunction]
#[pyo3(signature = (sql, /, *, params=None, **tables))]
pub(crate) fn query(
    py: Python<'_>,
    sql: &str,
    params: Option<&Bound<'_, PyAny>>,
    tables: Option<&Bound<'_, PyDict>>,
) -> PyResult<Table> {
    let sql = &*parameters::bound(py, sql, params)?;
    let named = py.detach(|| filter::table(sql));
    let hidden = hidden::named_in([sql]);
    let all = tables.map(|tables| tables.iter().map(|(name, table)| Ok((name.extract()?, table))));
    let mut all: Vec<(String, Bound<'_, PyAny>)> =
        all.into_iter().flatten().collect::<PyResult<_>>()?;
    if sql::engine().is_none() {
        let named = named.map_err(|error| of_filter(py, &error))?;
        let table = match named.is_file {
            true => (Table::loaded_from_name(py, &named.name, hidden)?.rows, None),
            false => in_memory(&all[place_of(py, &all, &named.name)?].1, sql)?,
        };
        let (table, missing) = table;
        let tables = vec![(named.name.clone(), InputTable::Rows(table))];
        let answers = answer(py, Some(&named.name), tables, vec![sql.to_string()], 0);
        return only(answers.map_err(|error| missing.unwrap_or(error)));
    }
    // Load only tables that the statement may name.
    let text = sql.to_lowercase();
    all.retain(|(name, _)| name.contains('"') || text.contains(&name.to_lowercase()));
    let mut missing = None;
    let tables = all.iter().map(|(name, table)| {
        let (given, error) = given(table, sql)?;
        missing = error.or(missing.take());
        Ok((name.clone(), given))
    });
    let tables = tables.collect::<PyResult<Vec<_>>>()?;
    let scanned = match named {
        Ok(named) if !named.is_file => {
            place_of(py, &all, &named.name).ok().map(|place| all[place].0.clone())
        }
        _ => None,
    };
    let answers = answer(py, scanned.as_deref(), tables, vec![sql.to_string()], 0);
    only(answers.map_err(|error| missing.unwrap_or(error)))
}

fn only(answers: PyResult<Vec<Table>>) -> PyResult<Table> {
    Ok(answers?.pop().unwrap_or_default())
}

/// Finds the table of this name; case matters only if several names differ by it.
fn place_of(py: Python<'_>, all: &[(String, Bound<'_, PyAny>)], name: &str) -> PyResult<usize> {
    if let Some(exact) = all.iter().position(|(known, _)| known == name) {
        return Ok(exact);
    }
    let is_alike = |known: &String| known.eq_ignore_ascii_case(name);
    let mut alike = (0..all.len()).filter(|&place| is_alike(&all[place].0));
    if let (Some(only), None) = (alike.next(), alike.next()) {
        return Ok(only);
    }
    let message = format!(
        "there is no table '{name}'; give it one, query(sql, {name}=…), or name a file in single \
         quotes, FROM 'orders.ndjson'"
    );
    Err(raise(py, "QuarrierError", (message,)))
}

/// Returns a table in memory with the hidden columns that a statement names, or without them and
/// the reason.
fn in_memory(table: &Bound<'_, PyAny>, sql: &str) -> PyResult<(Rows, Option<PyErr>)> {
    if let Ok(known) = table.cast::<Table>() {
        return Ok(known.get().rows_for(table.py(), [sql]));
    }
    if table.hasattr("__arrow_c_stream__")? || table.hasattr("__arrow_c_array__")? {
        return Ok((Rows::Packed(Arc::new(arrow::import(table, 0)?)), None));
    }
    Ok((Table::loaded(table, hidden::named_in([sql]))?.rows, None))
}

/// Prepares a table for the engine, which opens files itself.
fn given(table: &Bound<'_, PyAny>, sql: &str) -> PyResult<(InputTable, Option<PyErr>)> {
    let is_in_memory = table.is_instance_of::<Table>()
        || table.hasattr("__arrow_c_stream__")?
        || table.hasattr("__arrow_c_array__")?;
    if !is_in_memory
        && let Some(path) = path_of(table)?
        && let Ok(name) = path.into_os_string().into_string()
    {
        return Ok((InputTable::File(name), None));
    }
    let (rows, missing) = in_memory(table, sql)?;
    Ok((InputTable::Rows(rows), missing))
}

/// Answers the statements, with one result each. `scanned` is the name of the table that a scan may
/// answer them all over.
fn answer(
    py: Python<'_>,
    scanned: Option<&str>,
    tables: Vec<(String, InputTable)>,
    statements: Vec<String>,
    workers: usize,
) -> PyResult<Vec<Table>> {
    let workers = planned_workers(workers);
    let asked = |stop: &Arc<AtomicBool>| answers(scanned, tables, statements, workers, stop);
    let answers = interruptible(py, asked)?;
    let answers = answers.map_err(|failure| match failure {
        Failure::Filter(error) => of_filter(py, &error),
        Failure::Sql(refused) => of_sql(py, &refused),
    })?;
    warn(py, "SourceWarning", &answers.notices)?;
    warn(py, "UnreadableWarning", &answers.notes)?;
    let Answers { rows, rejects, rejected, .. } = answers;
    let mut tables: Vec<Table> = rows.into_iter().map(Table::of).collect();
    if let Some(first) = tables.first_mut() {
        (first.rejects, first.rejected) = (rejects, rejected);
    }
    Ok(tables)
}

fn answers(
    scanned: Option<&str>,
    tables: Vec<(String, InputTable)>,
    statements: Vec<String>,
    workers: usize,
    stop: &Arc<AtomicBool>,
) -> Result<Answers, Failure> {
    let table = scanned.and_then(|name| tables.iter().find(|(known, _)| known == name));
    let packed = table.and_then(|(name, given)| match given {
        InputTable::Rows(Rows::Packed(table)) => Some((name.clone(), Arc::clone(table))),
        _ => None,
    });
    let bound = packed.map(|(name, table)| {
        let queries = bound(&table, &name, &statements, stop);
        (table, queries)
    });
    let engine = sql::engine();
    let is_scanned = |table: &Packed, queries: &[Query]| {
        let leaves = |engine: &dyn Engine, query| engine.leaves_to_scan(query, table.schema());
        engine.is_none_or(|engine| queries.iter().all(|query| leaves(engine, query)))
    };
    match (engine, bound) {
        (_, Some((table, Ok(queries)))) if is_scanned(&table, &queries) => {
            scan(&table, &queries, workers, stop).map_err(Failure::Filter)
        }
        (Some(engine), bound) => {
            let (environment, machine) = host::environment_and_machine();
            let asked = StatementBatch { tables, statements, workers, environment, machine };
            let answered = engine.answer(asked, stop);
            answered.map_err(|refused| prefer_scan_error(refused, bound, workers, stop))
        }
        (None, Some((_, Err(error)))) => Err(Failure::Filter(error)),
        (None, _) => {
            let reason = "without quarrier-sql only tables in packed columns can be queried".into();
            Err(Failure::Sql(Refused::Engine { reason }))
        }
    }
}

/// Prefers the scan's error to the engine's if it has a position in the statement or a row.
fn prefer_scan_error(
    refused: Refused,
    bound: Option<Queries>,
    workers: usize,
    stop: &AtomicBool,
) -> Failure {
    match (&refused, bound) {
        (
            Refused::Statement { .. } | Refused::UnknownColumn { .. },
            Some((_, Err(error @ (Error::Text { .. } | Error::Column { .. })))),
        ) => Failure::Filter(error),
        (Refused::Value { .. }, Some((table, Ok(queries)))) => {
            match scan(&table, &queries, workers, stop) {
                Err(error @ Error::Row { .. }) => Failure::Filter(error),
                _ => Failure::Sql(refused),
            }
        }
        _ => Failure::Sql(refused),
    }
}

fn scan(
    table: &Packed,
    queries: &[Query],
    workers: usize,
    stop: &AtomicBool,
) -> Result<Answers, Error> {
    let answers = Scan::new(table, queries).workers(workers).cancel(stop).run();
    let shown = queries.iter().zip(answers);
    let tables = shown.map(|(query, answer)| query.project(table, &answer?, workers, stop));
    let rows = tables.map(|table| Ok(Rows::Packed(Arc::new(table?))));
    Ok(Answers { rows: rows.collect::<Result<_, Error>>()?, ..Answers::default() })
}

/// Binds the statements as queries, or returns the first error. Checks `stop` before each.
fn bound(
    table: &Packed,
    name: &str,
    statements: &[String],
    stop: &AtomicBool,
) -> Result<Vec<Query>, Error> {
    let bound = statements.iter().map(|text| match stop.load(Ordering::Relaxed) {
        true => Err(Error::Cancelled),
        false => filter::statement_of(text, name, table),
    });
    bound.collect()
}

/// Explains how the scan answers the statements together; it runs them for that.
pub(super) fn explain(
    py: Python<'_>,
    rows: &Rows,
    name: &str,
    statements: &[String],
    workers: Option<Count>,
) -> PyResult<String> {
    let Rows::Packed(table) = rows else {
        let message = "the rows are not in packed columns; use query(\"EXPLAIN …\")";
        return Err(raise(py, "UnansweredError", (message, 0, 0, message)));
    };
    let workers = Count::or_auto(workers);
    let explained: Result<String, Error> = interruptible(py, |stop| {
        let queries = bound(table, name, statements, stop)?;
        let scan = Scan::new(table, &queries).workers(workers).cancel(stop);
        let (answers, explanation) = scan.run_explained();
        answers.into_iter().collect::<Result<Vec<_>, Error>>()?;
        Ok(explanation.to_string())
    })?;
    explained.map_err(|error| of_filter(py, &error))
}
