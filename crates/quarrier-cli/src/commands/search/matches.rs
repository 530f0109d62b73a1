//! The column `match`.

use quarrier::search::copy_match;
use quarrier_core::pipeline::Chunk;
use quarrier_search::{Finding, Pattern};

use crate::output::Format;
use crate::output::rows::Value;

/// Formats the values of `match` for an output format.
pub(super) struct Matches {
    format: Format,
    bytes: Vec<u8>,
    text: String,
}

impl Matches {
    pub(super) fn of(format: Format) -> Self {
        Matches { format, bytes: Vec::new(), text: String::new() }
    }

    /// The bytes of a finding. Text for people shows them in the excerpt instead.
    pub(super) fn of_finding(
        &mut self,
        chunk: &Chunk<'_>,
        finding: &Finding,
        pattern: &Pattern,
    ) -> Value<'_> {
        if self.format == Format::Text {
            return Value::Missing;
        }
        copy_match(chunk, finding, &mut self.bytes);
        shown(self.format, &self.bytes, pattern, &mut self.text)
    }
}

/// A match in an output format: binary in Arrow, else text, which is built in `text`.
pub(super) fn shown<'m>(
    format: Format,
    bytes: &'m [u8],
    pattern: &Pattern,
    text: &'m mut String,
) -> Value<'m> {
    if format == Format::Arrow {
        return Value::Bytes(bytes);
    }
    text.clear();
    pattern.show_match(bytes, text);
    Value::Text(text)
}
