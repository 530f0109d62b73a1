//! Sections of the cross-reference: tables, and streams that hold tables.

use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_zlib_with_limit};

use super::object::{after_space, dictionary, object_at, some, stream_at, stream_ends, table_near};
use super::syntax::{integer, integers, is_space, number, value_of};
use crate::view::{TAKE_BYTES_MAX, View};

/// Maximum number of entries of a section; each takes 16 bytes of memory.
const ENTRIES_MAX: usize = 1 << 18;
/// Maximum number of bytes of a compressed table.
const PACKED_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of bytes of its uncompressed contents.
const UNPACKED_BYTES_MAX: usize = 32 << 20;

/// The place of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// In bytes from the start of the file.
    pub(super) offset: u64,
    /// Its number.
    pub(super) number: u64,
}

/// A section of the cross-reference, with the data of its trailer.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Objects that are in use and not inside another object.
    pub(super) entries: Vec<Entry>,
    /// The starts of further sections: `Prev`, and the stream of a hybrid file.
    pub(super) others: Vec<u64>,
    /// The place after its trailer.
    pub(super) end: u64,
}

/// Reads the section whose stated place is `at`. `Err` with the place at which it breaks, or with
/// `None` if there is no section.
pub(super) fn section(view: &mut View<'_>, at: u64) -> Result<Section, Option<u64>> {
    if object_at(view, at).is_some() {
        return stream(view, at);
    }
    match table_near(view, at) {
        Some(place) => table(view, place).map_err(Some),
        None => Err(None),
    }
}

/// Reads the table whose word `xref` is at `start`.
fn table(view: &mut View<'_>, start: u64) -> Result<Section, u64> {
    let mut section = Section::default();
    let mut at = start + 4;
    loop {
        at = after_space(view, at);
        if view.is_at(at, b"trailer") {
            let (trailer, end) = dictionary(view, at + 7).ok_or(at)?;
            section.end = end;
            section.others = others(&trailer);
            return Ok(section);
        }
        let bytes = some(view, at, 40);
        let (first, end) = number(bytes, 0).ok_or(at)?;
        let second = end + bytes[end..].iter().take_while(|byte| is_space(**byte)).count();
        let (count, end) = number(bytes, second).ok_or(at)?;
        at = after_space(view, at + end as u64);
        for index in 0..count {
            let line = view.array::<18>(at).ok_or(at)?;
            let entry = entry(&line, first + index).ok_or(at)?;
            section.entries.extend(entry.filter(|_| section.entries.len() < ENTRIES_MAX));
            at = match some(view, at + 18, 3) {
                [b'\r' | b' ', b'\n', ..] | [b' ', b'\r', ..] => at + 20,
                _ => after_space(view, at + 18),
            };
        }
    }
}

/// Parses an entry of a table: `0000000015 00000 n`. `Some(None)` if the object is not in use.
fn entry(line: &[u8; 18], number: u64) -> Option<Option<Entry>> {
    let (digits, rest) = line.split_at(10);
    if !digits.iter().chain(&rest[1..6]).all(u8::is_ascii_digit) || rest[0] != b' ' {
        return None;
    }
    let offset = digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    match (rest[6], rest[7]) {
        (b' ', b'n') => Some((offset > 0).then_some(Entry { offset, number })),
        (b' ', b'f') => Some(None),
        _ => None,
    }
}

fn others(trailer: &[u8]) -> Vec<u64> {
    let named = [&b"XRefStm"[..], b"Prev"].into_iter().filter_map(|name| value_of(trailer, name));
    named.filter_map(integer).filter(|offset| *offset > 0).collect()
}

/// Reads the stream with a table that begins at `start`.
fn stream(view: &mut View<'_>, start: u64) -> Result<Section, Option<u64>> {
    let (_, body) = object_at(view, start).ok_or(None)?;
    let (about, after) = dictionary(view, body).ok_or(None)?;
    if value_of(&about, b"Type") != Some(b"/XRef") {
        return Err(None);
    }
    let from = stream_at(view, after).ok_or(Some(after))?;
    let length = value_of(&about, b"Length").and_then(integer).ok_or(Some(from))?;
    if length > PACKED_BYTES_MAX || from.saturating_add(length) > view.length() {
        return Err(Some(from));
    }
    let end = stream_ends(view, from, length).ok_or(Some(from))?;
    let word = after_space(view, end);
    if !view.is_at(word, b"endobj") {
        return Err(Some(end));
    }
    let table = unpacked(view, &about, from, length).ok_or(Some(from))?;
    let entries = packed_entries(&about, &table).ok_or(Some(from))?;
    Ok(Section { entries, others: others(&about), end: word + 6 })
}

/// Returns the uncompressed bytes of the stream.
fn unpacked(view: &mut View<'_>, about: &[u8], from: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < length {
        let at = from + bytes.len() as u64;
        let most = (from + length - at).min(TAKE_BYTES_MAX as u64) as usize;
        bytes.extend_from_slice(view.take(at, most)?);
    }
    match value_of(about, b"Filter") {
        None => {}
        Some(filter) if filter.windows(11).any(|word| word == b"FlateDecode") => {
            // Some writers flush the stream and never end it.
            bytes = match decompress_to_vec_zlib_with_limit(&bytes, UNPACKED_BYTES_MAX) {
                Ok(bytes) => bytes,
                Err(error) if error.status == TINFLStatus::FailedCannotMakeProgress => error.output,
                Err(_) => return None,
            };
            view.spend(bytes.len() as u64);
        }
        Some(_) => return None,
    }
    let Some(parameters) = value_of(about, b"DecodeParms") else { return Some(bytes) };
    let parameters = parameters.strip_prefix(b"[").unwrap_or(parameters);
    match value_of(parameters, b"Predictor").and_then(integer) {
        Some(10..) => {
            let columns = value_of(parameters, b"Columns").and_then(integer).unwrap_or(1);
            unpredicted(&bytes, usize::try_from(columns).ok()?)
        }
        _ => Some(bytes),
    }
}

/// Undoes PNG predictors on rows of single bytes.
fn unpredicted(bytes: &[u8], columns: usize) -> Option<Vec<u8>> {
    if columns == 0 || columns > 4096 {
        return None;
    }
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut above = vec![0; columns];
    for row in bytes.chunks(columns + 1) {
        let mut line = row[1..].to_vec();
        line.resize(columns, 0);
        for index in 0..columns {
            let left = if index > 0 { line[index - 1] } else { 0 };
            let add = match row[0] {
                0 => 0,
                1 => left,
                2 => above[index],
                3 => left.midpoint(above[index]),
                _ => return None,
            };
            line[index] = line[index].wrapping_add(add);
        }
        out.extend_from_slice(&line);
        above = line;
    }
    Some(out)
}

fn packed_entries(about: &[u8], table: &[u8]) -> Option<Vec<Entry>> {
    let widths = integers(value_of(about, b"W")?);
    let &[kind, offset, generation] = &widths[..] else { return None };
    if kind > 8 || offset > 8 || generation > 8 {
        return None;
    }
    let (kind, offset) = (kind as usize, offset as usize);
    let row_bytes = kind + offset + generation as usize;
    let size = value_of(about, b"Size").and_then(integer)?;
    let index = value_of(about, b"Index").map_or_else(|| vec![0, size], integers);
    let mut rows = table.chunks_exact(row_bytes.max(1));
    let big = |bytes: &[u8]| bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let mut entries = Vec::new();
    for pair in index.chunks_exact(2) {
        for number in pair[0]..pair[0].saturating_add(pair[1]) {
            let Some(row) = rows.next() else { return Some(entries) };
            let is_used = kind == 0 || big(&row[..kind]) == 1;
            let offset = big(&row[kind..kind + offset]);
            if is_used && offset > 0 && entries.len() < ENTRIES_MAX {
                entries.push(Entry { offset, number });
            }
        }
    }
    Some(entries)
}
