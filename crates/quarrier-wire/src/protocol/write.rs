//! Messages from the server.

use crate::failure::Failure;

/// Bytes on their way to a client.
#[derive(Debug, Default)]
pub struct Out {
    bytes: Vec<u8>,
    /// How many of them are sent.
    sent: usize,
    /// Where the last message begins.
    last: usize,
}

/// A column of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its kind.
    pub kind: u32,
    /// Whether its values are in binary.
    pub is_binary: bool,
}

/// The capacity that an empty buffer keeps.
const KEPT_BYTES: usize = 4 << 10;

impl Out {
    /// The bytes not sent yet.
    pub fn waiting(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// So many more bytes are sent.
    pub fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
            self.bytes.shrink_to(KEPT_BYTES);
        }
    }

    /// Appends bytes outside of this protocol.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A message whose body `write` appends.
    pub fn message(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.last = self.bytes.len();
        self.bytes.push(kind);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        write(&mut self.bytes);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Removes the last message, which was not finished; none of it has been sent.
    pub fn take_back(&mut self) {
        if self.last >= self.sent {
            self.bytes.truncate(self.last);
        }
    }

    fn empty(&mut self, kind: u8) {
        self.message(kind, |_| ());
    }

    /// Authentication is complete, or not required.
    pub fn authentication_ok(&mut self) {
        self.message(b'R', |out| out.extend(0_u32.to_be_bytes()));
    }

    /// A step of SASL: 10 names the mechanisms, 11 continues, 12 ends.
    pub fn sasl(&mut self, step: u32, data: &[u8]) {
        self.message(b'R', |out| {
            out.extend(step.to_be_bytes());
            out.extend(data);
        });
    }

    /// A setting of the server.
    pub fn parameter(&mut self, name: &str, value: &str) {
        self.message(b'S', |out| {
            text(out, name);
            text(out, value);
        });
    }

    /// With what this connection's statements can be cancelled.
    pub fn key_data(&mut self, connection: u32, secret: &[u8]) {
        self.message(b'K', |out| {
            out.extend(connection.to_be_bytes());
            out.extend(secret);
        });
    }

    /// Version 3.0 is spoken, and these options are not known.
    pub fn negotiate(&mut self, unknown: &[&str]) {
        self.message(b'v', |out| {
            out.extend((3_u32 << 16).to_be_bytes());
            out.extend((unknown.len() as u32).to_be_bytes());
            unknown.iter().for_each(|name| text(out, name));
        });
    }

    /// The next statement may come; `status` is `I`, `T` or `E`.
    pub fn ready(&mut self, status: u8) {
        self.message(b'Z', |out| out.push(status));
    }

    /// The columns of rows that follow.
    pub fn row_description<'a>(&mut self, columns: impl ExactSizeIterator<Item = Column<'a>>) {
        self.message(b'T', |out| {
            out.extend((columns.len() as u16).to_be_bytes());
            for column in columns {
                text(out, column.name);
                out.extend([0; 6]); // of no table
                out.extend(column.kind.to_be_bytes());
                out.extend(crate::kind::size(column.kind).to_be_bytes());
                out.extend((-1_i32).to_be_bytes());
                out.extend(u16::from(column.is_binary).to_be_bytes());
            }
        });
    }

    /// The kinds of a statement's parameters.
    pub fn parameter_description(&mut self, kinds: &[u32]) {
        self.message(b't', |out| {
            out.extend((kinds.len() as u16).to_be_bytes());
            kinds.iter().for_each(|kind| out.extend(kind.to_be_bytes()));
        });
    }

    /// There are no rows.
    pub fn no_data(&mut self) {
        self.empty(b'n');
    }

    /// A statement is prepared.
    pub fn parse_complete(&mut self) {
        self.empty(b'1');
    }

    /// Values are bound.
    pub fn bind_complete(&mut self) {
        self.empty(b'2');
    }

    /// It is forgotten.
    pub fn close_complete(&mut self) {
        self.empty(b'3');
    }

    /// There are more rows.
    pub fn portal_suspended(&mut self) {
        self.empty(b's');
    }

    /// The text was empty.
    pub fn empty_query(&mut self) {
        self.empty(b'I');
    }

    /// A statement is done.
    pub fn complete(&mut self, tag: &str) {
        self.message(b'C', |out| text(out, tag));
    }

    /// A COPY begins: `G` in, `H` out.
    pub fn copy_begins(&mut self, kind: u8, is_binary: bool, columns: usize) {
        self.message(kind, |out| {
            out.push(u8::from(is_binary));
            out.extend((columns as u16).to_be_bytes());
            for _ in 0..columns {
                out.extend(u16::from(is_binary).to_be_bytes());
            }
        });
    }

    /// All of a COPY was sent.
    pub fn copy_done(&mut self) {
        self.empty(b'c');
    }

    /// An error.
    pub fn error(&mut self, failure: &Failure) {
        let severity = if failure.is_fatal { "FATAL" } else { "ERROR" };
        self.complaint(b'E', severity, failure);
    }

    /// A warning.
    pub fn warning(&mut self, failure: &Failure) {
        self.complaint(b'N', "WARNING", failure);
    }

    fn complaint(&mut self, kind: u8, severity: &str, failure: &Failure) {
        self.message(kind, |out| {
            let mut field = |name: u8, value: &str| {
                out.push(name);
                text(out, value);
            };
            field(b'S', severity);
            field(b'V', severity);
            field(b'C', failure.state);
            field(b'M', &failure.message);
            if let Some(hint) = &failure.hint {
                field(b'H', hint);
            }
            out.push(0);
        });
    }
}

/// A text and its end; a NUL within would be one, too.
fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_their_length() {
        let mut out = Out::default();
        out.ready(b'I');
        out.complete("SELECT\x001");
        assert_eq!(out.waiting(), b"Z\0\0\0\x05IC\0\0\0\x0dSELECT 1\0");
        out.advance(6);
        assert_eq!(out.waiting()[0], b'C');
        out.advance(14);
        assert!(out.waiting().is_empty());
    }
}
