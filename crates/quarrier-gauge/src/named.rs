//! Parses parameters by name, and makes the errors for unknown names.

use crate::error::{Error, Result};
use crate::reading::{Area, Parameters};

pub(crate) fn unknown(area: Area, measurement: &str) -> Error {
    Error::BadRequest(format!("{} has no measurement {measurement}", area.name()))
}

pub(crate) fn threads(parameters: &Parameters) -> usize {
    size(parameters, "threads", 1)
}

pub(crate) fn size(parameters: &Parameters, name: &str, otherwise: usize) -> usize {
    parameters.integer(name).map_or(otherwise, |count| count as usize)
}

/// Parses a parameter that is one of a few words.
pub(crate) fn word<T>(
    parameters: &Parameters,
    name: &str,
    otherwise: &str,
    of: impl Fn(&str) -> Option<T>,
) -> Result<T> {
    let text = match parameters.get(name) {
        Some(value) => value.to_string(),
        None => otherwise.to_owned(),
    };
    of(&text).ok_or_else(|| Error::BadRequest(format!("{name}={text} is not known")))
}
