//! Encodes messages from the server.

use crate::failure::Failure;

/// Output for a client.
#[derive(Debug, Default)]
pub struct MessageBuffer {
    bytes: Vec<u8>,
    /// Number of bytes that were sent.
    sent: usize,
    /// The start of the last message.
    last: usize,
}

/// A column of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// The name.
    pub name: &'a str,
    /// The type, as PostgreSQL's OID.
    pub kind: u32,
    /// Whether the values are in binary.
    pub is_binary: bool,
}

/// Maximum capacity of an empty buffer.
const KEPT_BYTES: usize = 4 << 10;

impl MessageBuffer {
    /// Returns the bytes that were not sent yet.
    pub fn waiting(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Records that this many more bytes were sent.
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

    /// Appends a message whose body `write` appends.
    pub fn message(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.last = self.bytes.len();
        self.bytes.push(kind);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        write(&mut self.bytes);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Removes the last, unfinished message, of which nothing was sent.
    pub fn take_back(&mut self) {
        if self.last >= self.sent {
            self.bytes.truncate(self.last);
        }
    }

    fn empty(&mut self, kind: u8) {
        self.message(kind, |_| ());
    }

    /// Authentication is complete or not required.
    pub fn authentication_ok(&mut self) {
        self.message(b'R', |out| out.extend(0_u32.to_be_bytes()));
    }

    /// A step of SASL: 10 lists the mechanisms, 11 continues, 12 ends.
    pub fn sasl(&mut self, step: u32, data: &[u8]) {
        self.message(b'R', |out| {
            out.extend(step.to_be_bytes());
            out.extend(data);
        });
    }

    /// Reports a setting.
    pub fn parameter(&mut self, name: &str, value: &str) {
        self.message(b'S', |out| {
            text(out, name);
            text(out, value);
        });
    }

    /// Sends the number and secret for cancelling this connection's statements.
    pub fn key_data(&mut self, connection: u32, secret: &[u8]) {
        self.message(b'K', |out| {
            out.extend(connection.to_be_bytes());
            out.extend(secret);
        });
    }

    /// Negotiates version 3.0, and lists the unknown options.
    pub fn negotiate(&mut self, unknown: &[&str]) {
        self.message(b'v', |out| {
            out.extend((3_u32 << 16).to_be_bytes());
            out.extend((unknown.len() as u32).to_be_bytes());
            unknown.iter().for_each(|name| text(out, name));
        });
    }

    /// Ready for the next statement; `status` is `I`, `T` or `E`.
    pub fn ready(&mut self, status: u8) {
        self.message(b'Z', |out| out.push(status));
    }

    /// Describes the columns of the rows that follow.
    pub fn row_description<'a>(&mut self, columns: impl ExactSizeIterator<Item = Column<'a>>) {
        self.message(b'T', |out| {
            out.extend((columns.len() as u16).to_be_bytes());
            for column in columns {
                text(out, column.name);
                out.extend([0; 6]); // without a table
                out.extend(column.kind.to_be_bytes());
                out.extend(crate::kind::size(column.kind).to_be_bytes());
                out.extend((-1_i32).to_be_bytes());
                out.extend(u16::from(column.is_binary).to_be_bytes());
            }
        });
    }

    /// Describes the types of a statement's parameters.
    pub fn parameter_description(&mut self, kinds: &[u32]) {
        self.message(b't', |out| {
            out.extend((kinds.len() as u16).to_be_bytes());
            kinds.iter().for_each(|kind| out.extend(kind.to_be_bytes()));
        });
    }

    /// Reports that there are no rows.
    pub fn no_data(&mut self) {
        self.empty(b'n');
    }

    /// Reports that a statement is prepared.
    pub fn parse_complete(&mut self) {
        self.empty(b'1');
    }

    /// Reports that values are bound.
    pub fn bind_complete(&mut self) {
        self.empty(b'2');
    }

    /// Reports that a statement or portal is closed.
    pub fn close_complete(&mut self) {
        self.empty(b'3');
    }

    /// Reports that a portal has more rows.
    pub fn portal_suspended(&mut self) {
        self.empty(b's');
    }

    /// Reports that the query string was empty.
    pub fn empty_query(&mut self) {
        self.empty(b'I');
    }

    /// Reports that a statement is complete.
    pub fn complete(&mut self, tag: &str) {
        self.message(b'C', |out| text(out, tag));
    }

    /// Begins a COPY: `G` in, `H` out.
    pub fn copy_begins(&mut self, kind: u8, is_binary: bool, columns: usize) {
        self.message(kind, |out| {
            out.push(u8::from(is_binary));
            out.extend((columns as u16).to_be_bytes());
            for _ in 0..columns {
                out.extend(u16::from(is_binary).to_be_bytes());
            }
        });
    }

    /// Ends the data of a COPY.
    pub fn copy_done(&mut self) {
        self.empty(b'c');
    }

    /// Reports an error.
    pub fn error(&mut self, failure: &Failure) {
        let severity = if failure.is_fatal { "FATAL" } else { "ERROR" };
        self.complaint(b'E', severity, failure);
    }

    /// Reports a warning.
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

/// Appends a string and its terminator. Replaces NULs in it, which would end it, with blanks.
fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_include_their_length() {
        let mut out = MessageBuffer::default();
        out.ready(b'I');
        out.complete("SELECT\x001");
        assert_eq!(out.waiting(), b"Z\0\0\0\x05IC\0\0\0\x0dSELECT 1\0");
        out.advance(6);
        assert_eq!(out.waiting()[0], b'C');
        out.advance(14);
        assert!(out.waiting().is_empty());
    }
}
