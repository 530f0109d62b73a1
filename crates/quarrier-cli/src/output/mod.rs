//! Output: rows in four formats, the account, the report.

pub(crate) mod colour;
pub(crate) mod file;
pub(crate) mod report;
pub(crate) mod rows;
pub(crate) mod standard;

mod arrow;
mod csv;
mod json;
mod text;

/// The output format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One object a line.
    Json,
    /// RFC 4180 with a header.
    Csv,
    /// Arrow IPC stream.
    Arrow,
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            "csv" => Ok(Format::Csv),
            "arrow" => Ok(Format::Arrow),
            _ => Err(format!("no format '{text}'; there are: text, json, csv, arrow")),
        }
    }
}
