//! Values as Arrow columns.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder,
    StringBuilder, TimestampNanosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, SchemaRef, TimeUnit};
use quarrier_core::civil;
use quarrier_messages::build::Cell;
use quarrier_messages::{DIGITS_MAX, Kind, Schema};

use super::conditions::named_kind;
use super::record::{Record, Wanted};

/// Precision of exact numbers: the maximum, since later values are unknown.
const DIGITS: u8 = DIGITS_MAX;

/// The Arrow schema of these columns. A column without any value so far is a string.
pub(super) fn arrow_schema(schema: &Schema) -> SchemaRef {
    let field = |field: &quarrier_messages::Field| {
        let data_type = match field.kind {
            Kind::Boolean => DataType::Boolean,
            Kind::Integer => DataType::Int64,
            Kind::Decimal { scale } => DataType::Decimal128(DIGITS, scale as i8),
            Kind::Float => DataType::Float64,
            Kind::Date => DataType::Date32,
            Kind::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, None),
            Kind::Text | Kind::Null => DataType::Utf8,
        };
        Field::new(&*field.name, data_type, true)
    };
    Arc::new(arrow_schema::Schema::new(schema.fields.iter().map(field).collect::<Vec<_>>()))
}

/// Builders of the columns while rows are added.
pub(super) struct Builders {
    schema: Schema,
    arrow: SchemaRef,
    columns: Vec<Builder>,
    text: String,
}

enum Builder {
    Boolean(BooleanBuilder),
    Integer(Int64Builder),
    Decimal(u8, Decimal128Builder),
    Float(Float64Builder),
    Date(Date32Builder),
    Timestamp(TimestampNanosecondBuilder),
    Text(StringBuilder),
}

impl Builders {
    pub(super) fn new(schema: &Schema) -> Self {
        let arrow = arrow_schema(schema);
        let columns = schema.fields.iter().map(|field| Builder::new(field.kind)).collect();
        Builders { schema: schema.clone(), arrow, columns, text: String::new() }
    }

    pub(super) fn wanted(&self) -> Vec<Wanted> {
        let wanted = |field: &quarrier_messages::Field| Wanted {
            name: field.name.to_string(),
            is_known: field.kind != Kind::Null,
        };
        self.schema.fields.iter().map(wanted).collect()
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Why the row does not fit; nothing is appended then.
    pub(super) fn add(&mut self, record: &Record) -> Result<(), String> {
        for (place, column) in self.columns.iter().enumerate() {
            let cell = column.timed(record.cell(place));
            if !column.holds(cell) {
                let field = &self.schema.fields[place];
                return Err(format!(
                    "'{}' is {} here, but the column was made for {}; --format json has no such \
                     bounds",
                    field.name,
                    named_kind(cell.kind()),
                    named_kind(field.kind)
                ));
            }
        }
        for (place, column) in self.columns.iter_mut().enumerate() {
            let cell = column.timed(record.cell(place));
            column.append(cell, &mut self.text);
        }
        Ok(())
    }

    /// The rows so far; `None` if there are none.
    pub(super) fn finish(&mut self) -> Option<RecordBatch> {
        if self.columns.first().is_none_or(|column| column.rows() == 0) {
            return None;
        }
        let arrays = self.columns.iter_mut().map(Builder::finish).collect();
        RecordBatch::try_new(Arc::clone(&self.arrow), arrays).ok()
    }
}

impl Builder {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Boolean => Builder::Boolean(BooleanBuilder::new()),
            Kind::Integer => Builder::Integer(Int64Builder::new()),
            Kind::Decimal { scale } => {
                let data_type = DataType::Decimal128(DIGITS, scale as i8);
                Builder::Decimal(scale, Decimal128Builder::new().with_data_type(data_type))
            }
            Kind::Float => Builder::Float(Float64Builder::new()),
            Kind::Date => Builder::Date(Date32Builder::new()),
            Kind::Timestamp => Builder::Timestamp(TimestampNanosecondBuilder::new()),
            Kind::Text | Kind::Null => Builder::Text(StringBuilder::new()),
        }
    }

    /// The value, converted to a date or timestamp in a column of that type.
    fn timed<'c>(&self, cell: Cell<'c>) -> Cell<'c> {
        let time = match (self, cell) {
            (Builder::Date(_) | Builder::Timestamp(_), Cell::Text(text)) => Cell::of_time(text),
            _ => None,
        };
        match (self, time.unwrap_or(cell)) {
            (Builder::Timestamp(_), Cell::Date(day)) => {
                civil::midnight(day).map_or(cell, Cell::Timestamp)
            }
            (_, cell) => cell,
        }
    }

    fn holds(&self, cell: Cell<'_>) -> bool {
        match (self, cell) {
            (_, Cell::Null)
            | (Builder::Text(_), _)
            | (Builder::Boolean(_), Cell::Boolean(_))
            | (Builder::Integer(_), Cell::Integer(_))
            | (Builder::Float(_), Cell::Float(_) | Cell::Rounded(_))
            | (Builder::Date(_), Cell::Date(_))
            | (Builder::Timestamp(_), Cell::Timestamp(_)) => true,
            (Builder::Float(_), cell) => cell.as_exact().is_some() && !cell.is_rounded(),
            (Builder::Decimal(..), cell) => self.mantissa(cell).is_some(),
            _ => false,
        }
    }

    /// The mantissa of a number, with the column's number of decimals.
    fn mantissa(&self, cell: Cell<'_>) -> Option<i128> {
        let Builder::Decimal(to, _) = self else { return None };
        let (mantissa, scale) = cell.as_exact()?;
        let power = 10_i128.pow(u32::from(to.checked_sub(scale)?));
        let grown = mantissa.checked_mul(power)?;
        (grown.unsigned_abs() < 10_u128.pow(u32::from(DIGITS))).then_some(grown)
    }

    fn append(&mut self, cell: Cell<'_>, text: &mut String) {
        let mantissa = self.mantissa(cell);
        match (self, cell) {
            (Builder::Boolean(to), Cell::Boolean(truth)) => to.append_value(truth),
            (Builder::Integer(to), Cell::Integer(number)) => to.append_value(number),
            (Builder::Decimal(_, to), _) => to.append_option(mantissa),
            (Builder::Float(to), Cell::Null) => to.append_null(),
            (Builder::Float(to), _) => to.append_value(cell.as_float()),
            (Builder::Date(to), Cell::Date(day)) => to.append_value(day),
            (Builder::Timestamp(to), Cell::Timestamp(value)) => to.append_value(value),
            (Builder::Text(to), Cell::Text(text)) => to.append_value(text),
            (Builder::Text(to), Cell::Null) => to.append_null(),
            (Builder::Text(to), _) => {
                text.clear();
                cell.write(text);
                to.append_value(&*text);
            }
            (Builder::Boolean(to), _) => to.append_null(),
            (Builder::Integer(to), _) => to.append_null(),
            (Builder::Date(to), _) => to.append_null(),
            (Builder::Timestamp(to), _) => to.append_null(),
        }
    }

    fn any(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            Builder::Boolean(builder) => builder,
            Builder::Integer(builder) => builder,
            Builder::Decimal(_, builder) => builder,
            Builder::Float(builder) => builder,
            Builder::Date(builder) => builder,
            Builder::Timestamp(builder) => builder,
            Builder::Text(builder) => builder,
        }
    }

    fn rows(&self) -> usize {
        match self {
            Builder::Boolean(builder) => builder.len(),
            Builder::Integer(builder) => builder.len(),
            Builder::Decimal(_, builder) => builder.len(),
            Builder::Float(builder) => builder.len(),
            Builder::Date(builder) => builder.len(),
            Builder::Timestamp(builder) => builder.len(),
            Builder::Text(builder) => builder.len(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        self.any().finish()
    }
}
