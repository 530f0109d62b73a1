//! Carved files, as rows and as an Arrow stream.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::builder::{FixedSizeListBuilder, ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyList};
use quarrier_carve::SkimmedRange;
use quarrier_carve::folder::Row;

use crate::sequence;

/// The results of a carving run.
pub(crate) struct Carved {
    pub(crate) source: String,
    pub(crate) unreadable: Vec<Range<u64>>,
    pub(crate) skimmed: Vec<SkimmedRange>,
    pub(crate) rows: Vec<Row>,
    /// A sentence about the skipped parts, for people.
    pub(crate) skipped: Option<String>,
}

/// The carved files, in the order of the source.
#[pyclass(frozen, sequence, module = "quarrier")]
pub(crate) struct CarvedFiles {
    carved: Arc<Carved>,
}

fn extents(row: &Row) -> Vec<(u64, u64)> {
    row.extents.iter().map(|extent| (extent.offset, extent.length)).collect()
}

impl Carved {
    fn row<'py>(&self, py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let class = CLASS.get_or_try_init(py, || {
            py.import("quarrier._carved")?.getattr("CarvedFile").map(Bound::unbind)
        })?;
        let status = row.status.name();
        let fields = (&row.source, &row.kind, row.offset, row.length, extents(row));
        let (source, kind, offset, length, extents) = fields;
        class.bind(py).call1((
            source,
            kind,
            offset,
            length,
            extents,
            status,
            &row.reason,
            &row.sha256,
            &row.path,
            &row.container,
        ))
    }
}

impl CarvedFiles {
    pub(crate) fn new(carved: Carved) -> Self {
        CarvedFiles { carved: Arc::new(carved) }
    }
}

#[pymethods]
impl CarvedFiles {
    /// Ranges of the source that could not be read, as (offset, length).
    #[getter]
    fn unreadable(&self) -> Vec<(u64, u64)> {
        sequence::tuples(&self.carved.unreadable)
    }

    /// Ranges that were examined less closely, as (offset, length, types, reason); `thorough=True`
    /// examines them too.
    #[getter]
    fn skimmed(&self) -> Vec<(u64, u64, Vec<&'static str>, &'static str)> {
        let one = |one: &SkimmedRange| {
            let Range { start, end } = one.range;
            (start, end - start, one.types.clone(), one.reason.describe())
        };
        self.carved.skimmed.iter().map(one).collect()
    }

    /// A sentence about skipped parts, inside archives or (with `unallocated=True`) in partitions;
    /// `None` if nothing was skipped.
    #[getter]
    fn skipped(&self) -> Option<&str> {
        self.carved.skipped.as_deref()
    }

    /// All rows as a list of dicts, with the keys of `report.jsonl`.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for row in &self.carved.rows {
            let extents: Vec<[u64; 2]> =
                row.extents.iter().map(|extent| [extent.offset, extent.length]).collect();
            let dict = PyDict::new(py);
            dict.set_item(intern!(py, "source"), &row.source)?;
            dict.set_item(intern!(py, "type"), &row.kind)?;
            dict.set_item(intern!(py, "offset"), row.offset)?;
            dict.set_item(intern!(py, "length"), row.length)?;
            dict.set_item(intern!(py, "extents"), extents)?;
            dict.set_item(intern!(py, "status"), row.status.name())?;
            dict.set_item(intern!(py, "reason"), &row.reason)?;
            dict.set_item(intern!(py, "sha256"), &row.sha256)?;
            dict.set_item(intern!(py, "path"), &row.path)?;
            if let Some(container) = &row.container {
                dict.set_item(intern!(py, "container"), container)?;
            }
            list.append(dict)?;
        }
        Ok(list)
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
        let batch = batch(&self.carved.rows)
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        let schema = batch.schema();
        let batches = RecordBatchIterator::new(std::iter::once(Ok(batch)), schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.carved.rows.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let rows = &self.carved.rows;
        self.carved.row(py, &rows[sequence::place(index, rows.len(), "file")?])
    }

    fn __iter__(&self) -> CarvedIterator {
        CarvedIterator { carved: Arc::clone(&self.carved), next: AtomicUsize::new(0) }
    }

    fn __repr__(&self) -> String {
        format!("<quarrier.CarvedFiles: {} of {}>", self.carved.rows.len(), self.carved.source)
    }
}

/// Converts all rows to columns, with the names and order of `report.jsonl`.
fn batch(rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let text = |of: &dyn Fn(&Row) -> &str| -> ArrayRef {
        let mut builder = StringBuilder::new();
        rows.iter().for_each(|row| builder.append_value(of(row)));
        Arc::new(builder.finish())
    };
    let number = |of: &dyn Fn(&Row) -> u64| -> ArrayRef {
        let mut builder = UInt64Builder::with_capacity(rows.len());
        rows.iter().for_each(|row| builder.append_value(of(row)));
        Arc::new(builder.finish())
    };
    let mut extents = ListBuilder::new(FixedSizeListBuilder::new(UInt64Builder::new(), 2));
    for row in rows {
        for extent in &row.extents {
            extents.values().values().append_value(extent.offset);
            extents.values().values().append_value(extent.length);
            extents.values().append(true);
        }
        extents.append(true);
    }
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("source", text(&|row| &row.source)),
        ("type", text(&|row| &row.kind)),
        ("offset", number(&|row| row.offset)),
        ("length", number(&|row| row.length)),
        ("extents", Arc::new(extents.finish())),
        ("status", text(&|row| row.status.name())),
        ("reason", text(&|row| &row.reason)),
        ("sha256", text(&|row| &row.sha256)),
        ("path", text(&|row| &row.path)),
    ];
    if rows.iter().any(|row| row.container.is_some()) {
        let containers = rows.iter().map(|row| row.container.as_deref());
        columns.push(("container", Arc::new(containers.collect::<StringArray>())));
    }
    let fields = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), *name == "container"));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns.into_iter().map(|(_, column)| column).collect())
}

/// Iterates over carved files.
#[pyclass(frozen, module = "quarrier")]
pub(crate) struct CarvedIterator {
    carved: Arc<Carved>,
    next: AtomicUsize,
}

#[pymethods]
impl CarvedIterator {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        match self.carved.rows.get(at) {
            Some(row) => Ok(Some(self.carved.row(py, row)?)),
            None => {
                self.next.store(self.carved.rows.len(), Ordering::Relaxed);
                Ok(None)
            }
        }
    }
}
