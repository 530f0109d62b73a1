//! Hidden columns: each message's position in its source, and its bytes. Statements refer to them
//! by name, and `*` leaves them out.

use std::ops::BitOr;

use crate::{Field, Kind, Schema};

/// The name of the column of line numbers: see [`HiddenColumns::line`].
pub const LINE_COLUMN: &str = "_line";

/// The name of the column of byte offsets: see [`HiddenColumns::offset`].
pub const OFFSET_COLUMN: &str = "_offset";

/// The name of the column of the messages' original bytes: see [`HiddenColumns::message`].
pub const MESSAGE_COLUMN: &str = "_message";

/// A selection of the hidden columns.
///
/// ```
/// use quarrier_messages::HiddenColumns;
///
/// let named = HiddenColumns::named_in("SELECT qty FROM m WHERE _LINE > 7 AND my_offset = 1");
/// assert_eq!(named, HiddenColumns { line: true, ..HiddenColumns::default() });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HiddenColumns {
    /// The line of the source in which the message starts, from 1: an integer.
    pub line: bool,
    /// The offset of the message's first byte in the source, after decompression: an integer.
    pub offset: bool,
    /// The message's bytes as in the source, without the end of the line: a string.
    pub message: bool,
}

impl HiddenColumns {
    /// Returns the hidden column with this name, ignoring ASCII case; an empty selection for other
    /// names.
    pub fn of_name(name: &str) -> Self {
        HiddenColumns {
            line: name.eq_ignore_ascii_case(LINE_COLUMN),
            offset: name.eq_ignore_ascii_case(OFFSET_COLUMN),
            message: name.eq_ignore_ascii_case(MESSAGE_COLUMN),
        }
    }

    /// Returns the hidden columns whose names occur as words in a statement. It may include columns
    /// that the statement does not use, since a word may be part of a string literal. Takes linear
    /// time.
    pub fn named_in(text: &str) -> Self {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.map(Self::of_name).fold(Self::default(), Self::bitor)
    }

    /// Whether no column is selected.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Whether the selection includes every column of `other`.
    pub fn contains(self, other: Self) -> bool {
        self | other == self
    }

    /// Returns the columns of this selection that are not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        HiddenColumns {
            line: self.line && !other.line,
            offset: self.offset && !other.offset,
            message: self.message && !other.message,
        }
    }

    /// Returns the selected columns, in their order.
    pub fn fields(self) -> impl Iterator<Item = Field> {
        let all = [
            (self.line, LINE_COLUMN, Kind::Integer),
            (self.offset, OFFSET_COLUMN, Kind::Integer),
            (self.message, MESSAGE_COLUMN, Kind::Text),
        ];
        let selected = all.into_iter().filter(|(is_selected, ..)| *is_selected);
        selected.map(|(_, name, kind)| Field { name: name.into(), kind })
    }

    /// Whether the selection includes a column with exactly this name.
    pub fn has(self, name: &str) -> bool {
        self.fields().any(|field| &*field.name == name)
    }

    /// Appends the selected columns to a schema, in place of message fields with the same names.
    pub fn add_to(self, schema: &mut Schema) {
        schema.fields.retain(|field| !self.has(&field.name));
        schema.fields.extend(self.fields());
    }
}

impl BitOr for HiddenColumns {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        HiddenColumns {
            line: self.line || other.line,
            offset: self.offset || other.offset,
            message: self.message || other.message,
        }
    }
}
