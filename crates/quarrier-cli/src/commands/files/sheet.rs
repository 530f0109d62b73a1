//! Rows of files in one format.

use std::io::{self, Write};

use quarrier::files::RowView;
use quarrier_files::write_time;

use crate::output::rows::{Excerpt, Rows, Value};

/// Writes rows of files in one format.
pub(super) enum Sheet {
    /// Lines of a bodyfile.
    Body(Box<dyn Write + Send>),
    Rows(Box<dyn Rows>, Texts),
}

/// Values as strings, reused from row to row.
#[derive(Default)]
pub(super) struct Texts {
    times: [(Option<i64>, String); 4],
    extents: String,
}

impl Sheet {
    pub(super) fn of(rows: Box<dyn Rows>) -> Self {
        Sheet::Rows(rows, Texts::default())
    }

    /// Writes a row, with the values of its hashes.
    pub(super) fn row(&mut self, row: &RowView<'_>, hashes: &[Value<'_>]) -> io::Result<()> {
        match self {
            Sheet::Body(out) => row.write_bodyfile(out),
            Sheet::Rows(rows, texts) => {
                texts.set(row);
                let [modified, accessed, changed, created] =
                    texts.times.each_ref().map(|(time, text)| match time {
                        Some(_) => Value::Text(text),
                        None => Value::Missing,
                    });
                let values = [
                    Value::Text(row.source),
                    Value::Unsigned(row.partition.into()),
                    Value::Text(row.path),
                    Value::Unsigned(row.inode),
                    Value::Text(row.kind.name()),
                    Value::Text(row.state.name()),
                    Value::Unsigned(row.size),
                    modified,
                    accessed,
                    changed,
                    created,
                    Value::Json(&texts.extents),
                ];
                if hashes.is_empty() {
                    return rows.row(&values, Excerpt::default());
                }
                rows.row(&[&values, hashes].concat(), Excerpt::default())
            }
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Sheet::Body(out) => out.flush(),
            Sheet::Rows(rows, _) => rows.flush(),
        }
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Sheet::Body(out) => out.flush(),
            Sheet::Rows(rows, _) => rows.finish(),
        }
    }
}

impl Texts {
    fn set(&mut self, row: &RowView<'_>) {
        for ((shown, text), time) in self.times.iter_mut().zip(row.times) {
            // Files that were written together often have the same times.
            if *shown != time {
                *shown = time;
                text.clear();
                time.iter().for_each(|time| write_time(*time, text));
            }
        }
        let mut number = itoa::Buffer::new();
        let text = &mut self.extents;
        text.clear();
        text.push('[');
        for (index, extent) in row.extents.iter().enumerate() {
            text.push_str(if index > 0 { ",[" } else { "[" });
            text.push_str(number.format(extent.offset));
            text.push(',');
            text.push_str(number.format(extent.length));
            text.push(']');
        }
        text.push(']');
    }
}
