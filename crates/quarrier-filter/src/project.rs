//! Projects the rows that a scan found.

use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_messages::build::{Cell, FieldId, Row, RowBuilder};
use quarrier_messages::column::{SegmentColumn, Strings};
use quarrier_messages::{DIGITS_MAX, Field, Kind, Part, PartField, PartSegment, Schema, Table};

use crate::naive::{self, Datum};
use crate::{Answer, Error, Expr, Output, Query, Result, Select, calendar};

impl Query {
    /// Returns the result as a separate table. Copies columns in packed form, about 10 ns per
    /// value, and evaluates calculated outputs row by row.
    ///
    /// # Errors
    ///
    /// [`Error::Row`] if a calculated output has no value, [`Error::Cancelled`] soon after `cancel`
    /// is set.
    ///
    /// # Panics
    ///
    /// If `answer` is not that of this query over `table`.
    pub fn project(
        &self,
        table: &Table,
        answer: &Answer,
        workers: usize,
        cancel: &AtomicBool,
    ) -> Result<Table> {
        let outputs = match &self.select {
            Select::Count { name } => return Ok(counted(name, answer.count)),
            Select::Rows(outputs) => outputs,
        };
        let names = outputs.iter().map(|output| output.name.clone()).collect();
        let column = |output: &Output| match output.expr {
            Expr::Column(column) => Some(column),
            _ => None,
        };
        let columns: Option<Vec<usize>> = outputs.iter().map(column).collect();
        let shown = match columns {
            Some(columns) => table.take(&answer.rows, &columns, workers),
            None => calculated(outputs, table, &answer.rows, workers, cancel)?,
        };
        Ok(shown.renamed(names))
    }
}

/// Returns the one row of a count.
fn counted(name: &str, count: u64) -> Table {
    let mut builder = RowBuilder::new(1);
    if let Some(field) = builder.field(name) {
        builder.integer(field, count as i64);
    }
    builder.commit();
    let mut part = part_of(1, |_| name.into());
    finish(&mut builder, &mut part, 0);
    Table::assemble(vec![part], 1)
}

/// Number of rows between two checks of the flag.
const CANCEL_ROWS: usize = 1_024;

fn calculated(
    outputs: &[Output],
    table: &Table,
    rows: &[u64],
    workers: usize,
    cancel: &AtomicBool,
) -> Result<Table> {
    // Outputs may have equal names; these names are unique.
    let name = |at: usize| at.to_string().into_boxed_str();
    let mut builder = RowBuilder::new(outputs.len());
    let fields: Vec<FieldId> =
        (0..outputs.len()).filter_map(|at| builder.field(&name(at))).collect();
    let mut part = part_of(outputs.len(), name);
    for (done, &row) in rows.iter().enumerate() {
        if done % CANCEL_ROWS == 0 && cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let values = |column: usize| table.value(row, column);
        for (output, &field) in outputs.iter().zip(&fields) {
            let value = naive::evaluate(&output.expr, &values);
            let value = value.map_err(|fault| Error::Row { row, fault })?;
            put(&mut builder, field, value);
        }
        builder.commit();
        if builder.is_full() {
            finish(&mut builder, &mut part, done as u64);
        }
    }
    if builder.rows() > 0 {
        finish(&mut builder, &mut part, rows.len() as u64);
    }
    for (field, id) in part.fields.iter_mut().zip(fields) {
        let (ends, bytes) = builder.dictionary(id);
        field.dictionary = Strings::from_parts(ends.to_vec(), bytes.to_vec());
        field.rounded = builder.rounded(id);
    }
    let kinds = outputs.iter().map(|output| output.kind.unwrap_or(Kind::Text));
    let fields = kinds.enumerate().map(|(at, kind)| Field { name: name(at), kind });
    Ok(Table::assemble_as(&Schema { fields: fields.collect() }, vec![part], workers))
}

fn part_of(fields: usize, name: impl Fn(usize) -> Box<str>) -> Part {
    let field = |at| PartField { name: name(at), ..PartField::default() };
    Part { fields: (0..fields).map(field).collect(), segments: Vec::new() }
}

fn finish(builder: &mut RowBuilder, part: &mut Part, place: u64) {
    let rows = builder.rows() as u32;
    let mut columns = vec![None; part.fields.len()];
    builder.finish_segment(|field, raw| columns[field.index()] = Some(SegmentColumn::pack(raw)));
    part.segments.push(PartSegment { place, rows, columns });
}

/// Converts times of day and intervals, which no column can have, to strings.
fn put(builder: &mut RowBuilder, field: FieldId, value: Datum<'_>) {
    match value {
        Datum::Null => builder.null(field),
        Datum::Boolean(truth) => builder.boolean(field, truth),
        Datum::Integer(number) => builder.integer(field, number),
        Datum::Decimal { mantissa, scale } => put_decimal(builder, field, mantissa, scale),
        Datum::Float(float) => builder.float(field, float),
        Datum::Date(day) => builder.date(field, day),
        Datum::Timestamp(time) => builder.timestamp(field, time),
        Datum::Text(text) => builder.text(field, &text),
        Datum::Time(time) => builder.text(field, &calendar::show_time(time)),
        Datum::Interval { months, nanoseconds } => {
            builder.text(field, &calendar::show_interval(months, nanoseconds));
        }
    }
}

/// Stores an exact number if a column can, else the nearest float.
fn put_decimal(builder: &mut RowBuilder, field: FieldId, mut mantissa: i128, mut scale: u8) {
    let fits = |mantissa: i128| mantissa.unsigned_abs() < 10_u128.pow(DIGITS_MAX.into());
    while scale > 0 && mantissa % 10 == 0 && !fits(mantissa) {
        (mantissa, scale) = (mantissa / 10, scale - 1);
    }
    if fits(mantissa) && scale <= DIGITS_MAX {
        return builder.put(field, Cell::exact(mantissa, scale));
    }
    let float = format!("{mantissa}e-{scale}").parse();
    builder.put(field, Cell::Rounded(float.unwrap_or(f64::NAN)));
}
