//! From messages.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use quarrier_core::source::{self, Memory, Source};
use quarrier_messages::{Format, Load, Loaded, Reject};
use quarrier_remote::Remote;

use crate::buffer::Buffer;
use crate::errors::{of_messages, of_remote, raise};
use crate::interrupt::interruptible;
use crate::search::{MEMORY_NAME, path_of};
use crate::source::{environment, options_of, remote_name};

/// Why nothing was loaded.
enum Failure {
    Remote(quarrier_remote::Error),
    Messages(quarrier_messages::Error),
}

/// Loads the messages of a path, URL or bytes-like object.
pub(super) fn load(
    source: &Bound<'_, PyAny>,
    format: &str,
    workers: Option<usize>,
) -> PyResult<Loaded> {
    let py = source.py();
    let load = Load::new(format_of(py, format)?).workers(workers_of(py, workers)?);
    let run = |source: &dyn Source| load.run(&[source]).map_err(Failure::Messages);
    let loaded = if let Some(path) = path_of(source)? {
        interruptible(py, |stop| match remote_name(&path) {
            Some(url) => {
                let mut options = options_of(&environment());
                options.stop = Some(Arc::clone(stop));
                let remote = Remote::new(options).map_err(Failure::Remote)?;
                let source = remote.open(url).map_err(Failure::Remote)?;
                source.announce(0..source.length());
                run(&source)
            }
            None => {
                let opened = source::open(&path);
                run(&*opened.map_err(|error| Failure::Messages(error.into()))?)
            }
        })?
    } else {
        let buffer = Buffer::of(source)?;
        let memory = Memory::new(MEMORY_NAME, buffer.shown());
        interruptible(py, |_| run(&memory))?
    };
    loaded.map_err(|failure| match failure {
        Failure::Remote(error) => of_remote(py, &error),
        Failure::Messages(error) => of_messages(py, &error),
    })
}

/// So many threads; one for each core where nothing is said.
pub(super) fn workers_of(py: Python<'_>, workers: Option<usize>) -> PyResult<usize> {
    match workers {
        Some(0) => Err(raise(py, "PlanError", ("workers must be at least 1",))),
        Some(workers) => Ok(workers),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

fn format_of(py: Python<'_>, name: &str) -> PyResult<Format> {
    match name {
        "auto" | "json" => Ok(Format::Json),
        _ => {
            let message = format!("no format '{name}'; there are: auto, json");
            Err(raise(py, "PlanError", (message,)))
        }
    }
}

/// Messages that were left out, for people.
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
