//! Converts the rows of COPY … FROM STDIN to messages: one JSON object per line.

use memchr::memchr2;

use crate::failure::{Failure, Result, state};
use crate::sql::{CopyFormat, CopyOptions};
use crate::value;
use crate::value::Value;

use super::direct::DirectWriter;
use super::fields::{binary_cell, csv_fields, text_fields};
use super::message::message;
use super::write::BINARY_BEGIN;

/// Maximum bytes of a row.
const ROW_BYTES_MAX: usize = 16 << 20;

/// A target column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// The column's type, as PostgreSQL's OID.
    pub(crate) kind: u32,
    /// The number of decimals, for exact numbers.
    pub(crate) scale: Option<u8>,
}

/// Parses rows that arrive in pieces of any length.
pub(crate) struct Reader {
    options: CopyOptions,
    columns: Vec<Target>,
    /// Writes most rows; without it, all rows go through values.
    direct: Option<DirectWriter>,
    /// Bytes of an incomplete row.
    rest: Vec<u8>,
    /// The number of bytes of `rest` already examined, and whether they end within quotes.
    seen: usize,
    is_quoted: bool,
    /// Number of rows so far.
    pub(crate) rows: u64,
    wants_header: bool,
    has_begun: bool,
    is_over: bool,
}

impl Reader {
    pub(crate) fn new(options: CopyOptions, columns: Vec<Target>) -> Self {
        let wants_header = options.has_header && options.format != CopyFormat::Binary;
        Reader {
            options,
            direct: Some(DirectWriter::new(&columns)),
            columns,
            rest: Vec::new(),
            seen: 0,
            is_quoted: false,
            rows: 0,
            wants_header,
            has_begun: false,
            is_over: false,
        }
    }

    /// Makes a reader that sends all rows through values: the twin of the fast one.
    #[cfg(test)]
    pub(super) fn naive(options: CopyOptions, columns: Vec<Target>) -> Self {
        Reader { direct: None, ..Reader::new(options, columns) }
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::new(state::COPY, format!("COPY, row {}: {what}", self.rows + 1))
    }

    /// Parses bytes, and appends a message to `out` for each complete row.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let mut used = 0;
        while !self.is_over {
            let end = match self.options.format {
                CopyFormat::Binary => self.binary(&rest[used..], out)?,
                _ => self.line(&rest[used..], false, out)?,
            };
            let Some(end) = end else { break };
            used += end;
        }
        if self.is_over {
            return Ok(());
        }
        self.rest = rest;
        self.rest.drain(..used);
        if self.rest.len() > ROW_BYTES_MAX {
            return Err(self.wrong("it is longer than 16 MiB"));
        }
        Ok(())
    }

    /// Parses the rest after all bytes have arrived.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let rest = std::mem::take(&mut self.rest);
        if self.is_over || rest.is_empty() {
            return Ok(());
        }
        if self.options.format == CopyFormat::Binary {
            return Err(self.wrong("unexpected end of the data"));
        }
        self.line(&rest, true, out)?
            .map(drop)
            .ok_or_else(|| self.wrong("unterminated quoted field"))
    }

    /// Parses the row at the start of `bytes`, and returns its end; `None` if it is incomplete.
    fn line(&mut self, bytes: &[u8], is_last: bool, out: &mut Vec<u8>) -> Result<Option<usize>> {
        let Some(end) = self.line_end(bytes, is_last) else { return Ok(None) };
        let used = (end + 1).min(bytes.len());
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        (self.seen, self.is_quoted) = (0, false);
        if line == b"\\." {
            self.is_over = true;
            return Ok(Some(used));
        }
        if std::mem::take(&mut self.wants_header) {
            return Ok(Some(used));
        }
        let text = std::str::from_utf8(line).map_err(|_| {
            let said = format!("COPY, row {}: invalid byte sequence for UTF8", self.rows + 1);
            Failure::new(state::ENCODING, said)
        })?;
        let is_csv = self.options.format == CopyFormat::Csv;
        let options = &self.options;
        let is_written = self.direct.as_ref().is_some_and(|direct| match is_csv {
            true => direct.csv(text, options, out),
            false => direct.text(text, options, out),
        });
        if is_written {
            self.rows += 1;
            return Ok(Some(used));
        }
        let fields = match is_csv {
            true => csv_fields(text, options, self.columns.len()),
            false => text_fields(text, options, self.columns.len()),
        };
        self.message(&fields.map_err(|what| self.wrong(what))?, out)?;
        Ok(Some(used))
    }

    /// Returns the end of the line; in CSV, line feeds within quotes do not count.
    fn line_end(&mut self, bytes: &[u8], is_last: bool) -> Option<usize> {
        let is_csv = self.options.format == CopyFormat::Csv;
        let (quote, escape) = (self.options.quote, self.options.escape);
        let mut at = self.seen;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let found = match (is_csv, self.is_quoted) {
                (false, _) => memchr2(b'\n', b'\\', rest),
                (true, false) => memchr2(b'\n', quote, rest),
                (true, true) => memchr2(quote, escape, rest),
            };
            let Some(found) = found else {
                at = bytes.len();
                break;
            };
            at += found;
            let is_escape = match is_csv {
                true => self.is_quoted && bytes[at] == escape && escape != quote,
                false => bytes[at] == b'\\',
            };
            if is_escape {
                if at + 1 >= bytes.len() && !is_last {
                    break;
                }
                at += 2;
            } else if is_csv && bytes[at] == quote {
                self.is_quoted = !self.is_quoted;
                at += 1;
            } else {
                return Some(at);
            }
        }
        self.seen = at;
        (is_last && !self.is_quoted).then_some(bytes.len())
    }

    fn message(&mut self, fields: &[Option<String>], out: &mut Vec<u8>) -> Result<()> {
        if fields.len() > self.columns.len() {
            return Err(self.wrong("extra data after last expected column"));
        }
        if let Some(column) = self.columns.get(fields.len()) {
            return Err(self.wrong(&format!("missing data for column \"{}\"", column.name)));
        }
        let fields = fields.iter().map(|field| field.as_deref().map(str::as_bytes));
        self.row(fields, false, out)
    }

    /// Appends a row; fields without bytes are NULL.
    fn row<'f>(
        &mut self,
        fields: impl Iterator<Item = Option<&'f [u8]>>,
        is_binary: bool,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let values = self.columns.iter().zip(fields).map(|(column, field)| -> Result<Value> {
            let read = value::read(column.kind, field, is_binary);
            let assigned = read.and_then(|it| value::assigned(it, column.kind, column.scale));
            assigned.map_err(|failure| self.of_column(&column.name, failure))
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let names = self.columns.iter().map(|column| column.name.as_str());
        message(names.zip(&values), out).map_err(|failure| {
            let message = format!("COPY, row {}: {failure}", self.rows + 1);
            Failure { message, ..failure }
        })?;
        self.rows += 1;
        Ok(())
    }

    fn of_column(&self, name: &str, failure: Failure) -> Failure {
        let message = format!("COPY, row {}, column {name}: {failure}", self.rows + 1);
        Failure { message, ..failure }
    }

    /// Parses the tuple at the start of `bytes`, and returns its end.
    fn binary(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>> {
        if !self.has_begun {
            let Some(head) = bytes.get(..BINARY_BEGIN.len()) else { return Ok(None) };
            if head[..15] != BINARY_BEGIN[..15] {
                return Err(self.wrong("COPY file signature not recognized"));
            }
            let extension = u32::from_be_bytes([head[15], head[16], head[17], head[18]]) as usize;
            if extension > 0 {
                return Err(self.wrong("the header has an unknown extension"));
            }
            self.has_begun = true;
            return Ok(Some(BINARY_BEGIN.len()));
        }
        let [a, b, ..] = *bytes else { return Ok(None) };
        let count = i16::from_be_bytes([a, b]);
        if count == -1 {
            self.is_over = true;
            return Ok(Some(2));
        }
        if usize::try_from(count) != Ok(self.columns.len()) {
            let said = format!("row field count is {count}, expected {}", self.columns.len());
            return Err(self.wrong(&said));
        }
        let Some(end) = self.tuple_end(bytes)? else { return Ok(None) };
        let cells = &bytes[2..end];
        if self.direct.as_ref().is_some_and(|direct| direct.binary(cells, out)) {
            self.rows += 1;
            return Ok(Some(end));
        }
        let mut rest = cells;
        let fields = std::iter::from_fn(|| {
            let (cell, after) = binary_cell(rest)?;
            rest = after;
            Some(cell)
        });
        self.row(fields, true, out)?;
        Ok(Some(end))
    }

    /// Returns the end of the tuple at the start of `bytes`; `None` if it is incomplete.
    fn tuple_end(&self, bytes: &[u8]) -> Result<Option<usize>> {
        let mut at = 2;
        for _ in &self.columns {
            let Some(length) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) else {
                return Ok(None);
            };
            at += 4;
            match i32::from_be_bytes(*length) {
                -1 => {}
                length => {
                    let length = usize::try_from(length).ok().filter(|it| *it <= ROW_BYTES_MAX);
                    at += length.ok_or_else(|| self.wrong("invalid field size"))?;
                }
            }
        }
        Ok((at <= bytes.len()).then_some(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind;
    use crate::sql::{Utility, utility};

    fn target(name: &str, kind: u32) -> Target {
        let scale = (kind == kind::NUMERIC).then_some(2);
        Target { name: name.to_string(), kind, scale }
    }

    fn reader(options: &str, kinds: &[u32]) -> Reader {
        let statement = format!("COPY t FROM STDIN WITH ({options})");
        let Ok(Some(Utility::CopyIn { options, .. })) = utility(&statement) else { unreachable!() };
        let names = ["a", "b", "c"].iter();
        Reader::new(options, names.zip(kinds).map(|(name, kind)| target(name, *kind)).collect())
    }

    /// Reads bytes in pieces of one length.
    fn read(mut reader: Reader, bytes: &[u8], piece: usize) -> Result<String> {
        let mut out = Vec::new();
        for piece in bytes.chunks(piece) {
            reader.push(piece, &mut out)?;
        }
        reader.finish(&mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn rows_of_text_become_messages_however_they_are_cut() {
        let bytes = b"1\ta\\tb\\\nc\\x41\\101\n\\N\t\n2\t\\\\N\n\\.\nmore";
        let wanted = "{\"a\":1,\"b\":\"a\\tb\\ncAA\"}\n{\"b\":\"\"}\n{\"a\":2,\"b\":\"\\\\N\"}\n";
        for piece in 1..=bytes.len() {
            let kinds = [kind::INT4, kind::TEXT];
            assert_eq!(
                read(reader("FORMAT text", &kinds), bytes, piece).unwrap(),
                wanted,
                "{piece}"
            );
        }
    }

    #[test]
    fn rows_of_csv_become_messages_however_they_are_cut() {
        let bytes = "a,b,c\r\n1,\"x\"\"\n,y\",\r\n,\"\",-0.50\r\n3,\u{e9},1".as_bytes();
        let wanted = "{\"a\":1,\"b\":\"x\\\"\\n,y\"}\n{\"b\":\"\",\"c\":-0.50}\n\
                      {\"a\":3,\"b\":\"\u{e9}\",\"c\":1}\n";
        for piece in 1..=bytes.len() {
            let kinds = [kind::INT8, kind::TEXT, kind::NUMERIC];
            let reader = reader("FORMAT csv, HEADER", &kinds);
            assert_eq!(read(reader, bytes, piece).unwrap(), wanted, "{piece}");
        }
    }

    #[test]
    fn rows_in_binary_become_messages_however_they_are_cut() {
        let mut bytes = BINARY_BEGIN.to_vec();
        bytes
            .extend(b"\0\x02\0\0\0\x04\0\0\0\x07\0\0\0\x01x\0\x02\xff\xff\xff\xff\0\0\0\0\xff\xff");
        for piece in 1..=bytes.len() {
            let kinds = [kind::INT4, kind::TEXT];
            let read = read(reader("FORMAT binary", &kinds), &bytes, piece).unwrap();
            assert_eq!(read, "{\"a\":7,\"b\":\"x\"}\n{\"b\":\"\"}\n", "{piece}");
        }
        for end in 1..bytes.len() - 2 {
            let kinds = [kind::INT4, kind::TEXT];
            let _ = read(reader("FORMAT binary", &kinds), &bytes[..end], 7);
        }
    }

    #[test]
    fn errors_have_their_row() {
        let kinds = [kind::INT4, kind::TEXT];
        for (options, bytes, said) in [
            ("FORMAT text", &b"1\ta\n2\n"[..], "row 2: missing data for column \"b\""),
            ("FORMAT text", b"1\ta\tb\n", "row 1: extra data"),
            ("FORMAT text", b"x\ta\n", "row 1, column a: invalid input syntax"),
            ("FORMAT csv", b"1,\"a\n", "row 1: unterminated"),
            ("FORMAT binary", b"no signature at all", "row 1: COPY file signature"),
            ("FORMAT text", b"1\t\xff\n", "row 1: invalid byte"),
        ] {
            let failure = read(reader(options, &kinds), bytes, 3).unwrap_err();
            assert!(failure.message.contains(said), "{failure}");
        }
        let failure = read(reader("FORMAT text", &[kind::FLOAT8]), b"1\nNaN\n", 3).unwrap_err();
        assert!(failure.message.contains("row 2: NaN cannot be stored"), "{failure}");
    }

    /// Finds the ends of all lines byte by byte.
    fn naive_ends(bytes: &[u8], options: &CopyOptions) -> Vec<usize> {
        let CopyOptions { format, quote, escape, .. } = *options;
        let is_csv = format == CopyFormat::Csv;
        let (mut at, mut is_quoted, mut ends) = (0, false, Vec::new());
        while let Some(byte) = bytes.get(at) {
            if is_csv && is_quoted && *byte == escape && escape != quote {
                at += 1;
            } else if is_csv && *byte == quote {
                is_quoted = !is_quoted;
            } else if !is_csv && *byte == b'\\' {
                at += 1;
            } else if *byte == b'\n' && !is_quoted {
                ends.push(at);
            }
            at += 1;
        }
        ends
    }

    proptest::proptest! {
        #[test]
        fn lines_end_where_a_look_at_each_byte_ends_them(
            text in "[a\n\"'\\\\]{0,40}",
            piece in 1_usize..9,
        ) {
            for options in [
                "FORMAT text",
                "FORMAT csv",
                "FORMAT csv, ESCAPE '\\'",
                "FORMAT csv, QUOTE ''''",
            ] {
                let mut reader = reader(options, &[kind::TEXT]);
                let (bytes, mut start, mut ends) = (text.as_bytes(), 0, Vec::new());
                for until in (0..bytes.len()).step_by(piece).chain([bytes.len()]) {
                    while let Some(end) = reader.line_end(&bytes[start..until], false) {
                        ends.push(start + end);
                        start += end + 1;
                        (reader.seen, reader.is_quoted) = (0, false);
                    }
                }
                let expected = naive_ends(bytes, &reader.options);
                proptest::prop_assert_eq!(&ends, &expected, "{}", options);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, piece in 1_usize..9) {
            for format in ["text", "csv", "binary"] {
                let options = format!("FORMAT {format}");
                let kinds = [kind::NUMERIC, kind::BYTEA, kind::TEXT];
                let _ = read(reader(&options, &kinds), &bytes, piece);
                let headed: Vec<u8> = BINARY_BEGIN.iter().chain(&bytes).copied().collect();
                let _ = read(reader(&options, &kinds), &headed, piece);
            }
        }
    }
}
