//! Rows as Python values.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString};
use quarrier_messages::{Column, Table, Value};

/// Converts all rows; each string of a dictionary is made once.
pub(super) fn dicts<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyList>> {
    let fields = &table.schema().fields;
    let names: Vec<_> = fields.iter().map(|field| PyString::new(py, &field.name)).collect();
    let makers = table.columns().iter().map(|column| Maker::new(py, column));
    let mut makers = makers.collect::<PyResult<Vec<_>>>()?;
    let list = PyList::empty(py);
    for segment in 0..table.segments() {
        for row in 0..table.segment_rows(segment) {
            let dict = PyDict::new(py);
            for (name, maker) in names.iter().zip(&mut makers) {
                dict.set_item(name, maker.value(segment, row)?)?;
            }
            list.append(dict)?;
        }
        py.check_signals()?;
    }
    Ok(list)
}

/// Converts the values of one column.
pub(super) fn column<'py>(
    py: Python<'py>,
    table: &Table,
    column: usize,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut values = Vec::with_capacity(table.rows() as usize);
    let mut maker = Maker::new(py, &table.columns()[column])?;
    for segment in 0..table.segments() {
        for row in 0..table.segment_rows(segment) {
            values.push(maker.value(segment, row)?);
        }
    }
    Ok(values)
}

/// Makes the Python values of one column.
struct Maker<'t, 'py> {
    py: Python<'py>,
    column: &'t Column,
    /// The strings of the dictionary that have been made so far.
    strings: Vec<Option<Bound<'py, PyString>>>,
    datetime: Bound<'py, PyModule>,
    epoch: Bound<'py, PyAny>,
    decimal: Bound<'py, PyAny>,
}

/// The proleptic ordinal of 1970-01-01, as Python's dates count.
const EPOCH_ORDINAL: i64 = 719_163;

impl<'t, 'py> Maker<'t, 'py> {
    fn new(py: Python<'py>, column: &'t Column) -> PyResult<Self> {
        let datetime = py.import("datetime")?;
        let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1))?;
        let decimal = py.import("decimal")?.getattr("Decimal")?;
        let strings = column.dictionary().map_or(0, |dictionary| dictionary.len());
        Ok(Maker { py, column, strings: vec![None; strings], datetime, epoch, decimal })
    }

    fn value(&mut self, segment: usize, row: usize) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        if let Some(code) = self.column.segments()[segment].code(row) {
            let text = || self.column.text(segment, row).unwrap_or("");
            let known = &mut self.strings[code as usize];
            return Ok(known.get_or_insert_with(|| PyString::new(py, text())).clone().into_any());
        }
        Ok(match self.column.value(segment, row) {
            Value::Null | Value::Time(_) | Value::Interval { .. } => py.None().into_bound(py),
            Value::Boolean(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
            Value::Integer(number) => number.into_pyobject(py)?.into_any(),
            Value::Decimal { mantissa, scale } => {
                self.decimal.call1((format!("{mantissa}E-{scale}"),))?
            }
            Value::Float(float) => PyFloat::new(py, float).into_any(),
            Value::Date(day) => {
                let date = self.datetime.getattr(intern!(py, "date"))?;
                let ordinal = i64::from(day) + EPOCH_ORDINAL;
                date.call_method1(intern!(py, "fromordinal"), (ordinal,))?
            }
            Value::Timestamp(nanoseconds) => {
                let delta = self.datetime.getattr(intern!(py, "timedelta"))?;
                let since = delta.call1((0, 0, nanoseconds.div_euclid(1_000)))?;
                self.epoch.add(since)?
            }
            Value::Text(text) => PyString::new(py, text).into_any(),
        })
    }
}
