//! `quarrier.SparseStore`.

use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList};
use quarrier_core::sync::lock;
use quarrier_sparse::Error;

use super::file::SparseFile;
use super::held::Place;
use super::number::Number;
use crate::buffer::Buffer;
use crate::errors::of_sparse;

/// Many sparse files under one budget.
#[pyclass(frozen, weakref, module = "quarrier")]
pub(crate) struct SparseStore {
    store: quarrier_sparse::SparseStore,
    /// Held during an insert, so that a free name stays free until the file is in.
    inserting: Mutex<()>,
}

/// Why a store refused a file.
enum Refused {
    Error(Error),
    IsInStore,
}

impl SparseStore {
    fn of(store: quarrier_sparse::SparseStore) -> Self {
        SparseStore { store, inserting: Mutex::new(()) }
    }

    /// Inserts the file of `place` and leaves its shared form there.
    fn insert_place(&self, place: &mut Place) -> Result<(), Refused> {
        let Place::Own(file) = place else { return Err(Refused::IsInStore) };
        let _inserting = lock(&self.inserting);
        let id = file.id().to_string();
        if self.store.get(&id).is_some() {
            return Err(Refused::Error(Error::Exists { id }));
        }
        let file = std::mem::replace(&mut **file, quarrier_sparse::SparseFile::new(""));
        *place = Place::Store(self.store.insert(file).map_err(Refused::Error)?);
        Ok(())
    }
}

#[pymethods]
impl SparseStore {
    #[new]
    #[pyo3(signature = (bytes_max=None))]
    fn new(bytes_max: Option<Number>) -> Self {
        SparseStore::of(quarrier_sparse::SparseStore::new(bytes_max.map(|number| number.0)))
    }

    /// The maximum number of bytes that all files may hold together.
    #[getter]
    fn bytes_max(&self) -> Option<u64> {
        self.store.bytes_max()
    }

    /// Inserts a file under its name. The file then belongs to the store.
    fn insert(&self, py: Python<'_>, file: &Bound<'_, SparseFile>) -> PyResult<()> {
        let inserted = file.get().held.exchange(py, |place| self.insert_place(place));
        inserted.map_err(|refused| match refused {
            Refused::Error(error) => of_sparse(py, &error),
            Refused::IsInStore => PyValueError::new_err("the file is in a store already; copy it"),
        })
    }

    /// Returns the file of this name, or None.
    #[pyo3(signature = (id, /))]
    fn get(&self, py: Python<'_>, id: &str) -> Option<SparseFile> {
        let file = py.detach(|| self.store.get(id));
        file.map(|file| SparseFile::of(Place::Store(file)))
    }

    /// Removes the file of this name from the store and returns it.
    #[pyo3(signature = (id, /))]
    fn remove(&self, py: Python<'_>, id: &str) -> PyResult<SparseFile> {
        match py.detach(|| self.store.remove(id)) {
            Some(file) => Ok(SparseFile::of(Place::Store(file))),
            None => Err(of_sparse(py, &Error::Unknown { id: id.to_string() })),
        }
    }

    /// The names of all files, sorted.
    fn ids(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.store.ids())
    }

    /// Bytes held by all files.
    fn num_bytes(&self) -> u64 {
        self.store.num_bytes()
    }

    /// Evicts the least recently used bytes of all files until at most `bytes_max` are held, and
    /// returns the number of evicted bytes.
    fn evict(&self, py: Python<'_>, bytes_max: Number) -> u64 {
        py.detach(|| self.store.evict(bytes_max.0))
    }

    /// All files without their pins, as bytes; see from_bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.store.to_bytes()))
    }

    /// Restores a store from the result of to_bytes.
    #[staticmethod]
    #[pyo3(signature = (data, bytes_max=None))]
    fn from_bytes(data: &Bound<'_, PyAny>, bytes_max: Option<Number>) -> PyResult<Self> {
        let py = data.py();
        let buffer = Buffer::of(data)?;
        let (bytes, bytes_max) = (buffer.steady(), bytes_max.map(|number| number.0));
        let store = py.detach(|| quarrier_sparse::SparseStore::from_bytes(&bytes, bytes_max));
        store.map(SparseStore::of).map_err(|error| of_sparse(py, &error))
    }

    fn __getitem__(&self, py: Python<'_>, id: &str) -> PyResult<SparseFile> {
        let unknown = || of_sparse(py, &Error::Unknown { id: id.to_string() });
        self.get(py, id).ok_or_else(unknown)
    }

    fn __contains__(&self, py: Python<'_>, id: &str) -> bool {
        py.detach(|| self.store.get(id).is_some())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.store.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.ids(py))?.try_iter()
    }

    #[expect(clippy::type_complexity, reason = "the tuple that pickle requires")]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>, Option<u64>))> {
        let (py, store) = (slf.py(), slf.get());
        let from_bytes = slf.get_type().getattr("from_bytes")?;
        Ok((from_bytes, (store.to_bytes(py), store.bytes_max())))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (files, bytes) = (self.__len__(py), self.num_bytes());
        format!("<quarrier.SparseStore: {bytes} bytes in {files} files>")
    }
}
