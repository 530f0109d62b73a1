//! Output formats that have writers in Arrow and Parquet.

use std::io::{self, Write};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::json;
use datafusion::arrow::json::writer::LineDelimited;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

use super::{Batches, failed};
use crate::{Error, Result};

type Out<'o> = &'o mut (dyn Write + Send);

/// Extracts the I/O error from Arrow's error, so that a closed pipe is recognised.
fn of_arrow(name: &str, error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => failed(name, error),
        // For these formats, Arrow keeps only the message of the I/O error.
        ArrowError::CsvError(said) | ArrowError::JsonError(said)
            if said.contains("Broken pipe") =>
        {
            failed(name, io::ErrorKind::BrokenPipe.into())
        }
        other => failed(name, io::Error::other(other)),
    }
}

fn of_parquet(name: &str, error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => failed(name, *error),
            Err(other) => failed(name, io::Error::other(other)),
        },
        other => failed(name, io::Error::other(other)),
    }
}

pub(super) struct Json<'o> {
    name: String,
    writer: json::Writer<Vec<u8>, LineDelimited>,
    out: Out<'o>,
}

impl<'o> Json<'o> {
    pub(super) fn new(name: &str, out: Out<'o>) -> Self {
        let writer = json::WriterBuilder::new().with_explicit_nulls(true).build(Vec::new());
        Json { name: name.to_string(), writer, out }
    }
}

impl Batches for Json<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let name = &self.name;
        if batch.num_columns() == 0 {
            let lines = "{}\n".repeat(batch.num_rows());
            return self.out.write_all(lines.as_bytes()).map_err(|error| failed(name, error));
        }
        self.writer.write(batch).map_err(|error| of_arrow(name, error))?;
        let bytes = self.writer.get_mut();
        self.out.write_all(bytes).map_err(|error| failed(name, error))?;
        bytes.clear();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(|error| failed(&self.name, error))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let name = self.name;
        self.out.flush().map_err(|error| failed(&name, error))
    }
}

pub(super) struct Csv<'o> {
    name: String,
    out: Out<'o>,
}

impl<'o> Csv<'o> {
    pub(super) fn new(name: &str, out: Out<'o>, schema: &SchemaRef) -> Result<Self> {
        let mut csv = Csv { name: name.to_string(), out };
        let empty = RecordBatch::new_empty(schema.clone());
        csv.write(&empty, true)?;
        Ok(csv)
    }

    fn write(&mut self, batch: &RecordBatch, has_header: bool) -> Result<()> {
        let mut bytes = Vec::new();
        let mut writer = csv::WriterBuilder::new().with_header(has_header).build(&mut bytes);
        writer.write(batch).map_err(|error| of_arrow(&self.name, error))?;
        drop(writer);
        self.out.write_all(&bytes).map_err(|error| failed(&self.name, error))
    }
}

impl Batches for Csv<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write(batch, false)
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(|error| failed(&self.name, error))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}

pub(super) struct Arrow<'o> {
    name: String,
    writer: StreamWriter<Out<'o>>,
}

impl<'o> Arrow<'o> {
    pub(super) fn new(name: &str, out: Out<'o>, schema: &SchemaRef) -> Result<Self> {
        let writer = StreamWriter::try_new(out, schema).map_err(|e| of_arrow(name, e))?;
        Ok(Arrow { name: name.to_string(), writer })
    }
}

impl Batches for Arrow<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(|error| of_arrow(&self.name, error))
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(|error| of_arrow(&self.name, error))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let name = self.name.clone();
        self.writer.finish().map_err(|error| of_arrow(&name, error))?;
        self.writer.flush().map_err(|error| of_arrow(&name, error))
    }
}

pub(super) struct Parquet<'o> {
    name: String,
    writer: ArrowWriter<Out<'o>>,
}

impl<'o> Parquet<'o> {
    pub(super) fn new(name: &str, out: Out<'o>, schema: SchemaRef) -> Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = ArrowWriter::try_new(out, schema, Some(properties));
        let writer = writer.map_err(|error| of_parquet(name, error))?;
        Ok(Parquet { name: name.to_string(), writer })
    }
}

impl Batches for Parquet<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(|error| of_parquet(&self.name, error))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let name = self.name;
        self.writer.close().map(drop).map_err(|error| of_parquet(&name, error))
    }
}
