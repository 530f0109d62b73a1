//! CSV (RFC 4180): a header with the names, then a record per row.
//!
//! ```text
//!  source's first bytes ─→ sniff: delimiter, header ─→ all workers
//!  bytes ─→ record: its end, outside quotes ─→ fields ─→ Row
//! ```
//!
//! Values that a column of numbers can restore unchanged are numbers (`007` is a string), `true`
//! and `false` are booleans, and all others are strings. An empty field is NULL, or the empty
//! string if quoted. A repeated column becomes `name[1]`, and one without a name `column3`.
//!
//! A record with more or fewer fields than the header is rejected. If a quote is not closed within
//! the maximum length of a message, its line is rejected, and reading continues after that line.
//! Quotes in a field that starts without one are literal.

mod record;
mod sniff;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use csv_core::{ReadFieldResult, Reader};
use memchr::{memchr, memchr_iter};
use quarrier_core::sync::lock;

use super::decimal::found;
use super::set_cell;
use crate::build::{Cell, FieldId, Row};
use crate::frame::RecordFormat;
use crate::{Fault, Limits};
use record::Ending;
use sniff::Header;

/// Options of CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csv {
    /// The delimiter between fields; `None` to choose the one of `,` `;` tab and `|` that best fits
    /// the first records.
    pub delimiter: Option<u8>,
    /// Whether the first record has the names; if not, columns are named `column1`, `column2` …
    pub has_header: bool,
}

impl Default for Csv {
    fn default() -> Self {
        Csv { delimiter: None, has_header: true }
    }
}

/// The source's header, shared by the parsers of all workers.
#[derive(Debug, Clone, Default)]
pub(crate) struct CsvOpening(Arc<HeaderState>);

#[derive(Debug, Default)]
/// The header of a CSV source, once a worker has read it.
struct HeaderState {
    header: Mutex<Option<Arc<Header>>>,
    /// The header's delimiter, readable without a lock.
    delimiter: AtomicU8,
}

impl CsvOpening {
    fn get(&self) -> Option<Arc<Header>> {
        lock(&self.0.header).clone()
    }

    /// Returns the names in the header, if one was read.
    pub(crate) fn names(&self) -> Vec<String> {
        self.get().map_or_else(Vec::new, |header| header.names.clone())
    }

    /// Returns the header as a record with every name in quotes.
    pub(crate) fn record(&self) -> Option<Vec<u8>> {
        let header = self.get()?;
        let names = header.names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
        let mut record = names.map(String::into_bytes).collect::<Vec<_>>().join(&header.delimiter);
        record.push(b'\n');
        Some(record)
    }

    fn set(&self, header: Header) {
        self.0.delimiter.store(header.delimiter, Ordering::Relaxed);
        *lock(&self.0.header) = Some(Arc::new(header));
    }

    fn delimiter(&self) -> u8 {
        self.0.delimiter.load(Ordering::Relaxed)
    }
}

/// A worker's parser.
#[derive(Debug)]
pub(crate) struct CsvParser {
    csv: Csv,
    opening: CsvOpening,
    header: Option<Arc<Header>>,
    /// The fields by column; empty until a record is accepted.
    fields: Vec<Option<FieldId>>,
    reader: Reader,
    /// A record's fields without their quotes.
    plain: Vec<u8>,
    /// The end of each field in `plain`, and whether the field was quoted.
    ends: Vec<(usize, bool)>,
    message_bytes_max: usize,
    columns_max: usize,
}

impl CsvParser {
    pub(crate) fn new(csv: Csv, opening: CsvOpening, limits: &Limits) -> Self {
        CsvParser {
            csv,
            opening,
            header: None,
            fields: Vec::new(),
            reader: Reader::new(),
            plain: Vec::new(),
            ends: Vec::new(),
            message_bytes_max: limits.message_bytes_max,
            columns_max: limits.columns_max,
        }
    }

    /// Parses a record without quotes.
    fn plain(&mut self, text: &str, delimiter: u8, row: &mut impl Row) -> Result<(), Fault> {
        let count = memchr_iter(delimiter, text.as_bytes()).count() + 1;
        self.check_count(count, text)?;
        self.look_up(row);
        let ends = memchr_iter(delimiter, text.as_bytes()).chain([text.len()]);
        let mut start = 0;
        for (field, end) in self.fields.iter().zip(ends) {
            match &text[start..end] {
                "" => set(row, *field, Cell::Null),
                value => set(row, *field, value_of(value)),
            }
            start = end + 1;
        }
        Ok(())
    }

    /// Checks the number of fields before setting any, since a rejected record must set none.
    fn check_count(&self, count: usize, text: &str) -> Result<(), Fault> {
        match count.cmp(&self.header.as_ref().map_or(0, |header| header.names.len())) {
            std::cmp::Ordering::Less => {
                Err(Fault::new(text.len(), "fewer fields than the header has"))
            }
            std::cmp::Ordering::Greater => Err(Fault::new(0, "more fields than the header has")),
            std::cmp::Ordering::Equal => Ok(()),
        }
    }

    /// Looks up the fields at the first record that has as many as the header.
    #[inline]
    fn look_up(&mut self, row: &mut impl Row) {
        if let Some(header) = self.header.as_ref().filter(|_| self.fields.is_empty()) {
            let kept = header.names.iter().take(self.columns_max.saturating_mul(4));
            self.fields = kept.map(|name| row.field(name)).collect();
            self.fields.resize(header.names.len(), None);
        }
    }

    /// Parses a record with quotes.
    fn quoted(&mut self, text: &str, row: &mut impl Row) -> Result<(), Fault> {
        self.split(text.as_bytes());
        self.check_count(self.ends.len(), text)?;
        self.look_up(row);
        let mut start = 0;
        for (field, &(end, is_quoted)) in self.fields.iter().zip(&self.ends) {
            match std::str::from_utf8(&self.plain[start..end]).unwrap_or_default() {
                "" if is_quoted => set(row, *field, Cell::Text("")),
                "" => set(row, *field, Cell::Null),
                value => set(row, *field, value_of(value)),
            }
            start = end;
        }
        Ok(())
    }

    /// Splits a record into `plain` and `ends`, without quotes.
    fn split(&mut self, record: &[u8]) {
        self.ends.clear();
        // The reader takes an empty buffer for one that is too small.
        self.plain.resize(self.plain.len().max(record.len() + 2), 0);
        let (mut at, mut end) = (0, 0);
        loop {
            let input = record.get(at..).filter(|rest| !rest.is_empty());
            let is_quoted = input.is_some_and(|rest| rest[0] == b'"');
            // The reader takes the end of the record for the end of a line.
            let (mut result, read, written) =
                self.reader.read_field(input.unwrap_or(b"\n"), &mut self.plain[end..]);
            (at, end) = (at + read, end + written);
            if result == ReadFieldResult::InputEmpty {
                let (last, _, written) = self.reader.read_field(b"\n", &mut self.plain[end..]);
                (result, end) = (last, end + written);
            }
            self.ends.push((end, is_quoted));
            if result != (ReadFieldResult::Field { record_end: false }) {
                return;
            }
        }
    }
}

fn value_of(text: &str) -> Cell<'_> {
    match text {
        "true" => Cell::Boolean(true),
        "false" => Cell::Boolean(false),
        text => found(text),
    }
}

fn set(row: &mut impl Row, field: Option<FieldId>, cell: Cell<'_>) {
    match field {
        Some(field) => set_cell(row, field, cell),
        None => row.refuse(),
    }
}

impl RecordFormat for CsvParser {
    fn is_found_anywhere(&self) -> bool {
        false
    }

    fn open(&self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let (header, start) = sniff::header(&self.csv, bytes, is_end, self.message_bytes_max)?;
        self.opening.set(header);
        Some(start)
    }

    fn begin(&mut self) {
        let header = self.opening.get();
        let is_new = match (&header, &self.header) {
            (Some(new), Some(old)) => !Arc::ptr_eq(new, old),
            (new, _) => new.is_some(),
        };
        if let Some(header) = header.filter(|_| is_new) {
            self.fields.clear();
            self.reader = record::reader(header.delimiter);
            self.header = Some(header);
        }
    }

    fn start(&self, _bytes: &[u8], _from: usize) -> Option<usize> {
        None
    }

    fn guess(&self, bytes: &[u8]) -> Option<usize> {
        sniff::likely_start(&*self.opening.get()?, bytes)
    }

    fn extent(&self, bytes: &[u8], is_last: bool) -> Option<usize> {
        record::extent(bytes, self.opening.delimiter(), is_last, self.message_bytes_max)
    }

    fn message(&mut self, message: &[u8], row: &mut impl Row) -> Result<(), Fault> {
        let text = std::str::from_utf8(message)
            .map_err(|error| Fault::new(error.valid_up_to(), "bytes that are not UTF-8"))?;
        let delimiter = self.opening.delimiter();
        if memchr(b'"', message).is_none() {
            return self.plain(text, delimiter, row);
        }
        match record::ending(message, delimiter) {
            Ending::Open(at) => Err(Fault::new(at, "an unclosed quote")),
            _ => self.quoted(text, row),
        }
    }

    /// A record is rejected before its fields are looked up.
    fn forget(&mut self) {
        self.fields.clear();
    }
}
