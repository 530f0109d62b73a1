//! The formats of messages, and their readers.

use std::sync::Arc;

use crate::Limits;
use crate::format::csv::{Csv, CsvOpening, CsvParser};
use crate::format::fix::{Dictionary, FixParser};
use crate::format::json::JsonParser;
use crate::format::xml::{Xml, XmlOpening, XmlParser};
use crate::frame::{Chunk, Lines, Reader, Records, Step, Taker};

/// The format of messages.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Format {
    /// JSON, a message per line.
    Json,
    /// FIX: `tag=value`, a message per line or back to back.
    Fix(Arc<Dictionary>),
    /// NVFIX: `name=value`.
    Nvfix(Arc<Dictionary>),
    /// CSV.
    Csv(Csv),
    /// XML.
    Xml(Xml),
    /// Arrow IPC, a file or a stream.
    Arrow,
    /// Parquet.
    Parquet,
}

impl Format {
    /// Whether a line feed ends every message, damaged ones too, so that ranges of a source can be loaded one by
    /// one. In FIX, the length in a damaged message decides where the next one is found.
    pub fn is_in_lines(&self) -> bool {
        matches!(self, Format::Json)
    }

    /// Whether the format consists of columns instead of messages.
    pub fn is_columnar(&self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet)
    }
}

/// State that [`Reader::open`] derives from a source's first bytes.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    csv: CsvOpening,
    xml: XmlOpening,
}

impl Opening {
    /// Returns the names of the columns that a source has even without rows.
    pub(super) fn header(&self, limits: &Limits) -> Vec<Box<str>> {
        let names = self.csv.names().into_iter().take(limits.columns_max);
        names.map(String::into_boxed_str).collect()
    }

    /// Returns the header of CSV as a record that any reader parses: each name in quotes, with the
    /// source's delimiter between them. `None` if the source is not CSV, or was not opened.
    pub(crate) fn csv_header(&self) -> Option<Vec<u8>> {
        self.csv.record()
    }
}

/// A worker's reader of any format.
#[derive(Debug)]
pub struct FormatReader(Readers);

#[derive(Debug)]
enum Readers {
    Json(Lines<JsonParser>),
    Fix(Records<FixParser>),
    Csv(Records<CsvParser>),
    Xml(Records<XmlParser>),
}

impl FormatReader {
    /// Makes a reader. The readers of all workers share one `opening`.
    pub fn new(format: &Format, limits: &Limits, opening: &Opening) -> Self {
        let bytes_max = limits.message_bytes_max;
        FormatReader(match format {
            // Columnar formats have no reader of messages.
            Format::Json | Format::Arrow | Format::Parquet => {
                Readers::Json(Lines::new(JsonParser::new(limits), bytes_max))
            }
            Format::Fix(dictionary) => {
                let parser = FixParser::fix(Arc::clone(dictionary), limits);
                Readers::Fix(Records::new(parser, bytes_max))
            }
            Format::Nvfix(dictionary) => {
                let parser = FixParser::nvfix(Arc::clone(dictionary), limits);
                Readers::Fix(Records::new(parser, bytes_max))
            }
            Format::Csv(csv) => {
                let parser = CsvParser::new(csv.clone(), opening.csv.clone(), limits);
                Readers::Csv(Records::new(parser, bytes_max))
            }
            Format::Xml(xml) => {
                let parser = XmlParser::new(xml, opening.xml.clone(), limits);
                Readers::Xml(Records::new(parser, bytes_max))
            }
        })
    }
}

/// Evaluates an expression with the reader of each format.
macro_rules! each {
    ($self:ident, $reader:ident => $work:expr) => {
        match $self {
            FormatReader(Readers::Json($reader)) => $work,
            FormatReader(Readers::Fix($reader)) => $work,
            FormatReader(Readers::Csv($reader)) => $work,
            FormatReader(Readers::Xml($reader)) => $work,
        }
    };
}

impl Reader for FormatReader {
    fn is_found_anywhere(&self) -> bool {
        each!(self, reader => reader.is_found_anywhere())
    }

    fn counts_line_feeds(&self) -> bool {
        each!(self, reader => reader.counts_line_feeds())
    }

    fn open(&self, bytes: &[u8], is_end: bool) -> Option<usize> {
        each!(self, reader => reader.open(bytes, is_end))
    }

    fn start(&self, bytes: &[u8], from: usize) -> Option<usize> {
        each!(self, reader => reader.start(bytes, from))
    }

    fn guess(&self, bytes: &[u8]) -> Option<usize> {
        each!(self, reader => reader.guess(bytes))
    }

    fn end(&self, bytes: &[u8], is_inside: bool) -> usize {
        each!(self, reader => reader.end(bytes, is_inside))
    }

    fn read<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> Step {
        each!(self, reader => reader.read(chunk, taker))
    }
}
