//! Writes rows as a table for people to read.

use std::borrow::Cow;
use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use quarrier_report::{visible, visible_lines, width};

use super::{Batches, failed};
use crate::{Error, Result};

/// Maximum number of rows that are held back to compute column widths.
const ROWS_HELD_MAX: usize = 1_000;

/// Maximum column width in terminal cells, unless the column's name is wider.
const WIDTH_MAX: usize = 80;

pub(super) struct Text<'o> {
    name: String,
    out: &'o mut (dyn Write + Send),
    names: Vec<String>,
    /// The width of each column, in cells of a terminal.
    widths: Vec<usize>,
    is_right: Vec<bool>,
    held: Vec<Vec<String>>,
    is_begun: bool,
    /// Whether the rows are a plan, whose values keep their line breaks.
    is_plan: bool,
}

impl<'o> Text<'o> {
    pub(super) fn new(schema: &SchemaRef, name: &str, out: &'o mut (dyn Write + Send)) -> Self {
        let fields = schema.fields();
        let names: Vec<String> =
            fields.iter().map(|field| visible(field.name()).into_owned()).collect();
        let widths = names.iter().map(|name| width(name)).collect();
        let is_right = fields.iter().map(|field| field.data_type().is_numeric()).collect();
        let is_plan = names == ["plan_type", "plan"];
        let name = name.to_string();
        let held = Vec::new();
        Text { name, out, names, widths, is_right, held, is_begun: false, is_plan }
    }

    fn line(&mut self, values: &[String]) -> Result<()> {
        let mut line = String::new();
        for (place, value) in values.iter().enumerate() {
            let blanks = self.widths[place].saturating_sub(width(value));
            let is_last = place + 1 == values.len();
            if self.is_right[place] {
                line.extend(std::iter::repeat_n(' ', blanks));
                line.push_str(value);
            } else {
                line.push_str(value);
                if !is_last {
                    line.extend(std::iter::repeat_n(' ', blanks));
                }
            }
            if !is_last {
                line.push_str("  ");
            }
        }
        line.push('\n');
        self.out.write_all(line.as_bytes()).map_err(|error| failed(&self.name, error))
    }

    /// Writes the header and the rows that were held back.
    fn begin(&mut self) -> Result<()> {
        if self.is_begun {
            return Ok(());
        }
        self.is_begun = true;
        let held = std::mem::take(&mut self.held);
        for row in &held {
            for (cells, value) in self.widths.iter_mut().zip(row) {
                *cells = (*cells).max(width(value).min(WIDTH_MAX));
            }
        }
        let names = std::mem::take(&mut self.names);
        let rules: Vec<String> = self.widths.iter().map(|&cells| "-".repeat(cells)).collect();
        if !names.is_empty() {
            self.line(&names)?;
            self.line(&rules)?;
        }
        held.iter().try_for_each(|row| self.line(row))
    }
}

impl Batches for Text<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::default().with_null("NULL").with_display_error(true);
        let formatters: std::result::Result<Vec<_>, _> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect();
        let formatters = formatters.map_err(|error| Error::Engine(error.into()))?;
        for row in 0..batch.num_rows() {
            if self.is_plan {
                let shown = formatters.last().map(|values| values.value(row).to_string());
                let shown = shown.unwrap_or_default();
                let shown = format!("{}\n", visible_lines(shown.trim_end()));
                self.out.write_all(shown.as_bytes()).map_err(|e| failed(&self.name, e))?;
                continue;
            }
            let values: Vec<String> =
                formatters.iter().map(|values| harmless(values.value(row).to_string())).collect();
            if self.is_begun {
                self.line(&values)?;
            } else {
                self.held.push(values);
                if self.held.len() == ROWS_HELD_MAX {
                    self.begin()?;
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.is_begun {
            self.out.flush().map_err(|error| failed(&self.name, error))?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.is_plan {
            self.begin()?;
        }
        self.out.flush().map_err(|error| failed(&self.name, error))
    }
}

/// Escapes characters that would break the line or harm a terminal; copies only if it has to.
pub(super) fn harmless(value: String) -> String {
    match visible(&value) {
        Cow::Borrowed(_) => value,
        Cow::Owned(escaped) => escaped,
    }
}
