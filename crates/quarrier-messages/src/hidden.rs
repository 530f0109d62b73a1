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

/// The name of the column of lists' ends: see [`HiddenColumns::list_ends`].
pub const LIST_ENDS_COLUMN: &str = "_list_ends";

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
    /// The line of the source in which the message starts, from 1: an integer. In Arrow and
    /// Parquet, the number of the row.
    pub line: bool,
    /// The offset of the message's first byte in the source, after decompression: an integer. Arrow and
    /// Parquet have neither this nor the bytes.
    pub offset: bool,
    /// The message's bytes as in the source, without the end of the line: a string.
    pub message: bool,
    /// The lengths of the message's lists whose last element has no value, since their columns do
    /// not show that element: a string that [`push_list_end`] makes. A table without such lists
    /// does not have the column.
    pub list_ends: bool,
}

/// Appends a list's length to those of a message, as in the column [`LIST_ENDS_COLUMN`]: a line
/// feed, the path of the list, and the length in brackets.
///
/// ```
/// use quarrier_messages::{list_end_mark, push_list_end};
///
/// let mut ends = String::new();
/// push_list_end("order.leg", 3, &mut ends);
/// assert!(ends.contains(&format!("{}3]", list_end_mark("order.leg"))));
/// ```
pub fn push_list_end(list: &str, length: usize, ends: &mut String) {
    ends.push_str(&list_end_mark(list));
    ends.push_str(&format!("{length}]"));
}

/// Returns the text before the length of the list with this path.
pub fn list_end_mark(list: &str) -> String {
    // A key with a line feed must not look like another list.
    format!("\n{}[", list.replace('\n', "\u{2424}"))
}

/// Whether a statement may name all elements of a list, `leg[*]`, or call UNNEST.
fn names_lists(text: &str) -> bool {
    let is_all =
        |rest: &str| rest.trim_start_matches([' ', '\t', '\r', '\n', '"']).starts_with('*');
    text.split('[').skip(1).any(is_all)
        || text.as_bytes().windows(6).any(|word| word.eq_ignore_ascii_case(b"unnest"))
}

impl HiddenColumns {
    /// Returns the hidden column with this name, ignoring ASCII case; an empty selection for other
    /// names.
    pub fn of_name(name: &str) -> Self {
        HiddenColumns {
            line: name.eq_ignore_ascii_case(LINE_COLUMN),
            offset: name.eq_ignore_ascii_case(OFFSET_COLUMN),
            message: name.eq_ignore_ascii_case(MESSAGE_COLUMN),
            list_ends: name.eq_ignore_ascii_case(LIST_ENDS_COLUMN),
        }
    }

    /// Returns the hidden columns whose names occur as words in a statement, and those that its lists
    /// need. It may include columns that the statement does not use, since a word may be part of a
    /// string literal. Takes linear time.
    pub fn named_in(text: &str) -> Self {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let lists = HiddenColumns { list_ends: names_lists(text), ..Self::default() };
        words.map(Self::of_name).fold(lists, Self::bitor)
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
            list_ends: self.list_ends && !other.list_ends,
        }
    }

    /// Returns the selected columns, in their order.
    pub fn fields(self) -> impl Iterator<Item = Field> {
        let all = [
            (self.line, LINE_COLUMN, Kind::Integer),
            (self.offset, OFFSET_COLUMN, Kind::Integer),
            (self.message, MESSAGE_COLUMN, Kind::Text),
            (self.list_ends, LIST_ENDS_COLUMN, Kind::Text),
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
            list_ends: self.list_ends || other.list_ends,
        }
    }
}
