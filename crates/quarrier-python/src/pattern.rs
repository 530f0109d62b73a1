//! Patterns as Python code passes them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::errors::of_search;

/// A hex pattern or a regex, made by `hex` or `regex`.
#[pyclass(frozen, eq, module = "quarrier", from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Pattern {
    pattern: quarrier_search::Pattern,
}

#[pymethods]
impl Pattern {
    /// The pattern as written.
    #[getter]
    fn text(&self) -> &str {
        &self.pattern.text
    }

    /// Its kind: `hex` or `regex`.
    #[getter]
    fn kind(&self) -> &'static str {
        if self.pattern.is_regex() { "regex" } else { "hex" }
    }

    fn __repr__(&self) -> String {
        format!("quarrier.{}({:?})", self.kind(), self.pattern.text)
    }
}

/// A pattern in hexadecimal: `??` is any byte; `?A` and `A?` fix half a byte.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn hex(py: Python<'_>, text: &str) -> PyResult<Pattern> {
    let pattern = quarrier_search::Pattern::hex(text).map_err(|error| of_search(py, &error))?;
    Ok(Pattern { pattern })
}

/// A regex over bytes. In a `str`, a character beyond ASCII stands for its UTF-8 bytes.
#[pyfunction]
#[pyo3(signature = (expression, /))]
pub(crate) fn regex(expression: &Bound<'_, PyAny>) -> PyResult<Pattern> {
    let pattern = match is_compiled(expression)? {
        true => compiled(expression)?,
        false => of_expression(expression, "")?,
    };
    Ok(Pattern { pattern })
}

/// The flags of `re` that have the same meaning here, and their letters.
const FLAGS: [(u32, char); 4] = [(2, 'i'), (8, 'm'), (16, 's'), (64, 'x')];

fn is_compiled(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    given.is_instance(&given.py().import("re")?.getattr("Pattern")?)
}

/// Makes a pattern of a compiled `re.Pattern`, with its flags.
fn compiled(given: &Bound<'_, PyAny>) -> PyResult<quarrier_search::Pattern> {
    let flags: u32 = given.getattr("flags")?.extract()?;
    let letters = FLAGS.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, letter)| *letter);
    let letters: String = letters.collect();
    let prefix = if letters.is_empty() { letters } else { format!("(?{letters})") };
    of_expression(&given.getattr("pattern")?, &prefix)
}

/// Makes a pattern of a regex in bytes or str, with a prefix.
fn of_expression(
    expression: &Bound<'_, PyAny>,
    prefix: &str,
) -> PyResult<quarrier_search::Pattern> {
    let py = expression.py();
    let text: String = if let Ok(bytes) = expression.cast::<PyBytes>() {
        bytes.as_bytes().iter().map(|&byte| regex_byte(byte)).collect()
    } else if let Ok(text) = expression.cast::<PyString>() {
        text.to_str()?.to_string()
    } else {
        return Err(PyTypeError::new_err("a regex must be bytes or str"));
    };
    let text = format!("{prefix}{text}");
    quarrier_search::Pattern::regex(&text).map_err(|error| of_search(py, &error))
}

/// Writes a byte of an expression as text: a byte beyond ASCII means itself, not a character.
fn regex_byte(byte: u8) -> String {
    if byte.is_ascii() { char::from(byte).to_string() } else { format!("\\x{byte:02X}") }
}

/// Returns all patterns of an argument: one pattern, a sequence of them, or a dict from name to
/// pattern.
///
/// # Errors
/// `TypeError` for a value that is not a pattern, `PatternError` for an invalid one.
pub(crate) fn collect(given: &Bound<'_, PyAny>) -> PyResult<Vec<quarrier_search::Pattern>> {
    if let Ok(named) = given.cast::<PyDict>() {
        return named
            .iter()
            .map(|(name, pattern)| Ok(one(&pattern)?.named(name.cast::<PyString>()?.to_str()?)))
            .collect();
    }
    if is_one(given) || is_compiled(given)? {
        return Ok(vec![one(given)?]);
    }
    given.try_iter()?.map(|pattern| one(&pattern?)).collect()
}

fn is_one(given: &Bound<'_, PyAny>) -> bool {
    given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.is_instance_of::<Pattern>()
}

fn one(given: &Bound<'_, PyAny>) -> PyResult<quarrier_search::Pattern> {
    let literal = if let Ok(text) = given.cast::<PyString>() {
        quarrier_search::Pattern::literal(text.to_str()?)
    } else if let Ok(bytes) = given.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        quarrier_search::Pattern::bytes(bytes, &shown(bytes))
    } else if let Ok(pattern) = given.cast::<Pattern>() {
        return Ok(pattern.get().pattern.clone());
    } else if is_compiled(given)? {
        return compiled(given);
    } else {
        return Err(PyTypeError::new_err(format!(
            "a pattern is str, bytes, quarrier.hex(…), quarrier.regex(…) or re.compile(…), not '{}'",
            given.get_type().name()?
        )));
    };
    literal.map_err(|error| of_search(given.py(), &error))
}

/// Shows bytes as a pattern: as text if they are text, else with escapes.
fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_string(),
        _ => bytes.escape_ascii().to_string(),
    }
}
