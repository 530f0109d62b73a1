//! From messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use quarrier::{OpenOptions, Sources};
use quarrier_core::source::{ChangingMemory, Source};
use quarrier_messages::format::csv::Csv;
use quarrier_messages::format::fix::{Dictionary, DictionaryError};
use quarrier_messages::format::xml::Xml;
use quarrier_messages::{Format, Load, Loaded, Reject};

use crate::buffer::Buffer;
use crate::count::Count;
use crate::errors::{of_facade, of_messages, raise};
use crate::host;
use crate::interrupt::interruptible;
use crate::search::{MEMORY_NAME, path_of};

/// Why nothing was loaded.
enum Failure {
    Source(quarrier::Error),
    Messages(quarrier_messages::Error),
    Dictionary(PathBuf, DictionaryError),
    NoFix(Format),
}

impl From<quarrier_messages::Error> for Failure {
    fn from(error: quarrier_messages::Error) -> Self {
        Failure::Messages(error)
    }
}

impl From<quarrier_core::Error> for Failure {
    fn from(error: quarrier_core::Error) -> Self {
        Failure::Messages(error.into())
    }
}

impl From<quarrier::Error> for Failure {
    fn from(error: quarrier::Error) -> Self {
        Failure::Source(error)
    }
}

/// What is asked for, apart from the source.
struct Wish {
    /// `None` where the source tells.
    format: Option<Format>,
    dictionary: Option<PathBuf>,
    keeps_bytes: bool,
    workers: usize,
}

impl Wish {
    /// Loads sources, whose format is that of the first, until `stop` becomes true.
    fn load(&self, sources: &[&dyn Source], stop: &AtomicBool) -> Result<Loaded, Failure> {
        let told = match (&self.format, sources.first()) {
            (Some(format), _) => format.clone(),
            (None, Some(first)) => Format::of(*first)?,
            (None, None) => Format::Json,
        };
        let format = match &self.dictionary {
            Some(path) => with_dictionary(told, path)?,
            None => told,
        };
        let load = Load::new(format)
            .workers(self.workers)
            .keep_bytes(self.keeps_bytes)
            .parquet(&quarrier_parquet::Reader);
        Ok(load.cancel(stop).run(sources)?)
    }
}

/// The format, read by a dictionary of one's own.
fn with_dictionary(format: Format, path: &Path) -> Result<Format, Failure> {
    let dictionary = || {
        let xml = std::fs::read(path)
            .map_err(|error| quarrier_core::Error::io(path.to_string_lossy(), "read", error))?;
        let dictionary = Dictionary::from_xml(&xml);
        dictionary.map(Arc::new).map_err(|error| Failure::Dictionary(path.to_path_buf(), error))
    };
    match format {
        Format::Fix(_) => Ok(Format::Fix(dictionary()?)),
        Format::Nvfix(_) => Ok(Format::Nvfix(dictionary()?)),
        other => Err(Failure::NoFix(other)),
    }
}

/// Loads the messages of a path, URL or bytes-like object.
pub(super) fn load(
    source: &Bound<'_, PyAny>,
    format: &str,
    dictionary: Option<PathBuf>,
    keeps_bytes: bool,
    workers: Option<Count>,
) -> PyResult<Loaded> {
    let py = source.py();
    let workers = workers_of(workers);
    let wish = Wish { format: format_of(py, format)?, dictionary, keeps_bytes, workers };
    let loaded = if let Some(path) = path_of(source)? {
        interruptible(py, |stop| {
            let opener = host::opener(OpenOptions::default(), stop);
            let opened = Sources::of([path]);
            let opened = opened.open(&opener).map(|opened| opened?.at_offsets());
            let opened = opened.collect::<quarrier::Result<Vec<Box<dyn Source>>>>()?;
            wish.load(&opened.iter().map(|source| &**source).collect::<Vec<_>>(), stop)
        })?
    } else {
        let buffer = Buffer::of(source)?;
        let memory = ChangingMemory::new(MEMORY_NAME, buffer.shown());
        interruptible(py, |stop| wish.load(&[&memory], stop))?
    };
    loaded.map_err(|failure| match failure {
        Failure::Source(error) => of_facade(py, &error),
        Failure::Messages(error) => of_messages(py, &error),
        Failure::Dictionary(path, error) => {
            let message = format!("{}: {error}", path.display());
            raise(py, "DictionaryError", (message, path))
        }
        Failure::NoFix(format) => {
            let message = format!("a dictionary is for FIX and NVFIX; the messages are {format:?}");
            raise(py, "PlanError", (message,))
        }
    })
}

/// So many threads; one for each core where nothing is said.
pub(super) fn workers_of(workers: Option<Count>) -> usize {
    Count::chosen(workers)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The format of this name; `None` for the one that the source tells.
fn format_of(py: Python<'_>, name: &str) -> PyResult<Option<Format>> {
    Ok(Some(match name {
        "auto" => return Ok(None),
        "json" => Format::Json,
        "fix" => Format::Fix(Arc::new(Dictionary::builtin())),
        "nvfix" => Format::Nvfix(Arc::new(Dictionary::builtin())),
        "csv" => Format::Csv(Csv::default()),
        "xml" => Format::Xml(Xml::default()),
        "arrow" => Format::Arrow,
        "parquet" => Format::Parquet,
        _ => {
            let message = format!(
                "no format '{name}'; there are: auto, json, fix, nvfix, csv, xml, arrow, parquet"
            );
            return Err(raise(py, "PlanError", (message,)));
        }
    }))
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
