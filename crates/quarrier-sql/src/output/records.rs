//! Writes a line for each value, for people to read rows that are too wide for a table.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use quarrier_report::{padded, visible, width};

use super::text::harmless;
use super::{Batches, failed};
use crate::{Error, Result};

pub(super) struct Records<'o> {
    name: String,
    out: &'o mut (dyn Write + Send),
    /// The column names, padded to the same width.
    names: Vec<String>,
    rows: u64,
}

impl<'o> Records<'o> {
    pub(super) fn new(schema: &SchemaRef, name: &str, out: &'o mut (dyn Write + Send)) -> Self {
        let names = schema.fields().iter().map(|field| visible(field.name()).into_owned());
        let names: Vec<String> = names.collect();
        let cells = names.iter().map(|name| width(name)).max().unwrap_or(0);
        let names = names.iter().map(|name| padded(name, cells)).collect();
        Records { name: name.to_string(), out, names, rows: 0 }
    }
}

impl Batches for Records<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::default().with_null("NULL").with_display_error(true);
        let formatters: std::result::Result<Vec<_>, _> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect();
        let formatters = formatters.map_err(|error| Error::Engine(error.into()))?;
        for row in 0..batch.num_rows() {
            self.rows += 1;
            let mut record = format!("-[ row {} ]-\n", self.rows);
            for (name, values) in self.names.iter().zip(&formatters) {
                let value = harmless(values.value(row).to_string());
                record.push_str(name);
                record.push_str(" | ");
                record.push_str(&value);
                record.push('\n');
            }
            self.out.write_all(record.as_bytes()).map_err(|error| failed(&self.name, error))?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(|error| failed(&self.name, error))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}
