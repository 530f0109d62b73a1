//! Conversion from and to Arrow, by the Arrow PyCapsule interface.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyTuple};
use quarrier_messages::Table;

use crate::errors::of_messages;
use crate::interrupt::interruptible;
use crate::sql::Rows;

const STREAM: &std::ffi::CStr = c"arrow_array_stream";
const ARRAY: &std::ffi::CStr = c"arrow_array";
const SCHEMA: &std::ffi::CStr = c"arrow_schema";

/// Batches made on request.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Packs an object that exports an Arrow stream or one record batch.
///
/// The data is trusted: a producer of Arrow data promises that its buffers match their types
/// (strings are UTF-8, offsets are in bounds) and that nobody changes them while they are held. To
/// load an Arrow file that others may write to, pass its path: its bytes are then read and checked.
pub(super) fn import(data: &Bound<'_, PyAny>, workers: usize) -> PyResult<Table> {
    let py = data.py();
    let (schema, batches) = if data.hasattr("__arrow_c_stream__")? {
        of_stream(&data.call_method0("__arrow_c_stream__")?)?
    } else if data.hasattr("__arrow_c_array__")? {
        of_array(&data.call_method0("__arrow_c_array__")?)?
    } else {
        return Err(PyTypeError::new_err(format!(
            "'{}' does not export Arrow data: it has no __arrow_c_stream__",
            data.get_type().name()?
        )));
    };
    let table = interruptible(py, |stop| {
        let stop = Arc::clone(stop);
        let batches = batches.take_while(move |_| !stop.load(std::sync::atomic::Ordering::Relaxed));
        Table::from_batches(&schema, batches, workers)
    })?;
    table.map_err(|error| of_messages(py, &error))
}

fn of_stream(capsule: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Batches)> {
    let capsule = capsule.cast::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // Two threads may pass the same capsule: without an interpreter's lock, both could move it out.
    let stream = with_critical_section(capsule.as_any(), || {
        // SAFETY: by the Arrow PyCapsule interface, a capsule of this name, which `pointer_checked` has
        // compared, points to an initialised stream. `from_raw` moves it out and leaves one that is
        // released, so that the capsule's destructor does not release it again. The critical section
        // excludes other threads that execute this code.
        unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) }
    });
    let reader = ArrowArrayStreamReader::try_new(stream).map_err(arrow)?;
    Ok((reader.schema(), Box::new(reader)))
}

fn of_array(capsules: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Batches)> {
    let pair = capsules.cast::<PyTuple>()?;
    let (schema, array) = (pair.get_item(0)?, pair.get_item(1)?);
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
    let held = array.cast::<PyCapsule>()?;
    let array = held.pointer_checked(Some(ARRAY))?;
    // As for streams.
    let array = with_critical_section(held.as_any(), || {
        // SAFETY: by the Arrow PyCapsule interface, a capsule of this name, which `pointer_checked` has
        // compared, points to an initialised array. `from_raw` moves it out and leaves one that is
        // released. The critical section excludes other threads that execute this code.
        unsafe { FFI_ArrowArray::from_raw(array.cast::<FFI_ArrowArray>().as_ptr()) }
    });
    if array.is_released() {
        return Err(PyValueError::new_err("the Arrow data was passed on already"));
    }
    // SAFETY: as above, the schema's capsule points to an initialised schema, which is only borrowed while
    // its capsule lives; the array is not released, and describes data of that schema.
    let data = unsafe { from_ffi(array, schema.cast::<FFI_ArrowSchema>().as_ref()) };
    let data = data.map_err(arrow)?;
    if !matches!(data.data_type(), arrow_schema::DataType::Struct(_)) {
        let message = "a table is made of columns with names, not of one array";
        return Err(PyTypeError::new_err(message));
    }
    let array = StructArray::from(data);
    if array.null_count() > 0 {
        return Err(PyValueError::new_err("a whole row of the table is NULL"));
    }
    let batch = RecordBatch::from(array);
    Ok((batch.schema(), Box::new(std::iter::once(Ok(batch)))))
}

fn arrow(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the Arrow data cannot be read: {error}"))
}

/// Exports the rows as a stream of record batches.
pub(super) fn stream<'py>(py: Python<'py>, rows: &Rows) -> PyResult<Bound<'py, PyCapsule>> {
    let reader: Box<dyn RecordBatchReader + Send> = match rows {
        Rows::Packed(table) => Box::new(table.batches()),
        Rows::Arrow(shown) => {
            let batches = shown.batches.clone().into_iter().map(Ok);
            Box::new(RecordBatchIterator::new(batches, Arc::clone(&shown.schema)))
        }
    };
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// Exports the schema of that stream.
pub(super) fn schema<'py>(py: Python<'py>, rows: &Rows) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = match rows {
        Rows::Packed(table) => table.batches().schema(),
        Rows::Arrow(shown) => Arc::clone(&shown.schema),
    };
    PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(&*schema).map_err(arrow)?, SCHEMA)
}
