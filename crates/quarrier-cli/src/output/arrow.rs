//! Rows as an Arrow IPC stream.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::rows::{Column, Excerpt, Kind, Rows, Value};

/// Rows of a record batch.
const BATCH_ROWS: usize = 64 * 1024;

pub(super) struct ArrowRows {
    writer: StreamWriter<Box<dyn Write + Send>>,
    schema: Arc<Schema>,
    builders: Vec<Builder>,
    rows: usize,
}

enum Builder {
    Text(StringBuilder),
    Unsigned(UInt64Builder),
    Optional(UInt64Builder),
    Number(Float64Builder),
    Bytes(BinaryBuilder),
}

impl ArrowRows {
    pub(super) fn new(out: Box<dyn Write + Send>, columns: &[Column]) -> io::Result<Self> {
        let field = |column: &Column| match column.kind {
            Kind::Text | Kind::Json => Field::new(column.name, DataType::Utf8, true),
            Kind::Number => Field::new(column.name, DataType::Float64, true),
            Kind::Bytes => Field::new(column.name, DataType::Binary, true),
            Kind::Unsigned => Field::new(column.name, DataType::UInt64, false),
            Kind::Optional => Field::new(column.name, DataType::UInt64, true),
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let builders = columns
            .iter()
            .map(|column| match column.kind {
                Kind::Text | Kind::Json => Builder::Text(StringBuilder::new()),
                Kind::Unsigned => Builder::Unsigned(UInt64Builder::new()),
                Kind::Optional => Builder::Optional(UInt64Builder::new()),
                Kind::Number => Builder::Number(Float64Builder::new()),
                Kind::Bytes => Builder::Bytes(BinaryBuilder::new()),
            })
            .collect();
        let writer = StreamWriter::try_new(out, &schema).map_err(to_io)?;
        Ok(ArrowRows { writer, schema, builders, rows: 0 })
    }

    fn write_batch(&mut self) -> io::Result<()> {
        let arrays: Vec<ArrayRef> = self
            .builders
            .iter_mut()
            .map(|builder| match builder {
                Builder::Text(builder) => Arc::new(builder.finish()) as ArrayRef,
                Builder::Unsigned(builder) | Builder::Optional(builder) => {
                    Arc::new(builder.finish()) as ArrayRef
                }
                Builder::Number(builder) => Arc::new(builder.finish()) as ArrayRef,
                Builder::Bytes(builder) => Arc::new(builder.finish()) as ArrayRef,
            })
            .collect();
        self.rows = 0;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(to_io)?;
        self.writer.write(&batch).map_err(to_io)
    }
}

impl Rows for ArrowRows {
    fn row(&mut self, values: &[Value<'_>], _: Excerpt<'_>) -> io::Result<()> {
        for (builder, value) in self.builders.iter_mut().zip(values) {
            match (builder, value) {
                (Builder::Text(builder), Value::Text(text) | Value::Json(text)) => {
                    builder.append_value(text)
                }
                (Builder::Text(builder), _) => builder.append_null(),
                (
                    Builder::Unsigned(builder) | Builder::Optional(builder),
                    Value::Unsigned(number),
                ) => builder.append_value(*number),
                (Builder::Optional(builder), _) => builder.append_null(),
                (Builder::Unsigned(builder), _) => builder.append_value(0),
                (Builder::Number(builder), Value::Number(number)) if number.is_finite() => {
                    builder.append_value(*number)
                }
                (Builder::Number(builder), _) => builder.append_null(),
                (Builder::Bytes(builder), Value::Bytes(bytes)) => builder.append_value(bytes),
                (Builder::Bytes(builder), _) => builder.append_null(),
            }
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.write_batch() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.write_batch()?;
        }
        self.writer.get_mut().flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.write_batch()?;
        }
        self.writer.finish().map_err(to_io)?;
        self.writer.get_mut().flush()
    }
}

fn to_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}
