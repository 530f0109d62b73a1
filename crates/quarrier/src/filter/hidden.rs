//! The hidden columns of filtered messages: position and bytes.

use quarrier_messages::build::Row;
use quarrier_messages::{HiddenColumns, LINE_COLUMN, MESSAGE_COLUMN, OFFSET_COLUMN};

/// The hidden columns that a request names.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HiddenNames {
    /// The hidden columns in conditions.
    pub(super) tested: HiddenColumns,
    /// The hidden columns among the columns of rows.
    pub(super) shown: HiddenColumns,
}

impl HiddenNames {
    /// Whether messages must be read in order: the line of a message depends on all bytes before it.
    pub(super) fn are_in_order(self) -> bool {
        (self.tested | self.shown).line
    }
}

/// A message and its position in the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedMessage<'m> {
    /// The line of the message, from 1; known only if messages are read in order.
    pub(super) line: u64,
    pub(super) offset: u64,
    pub(super) bytes: &'m [u8],
}

impl PlacedMessage<'_> {
    /// Sets the selected hidden columns of a row, replacing message fields with the same names.
    pub(super) fn put(&self, selected: HiddenColumns, row: &mut impl Row) {
        let numbers = [
            (selected.line, LINE_COLUMN, self.line),
            (selected.offset, OFFSET_COLUMN, self.offset),
        ];
        for (is_selected, name, number) in numbers {
            if is_selected && let Some(field) = row.field(name) {
                row.null(field);
                row.integer(field, i64::try_from(number).unwrap_or(i64::MAX));
            }
        }
        if selected.message
            && let Some(field) = row.field(MESSAGE_COLUMN)
        {
            row.null(field);
            row.text(field, &String::from_utf8_lossy(self.bytes));
        }
    }
}
