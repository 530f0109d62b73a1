//! Finds the end of a record.

use csv_core::{Reader, ReaderBuilder};
use memchr::{memchr, memchr2, memchr3};

/// The end of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The record ends with its line, here.
    Line(usize),
    /// The bytes end outside quotes, or with a quote that may or may not be the closing one.
    Bytes,
    /// The bytes end within quotes, which open here.
    Open(usize),
}

/// Returns the end of the record at the start of `bytes`.
pub(super) fn ending(bytes: &[u8], delimiter: u8) -> Ending {
    let mut at = 0;
    while let Some(stop) = memchr3(b'"', b'\n', b'\r', &bytes[at..]).map(|stop| at + stop) {
        if bytes[stop] != b'"' {
            return Ending::Line(stop);
        }
        at = stop + 1;
        if stop > 0 && bytes[stop - 1] != delimiter {
            continue;
        }
        // A doubled quote is a literal quote; any other closes.
        loop {
            match memchr(b'"', &bytes[at..]) {
                None => return Ending::Open(stop),
                Some(quote) => at += quote + 1,
            }
            match bytes.get(at) {
                Some(b'"') => at += 1,
                _ => break,
            }
        }
    }
    Ending::Bytes
}

/// See [`RecordFormat::extent`](crate::frame::RecordFormat::extent). A record with an unclosed
/// quote ends with its first line.
pub(super) fn extent(
    bytes: &[u8],
    delimiter: u8,
    is_last: bool,
    message_bytes_max: usize,
) -> Option<usize> {
    let seen = &bytes[..bytes.len().min(message_bytes_max)];
    let is_all = seen.len() < bytes.len() || is_last;
    match ending(seen, delimiter) {
        Ending::Line(end) => Some(end),
        Ending::Open(_) if is_all => match memchr2(b'\n', b'\r', seen) {
            Some(line) => Some(line),
            None if is_last => Some(bytes.len()),
            None => None,
        },
        Ending::Bytes if is_last && seen.len() == bytes.len() => Some(bytes.len()),
        _ => None,
    }
}

/// Returns the number of fields of a record, without their values.
pub(super) fn fields_count(record: &[u8], delimiter: u8) -> usize {
    let (mut count, mut at) = (1, 0);
    loop {
        if record.get(at) == Some(&b'"') {
            at += 1;
            // A doubled quote is a literal quote; any other closes.
            loop {
                match memchr(b'"', &record[at..]) {
                    None => return count,
                    Some(quote) => at += quote + 1,
                }
                match record.get(at) {
                    Some(b'"') => at += 1,
                    _ => break,
                }
            }
        }
        match memchr(delimiter, &record[at..]) {
            None => return count,
            Some(end) => (count, at) = (count + 1, at + end + 1),
        }
    }
}

/// Makes a reader of single records.
pub(super) fn reader(delimiter: u8) -> Reader {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
    // The reader looks for a byte order mark only at its very start.
    let _ = reader.read_field(b"-\n", &mut [0; 2]);
    reader
}

#[cfg(test)]
mod tests {
    use super::super::sniff::fields;
    use super::*;

    #[test]
    fn counted_fields_equal_parsed_fields() {
        let mut records = vec![Vec::new()];
        for _ in 0..7 {
            let longer = |record: &Vec<u8>| {
                let record = record.clone();
                b"a,\"".map(|byte| [&record[..], &[byte]].concat())
            };
            records = records.iter().flat_map(longer).collect();
            for record in &records {
                let line = [&record[..], b"\n"].concat();
                if ending(&line, b',') == Ending::Line(record.len()) {
                    let shown = String::from_utf8_lossy(record);
                    assert_eq!(fields_count(record, b','), fields(record, b',').len(), "{shown}");
                }
            }
        }
    }
}
