//! Python values as the parameters of a statement.

use std::borrow::Cow;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};
use quarrier::parameters::{Parameter, bind};

use crate::errors::of_facade;

/// Inserts `params` into the statement; without params it is unchanged.
///
/// # Errors
/// `TypeError` if `params` is not a list of values that SQL has, or has the wrong length.
pub(super) fn bound<'s>(
    py: Python<'_>,
    statement: &'s str,
    params: Option<&Bound<'_, PyAny>>,
) -> PyResult<Cow<'s, str>> {
    let Some(params) = params else { return Ok(Cow::Borrowed(statement)) };
    let is_one = params.is_instance_of::<PyString>()
        || params.is_instance_of::<PyBytes>()
        || params.is_instance_of::<PyDict>();
    if is_one {
        return Err(PyTypeError::new_err("params is a list of values, one for each '?'"));
    }
    let values = params.try_iter()?.map(|value| parameter(&value?));
    let values = values.collect::<PyResult<Vec<_>>>()?;
    Ok(Cow::Owned(bind(statement, &values).map_err(|error| of_facade(py, &error))?))
}

fn parameter(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    let py = value.py();
    if value.is_none() {
        return Ok(Parameter::Null);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Parameter::Boolean(truth.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        // A subclass, such as an enumeration, may override its representation.
        let digits = py.get_type::<PyInt>().call_method1("__repr__", (value,))?;
        return Ok(Parameter::Number(digits.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Parameter::Float(value.extract()?));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Parameter::Text(text.to_str()?.to_string()));
    }
    if let Some(found) = time_or_decimal(value)? {
        return Ok(found);
    }
    // A numpy scalar.
    if value.hasattr("item")? && value.hasattr("dtype")? {
        let plain = value.call_method0("item")?;
        if !plain.hasattr("dtype")? {
            return parameter(&plain);
        }
    }
    Err(PyTypeError::new_err(format!(
        "a parameter is None, a bool, number, str, date or datetime, not '{}'",
        value.get_type().name()?
    )))
}

fn time_or_decimal(value: &Bound<'_, PyAny>) -> PyResult<Option<Parameter>> {
    let py = value.py();
    let datetime = py.import("datetime")?;
    // A datetime is also a date.
    if value.is_instance(&datetime.getattr("datetime")?)? {
        let utc = datetime.getattr("timezone")?.getattr("utc")?;
        let is_naive = value.call_method0("utcoffset")?.is_none();
        let value =
            if is_naive { value.clone() } else { value.call_method1("astimezone", (utc,))? };
        let text: String = value.call_method1("strftime", ("%Y-%m-%d %H:%M:%S.%f",))?.extract()?;
        return Ok(Some(Parameter::Timestamp(text)));
    }
    if value.is_instance(&datetime.getattr("date")?)? {
        return Ok(Some(Parameter::Date(value.call_method0("isoformat")?.extract()?)));
    }
    if value.is_instance(&py.import("decimal")?.getattr("Decimal")?)? {
        if !value.call_method0("is_finite")?.extract::<bool>()? {
            return Err(PyTypeError::new_err("a number as a parameter must be finite"));
        }
        return Ok(Some(Parameter::Number(value.call_method1("__format__", ("f",))?.extract()?)));
    }
    Ok(None)
}
