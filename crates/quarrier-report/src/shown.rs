//! Output for programs, if it goes to a person's terminal.

use std::io::{self, IsTerminal, Write};

use crate::is_harmful;
use crate::visible::push_escape;

/// The type of output, which determines how harmful characters are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Lines of text or CSV: like [`visible`](crate::visible), but line ends and tabs stay.
    Text,
    /// JSON: as JSON escapes (`\u202e`), so that it stays JSON with the same values.
    Json,
}

/// A writer that escapes harmful characters, and bytes that are not UTF-8.
#[derive(Debug)]
pub struct EscapingWriter<W> {
    out: W,
    manner: Manner,
    /// The first bytes of a character that ends in the next write.
    begun: Vec<u8>,
}

impl<W: Write> EscapingWriter<W> {
    /// Creates a writer to `out`.
    pub fn new(out: W, manner: Manner) -> Self {
        EscapingWriter { out, manner, begun: Vec::new() }
    }

    fn push(&self, line: &mut String, c: char) {
        let is_kept = c == '\n' || (c == '\t' && self.manner == Manner::Text);
        match self.manner {
            _ if is_kept || !is_harmful(c) => line.push(c),
            Manner::Text => push_escape(line, c),
            Manner::Json => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    line.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }

    fn push_bytes(&self, line: &mut String, bytes: &[u8]) {
        match self.manner {
            Manner::Text => bytes.iter().for_each(|byte| line.push_str(&format!("\\x{byte:02x}"))),
            Manner::Json => line.push('\u{fffd}'),
        }
    }
}

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut line = String::with_capacity(all.len() + 16);
        let mut rest = &all[..];
        for chunk in all.utf8_chunks() {
            chunk.valid().chars().for_each(|c| self.push(&mut line, c));
            rest = &rest[chunk.valid().len()..];
            let is_begun = std::str::from_utf8(rest).is_err_and(|e| e.error_len().is_none());
            if is_begun && chunk.invalid().len() == rest.len() {
                self.begun = rest.to_vec();
            } else if !chunk.invalid().is_empty() {
                self.push_bytes(&mut line, chunk.invalid());
            }
            rest = &rest[chunk.invalid().len()..];
        }
        self.out.write_all(line.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let begun = std::mem::take(&mut self.begun);
        if !begun.is_empty() {
            let mut line = String::new();
            self.push_bytes(&mut line, &begun);
            self.out.write_all(line.as_bytes())?;
        }
        self.out.flush()
    }
}

/// Wraps `out`: escapes output if it is a terminal, and passes it through unchanged otherwise.
pub fn on_terminal<W>(out: W, manner: Manner) -> Box<dyn Write + Send>
where
    W: Write + IsTerminal + Send + 'static,
{
    match out.is_terminal() {
        true => Box::new(EscapingWriter::new(out, manner)),
        false => Box::new(out),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{EscapingWriter, Manner};

    /// The escaped form of `bytes`, written in pieces of `piece` bytes.
    fn shown(bytes: &[u8], manner: Manner, piece: usize) -> String {
        let mut out = Vec::new();
        let mut writer = EscapingWriter::new(&mut out, manner);
        bytes.chunks(piece).for_each(|piece| writer.write_all(piece).unwrap());
        writer.flush().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_size_of_pieces_does_not_change_the_output() {
        let bytes =
            b"a\tb\xff\xe2\x80\n\x1b[2J\xe2\x80\xaegpj,\xf3\xa0\x81\x81\xe6\x97\xa5\r\n\xf3\xa0";
        let expected = "a\tb\\xff\\xe2\\x80\n\\x1b[2J\\u{202e}gpj,\\u{e0041}日\\r\n\\xf3\\xa0";
        for piece in 1..=bytes.len() {
            assert_eq!(shown(bytes, Manner::Text, piece), expected, "{piece}");
        }
    }

    #[test]
    fn json_keeps_its_values() {
        let value = "\u{202e}\u{9b}é日\u{e0041}\x7f";
        let written = format!("{{\"a\":{}}}\n", serde_json::json!(value));
        for piece in 1..=written.len() {
            let shown = shown(written.as_bytes(), Manner::Json, piece);
            assert_eq!(shown, "{\"a\":\"\\u202e\\u009bé日\\udb40\\udc41\\u007f\"}\n");
            let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
            assert_eq!(read["a"], value);
        }
    }
}
