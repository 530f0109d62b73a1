//! Tables from messages.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use quarrier::tables::Loaded;
use quarrier::{OpenOptions, Sources, Tables};
use quarrier_core::source::ChangingMemory;
use quarrier_messages::{Format, HiddenColumns, Reject};

use super::hidden::{Loading, Origin};
use crate::buffer::Buffer;
use crate::count::Count;
use crate::errors::{of_facade, of_messages, warn};
use crate::host;
use crate::interrupt::interruptible;
use crate::source::{MEMORY_NAME, path_of};

/// Loads the messages of a path, URL or bytes-like object, with these hidden columns.
pub(super) fn load(
    source: &Bound<'_, PyAny>,
    format: &str,
    dictionary: Option<PathBuf>,
    (keeps_bytes, hidden): (bool, HiddenColumns),
    workers: Option<Count>,
) -> PyResult<(Loaded, Origin)> {
    let py = source.py();
    let format = Format::named(format).map_err(|error| of_messages(py, &error))?;
    let tables = Tables::new()
        .format(format)
        .dictionary(dictionary)
        .keep_bytes(keeps_bytes)
        .workers(Count::or_auto(workers))
        .parquet(Some(&quarrier_parquet::Reader));
    let loaded = if let Some(path) = path_of(source)? {
        let loaded = interruptible(py, |stop| {
            let opener = host::opener(OpenOptions::default(), stop);
            tables.clone().hidden(hidden).load_all(&Sources::of([&path]), &opener, stop)
        })?;
        let loaded = loaded.map_err(|error| of_facade(py, &error))?;
        warn(py, "SourceWarning", &loaded.notices)?;
        let versions = loaded.versions.clone();
        let origin = Loading { tables, path, versions, loaded: Mutex::default() };
        return Ok((loaded, Origin::Source(Box::new(origin))));
    } else {
        let buffer = Buffer::of(source)?;
        let memory = ChangingMemory::new(MEMORY_NAME, buffer.changing_bytes());
        let load = |stop: &Arc<AtomicBool>| {
            let detected = tables.detect_source(Box::new(memory))?;
            tables.clone().hidden(hidden).load(vec![detected], stop)
        };
        interruptible(py, load)?
    };
    Ok((loaded.map_err(|error| of_facade(py, &error))?, Origin::Bytes))
}

/// Converts rejected messages to dicts.
pub(super) fn dicts<'py>(py: Python<'py>, rejects: &[Reject]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for reject in rejects {
        let row = PyDict::new(py);
        row.set_item("source", &*reject.source)?;
        row.set_item("line", reject.line)?;
        row.set_item("offset", reject.offset)?;
        row.set_item("reason", reject.fault.to_string())?;
        row.set_item("bytes", PyBytes::new(py, &reject.bytes))?;
        list.append(row)?;
    }
    Ok(list)
}
