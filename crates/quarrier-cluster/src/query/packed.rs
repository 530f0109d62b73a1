//! The request of a query, and its rows, as bytes.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BinaryViewArray, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use quarrier_cli::{PackedContent, PackedQuery};
use quarrier_core::hex;
use quarrier_sql::{HiddenColumns, SpreadFragment, UnitContent, UnitMessages, UnitScan};

/// The request for a fragment.
///
/// # Errors
/// If the columns cannot be written.
pub(crate) fn pack(fragment: &SpreadFragment) -> Result<PackedQuery, String> {
    let UnitScan { content, table, has_name, columns, limit } = &fragment.scan;
    let (content, messages) = match content {
        UnitContent::RowGroups => (PackedContent::RowGroups, None),
        UnitContent::Messages(of) => (PackedContent::Messages, Some(of)),
        UnitContent::Description(of) => (PackedContent::Description, Some(of)),
    };
    let hidden = messages.map_or_else(Vec::new, |of| of.hidden.fields().collect());
    let mut bytes = Vec::new();
    let written = StreamWriter::try_new(&mut bytes, table).and_then(|mut writer| writer.finish());
    written.map_err(|error| error.to_string())?;
    Ok(PackedQuery {
        plan: hex::encode(&fragment.packed),
        table: hex::encode(&bytes),
        content,
        format: messages.and_then(|of| of.format.clone()),
        hidden: hidden.into_iter().map(|field| field.name.into()).collect(),
        has_name: *has_name,
        columns: columns.clone(),
        limit: *limit,
    })
}

/// The fragment and the scan of a request.
///
/// # Errors
/// If it is damaged.
pub(crate) fn unpack(query: &PackedQuery) -> Result<(Vec<u8>, UnitScan), String> {
    let damaged = || "the request is damaged".to_string();
    let plan = decoded(&query.plan).ok_or_else(damaged)?;
    let table = decoded(&query.table).ok_or_else(damaged)?;
    let table = StreamReader::try_new(table.as_slice(), None).map_err(|_| damaged())?.schema();
    let PackedQuery { has_name, columns, limit, format, .. } = query;
    let hidden = query.hidden.iter().map(|name| HiddenColumns::of_name(name));
    let hidden = hidden.fold(HiddenColumns::default(), |all, one| all | one);
    let messages = UnitMessages { format: format.clone(), hidden };
    let content = match query.content {
        PackedContent::RowGroups => UnitContent::RowGroups,
        PackedContent::Messages => UnitContent::Messages(messages),
        PackedContent::Description => UnitContent::Description(messages),
    };
    let (has_name, columns, limit) = (*has_name, columns.clone(), *limit);
    Ok((plan, UnitScan { content, table, has_name, columns, limit }))
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(byte).collect()
}

/// Writes the rows of a unit.
pub(crate) struct RowsOut<W: Write> {
    writer: StreamWriter<W>,
}

impl<W: Write> RowsOut<W> {
    /// Begins to write rows of these columns.
    pub(crate) fn new(out: W, schema: &SchemaRef) -> Result<Self, ArrowError> {
        Ok(RowsOut { writer: StreamWriter::try_new(out, schema)? })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.writer.write(&compacted(batch)?)
    }

    /// The place of the rows, after the last.
    pub(crate) fn finish(self) -> Result<W, ArrowError> {
        self.writer.into_inner()
    }
}

/// The batch without strings of other rows: those that a filter left share the buffers of all rows before it.
fn compacted(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let column = |column: &ArrayRef| -> ArrayRef {
        if let Some(strings) = column.as_any().downcast_ref::<StringViewArray>() {
            return Arc::new(strings.gc());
        }
        match column.as_any().downcast_ref::<BinaryViewArray>() {
            Some(bytes) => Arc::new(bytes.gc()),
            None => Arc::clone(column),
        }
    };
    let columns = batch.columns().iter().map(column).collect();
    let options =
        datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}

/// The name of the job of a request.
pub(crate) fn job_of(request: &[u8]) -> String {
    let named = [quarrier_cli::build().as_bytes(), b"\n", request].concat();
    crate::door::hash_of(&named)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn fragment(content: UnitContent) -> SpreadFragment {
        let fields = vec![
            Field::new("a", DataType::Decimal128(15, 2), true),
            Field::new("b", DataType::Utf8View, false),
        ];
        let table = Arc::new(Schema::new(fields));
        let scan = UnitScan { content, table, has_name: true, columns: vec![2, 0], limit: Some(3) };
        SpreadFragment {
            sources: [].into(),
            packed: vec![0, 255, 7].into(),
            rows: scan.rows(),
            is_limited: true,
            scan,
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let hidden = HiddenColumns { offset: true, list_ends: true, ..HiddenColumns::default() };
        let messages = UnitMessages { format: Some("fix".to_string()), hidden };
        let detected = UnitMessages { format: None, hidden: HiddenColumns::default() };
        for content in [
            UnitContent::RowGroups,
            UnitContent::Messages(messages.clone()),
            UnitContent::Description(messages),
            UnitContent::Messages(detected),
        ] {
            let fragment = fragment(content);
            let packed = pack(&fragment).unwrap();
            assert_eq!(unpack(&packed).unwrap(), (fragment.packed.to_vec(), fragment.scan));
        }
    }

    #[test]
    fn damaged_requests_are_errors() {
        let packed = pack(&fragment(UnitContent::RowGroups)).unwrap();
        for at in 0..packed.table.len() / 2 {
            let cut = PackedQuery { table: packed.table[..2 * at].to_string(), ..packed.clone() };
            // Without the end of the stream, the columns are still there.
            let _ = unpack(&cut);
        }
        for table in ["", "0", "zz", "00", "ffffffff"] {
            let wrong = PackedQuery { table: table.to_string(), ..packed.clone() };
            assert!(unpack(&wrong).is_err(), "{table}");
        }
        let wrong = PackedQuery { plan: "é".to_string(), ..packed };
        assert!(unpack(&wrong).is_err());
    }
}
