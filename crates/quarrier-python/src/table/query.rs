//! Statements over a table, all in one pass.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use quarrier_filter::{Error, Query, Scan, sql};
use quarrier_messages::Table;

use super::elsewhere::for_datafusion;
use super::load::workers_of;
use crate::count::Count;
use crate::errors::of_filter;
use crate::interrupt::interruptible;

/// The results, one for each statement.
pub(super) fn answer(
    py: Python<'_>,
    table: &Table,
    name: &str,
    statements: &[String],
    workers: Option<Count>,
) -> PyResult<Vec<Table>> {
    let workers = workers_of(workers);
    let answers: Result<Vec<Table>, Error> = interruptible(py, |stop| {
        let queries = bound(table, name, statements, stop)?;
        let answers = Scan::new(table, &queries).workers(workers).cancel(stop).run();
        let shown = queries.iter().zip(answers);
        shown.map(|(query, answer)| query.project(table, &answer?, workers, stop)).collect()
    })?;
    answers.map_err(|error| of_filter(py, &error))
}

/// The statements as queries, or the first that is wrong. Looks at `stop` before each.
fn bound(
    table: &Table,
    name: &str,
    statements: &[String],
    stop: &AtomicBool,
) -> Result<Vec<Query>, Error> {
    let bound = statements.iter().map(|text| match stop.load(Ordering::Relaxed) {
        true => Err(Error::Cancelled),
        false => sql::statement(text, name, table.schema()),
    });
    bound.collect()
}

/// How the statements are answered together, in words: they are run for it.
pub(super) fn explain(
    py: Python<'_>,
    table: &Table,
    name: &str,
    statements: &[String],
    workers: Option<Count>,
) -> PyResult<String> {
    let workers = workers_of(workers);
    let explained: Result<String, Error> = interruptible(py, |stop| {
        let queries = bound(table, name, statements, stop)?;
        let scan = Scan::new(table, &queries).workers(workers).cancel(stop);
        let (answers, explanation) = scan.run_explained();
        answers.into_iter().collect::<Result<Vec<_>, Error>>()?;
        Ok(explanation.to_string())
    })?;
    explained.map_err(|error| of_filter(py, &error))
}

/// The table that a statement is about: its name, and whether it is a file's. Fails where the
/// statement is more than a table answers.
#[pyfunction]
#[pyo3(signature = (sql, /))]
pub(crate) fn statement_table(py: Python<'_>, sql: &str) -> PyResult<(String, bool)> {
    let table = py.detach(|| sql::table(sql)).map_err(|error| of_filter(py, &error))?;
    Ok((table.name, table.is_file))
}

/// The files that stand as tables in a statement of any kind of SQL.
#[pyfunction]
#[pyo3(signature = (sql, /))]
pub(crate) fn statement_files(py: Python<'_>, sql: &str) -> PyResult<Vec<String>> {
    py.detach(|| sql::files(sql)).map_err(|error| of_filter(py, &error))
}

/// A statement of any kind of SQL in the words of the package datafusion.
#[pyfunction]
#[pyo3(signature = (sql, /))]
pub(crate) fn statement_for_datafusion(py: Python<'_>, sql: &str) -> PyResult<String> {
    py.detach(|| for_datafusion(sql)).map_err(|error| of_filter(py, &error))
}
