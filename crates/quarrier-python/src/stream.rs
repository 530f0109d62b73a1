//! Findings as a stream of Arrow record batches, made when the consumer requests them.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::findings::SearchResult;

/// Rows of a record batch.
const BATCH_ROWS: usize = 64 * 1024;

/// Makes the capsule of the Arrow PyCapsule interface.
pub(crate) fn capsule(py: Python<'_>, found: Arc<SearchResult>) -> PyResult<Bound<'_, PyCapsule>> {
    capsule_of(py, Box::new(Batches { found, next: 0, schema: schema() }))
}

/// Makes a capsule of any batches.
pub(crate) fn capsule_of(
    py: Python<'_>,
    batches: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(batches);
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// The columns, as `quarrier search --format arrow` has them.
fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("source", DataType::Utf8, true),
        Field::new("offset", DataType::UInt64, false),
        Field::new("length", DataType::UInt64, false),
        Field::new("pattern", DataType::Utf8, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("match", DataType::Binary, true),
    ]))
}

struct Batches {
    found: Arc<SearchResult>,
    next: usize,
    schema: SchemaRef,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.next;
        let findings = self.found.findings.get(first..)?;
        let findings = &findings[..findings.len().min(BATCH_ROWS)];
        if findings.is_empty() {
            return None;
        }
        self.next += findings.len();
        let mut offsets = UInt64Builder::with_capacity(findings.len());
        let mut lengths = UInt64Builder::with_capacity(findings.len());
        let [mut sources, mut patterns, mut names] = [(); 3].map(|()| StringBuilder::new());
        let mut matches = BinaryBuilder::new();
        for (at, finding) in (first..).zip(findings) {
            let pattern = &self.found.patterns[finding.pattern as usize];
            sources.append_value(self.found.source_of(at));
            offsets.append_value(finding.offset);
            lengths.append_value(u64::from(finding.length));
            patterns.append_value(&pattern.text);
            names.append_option(pattern.name.as_deref());
            matches.append_value(self.found.match_of(at));
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(sources.finish()),
            Arc::new(offsets.finish()),
            Arc::new(lengths.finish()),
            Arc::new(patterns.finish()),
            Arc::new(names.finish()),
            Arc::new(matches.finish()),
        ];
        Some(RecordBatch::try_new(Arc::clone(&self.schema), columns))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
