//! `quarrier.gauge`.

use std::path::PathBuf;

use pyo3::prelude::*;
use quarrier_gauge::{Area, Wanted, measure};

use crate::errors::{of_gauge, raise};
use crate::interrupt::interruptible;

/// Measures areas of the machine; gives the report as JSON.
#[pyfunction]
#[pyo3(signature = (areas, quick, path))]
pub(crate) fn gauge_json(
    py: Python<'_>,
    areas: Vec<String>,
    quick: bool,
    path: PathBuf,
) -> PyResult<String> {
    let mut wanted = if quick { Wanted::quick(path) } else { Wanted::full(path, 3) };
    if !areas.is_empty() {
        let named = areas.iter().map(|name| area(py, name)).collect::<PyResult<Vec<Area>>>()?;
        wanted.areas.retain(|area| named.contains(area));
    }
    let measured = interruptible(py, |stop| measure(&wanted, &mut (), stop))?;
    measured.and_then(|report| report.to_json()).map_err(|error| of_gauge(py, &error))
}

fn area(py: Python<'_>, name: &str) -> PyResult<Area> {
    Area::of(name).ok_or_else(|| {
        let names = Area::ALL.map(Area::name).join(", ");
        raise(py, "PlanError", (format!("no area '{name}'; there are: {names}"),))
    })
}
