//! Hidden columns: the place of each message in its source, and its bytes. Statements find them by name,
//! and `*` leaves them out.

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
    /// Returns the hidden column of this name, in any ASCII case; none if there is none.
    pub fn of_name(name: &str) -> Self {
        HiddenColumns {
            line: name.eq_ignore_ascii_case(LINE_COLUMN),
            offset: name.eq_ignore_ascii_case(OFFSET_COLUMN),
            message: name.eq_ignore_ascii_case(MESSAGE_COLUMN),
        }
    }

    /// Returns the hidden columns whose names are words of a text: all that a statement can name, and
    /// perhaps others, since a word may stand in a string. Takes time proportional to the text.
    pub fn named_in(text: &str) -> Self {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.map(Self::of_name).fold(Self::default(), Self::bitor)
    }

    /// Whether it selects none.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Whether it selects all that `other` selects.
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

    /// Whether it selects a column of exactly this name.
    pub fn has(self, name: &str) -> bool {
        self.fields().any(|field| &*field.name == name)
    }

    /// Gives the schema the selected columns; fields of messages with such names give way.
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
