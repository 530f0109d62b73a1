//! Detects the delimiter and the names of columns from the first records.

use std::collections::HashMap;

use memchr::memchr_iter;

use super::Csv;
use super::record::{self, Ending};

/// The header of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) delimiter: u8,
    pub(super) names: Vec<String>,
}

/// Possible delimiters, the likeliest first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Maximum number of bytes to examine.
const BYTES_MAX: usize = 64 << 10;
const RECORDS_MAX: usize = 64;

/// Returns the header, and the start of the first record after it; `None` if more bytes are needed.
pub(super) fn header(
    csv: &Csv,
    bytes: &[u8],
    is_end: bool,
    message_bytes_max: usize,
) -> Option<(Header, usize)> {
    if bytes.len() < BYTES_MAX && !is_end {
        return None;
    }
    let mark = "\u{feff}".as_bytes();
    let start = if bytes.starts_with(mark) { mark.len() } else { 0 };
    let blank = |byte: &&u8| matches!(byte, b'\r' | b'\n');
    let start = start + bytes[start..].iter().take_while(blank).count();
    let sample = &bytes[start..bytes.len().min(start + BYTES_MAX)];
    let delimiter = csv.delimiter.unwrap_or_else(|| guessed(sample));
    let end = record::extent(&bytes[start..], delimiter, is_end, message_bytes_max);
    let end = match end {
        Some(end) => start + end,
        None if bytes.len() > message_bytes_max => start,
        None => return None,
    };
    let names = fields(&bytes[start..end], delimiter);
    let header = match csv.has_header {
        true => Header { delimiter, names: unique(names) },
        false => Header { delimiter, names: unique(vec![String::new(); names.len()]) },
    };
    Some((header, if csv.has_header { end } else { start }))
}

/// Number of records that must look right from a probable start on.
const RECORDS_ALIKE: usize = 2;

/// Maximum distance in bytes of the line starts to try.
const GUESSED_BYTES: usize = 256 << 10;

/// Maximum number of bytes in which to look for records: an unclosed quote would extend to the end
/// of the bytes from every line again.
const SEEN_BYTES: usize = 2 * GUESSED_BYTES;

/// Returns a probable start of a record: after the first line feed before records with as many
/// fields as the header. It may still be within quotes.
pub(super) fn likely_start(header: &Header, bytes: &[u8]) -> Option<usize> {
    let Header { delimiter, names } = header;
    let bytes = &bytes[..bytes.len().min(SEEN_BYTES)];
    let looks_right = |start: &usize| {
        let mut rest = &bytes[*start..];
        (0..RECORDS_ALIKE).all(|_| {
            let Ending::Line(end) = record::ending(rest, *delimiter) else { return false };
            let is_alike = record::fields_count(&rest[..end], *delimiter) == names.len();
            rest = &rest[end..];
            let blanks = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            rest = &rest[blanks..];
            is_alike
        })
    };
    let lines = memchr_iter(b'\n', &bytes[..bytes.len().min(GUESSED_BYTES)]);
    lines.map(|end| end + 1).take(LINES_TRIED).find(looks_right)
}

/// Maximum number of lines to try as starts of a record.
const LINES_TRIED: usize = 256;

/// Returns the delimiter for which most records have as many fields as the first, at least two.
fn guessed(sample: &[u8]) -> u8 {
    let score = |delimiter: u8| {
        let counts = counts(sample, delimiter);
        let columns = counts.first().copied().unwrap_or(1);
        let alike = counts.iter().filter(|&&count| count == columns).count();
        let share = alike * 1_000 / counts.len().max(1);
        if columns < 2 { (0, 0) } else { (share, columns) }
    };
    // If several fit equally well, take the likeliest.
    let best = DELIMITERS.into_iter().rev().max_by_key(|&delimiter| score(delimiter));
    best.unwrap_or(b',')
}

/// Returns the numbers of fields of the first records; ignores the last, which may be cut off.
fn counts(sample: &[u8], delimiter: u8) -> Vec<usize> {
    let (mut counts, mut rest) = (Vec::new(), sample);
    while counts.len() < RECORDS_MAX {
        let Ending::Line(end) = record::ending(rest, delimiter) else { break };
        if end > 0 {
            counts.push(record::fields_count(&rest[..end], delimiter));
        }
        rest = &rest[end + 1..];
    }
    if counts.is_empty() && !rest.is_empty() {
        counts.push(record::fields_count(rest, delimiter));
    }
    counts
}

pub(super) fn fields(record: &[u8], delimiter: u8) -> Vec<String> {
    let mut reader = record::reader(delimiter);
    let input = [record, b"\n"].concat();
    let (mut output, mut ends) = (vec![0; input.len()], vec![0; input.len() + 1]);
    let (_, _, _, count) = reader.read_record(&input, &mut output, &mut ends);
    let starts = std::iter::once(&0).chain(&ends);
    let field = |(&start, &end): (&usize, &usize)| {
        String::from_utf8_lossy(&output[start..end]).into_owned()
    };
    starts.zip(&ends[..count]).map(field).collect()
}

/// Makes names unique: repeated ones get a number, empty ones their index.
fn unique(names: Vec<String>) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let name = |(at, name): (usize, String)| {
        let name = if name.is_empty() { format!("column{}", at + 1) } else { name };
        let times = seen.entry(name.clone()).or_insert(0);
        *times += 1;
        if *times == 1 { name } else { format!("{name}[{}]", *times - 1) }
    };
    names.into_iter().enumerate().map(name).collect()
}
