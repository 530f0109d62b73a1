//! `quarrier.files`.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use quarrier::files::{COLUMNS, Listed, Row};
use quarrier::{Files, OpenOptions, Place, Sources};
use quarrier_core::source::ChangingMemory;

use crate::buffer::Buffer;
use crate::errors::of_facade;
use crate::host;
use crate::interrupt::interruptible;
use crate::source::{MEMORY_NAME, path_of};

/// Lists the files of the file systems in a disk image, device, URL or bytes-like object, as a list
/// of dicts; with `folder`, it also extracts them there. `only` is a path or a glob. A warning
/// reports damage, and files that could not be written.
#[pyfunction]
#[pyo3(
    signature = (source, only=None, *, deleted=false, folder=None),
    text_signature = "(source, only=None, *, deleted=False, folder=None)"
)]
pub(crate) fn files<'py>(
    source: &Bound<'py, PyAny>,
    only: Option<&str>,
    deleted: bool,
    folder: Option<PathBuf>,
) -> PyResult<Bound<'py, PyList>> {
    let py = source.py();
    let request = Files::new().only(only).map_err(|error| of_facade(py, &error))?;
    let request = request.deleted(deleted).extract(folder);
    let listed = if let Some(path) = path_of(source)? {
        interruptible(py, |stop| {
            let opener = host::opener(OpenOptions::default(), stop);
            let mut opened = opener.open(&Sources::only(path)?)?;
            run(&request, opened.place(), stop)
        })?
    } else {
        let buffer = Buffer::of(source)?;
        let memory = ChangingMemory::new(MEMORY_NAME, buffer.changing_bytes());
        interruptible(py, |stop| run(&request, Place::Local(&memory), stop))?
    };
    let (rows, listed) = listed.map_err(|error| of_facade(py, &error))?;
    let notices = listed.systems.notices();
    for line in notices.iter().chain(&listed.damages) {
        py.import("warnings")?.call_method1("warn", (line,))?;
    }
    let list = PyList::empty(py);
    for row in &rows {
        list.append(dict(py, row)?)?;
    }
    Ok(list)
}

fn run(
    request: &Files,
    place: Place<'_>,
    stop: &AtomicBool,
) -> quarrier::Result<(Vec<Row>, Listed)> {
    let mut rows = Vec::new();
    let listed = request.run(place, stop, &mut |row| {
        rows.push(row.clone());
        Ok(())
    })?;
    Ok((rows, listed))
}

fn dict<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyDict>> {
    let entry = &row.entry;
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "source"), &row.source)?;
    dict.set_item(intern!(py, "partition"), row.partition)?;
    dict.set_item(intern!(py, "path"), &entry.path)?;
    dict.set_item(intern!(py, "inode"), entry.inode)?;
    dict.set_item(intern!(py, "type"), entry.kind.name())?;
    dict.set_item(intern!(py, "state"), entry.state.name())?;
    dict.set_item(intern!(py, "size"), entry.size)?;
    // The four times follow.
    for (name, time) in COLUMNS[7..11].iter().zip(row.times()) {
        dict.set_item(name, time)?;
    }
    dict.set_item(intern!(py, "extents"), row.extents())?;
    Ok(dict)
}
