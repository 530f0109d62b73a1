//! Stores a table as bytes of a file: columns, segments and dictionaries, bit for bit.
//!
//! ```text
//!  segments: a list of their numbers of rows · columns: 4 bytes
//!  each column: name · kind · number of rounded values, 8 · 1 and a dictionary, or 0 · its segments
//! ```

use std::io::{self, Read, Write};
use std::sync::Arc;

use super::{Column, Table};
use crate::column::raw::SEGMENT_ROWS;
use crate::column::{Input, Output, wrong};
use crate::{Field, Schema};

impl Table {
    /// Writes the table.
    ///
    /// # Errors
    /// The error of the sink.
    pub(crate) fn write_to(&self, sink: &mut dyn Write) -> io::Result<()> {
        let mut out = Output::new(sink);
        let rows = |segment| self.segment_rows(segment) as u32;
        out.list(&(0..self.segments()).map(rows).collect::<Vec<u32>>())?;
        out.number(self.columns.len() as u32)?;
        for (field, column) in self.schema.fields.iter().zip(&self.columns) {
            out.list(field.name.as_bytes())?;
            out.kind(field.kind)?;
            out.number(column.rounded)?;
            out.number(u8::from(column.dictionary.is_some()))?;
            if let Some(dictionary) = &column.dictionary {
                out.strings(dictionary)?;
            }
            for segment in &column.segments {
                out.segment(segment)?;
            }
        }
        Ok(())
    }

    /// Reads a table that [`write_to`](Self::write_to) wrote, exactly `bytes` bytes.
    ///
    /// # Errors
    /// The error of the source; [`io::ErrorKind::InvalidData`] if the bytes are not a table.
    pub(crate) fn read_from(source: &mut dyn Read, bytes: u64) -> io::Result<Table> {
        let mut input = Input::new(source, bytes);
        let rows: Vec<u32> = input.list()?;
        if !rows.iter().all(|&rows| (1..=SEGMENT_ROWS).contains(&(rows as usize))) {
            return Err(wrong("a segment with too many rows or none"));
        }
        let count = input.number::<u32>()?;
        let (mut schema, mut columns) = (Schema::default(), Vec::new());
        for _ in 0..count {
            let (field, column) = read_column(&mut input, &rows)?;
            schema.fields.push(field);
            columns.push(column);
        }
        if input.left() > 0 {
            return Err(wrong("extra bytes after the table"));
        }
        Ok(Table::of(schema, columns, &rows))
    }
}

fn read_column(input: &mut Input<'_>, rows: &[u32]) -> io::Result<(Field, Column)> {
    let name = String::from_utf8(input.list()?).map_err(|_| wrong("a name that is not UTF-8"))?;
    let kind = input.kind()?;
    let rounded = input.number()?;
    let dictionary = match input.number::<u8>()? {
        0 => None,
        1 => Some(Arc::new(input.dictionary()?)),
        _ => return Err(wrong("an invalid dictionary flag")),
    };
    let codes = dictionary.as_ref().map_or(0, |dictionary| dictionary.len());
    let segments = rows.iter().map(|&rows| Ok(Arc::new(input.segment(kind, rows, codes)?)));
    let segments = segments.collect::<io::Result<Vec<_>>>()?;
    let column = Column { rounded, ..Column::of(dictionary, segments) };
    Ok((Field { name: name.into(), kind }, column))
}
