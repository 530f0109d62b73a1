//! `quarrier.Table`: messages as columns.

mod arrow;
mod elsewhere;
mod load;
mod query;
mod values;

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use quarrier_messages::{Column, Kind, Reject};

use crate::count::Count;

pub(crate) use query::{statement_files, statement_for_datafusion, statement_table};

/// Messages as columns. Nothing changes it.
#[pyclass(frozen, module = "quarrier")]
pub(crate) struct Table {
    table: quarrier_messages::Table,
    /// What was no message, as far as it was kept.
    rejects: Vec<Reject>,
    /// How many were none.
    rejected: u64,
}

impl Table {
    pub(crate) fn of(table: quarrier_messages::Table) -> Self {
        Table { table, rejects: Vec::new(), rejected: 0 }
    }
}

#[pymethods]
impl Table {
    /// Loads the messages of a file, all files of a glob, a URL or bytes-like object, compressed or not.
    ///
    /// The format is told by the content, then by the name's ending. `dictionary` is the path of
    /// a QuickFIX data dictionary, for FIX and NVFIX. With `keep_bytes`, the column `_message` has
    /// each message as it stands in the source.
    #[staticmethod]
    #[pyo3(signature = (source, *, format="auto", dictionary=None, keep_bytes=false, workers=None))]
    fn from_messages(
        source: &Bound<'_, PyAny>,
        format: &str,
        dictionary: Option<PathBuf>,
        keep_bytes: bool,
        workers: Option<Count>,
    ) -> PyResult<Self> {
        let loaded = load::load(source, format, dictionary, keep_bytes, workers)?;
        Ok(Table { table: loaded.table, rejects: loaded.rejects, rejected: loaded.rejected })
    }

    /// Copies what speaks the Arrow PyCapsule interface (pyarrow, polars, pandas, DuckDB …) into
    /// packed columns.
    #[staticmethod]
    #[pyo3(signature = (data, *, workers=None))]
    fn from_arrow(data: &Bound<'_, PyAny>, workers: Option<Count>) -> PyResult<Self> {
        arrow::import(data, load::workers_of(workers)).map(Self::of)
    }

    /// Bytes of memory that the columns take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.table.nbytes()
    }

    /// The kind of each column by its name, in the words of SQL.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let schema = PyDict::new(py);
        for (field, column) in self.table.schema().fields.iter().zip(self.table.columns()) {
            schema.set_item(&*field.name, name_of(field.kind, column))?;
        }
        Ok(schema)
    }

    /// How many messages were left out because they do not parse.
    #[getter]
    fn rejected(&self) -> u64 {
        self.rejected
    }

    /// How many values lost digits because they became floats, by column, where some did.
    #[getter]
    fn rounded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rounded = PyDict::new(py);
        for (field, column) in self.table.schema().fields.iter().zip(self.table.columns()) {
            if column.rounded() > 0 {
                rounded.set_item(&*field.name, column.rounded())?;
            }
        }
        Ok(rounded)
    }

    /// The first of the messages left out, as dicts of source, line, offset, reason and bytes.
    #[getter]
    fn rejects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        load::dicts(py, &self.rejects)
    }

    /// Answers `SELECT … FROM m [WHERE …] [ORDER BY …] [LIMIT … [OFFSET …]]`.
    ///
    /// `name` is what the table is called in it.
    #[pyo3(signature = (sql, *, name="m", workers=None))]
    fn query(
        &self,
        py: Python<'_>,
        sql: &str,
        name: &str,
        workers: Option<Count>,
    ) -> PyResult<Self> {
        let mut answers = query::answer(py, &self.table, name, &[sql.to_string()], workers)?;
        Ok(Self::of(answers.pop().unwrap_or_default()))
    }

    /// Answers any number of statements in one pass over the table.
    #[pyo3(signature = (sqls, *, name="m", workers=None))]
    fn query_many(
        &self,
        py: Python<'_>,
        sqls: Vec<String>,
        name: &str,
        workers: Option<Count>,
    ) -> PyResult<Vec<Self>> {
        let answers = query::answer(py, &self.table, name, &sqls, workers)?;
        Ok(answers.into_iter().map(Self::of).collect())
    }

    /// Answers the statements in one pass, and says in words how: what is evaluated in which order,
    /// what they share, blocks skipped and bytes of columns touched.
    #[pyo3(signature = (sqls, *, name="m", workers=None))]
    fn explain(
        &self,
        py: Python<'_>,
        sqls: Vec<String>,
        name: &str,
        workers: Option<Count>,
    ) -> PyResult<String> {
        query::explain(py, &self.table, name, &sqls, workers)
    }

    /// All rows as a list of dicts. Times are naive, in UTC and to the microsecond.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        values::dicts(py, &self.table)
    }

    /// The rows as a stream of Arrow record batches, by the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer that cannot cast ignore what is asked for.
        let _ = requested_schema;
        arrow::stream(py, &self.table)
    }

    /// The schema of that stream.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.table)
    }

    fn __len__(&self) -> usize {
        self.table.rows() as usize
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.table.rows(), self.table.columns().len());
        format!("<quarrier.Table: {rows} rows, {columns} columns>")
    }
}

/// A kind in the words of SQL.
fn name_of(kind: Kind, column: &Column) -> String {
    let name = match kind {
        Kind::Null => "NULL",
        Kind::Boolean => "BOOLEAN",
        Kind::Integer => "BIGINT",
        Kind::Decimal { scale } => return format!("DECIMAL({},{scale})", column.precision(scale)),
        Kind::Float => "DOUBLE PRECISION",
        Kind::Date => "DATE",
        Kind::Timestamp => "TIMESTAMP",
        Kind::Text => "VARCHAR",
    };
    name.to_string()
}
