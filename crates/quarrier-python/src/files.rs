//! `quarrier.files`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use quarrier::files::{COLUMNS, Listed, Row};
use quarrier::source::line_of;
use quarrier::{Files, LostFolders, OpenOptions, Place, Sources};

use crate::errors::{of_facade, warn};
use crate::host;
use crate::source::carry_out;

/// Lists the files of the file systems in a disk image, device, URL or bytes-like object, as a list
/// of dicts; with `folder`, it also extracts them there. `only` is a path or a glob. With `deleted`,
/// the free clusters of FAT and exFAT are searched for lost folders: in `"local"` sources,
/// `"always"` or `"never"`. A warning reports damage, and files that could not be written.
#[pyfunction]
#[pyo3(
    signature = (source, only=None, *, deleted=false, folder=None, lost_folders="local"),
    text_signature = "(source, only=None, *, deleted=False, folder=None, lost_folders='local')"
)]
pub(crate) fn files<'py>(
    source: &Bound<'py, PyAny>,
    only: Option<&str>,
    deleted: bool,
    folder: Option<PathBuf>,
    lost_folders: &str,
) -> PyResult<Bound<'py, PyList>> {
    let py = source.py();
    let request = Files::new().only(only).map_err(|error| of_facade(py, &error))?;
    let when = LostFolders::named(lost_folders).ok_or_else(|| {
        let known = LostFolders::NAMES.join(", ");
        PyValueError::new_err(format!("lost_folders is {lost_folders:?}; it is one of {known}"))
    })?;
    let request = request.deleted(deleted).lost_folders(when).extract(folder);
    let run_named = |path: PathBuf, stop: &Arc<AtomicBool>| {
        let opener = host::opener(OpenOptions::default(), stop);
        let mut opened = opener.open(&Sources::only(path)?)?;
        let notice = opened.notice_line();
        run(&request, opened.place(), stop).map(|ran| ListOutcome { notice, ..ran })
    };
    let ran = carry_out(source, run_named, |place, stop| run(&request, place, stop))?;
    let ListOutcome { rows, listed, name, notice } = ran;
    let notices = listed.systems.notices().into_iter();
    let notices = notices.map(|line| line_of(&name, &line));
    warn(py, "SourceWarning", notice.into_iter().chain(notices))?;
    warn(py, "UnreadableWarning", listed.damages.iter().map(|line| line_of(&name, line)))?;
    let list = PyList::empty(py);
    for row in &rows {
        list.append(dict(py, row)?)?;
    }
    Ok(list)
}

/// The results of a listing, and the lines to issue as warnings.
struct ListOutcome {
    rows: Vec<Row>,
    listed: Listed,
    /// The name of the source.
    name: String,
    /// The notice of the source.
    notice: Option<String>,
}

fn run(request: &Files, place: Place<'_>, stop: &AtomicBool) -> quarrier::Result<ListOutcome> {
    let (name, mut rows) = (place.name().to_string(), Vec::new());
    let listed = request.run(place, stop, &mut |row| {
        rows.push(row.clone());
        Ok(())
    })?;
    Ok(ListOutcome { rows, listed, name, notice: None })
}

fn dict<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyDict>> {
    let entry = &row.entry;
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "source"), &*row.source)?;
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
