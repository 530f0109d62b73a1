//! `quarrier.gauge`.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quarrier::Gauge;

use crate::errors::of_facade;
use crate::host;
use crate::interrupt::interruptible;

/// Measures areas of the machine and returns the report as JSON; `sustained` is a time in seconds.
#[pyfunction]
#[pyo3(signature = (areas, quick, path, sustained))]
pub(crate) fn gauge_json(
    py: Python<'_>,
    areas: Vec<String>,
    quick: bool,
    path: PathBuf,
    sustained: Option<f64>,
) -> PyResult<String> {
    let sustained = sustained.map(sustained_time).transpose()?;
    let areas = Gauge::areas_named(areas).map_err(|error| of_facade(py, &error))?;
    let gauge = Gauge::new().areas(areas).quick(quick).folder(path).sustained(sustained);
    let gauged = interruptible(py, |stop| gauge.run(host::machine(), &mut (), stop))?;
    let report = gauged.map(|gauged| gauged.report);
    let json = report.and_then(|report| Ok(report.to_json()?));
    json.map_err(|error| of_facade(py, &error))
}

/// Between a second and a day.
fn sustained_time(seconds: f64) -> PyResult<Duration> {
    let time = (1.0..=86_400.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds));
    time.ok_or_else(|| {
        PyValueError::new_err(format!("sustained={seconds}: must be from 1 to 86400 seconds"))
    })
}
