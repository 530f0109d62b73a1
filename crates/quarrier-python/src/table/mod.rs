//! `quarrier.Table`: messages as columns.

mod arrow;
mod hidden;
mod load;
mod parameters;
pub(crate) mod query;
mod rows;
mod shown;
mod values;

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString};
use quarrier::tables::Loaded;
use quarrier_messages::{Column, HiddenColumns, Kind, Reject};

use crate::count::Count;
use crate::frames;
use crate::sql::Rows;

/// Messages in columns, or the rows of an answer. A table is immutable.
#[pyclass(frozen, module = "quarrier")]
pub(crate) struct Table {
    rows: Rows,
    /// Rejected messages, up to the limit.
    rejects: Vec<Reject>,
    /// The number of all rejected messages.
    rejected: u64,
    /// Its origin, if it was loaded from messages.
    origin: Option<hidden::Origin>,
    /// The same rows with the ends of lists, which conditions on lists need; `None` if all lists end
    /// with a value.
    with_list_ends: Option<Rows>,
    /// The columns that would be hidden but were requested.
    visible: HiddenColumns,
}

impl Table {
    pub(crate) fn of(rows: Rows) -> Self {
        let visible = HiddenColumns::default();
        let (origin, with_list_ends) = (None, None);
        Table { rows, rejects: Vec::new(), rejected: 0, origin, with_list_ends, visible }
    }

    /// Loads messages from a path or bytes, with these hidden columns.
    fn loaded(source: &Bound<'_, PyAny>, hidden: HiddenColumns) -> PyResult<Self> {
        Ok(load::load(source, "auto", None, (false, hidden), None)?.0.into())
    }

    /// Loads messages from a path, glob or URL.
    fn loaded_from_name(py: Python<'_>, name: &str, hidden: HiddenColumns) -> PyResult<Self> {
        Self::loaded(PyString::new(py, name).as_any(), hidden)
    }

    /// Returns the rows with the hidden columns that statements may name, or without them and the
    /// reason. The reason matters only if the statements fail, because the name may only occur in a
    /// string.
    fn rows_for<'t>(
        &self,
        py: Python<'_>,
        statements: impl IntoIterator<Item = &'t str>,
    ) -> (Rows, Option<PyErr>) {
        let named = hidden::named_in(statements).without(self.visible);
        let positions = named.without(hidden::LIST_ENDS);
        let rows = self.with_list_ends.as_ref().filter(|_| named.list_ends);
        match &self.origin {
            Some(origin) if !positions.is_none() => match origin.rows_with(py, named) {
                Ok(rows) => (rows, None),
                Err(error) => (self.rows.clone(), Some(error)),
            },
            _ => (rows.unwrap_or(&self.rows).clone(), None),
        }
    }

    /// Answers statements about the table, which they call `name`.
    fn answers(
        &self,
        py: Python<'_>,
        statements: Vec<String>,
        name: &str,
        workers: Option<Count>,
    ) -> PyResult<Vec<Self>> {
        let (rows, missing) = self.rows_for(py, statements.iter().map(String::as_str));
        let answers = query::of_table(py, &rows, name, statements, workers);
        answers.map_err(|error| missing.unwrap_or(error))
    }
}

impl From<Loaded> for Table {
    fn from(loaded: Loaded) -> Self {
        let rows = Rows::Packed(Arc::new(loaded.table));
        Table { rejects: loaded.rejects, rejected: loaded.rejected, ..Table::of(rows) }
    }
}

impl Default for Table {
    fn default() -> Self {
        Table::of(Rows::Packed(Arc::default()))
    }
}

#[pymethods]
impl Table {
    /// Loads the messages of a file, a glob, a URL or a bytes-like object, compressed or not.
    ///
    /// The format is detected from the content, then from the extension. `dictionary` is the path
    /// of a QuickFIX data dictionary, for FIX and NVFIX. With `keep_bytes`, the table has a column
    /// `_message` with the original bytes of each message.
    ///
    /// Statements may name the hidden columns `_line`, `_offset` and `_message`, the place and the
    /// bytes of each message. The first statement that does reads the source again, unless the
    /// source has changed.
    #[staticmethod]
    #[pyo3(signature = (source, *, format="auto", dictionary=None, keep_bytes=false, workers=None))]
    fn from_messages(
        source: &Bound<'_, PyAny>,
        format: &str,
        dictionary: Option<PathBuf>,
        keep_bytes: bool,
        workers: Option<Count>,
    ) -> PyResult<Self> {
        let hidden = (keep_bytes, hidden::LIST_ENDS);
        let (mut loaded, origin) = load::load(source, format, dictionary, hidden, workers)?;
        let visible = HiddenColumns { message: keep_bytes, ..HiddenColumns::default() };
        let shown = loaded.table.without_hidden();
        let all = std::mem::replace(&mut loaded.table, shown);
        let with_list_ends = all.hidden().list_ends.then(|| Rows::Packed(Arc::new(all)));
        Ok(Table { origin: Some(origin), with_list_ends, visible, ..loaded.into() })
    }

    /// Copies data from any object with the Arrow PyCapsule interface (pyarrow, polars, pandas,
    /// DuckDB …) into packed columns.
    #[staticmethod]
    #[pyo3(signature = (data, *, workers=None))]
    fn from_arrow(data: &Bound<'_, PyAny>, workers: Option<Count>) -> PyResult<Self> {
        let table = arrow::import(data, Count::or_auto(workers))?;
        Ok(Self::of(Rows::Packed(Arc::new(table))))
    }

    /// The bytes of memory that the columns occupy.
    #[getter]
    fn nbytes(&self) -> usize {
        match &self.rows {
            Rows::Packed(table) => table.nbytes(),
            Rows::Arrow(shown) => shown.batches.iter().map(|b| b.get_array_memory_size()).sum(),
        }
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        match &self.rows {
            Rows::Packed(table) => {
                table.schema().fields.iter().map(|field| field.name.to_string()).collect()
            }
            Rows::Arrow(shown) => {
                shown.schema.fields().iter().map(|field| field.name().clone()).collect()
            }
        }
    }

    /// The SQL type of each column, by name.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let schema = PyDict::new(py);
        match &self.rows {
            Rows::Packed(table) => {
                for (field, column) in table.schema().fields.iter().zip(table.columns()) {
                    schema.set_item(&*field.name, name_of(field.kind, column))?;
                }
            }
            Rows::Arrow(shown) => {
                for field in shown.schema.fields() {
                    schema.set_item(field.name(), shown::kind(field.data_type()))?;
                }
            }
        }
        Ok(schema)
    }

    /// The number of messages that were rejected because they do not parse.
    #[getter]
    fn rejected(&self) -> u64 {
        self.rejected
    }

    /// The number of values that lost digits in the conversion to floats, for each column with any.
    #[getter]
    fn rounded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rounded = PyDict::new(py);
        let Rows::Packed(table) = &self.rows else { return Ok(rounded) };
        for (field, column) in table.schema().fields.iter().zip(table.columns()) {
            if column.rounded() > 0 {
                rounded.set_item(&*field.name, column.rounded())?;
            }
        }
        Ok(rounded)
    }

    /// The first rejected messages, as dicts of source, line, offset, reason and bytes.
    #[getter]
    fn rejects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        load::dicts(py, &self.rejects)
    }

    /// Answers a statement about this table, which is called `name` in it.
    ///
    /// The table's scan answers `SELECT … FROM m [WHERE …] [ORDER BY …] [LIMIT … [OFFSET …]]`. All
    /// other SQL needs the engine of `quarrier query`, which `quarrier[sql]` installs. `params` are
    /// the values of `?`, or of `$1`, `$2` and so on.
    #[pyo3(signature = (sql, *, params=None, name="m", workers=None))]
    fn query(
        &self,
        py: Python<'_>,
        sql: &str,
        params: Option<&Bound<'_, PyAny>>,
        name: &str,
        workers: Option<Count>,
    ) -> PyResult<Self> {
        let sql = parameters::bound(py, sql, params)?.into_owned();
        Ok(self.answers(py, vec![sql], name, workers)?.pop().unwrap_or_default())
    }

    /// Answers any number of statements in one pass over the table, with one result each.
    #[pyo3(signature = (sqls, *, name="m", workers=None))]
    fn query_many(
        &self,
        py: Python<'_>,
        sqls: Vec<String>,
        name: &str,
        workers: Option<Count>,
    ) -> PyResult<Vec<Self>> {
        self.answers(py, sqls, name, workers)
    }

    /// Answers the statements in one pass and explains the plan: the order of evaluation, shared
    /// parts, blocks skipped and bytes of columns read.
    #[pyo3(signature = (sqls, *, name="m", workers=None))]
    fn explain(
        &self,
        py: Python<'_>,
        sqls: Vec<String>,
        name: &str,
        workers: Option<Count>,
    ) -> PyResult<String> {
        let (rows, missing) = self.rows_for(py, sqls.iter().map(String::as_str));
        let explained = query::explain(py, &rows, name, &sqls, workers);
        explained.map_err(|error| missing.unwrap_or(error))
    }

    /// All rows as a list of dicts. Times are naive, in UTC and to the microsecond.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match &self.rows {
            Rows::Packed(table) => values::dicts(py, table),
            Rows::Arrow(shown) => shown::dicts(py, shown),
        }
    }

    /// The rows as a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        frames::convert(slf.as_any(), "to_arrow", true)
    }

    /// The rows as a `pandas.DataFrame`. Decimals become floats unless `exact` is true; integer
    /// columns with missing values stay integers.
    #[pyo3(signature = (*, exact=false))]
    fn to_pandas<'py>(slf: &Bound<'py, Self>, exact: bool) -> PyResult<Bound<'py, PyAny>> {
        frames::convert(slf.as_any(), "to_pandas", exact)
    }

    /// The rows as a `polars.DataFrame`. Decimals become floats unless `exact` is true.
    #[pyo3(signature = (*, exact=false))]
    fn to_polars<'py>(slf: &Bound<'py, Self>, exact: bool) -> PyResult<Bound<'py, PyAny>> {
        frames::convert(slf.as_any(), "to_polars", exact)
    }

    /// The first rows as HTML, for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        frames::convert(slf.as_any(), "repr_html", true)
    }

    /// A row as a dict by its index, or a table by a slice.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        rows::item(slf, key)
    }

    /// Iterates over the rows as dicts.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        frames::convert(slf.as_any(), "rows_of", true)
    }

    /// Pickles the rows as Arrow data, which needs pyarrow; rejected messages are left out.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        frames::convert(slf.as_any(), "reduce", true)
    }

    /// The rows as a stream of Arrow record batches, by the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer that cannot cast to ignore the requested schema.
        let _ = requested_schema;
        arrow::stream(py, &self.rows)
    }

    /// The schema of the Arrow stream.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.rows)
    }

    fn __len__(&self) -> usize {
        match &self.rows {
            Rows::Packed(table) => table.rows() as usize,
            Rows::Arrow(shown) => shown.batches.iter().map(|batch| batch.num_rows()).sum(),
        }
    }

    fn __repr__(&self) -> String {
        let columns = match &self.rows {
            Rows::Packed(table) => table.columns().len(),
            Rows::Arrow(shown) => shown.schema.fields().len(),
        };
        format!("<quarrier.Table: {} rows, {columns} columns>", self.__len__())
    }
}

/// Returns the SQL name of a type.
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
