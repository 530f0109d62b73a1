//! Writes a table to files of every format.

mod arrow;
mod csv;
mod json;
mod nvfix;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::draw::Draw;
use crate::table::{Kind, Table};
use crate::value::Value;

/// A file that holds the table.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path.
    pub path: PathBuf,
    /// Whether its format has messages, so that `filter` reads it.
    pub has_messages: bool,
    /// Its lines, if `filter` prints them unchanged.
    pub lines: Option<Vec<String>>,
}

/// Writes a table to a folder in every format that can hold it.
///
/// # Errors
/// If the folder cannot be written.
pub fn write_all(draw: &mut Draw, table: &Table, folder: &Path) -> std::io::Result<Vec<File>> {
    let mut files = Vec::new();
    let mut write = |name: &str, bytes: &[u8], lines: Option<Vec<String>>| {
        let path = folder.join(name);
        fs::write(&path, bytes)?;
        let has_messages = !name.contains(".arrow") && !name.contains(".parquet");
        files.push(File { path, has_messages, lines });
        std::io::Result::Ok(())
    };
    if !table.is_columnar {
        let lines = json::lines(draw, table);
        let text = joined(&lines);
        write("t.ndjson", text.as_bytes(), Some(lines))?;
        write("t.gz.ndjson", &gzip(text.as_bytes())?, None)?;
        let text = csv::text(draw, table);
        write("t.csv", text.as_bytes(), None)?;
        write("t.zst.csv", &zstd::encode_all(text.as_bytes(), 1)?, None)?;
        if fits_nvfix(table) {
            write("t.nvfix", nvfix::text(table).as_bytes(), None)?;
        }
    }
    write("t.arrow", &arrow::ipc(draw, table)?, None)?;
    write("t.parquet", &arrow::parquet(draw, table)?, None)?;
    Ok(files)
}

/// Joins lines, each with a line feed.
pub(crate) fn joined(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Whether NVFIX can hold the table: it has only numbers and non-empty strings.
fn fits_nvfix(table: &Table) -> bool {
    let fits = |value: &Value| !matches!(value, Value::Text(text) if text.is_empty());
    table.columns.iter().all(|column| {
        matches!(column.kind, Kind::Whole | Kind::Wide | Kind::Exact | Kind::Text)
            && column.values.iter().all(fits)
    })
}
