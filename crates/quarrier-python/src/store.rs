//! `quarrier.Store`: tables kept in a data folder.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use quarrier::kept::{DataFolder, KeptLoad, KeptWatch};
use quarrier::{OpenOptions, Sources};
use quarrier_core::source::ChangingMemory;
use quarrier_core::sync::lock;
use quarrier_messages::Format;

use crate::buffer::Buffer;
use crate::count::Count;
use crate::errors::{of_facade, of_messages, raise, warn};
use crate::host;
use crate::interrupt::interruptible;
use crate::source::{MEMORY_NAME, path_of};
use crate::sql::Rows;
use crate::table::{Table, query};

/// A data folder of tables. When `append` returns, its messages are on disk.
///
/// Only one process at a time may write to a folder; the error for a second one names the first. A
/// store with `read_only` can be open while another process writes.
#[pyclass(frozen, module = "quarrier")]
pub(crate) struct Store {
    kept: Mutex<Option<Arc<DataFolder>>>,
}

/// Lines about a source, to be issued as warnings.
#[derive(Default)]
struct Said {
    notices: Vec<String>,
    damages: Vec<String>,
}

impl KeptWatch for Said {
    fn notice(&mut self, notice: &str) {
        self.notices.push(notice.to_string());
    }

    fn damaged(&mut self, damage: &str) {
        self.damages.push(damage.to_string());
    }
}

/// The level of `compress=True`, zstd's own default.
const ZSTD_LEVEL: i32 = 3;

#[pymethods]
impl Store {
    /// Opens the data folder `folder`, and creates it if it does not exist.
    #[new]
    #[pyo3(signature = (folder, *, read_only=false))]
    fn new(py: Python<'_>, folder: PathBuf, read_only: bool) -> PyResult<Self> {
        let kept = interruptible(py, |_| match read_only {
            true => DataFolder::read(&folder),
            false => DataFolder::open(&folder),
        })?;
        let kept = kept.map_err(|error| of_facade(py, &error))?;
        warn(py, "UnreadableWarning", kept.damages())?;
        Ok(Store { kept: Mutex::new(Some(Arc::new(kept))) })
    }

    /// The number of messages of each table, by table name.
    #[getter]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let kept = self.kept(py)?;
        let tables = py.detach(|| kept.tables()).map_err(|error| of_facade(py, &error))?;
        let dict = PyDict::new(py);
        for table in tables {
            dict.set_item(table.name, table.messages)?;
        }
        Ok(dict)
    }

    /// One line for each damaged place of the log, with the marks of the lost messages. All other
    /// messages are intact.
    #[getter]
    fn damages(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.kept(py)?.damages())
    }

    /// Appends messages to a table, which is created if needed. When it returns, they are on disk.
    /// It returns the number of messages appended, and the number rejected because they do not
    /// parse.
    ///
    /// `data` is a path, a glob, a URL, a bytes-like object, or dictionaries, which are converted
    /// to JSON. A path or URL that was appended before continues where it ended.
    #[pyo3(signature = (table, data, *, format="auto", compress=false, workers=None))]
    fn append(
        &self,
        table: &str,
        data: &Bound<'_, PyAny>,
        format: &str,
        compress: bool,
        workers: Option<Count>,
    ) -> PyResult<(u64, u64)> {
        let py = data.py();
        let kept = self.kept(py)?;
        let format = Format::named(format).map_err(|error| of_messages(py, &error))?;
        let load = KeptLoad::new(table)
            .format(format)
            .compression(compress.then_some(ZSTD_LEVEL))
            .workers(Count::or_auto(workers));
        let appended = match bytes_of(data)? {
            Data::Path(path) => {
                let mut said = Said::default();
                let appended = interruptible(py, |stop| {
                    let opener = host::opener(OpenOptions::default(), stop);
                    let loaded = load.run(&kept, &Sources::of([path]), &opener, stop, &mut said);
                    loaded.map(|loaded| (loaded.messages(), loaded.rejected()))
                })?;
                warn(py, "SourceWarning", &said.notices)?;
                warn(py, "UnreadableWarning", &said.damages)?;
                appended
            }
            Data::Buffer(buffer) => {
                let memory = ChangingMemory::new(MEMORY_NAME, buffer.changing_bytes());
                interruptible(py, |stop| {
                    let loaded = load.source(&kept, &memory, stop, &mut ());
                    loaded.map(|loaded| (loaded.stored.messages, loaded.stored.rejected))
                })?
            }
            Data::Lines(lines) => {
                let load = load.format(Some(Format::Json));
                let memory = quarrier_core::source::Memory::new(MEMORY_NAME, lines);
                interruptible(py, |stop| {
                    let loaded = load.source(&kept, &memory, stop, &mut ());
                    loaded.map(|loaded| (loaded.stored.messages, loaded.stored.rejected))
                })?
            }
        };
        appended.map_err(|error| of_facade(py, &error))
    }

    /// Loads the current rows of a table into memory. Only messages appended since the last call,
    /// or since the columns were stored in the folder, are parsed.
    #[pyo3(signature = (name, *, workers=None))]
    fn table(&self, py: Python<'_>, name: &str, workers: Option<Count>) -> PyResult<Table> {
        let kept = self.kept(py)?;
        let workers = Count::or_auto(workers);
        let table = interruptible(py, |stop| kept.table(name, workers, stop))?;
        let table = table.map_err(|error| of_facade(py, &error))?;
        warn(py, "UnreadableWarning", kept.take_notices())?;
        Ok(Table::of(Rows::Packed(table)))
    }

    /// Answers a statement over the tables by name; see `quarrier.query`.
    fn query(&self, py: Python<'_>, sql: &str) -> PyResult<Table> {
        let kept = self.kept(py)?;
        let all = py.detach(|| kept.tables()).map_err(|error| of_facade(py, &error))?;
        let text = sql.to_lowercase();
        let tables = PyDict::new(py);
        for table in all {
            // Load only tables that the statement may name.
            if table.name.contains('"') || text.contains(&table.name.to_lowercase()) {
                tables
                    .set_item(&table.name, Bound::new(py, self.table(py, &table.name, None)?)?)?;
            }
        }
        query::query(py, sql, None, Some(&tables))
    }

    /// Ends writing, stores the columns of tables that have grown, and lets another process write.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(kept) = lock(&self.kept).take() else { return Ok(()) };
        let closed = py.detach(|| Arc::into_inner(kept).map_or(Ok(()), DataFolder::close));
        closed.map_err(|error| of_facade(py, &error))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

impl Store {
    fn kept(&self, py: Python<'_>) -> PyResult<Arc<DataFolder>> {
        let kept = lock(&self.kept).clone();
        kept.ok_or_else(|| raise(py, "QuarrierError", ("the store is closed; open it again",)))
    }
}

/// The forms in which a caller can pass messages.
enum Data<'py> {
    Path(PathBuf),
    Buffer(Buffer<'py>),
    /// JSON lines made from dictionaries.
    Lines(Vec<u8>),
}

fn bytes_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Data<'py>> {
    let py = data.py();
    let is_source = data.hasattr("__fspath__")?
        || data.is_instance_of::<pyo3::types::PyString>()
        // SAFETY: `data` is a live object, and this thread is attached to the interpreter, as `py`
        // shows.
        || unsafe { pyo3::ffi::PyObject_CheckBuffer(data.as_ptr()) } != 0;
    if is_source {
        return match path_of(data)? {
            Some(path) => Ok(Data::Path(path)),
            None => Ok(Data::Buffer(Buffer::of(data)?)),
        };
    }
    let dumps = py.import("json")?.getattr("dumps")?;
    let mut lines = Vec::new();
    for message in data.try_iter()? {
        let text: String = dumps.call1((message?,))?.extract()?;
        lines.extend_from_slice(text.as_bytes());
        lines.push(b'\n');
    }
    Ok(Data::Lines(lines))
}
