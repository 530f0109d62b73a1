//! Rows as JSON objects, one a line.

use std::io::{self, Write};

use quarrier_core::hex;

use super::rows::{Column, Excerpt, Rows, Value};

pub(super) struct JsonRows {
    out: Box<dyn Write + Send>,
    columns: &'static [Column],
    line: Vec<u8>,
}

impl JsonRows {
    pub(super) fn new(out: Box<dyn Write + Send>, columns: &'static [Column]) -> Self {
        JsonRows { out, columns, line: Vec::new() }
    }
}

impl Rows for JsonRows {
    fn row(&mut self, values: &[Value<'_>], excerpt: Excerpt<'_>) -> io::Result<()> {
        let line = &mut self.line;
        line.clear();
        let mut whole = itoa::Buffer::new();
        for (index, (column, value)) in self.columns.iter().zip(values).enumerate() {
            line.push(if index == 0 { b'{' } else { b',' });
            line.push(b'"');
            line.extend_from_slice(column.name.as_bytes());
            line.extend_from_slice(b"\":");
            match value {
                Value::Text(text) => serde_json::to_writer(&mut *line, text)?,
                Value::Missing => line.extend_from_slice(b"null"),
                Value::Unsigned(number) => line.extend_from_slice(whole.format(*number).as_bytes()),
                Value::Number(number) => serde_json::to_writer(&mut *line, number)?,
                Value::Json(text) => line.extend_from_slice(text.as_bytes()),
                Value::Bytes(bytes) => write!(line, "\"{}\"", hex::encode(bytes))?,
            }
        }
        if !excerpt.before.is_empty() || !excerpt.after.is_empty() {
            for (key, bytes) in [("before", excerpt.before), ("after", excerpt.after)] {
                write!(line, ",\"{key}_hex\":\"{}\"", hex::encode(bytes))?;
            }
        }
        line.extend_from_slice(b"}\n");
        self.out.write_all(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
