//! Columnar formats: Arrow IPC, and Parquet if a reader is available.
//!
//! ```text
//!  Parquet ─→ ColumnReader: row groups decoded in parallel ┐
//!  Arrow   ─→ batches in sequence                          ├─→ in order ─→ Table::from_batches
//! ```

mod arrow;
mod input;
mod lengths;

pub use arrow::{ArrowFile, open_arrow_file};

use std::cell::Cell;
use std::fmt;
use std::io::Read;
use std::sync::Arc;
use std::thread::Scope;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema as ArrowSchema, SchemaRef};
use quarrier_core::source::{Memory, Source};

use super::run::Take;
use super::{Format, Load, Loaded};
use crate::build::Refused;
use crate::{Error, HiddenColumns, LINE_COLUMN, Limits, Result, Table};

type Batch = std::result::Result<RecordBatch, ArrowError>;
type Batches<'b> = Box<dyn Iterator<Item = Batch> + 'b>;

/// The columns of a source, and batches of its rows in order.
pub type Columns<'b> = (SchemaRef, Batches<'b>);

/// Reads a columnar format with a library that most programs do not need.
pub trait ColumnReader: fmt::Debug + Sync {
    /// Opens a source; up to `workers` threads of `scope` decode its batches. Damaged bytes must
    /// not panic: see [`guarded`].
    ///
    /// # Errors
    /// If the source cannot be read or has another format; its batches fail for the same reasons.
    fn open<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        source: &'env dyn Source,
        workers: usize,
    ) -> std::result::Result<Columns<'scope>, ArrowError>;
}

impl Load<'_> {
    /// Loads Arrow or Parquet sources, which must have the same columns.
    pub(super) fn columns(
        &self,
        sources: &[&dyn Source],
        bytes_max: usize,
        take: &mut Take<'_>,
    ) -> Result<Loaded> {
        if let Some(source) = sources.first().filter(|_| self.keeps_bytes) {
            let reason = "it is columnar, so it has no original messages to keep";
            let source_name = source.name().into();
            return Err(Error::Columns { source_name, reason: reason.into() });
        }
        let bytes = sources.iter().map(|source| source.length()).sum();
        let workers = self.planned_workers();
        let table = std::thread::scope(|scope| {
            let mut opened = Vec::new();
            let mut common: Option<SchemaRef> = None;
            for &source in sources {
                let name = source.name();
                let columns = match (&self.format, self.parquet) {
                    (Format::Parquet, Some(reader)) => reader.open(scope, source, workers),
                    (Format::Parquet, None) => return Err(unreadable(name)),
                    _ => arrow::open(source),
                };
                let (schema, batches) = columns.map_err(|error| damaged(name, &error))?;
                if common.as_ref().is_some_and(|common| common.fields() != schema.fields()) {
                    let reason =
                        "its columns differ from those of earlier sources; load it separately";
                    return Err(Error::Columns { source_name: name.into(), reason: reason.into() });
                }
                common.get_or_insert(schema);
                opened.push((name, batches));
            }
            let Some(schema) = common else { return Ok((Table::default(), Refused::default())) };
            self.selected(&schema, opened, (bytes_max, take))
        });
        let (table, refused) = table?;
        Ok(Loaded { table, refused, bytes, ..Loaded::default() })
    }

    /// Makes a table of the requested columns, up to the maximum number.
    fn selected(
        &self,
        schema: &SchemaRef,
        opened: Vec<(&str, Batches<'_>)>,
        (bytes_max, take): (usize, &mut Take<'_>),
    ) -> Result<(Table, Refused)> {
        // Rows have a number, but no offset and no bytes.
        let hidden = HiddenColumns { line: self.hidden.line, ..HiddenColumns::default() };
        let is_replaced = |name: &str| hidden.has(name);
        let is_wanted = |name: &str| {
            !is_replaced(name)
                && self.schema.as_ref().is_none_or(|schema| {
                    schema.fields.iter().any(|field| {
                        field
                            .name
                            .strip_prefix(name)
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                    })
                })
        };
        let fields = schema.fields();
        let wanted: Vec<usize> =
            (0..fields.len()).filter(|&at| is_wanted(fields[at].name())).collect();
        let (kept, beyond) = wanted.split_at(wanted.len().min(self.limits.columns_max));
        let mut refused = Refused::default();
        let replaced = (0..fields.len()).filter(|&at| is_replaced(fields[at].name()));
        for at in replaced.chain(beyond.iter().copied()) {
            let names = vec![fields[at].name().as_str().into()];
            refused.add(Refused { names, count: 1 });
        }
        let mut kept_fields: Vec<_> = kept.iter().map(|&at| Arc::clone(&fields[at])).collect();
        if hidden.line {
            kept_fields.push(Arc::new(ArrowField::new(LINE_COLUMN, DataType::Int64, false)));
        }
        let kept_schema = Arc::new(ArrowSchema::new(kept_fields));
        // The source whose batch failed.
        let last = Cell::new("");
        let batches = opened.into_iter().flat_map(|(name, batches)| {
            last.set(name);
            let mut rows = 0;
            batches.map(move |batch| {
                let (batch, before) = (batch?, rows);
                rows += batch.num_rows();
                Ok::<_, ArrowError>((batch, before))
            })
        });
        let batches = batches.map(|batch| {
            let (batch, before) = batch?;
            let batch = batch.project(kept)?;
            if hidden.line { with_lines(&batch, before, &kept_schema) } else { Ok(batch) }
        });
        let mut batches = batches.take_while(|_| self.check().is_ok());
        loop {
            let mut bytes = 0;
            let piece = std::iter::from_fn(|| {
                if bytes > bytes_max {
                    return None;
                }
                let batch = batches.next()?;
                bytes += batch.as_ref().map_or(0, nbytes);
                Some(batch)
            });
            let table = Table::from_batches(&kept_schema, piece, self.workers);
            let table = table.map(|table| table.hiding(hidden));
            self.check()?;
            let table = table.map_err(|error| match error {
                Error::Arrow(error) => damaged(last.get(), &error),
                error => error,
            });
            if bytes <= bytes_max {
                return Ok((table?, refused));
            }
            take(Loaded { table: table?, ..Loaded::default() })?;
        }
    }
}

/// Adds the numbers of a batch's rows; `before` rows precede them in its source.
fn with_lines(batch: &RecordBatch, before: usize, schema: &SchemaRef) -> Batch {
    let lines = before + 1..=before + batch.num_rows();
    let lines = Int64Array::from_iter_values(lines.map(|line| line as i64));
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(lines));
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// Returns the bytes of a batch's values, excluding unused parts of their buffers.
fn nbytes(batch: &RecordBatch) -> usize {
    let of_column = |column: &ArrayRef| {
        let data = column.to_data();
        data.get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(of_column).sum()
}

/// Makes the error for Parquet without a reader.
fn unreadable(source_name: &str) -> Error {
    let reason = "it is Parquet, which requires a reader: see Load::parquet".into();
    Error::Columns { source_name: source_name.into(), reason }
}

fn damaged(source_name: &str, error: &ArrowError) -> Error {
    let reason = format!("it is damaged, truncated, or in another format: {error}");
    Error::Columns { source_name: source_name.into(), reason }
}

/// Reads a whole stream into memory, since Parquet has its metadata at the end.
pub(super) fn whole(
    name: &str,
    stream: &mut (dyn Read + Send),
    limits: &Limits,
) -> Result<Memory<Vec<u8>>> {
    let most = limits.columnar_stream_bytes_max;
    let mut bytes = Vec::new();
    let read = stream.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| quarrier_core::Error::io(name, "read", error))?;
    if bytes.len() as u64 > most {
        let reason = format!(
            "columns are read from a stream as a whole, and it has more than {most} bytes; save \
             it as a file and load that"
        );
        return Err(Error::Columns { source_name: name.into(), reason });
    }
    Ok(Memory::new(name, bytes))
}

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs library code whose panics become errors; a program's panic hook should
/// then stay silent. The libraries for Arrow and Parquet panic on some damaged files.
///
/// ```
/// let previous = std::panic::take_hook();
/// std::panic::set_hook(Box::new(move |panic| {
///     if !quarrier_messages::is_panic_caught() {
///         previous(panic);
///     }
/// }));
/// ```
pub fn is_panic_caught() -> bool {
    IS_GUARDED.get()
}

/// Runs `work` and turns a panic into an error, since libraries panic on damaged bytes. Meanwhile,
/// [`is_panic_caught`] is true.
///
/// # Errors
/// The errors of `work`, and a [`ParseError`](ArrowError::ParseError) if it panics.
pub fn guarded<T>(
    work: impl FnOnce() -> std::result::Result<T, ArrowError>,
) -> std::result::Result<T, ArrowError> {
    let before = IS_GUARDED.replace(true);
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    done.unwrap_or_else(|_| Err(ArrowError::ParseError("invalid bytes".into())))
}

#[cfg(test)]
mod tests {
    use super::{guarded, is_panic_caught};

    #[test]
    fn a_panic_of_a_library_is_an_error() {
        assert!(!is_panic_caught());
        let inner = || guarded(|| Ok(is_panic_caught()));
        assert!(matches!(guarded(|| Ok((inner()?, is_panic_caught()))), Ok((true, true))));
        // `resume_unwind` does not call the panic hook, which would print in the tests.
        let error = guarded::<()>(|| std::panic::resume_unwind(Box::new("damaged")));
        assert!(error.unwrap_err().to_string().contains("invalid bytes"));
        assert!(!is_panic_caught());
    }
}
