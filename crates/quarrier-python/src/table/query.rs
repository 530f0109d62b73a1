//! Statements over a table, all in one pass.

use pyo3::prelude::*;
use quarrier_filter::{Error, Query, Scan, sql};
use quarrier_messages::Table;

use super::load::workers_of;
use crate::errors::of_filter;
use crate::interrupt::interruptible;

/// What a table is called in its own statements.
const NAME: &str = "m";

/// The results, one for each statement.
pub(super) fn answer(
    py: Python<'_>,
    table: &Table,
    statements: &[String],
    workers: Option<usize>,
) -> PyResult<Vec<Table>> {
    let workers = workers_of(py, workers)?;
    let answers: Result<Vec<Table>, Error> = interruptible(py, |stop| {
        let bound = statements.iter().map(|text| sql::statement(text, NAME, table.schema()));
        let queries = bound.collect::<Result<Vec<Query>, Error>>()?;
        let answers = Scan::new(table, &queries).workers(workers).cancel(stop).run();
        let shown = queries.iter().zip(answers);
        shown.map(|(query, answer)| query.project(table, &answer?, workers, stop)).collect()
    })?;
    answers.map_err(|error| of_filter(py, &error))
}
