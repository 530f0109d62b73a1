//! `quarrier.search(…, rules=…)`: where YARA rules hold.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::builder::{BinaryBuilder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyIterator, PyList, PyString};
use quarrier::rules::{
    JudgedScope, RuleRun, RuleSearch, Rules, RulesSearched, Scopes, Turn, read_rules,
};
use quarrier::search::Planning;
use quarrier::source::line_of;
use quarrier::{OpenOptions, Place, Sources};
use quarrier_gpu::DeviceChoice;
use quarrier_search::EngineName;

use crate::errors::{raise, warn};
use crate::source::carry_out;
use crate::{frames, host, sequence, stream, units};

/// Rows of a record batch.
const BATCH_ROWS: usize = 16 * 1024;

/// A search for rules, as Python code requested it.
pub(crate) struct RuleRequest {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) scopes: Scopes,
    pub(crate) scope_bytes_max: u64,
    pub(crate) scope_time_max: Duration,
    pub(crate) rows_max: u64,
    pub(crate) planning: Planning,
    pub(crate) engine: EngineName,
    pub(crate) device: DeviceChoice,
}

impl RuleRequest {
    /// Compiles the rules.
    fn search(&self, stop: &AtomicBool) -> quarrier::Result<RuleSearch> {
        Ok(RuleSearch::new(read_rules(&self.paths, stop)?)
            .scopes(self.scopes)
            .scope_bytes_max(self.scope_bytes_max)
            .scope_time_max(self.scope_time_max)
            .planning(self.planning)
            .engine(self.engine)
            .device(self.device))
    }
}

/// Returns the rule files named by an argument: one path or several.
///
/// # Errors
/// `TypeError` for any other argument, and if it names no file.
pub(crate) fn paths(given: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    if given.is_instance_of::<PyString>() || given.hasattr("__fspath__")? {
        return Ok(vec![given.extract()?]);
    }
    let paths = given.try_iter()?.map(|path| path.and_then(|path| path.extract::<PathBuf>()));
    let paths: PyResult<Vec<PathBuf>> = paths.collect();
    match paths? {
        none if none.is_empty() => {
            Err(PyTypeError::new_err("rules are paths of files with YARA rules; none is given"))
        }
        paths => Ok(paths),
    }
}

/// Evaluates rules over an open source, a path or URL, or bytes.
///
/// # Errors
/// The exceptions of the sources; `QuarrierError` for invalid rules.
pub(crate) fn judge(source: &Bound<'_, PyAny>, request: &RuleRequest) -> PyResult<RuleFindings> {
    let py = source.py();
    if units::unit_of(source)?.is_some() {
        let message = "rules are evaluated over a whole source, not over a part of it";
        return Err(raise(py, "PlanError", (message,)));
    }
    let run_named = |path: PathBuf, stop: &Arc<AtomicBool>| in_sources(request, path, stop);
    let found = carry_out(source, run_named, |place, stop| in_place(request, place, stop))?;
    warn(py, "SourceWarning", &found.notices)?;
    Ok(RuleFindings { found: Arc::new(found) })
}

/// Evaluates rules over each source of a path or URL, in order.
fn in_sources(
    request: &RuleRequest,
    name: PathBuf,
    stop: &Arc<AtomicBool>,
) -> quarrier::Result<RuleRows> {
    let search = request.search(stop)?;
    let opener = host::opener(OpenOptions::default().direct(request.planning.direct), stop);
    let sources = Sources::of([name]);
    let sources = sources.listed(&opener);
    let mut found = RuleRows::of(&search, request.rows_max);
    let Some(first) = sources.iter().next() else { return Ok(found) };
    let mut first = opener.open(first)?;
    let mut run = search.start(host::machine(), Some(&first.place()), stop)?;
    let mut ended = Ok(());
    run.in_turn(sources.as_slice(), Some(Ok(first)), &opener, stop, &mut |run, turn| match turn
        .and_then(|turn| gather(run, turn, stop, &mut found))
    {
        Ok(()) if found.is_full() || stop.load(Ordering::Relaxed) => ControlFlow::Break(()),
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            ended = Err(error);
            ControlFlow::Break(())
        }
    });
    ended.map(|()| found)
}

fn in_place(
    request: &RuleRequest,
    place: Place<'_>,
    stop: &AtomicBool,
) -> quarrier::Result<RuleRows> {
    let search = request.search(stop)?;
    let mut run = search.start(host::machine(), Some(&place), stop)?;
    let mut found = RuleRows::of(&search, request.rows_max);
    let name: Arc<str> = place.name().into();
    let searched =
        run.search(place, stop, &mut |scope: &JudgedScope<'_>| found.add(&name, scope))?;
    found.add_outcome(&name, searched);
    Ok(found)
}

/// Adds the rows of one source.
fn gather(
    run: &mut RuleRun<'_>,
    turn: Turn,
    stop: &AtomicBool,
    found: &mut RuleRows,
) -> quarrier::Result<()> {
    found.notices.extend(turn.notice_line());
    let name: Arc<str> = turn.name().into();
    let mut take = |scope: &JudgedScope<'_>| found.add(&name, scope);
    let searched = run.search_turn(turn, stop, &mut take)?;
    found.add_outcome(&name, searched);
    Ok(())
}

/// Collects the rows of a search for rules.
struct RuleRows {
    rules: Rules,
    rows: Vec<Row>,
    rows_max: u64,
    notices: Vec<String>,
    unreadable: Vec<Range<u64>>,
}

struct Row {
    source: Arc<str>,
    scope: Arc<str>,
    /// The index of the rule in the set.
    rule: usize,
    string: Option<Box<str>>,
    offset: Option<u64>,
    length: Option<u64>,
    found: Box<[u8]>,
}

impl RuleRows {
    fn of(search: &RuleSearch, rows_max: u64) -> Self {
        let rules = search.rules().clone();
        RuleRows { rules, rows: Vec::new(), rows_max, notices: Vec::new(), unreadable: Vec::new() }
    }

    /// Adds the notices and unreadable ranges of a source.
    fn add_outcome(&mut self, source: &str, searched: RulesSearched) {
        let notices = searched.notices.into_iter();
        self.notices.extend(notices.map(|notice| line_of(source, &notice)));
        self.unreadable.extend(searched.unreadable);
    }

    fn is_full(&self) -> bool {
        self.rows.len() as u64 >= self.rows_max
    }

    /// Adds the rows of a scope, up to the maximum.
    fn add(&mut self, source: &Arc<str>, scope: &JudgedScope<'_>) -> ControlFlow<()> {
        let name: Arc<str> = scope.name.into();
        for row in scope.rows(&self.rules) {
            if self.rows.len() as u64 >= self.rows_max {
                break;
            }
            self.rows.push(Row {
                source: Arc::clone(source),
                scope: Arc::clone(&name),
                rule: row.place,
                string: row.string.map(Box::from),
                offset: row.offset,
                length: row.length,
                found: row.found.into(),
            });
        }
        match self.is_full() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn dict<'py>(&self, py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyDict>> {
        let rule = &self.rules.rules()[row.rule];
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "source"), &*row.source)?;
        dict.set_item(intern!(py, "scope"), &*row.scope)?;
        dict.set_item(intern!(py, "rule"), &rule.name)?;
        dict.set_item(intern!(py, "tags"), PyList::new(py, &rule.tags)?)?;
        dict.set_item(intern!(py, "string"), row.string.as_deref())?;
        dict.set_item(intern!(py, "offset"), row.offset)?;
        dict.set_item(intern!(py, "length"), row.length)?;
        let found = row.string.as_ref().map(|_| PyBytes::new(py, &row.found));
        dict.set_item(intern!(py, "match"), found)?;
        Ok(dict)
    }
}

/// Matches of YARA rules: one row for each string found of each rule that holds in a scope, with
/// the keys `source`, `scope`, `rule`, `tags`, `string`, `offset`, `length` and `match`. A rule
/// that holds without a string has one row, with None in the last four.
#[pyclass(frozen, sequence, module = "quarrier")]
pub(crate) struct RuleFindings {
    found: Arc<RuleRows>,
}

#[pymethods]
impl RuleFindings {
    /// Notices of sources, and of scopes that were not evaluated, a line each. Each is also a warning.
    #[getter]
    fn notices(&self) -> Vec<String> {
        self.found.notices.clone()
    }

    /// Ranges that could not be read, as (offset, length), source after source.
    #[getter]
    fn unreadable(&self) -> Vec<(u64, u64)> {
        sequence::tuples(&self.found.unreadable)
    }

    /// All rows as a list of dicts.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for row in &self.found.rows {
            list.append(self.found.dict(py, row)?)?;
        }
        Ok(list)
    }

    /// The rows as a stream of Arrow record batches, by the Arrow PyCapsule interface. Tags are
    /// joined by spaces.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer that cannot cast to ignore the requested schema.
        let _ = requested_schema;
        let batches = Batches { found: Arc::clone(&self.found), next: 0, schema: schema() };
        stream::capsule_of(py, Box::new(batches))
    }

    fn __len__(&self) -> usize {
        self.found.rows.len()
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

    /// A row by its index, or a list of rows by a slice.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let rows = &self.found.rows;
        sequence::item(key, (rows.len(), "row"), |at| {
            Ok(self.found.dict(key.py(), &rows[at])?.into_any())
        })
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_pylist(py)?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!("<quarrier.RuleFindings: {} rows>", self.found.rows.len())
    }
}

/// The columns, as `quarrier search --rules --format arrow` has them.
fn schema() -> SchemaRef {
    let text = |name: &str, is_optional: bool| Field::new(name, DataType::Utf8, is_optional);
    Arc::new(Schema::new(vec![
        text("source", true),
        text("scope", true),
        text("rule", true),
        text("tags", true),
        text("string", true),
        Field::new("offset", DataType::UInt64, true),
        Field::new("length", DataType::UInt64, true),
        Field::new("match", DataType::Binary, true),
    ]))
}

struct Batches {
    found: Arc<RuleRows>,
    next: usize,
    schema: SchemaRef,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.found.rows.get(self.next..)?;
        let rows = &rows[..rows.len().min(BATCH_ROWS)];
        if rows.is_empty() {
            return None;
        }
        self.next += rows.len();
        let mut string_columns = [(); 5].map(|()| StringBuilder::new());
        let mut offsets = UInt64Builder::with_capacity(rows.len());
        let mut lengths = UInt64Builder::with_capacity(rows.len());
        let mut matches = BinaryBuilder::new();
        for row in rows {
            let rule = &self.found.rules.rules()[row.rule];
            let [sources, scopes, names, tags, strings] = &mut string_columns;
            sources.append_value(&row.source);
            scopes.append_value(&row.scope);
            names.append_value(&rule.name);
            tags.append_value(rule.tags.join(" "));
            strings.append_option(row.string.as_deref());
            offsets.append_option(row.offset);
            lengths.append_option(row.length);
            matches.append_option(row.string.as_ref().map(|_| &row.found));
        }
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(8);
        for mut text in string_columns {
            columns.push(Arc::new(text.finish()));
        }
        columns.push(Arc::new(offsets.finish()));
        columns.push(Arc::new(lengths.finish()));
        columns.push(Arc::new(matches.finish()));
        Some(RecordBatch::try_new(Arc::clone(&self.schema), columns))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
