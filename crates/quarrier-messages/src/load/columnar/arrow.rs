//! Arrow IPC, as a file or as a stream of batches.

use std::collections::HashMap;
use std::io::BufReader;

use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use quarrier_core::source::Source;

use super::input::Input;
use super::{Batches, guarded, lengths};

/// The magic number of files, which streams lack.
const MAGIC: &[u8] = b"ARROW1";

/// Bytes read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Returns the schema of a source, and its batches.
pub(super) fn open(source: &dyn Source) -> Result<(SchemaRef, Batches<'_>), ArrowError> {
    let mut head = [0; MAGIC.len()];
    let read = quarrier_core::source::read_full_at(source, 0, &mut head)?;
    let input = BufReader::with_capacity(BUFFER_BYTES, Input::new(source));
    if &head[..read] == MAGIC {
        let ArrowFile { schema, batches, .. } = open_arrow_file(source)?;
        return Ok((schema, batches));
    }
    guarded(|| lengths::check_stream(source))?;
    let mut reader = guarded(|| StreamReader::try_new(input, None))?;
    let schema = reader.schema();
    let batches = std::iter::from_fn(move || guarded(|| reader.next().transpose()).transpose());
    Ok((schema, Box::new(until_error(batches))))
}

/// An Arrow IPC file.
pub struct ArrowFile<'s> {
    /// Its columns.
    pub schema: SchemaRef,
    /// The strings in its footer, by their keys.
    pub metadata: HashMap<String, String>,
    /// Its batches, in order. Ends after the first error.
    pub batches: Batches<'s>,
}

/// Opens an Arrow IPC file. Damaged or hostile bytes are errors, and reserve no memory for lengths
/// that exceed the file.
///
/// # Errors
/// If the source cannot be read or is not an Arrow IPC file.
pub fn open_arrow_file(source: &dyn Source) -> Result<ArrowFile<'_>, ArrowError> {
    let input = BufReader::with_capacity(BUFFER_BYTES, Input::new(source));
    guarded(|| lengths::check_file(source))?;
    let mut reader = guarded(|| FileReader::try_new(input, None))?;
    let (schema, metadata) = (reader.schema(), reader.custom_metadata().clone());
    let batches = std::iter::from_fn(move || guarded(|| reader.next().transpose()).transpose());
    Ok(ArrowFile { schema, metadata, batches: Box::new(until_error(batches)) })
}

/// Yields the batches up to and including the first error.
fn until_error<T>(
    batches: impl Iterator<Item = Result<T, ArrowError>>,
) -> impl Iterator<Item = Result<T, ArrowError>> {
    let mut is_over = false;
    batches.take_while(move |batch| !std::mem::replace(&mut is_over, batch.is_err()))
}
