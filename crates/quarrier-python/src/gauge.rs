//! `quarrier.gauge`.

use std::path::PathBuf;

use pyo3::prelude::*;
use quarrier::Gauge;

use crate::errors::of_facade;
use crate::host;
use crate::interrupt::interruptible;

/// Measures areas of the machine and returns the report as JSON.
#[pyfunction]
#[pyo3(signature = (areas, quick, path))]
pub(crate) fn gauge_json(
    py: Python<'_>,
    areas: Vec<String>,
    quick: bool,
    path: PathBuf,
) -> PyResult<String> {
    let areas = Gauge::areas_named(areas).map_err(|error| of_facade(py, &error))?;
    let gauge = Gauge::new().areas(areas).quick(quick).folder(path);
    let gauged = interruptible(py, |stop| gauge.run(host::machine(), &mut (), stop))?;
    let report = gauged.map(|gauged| gauged.report);
    let json = report.and_then(|report| Ok(report.to_json()?));
    json.map_err(|error| of_facade(py, &error))
}
