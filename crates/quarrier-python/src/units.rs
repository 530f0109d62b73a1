//! Units: parts of sources that other processes search.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use quarrier::source::Version;
use quarrier::{OpenOptions, Search, Sources};
use quarrier_search::Finding;
use quarrier_units::{Error, SourceUnits, Unit, UnitSearch};

use crate::count::Size;
use crate::errors::of_units;
use crate::findings::SearchResult;
use crate::host;
use crate::interrupt::interruptible;

/// A unit as a `quarrier._units.Unit`: name, source, length, mark, start, end.
type Fields = (OsString, String, u64, String, u64, u64);

/// Cuts sources into units of `size` bytes; without a size, each source is one unit.
#[pyfunction]
#[pyo3(signature = (sources, size))]
pub(crate) fn cut(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    size: Option<Size>,
) -> PyResult<Vec<Fields>> {
    let unit_bytes = size.map_or(u64::MAX, |Size(bytes)| bytes);
    let cut = interruptible(py, |stop| all(sources, unit_bytes, stop))?;
    cut.map_err(|error| of_units(py, &error))
}

fn all(names: Vec<PathBuf>, unit_bytes: u64, stop: &Arc<AtomicBool>) -> Result<Vec<Fields>, Error> {
    let opener = host::opener(OpenOptions::default(), stop);
    let mut all = Vec::new();
    for named in Sources::of_until(names, stop).listed(&opener).iter() {
        let source = SourceUnits::open(named, &opener, &(0..u64::MAX), unit_bytes)?;
        all.extend(source.units().map(|unit| {
            let Unit { name, source, version, range } = unit;
            (name, source, version.length, version.mark, range.start, range.end)
        }));
    }
    Ok(all)
}

/// Returns the unit that an object is, if it is one.
pub(crate) fn unit_of(given: &Bound<'_, PyAny>) -> PyResult<Option<Unit>> {
    let class = given.py().import("quarrier._units")?.getattr("Unit")?;
    if !given.is_instance(&class)? {
        return Ok(None);
    }
    let (name, source, length, mark, start, end) = given.extract::<Fields>()?;
    Ok(Some(Unit { name, source, version: Version { length, mark }, range: start..end }))
}

/// Searches a unit, and returns its rows and the notice of its source.
///
/// # Errors
/// [`Error::Request`] for regexes over a part of a source, because their matches depend on earlier
/// ones.
pub(crate) fn rows(
    request: &Search,
    unit: &Unit,
    direct: bool,
    stop: &Arc<AtomicBool>,
) -> Result<(SearchResult, Option<String>), Error> {
    let opener = host::opener(OpenOptions::default().direct(direct), stop);
    let mut source = SourceUnits::of_unit(unit, &opener)?;
    let notice = source.notice_line();
    let mut units = UnitSearch::new(request, host::machine(), stop);
    if !units.is_exact_alone() && unit.range != (0..unit.version.length) {
        return Err(Error::Request(format!(
            "{}: matches of a regex depend on those before the unit; cut sources with size=None, so \
             that each is one unit",
            unit.source
        )));
    }
    let mut found = SearchResult::of(request.patterns());
    let ran = units.rows(&mut source, unit, &mut |row| {
        let finding = Finding { offset: row.offset, pattern: row.pattern, length: row.length };
        found.push(finding, row.found);
        Ok(())
    })?;
    found.sources.push((unit.source.clone(), found.findings.len()));
    found.unreadable = ran.unreadable;
    found.engine = units.engine_name();
    Ok((found, notice))
}
