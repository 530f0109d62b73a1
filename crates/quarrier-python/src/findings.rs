//! The findings of a search, as rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyString};
use quarrier::search::copy_match;
use quarrier_core::pipeline::Chunk;
use quarrier_search::{Finding, Pattern};

use crate::{frames, sequence, stream};

/// The result of a search.
pub(crate) struct SearchResult {
    /// The sources in order: each name, and the index after the source's last finding.
    pub(crate) sources: Vec<(String, usize)>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) engine: String,
    pub(crate) unreadable: Vec<Range<u64>>,
    pub(crate) findings: Vec<Finding>,
    /// The matched bytes, concatenated; `ends` says where those of each finding end.
    matches: Vec<u8>,
    match_ends: Vec<usize>,
}

/// The findings of a search, ordered by source, offset, then pattern.
#[pyclass(frozen, sequence, module = "quarrier")]
pub(crate) struct Findings {
    found: Arc<SearchResult>,
}

/// Returns the name of a pattern, or None.
fn name<'py>(py: Python<'py>, pattern: &Pattern) -> Bound<'py, PyAny> {
    match &pattern.name {
        Some(name) => PyString::new(py, name).into_any(),
        None => py.None().into_bound(py),
    }
}

impl SearchResult {
    /// Makes an empty result for these patterns.
    pub(crate) fn of(patterns: &[Pattern]) -> Self {
        SearchResult {
            sources: Vec::new(),
            patterns: patterns.to_vec(),
            engine: String::new(),
            unreadable: Vec::new(),
            findings: Vec::new(),
            matches: Vec::new(),
            match_ends: Vec::new(),
        }
    }

    /// Adds the findings of a chunk, with their bytes.
    pub(crate) fn add(&mut self, chunk: &Chunk<'_>, findings: &[Finding]) {
        let mut copy = Vec::new();
        for finding in findings {
            copy_match(chunk, finding, &mut copy);
            self.push(*finding, &copy);
        }
    }

    /// Adds a finding with its first bytes.
    pub(crate) fn push(&mut self, finding: Finding, found: &[u8]) {
        self.findings.push(finding);
        self.matches.extend_from_slice(found);
        self.match_ends.push(self.matches.len());
    }

    /// Returns the matched bytes of a finding.
    pub(crate) fn match_of(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).and_then(|before| self.match_ends.get(before));
        let end = self.match_ends.get(at).copied().unwrap_or_default();
        self.matches.get(start.copied().unwrap_or_default()..end).unwrap_or_default()
    }

    /// Returns the name of the source of a finding.
    pub(crate) fn source_of(&self, at: usize) -> &str {
        let place = self.sources.partition_point(|(_, end)| *end <= at);
        self.sources.get(place).map_or("", |(name, _)| name)
    }

    fn row<'py>(
        &self,
        py: Python<'py>,
        (at, finding): (usize, &Finding),
    ) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let class = CLASS.get_or_try_init(py, || {
            py.import("quarrier._finding")?.getattr("Finding").map(Bound::unbind)
        })?;
        let pattern = &self.patterns[finding.pattern as usize];
        let (offset, length) = (finding.offset, finding.length);
        let found = PyBytes::new(py, self.match_of(at));
        let source = self.source_of(at);
        class.bind(py).call1((source, offset, length, &pattern.text, name(py, pattern), found))
    }

    /// Converts all rows; a string that many rows share is made once.
    fn dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut sources = self.sources.iter();
        let mut source = (PyString::new(py, ""), 0);
        let mut shown: Vec<Option<(Bound<'py, PyString>, Bound<'py, PyAny>)>> =
            self.patterns.iter().map(|_| None).collect();
        let list = PyList::empty(py);
        for (at, finding) in self.findings.iter().enumerate() {
            while at >= source.1 {
                let Some((name, end)) = sources.next() else { break };
                source = (PyString::new(py, name), *end);
            }
            let index = finding.pattern as usize;
            let (pattern, name) = shown[index].get_or_insert_with(|| {
                let pattern = &self.patterns[index];
                (PyString::new(py, &pattern.text), name(py, pattern))
            });
            let row = PyDict::new(py);
            row.set_item(intern!(py, "source"), &source.0)?;
            row.set_item(intern!(py, "offset"), finding.offset)?;
            row.set_item(intern!(py, "length"), finding.length)?;
            row.set_item(intern!(py, "pattern"), &*pattern)?;
            row.set_item(intern!(py, "name"), &*name)?;
            row.set_item(intern!(py, "match"), PyBytes::new(py, self.match_of(at)))?;
            list.append(row)?;
        }
        Ok(list)
    }
}

impl Findings {
    pub(crate) fn new(found: SearchResult) -> Self {
        Findings { found: Arc::new(found) }
    }
}

#[pymethods]
impl Findings {
    /// The engines that searched, joined by `+`.
    #[getter]
    fn engine(&self) -> &str {
        &self.found.engine
    }

    /// Ranges that could not be read, as (offset, length), source after source.
    #[getter]
    fn unreadable(&self) -> Vec<(u64, u64)> {
        sequence::tuples(&self.found.unreadable)
    }

    /// All rows as a list of dicts.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.found.dicts(py)
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
        stream::capsule(py, Arc::clone(&self.found))
    }

    fn __len__(&self) -> usize {
        self.found.findings.len()
    }

    /// The rows as a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        frames::convert(slf.as_any(), "to_arrow", true)
    }

    /// The rows as a `pandas.DataFrame`.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        frames::convert(slf.as_any(), "to_pandas", true)
    }

    /// The rows as a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        frames::convert(slf.as_any(), "to_polars", true)
    }

    /// The first rows as HTML, for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        frames::convert(slf.as_any(), "repr_html", true)
    }

    /// A finding by its index, or a list of findings by a slice.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let findings = &self.found.findings;
        sequence::item(key, (findings.len(), "finding"), |at| {
            self.found.row(key.py(), (at, &findings[at]))
        })
    }

    fn __iter__(&self) -> FindingIterator {
        FindingIterator { found: Arc::clone(&self.found), next: AtomicUsize::new(0) }
    }

    fn __repr__(&self) -> String {
        let sources = match self.found.sources.as_slice() {
            [(only, _)] => only.clone(),
            several => format!("{} sources", several.len()),
        };
        format!("<quarrier.Findings: {} in {sources}>", self.found.findings.len())
    }
}

/// Iterates over findings.
#[pyclass(frozen, module = "quarrier")]
pub(crate) struct FindingIterator {
    found: Arc<SearchResult>,
    next: AtomicUsize,
}

#[pymethods]
impl FindingIterator {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        match self.found.findings.get(at) {
            Some(finding) => Ok(Some(self.found.row(py, (at, finding))?)),
            None => {
                self.next.store(self.found.findings.len(), Ordering::Relaxed);
                Ok(None)
            }
        }
    }
}
