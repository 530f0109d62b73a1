//! Plans the type and encoding of one column.

use std::sync::Arc;

use super::convert;
use super::dictionaries::{Merged, merge};
use super::fields::ColumnParts;
use super::{Dictionaries, Piece};
use crate::build::RowBuilder;
use crate::column::{Data, Dictionary, STRINGS_BYTES_MAX, SegmentColumn, Strings};
use crate::{Kind, Packing};

/// The plan of one column, and its parts.
pub(super) struct Plan<'p> {
    pub(super) name: Box<str>,
    pub(super) kind: Kind,
    pub(super) dictionary: Option<Arc<Dictionary>>,
    /// A piece for each segment, until it is converted.
    pub(super) pieces: Vec<Piece>,
    /// The dictionaries of the parts, to convert codes to strings if the column has no dictionary.
    dictionaries: Dictionaries<'p>,
    /// The strings of values that had other types.
    written: Strings,
    /// The new code of each old one, for each of `dictionaries`, then for `written`; `None` if the
    /// codes stay.
    codes: Vec<Option<Vec<u32>>>,
    /// Number of values that lost digits by becoming floats.
    pub(super) rounded: u64,
}

/// A dictionary pays off if strings repeat: in a column with more rows than this, there must be at
/// most half as many distinct strings as rows.
const ROWS_TRIED: usize = 100_000;

impl<'p> Plan<'p> {
    pub(super) fn new(parts: ColumnParts<'p>, rows: &[u32], packing: Packing) -> Plan<'p> {
        let ColumnParts { name, kind, dictionaries, pieces, rounded } = parts;
        let kind = convert::kind_of_all(kind, pieces.iter().flatten().map(|(piece, _)| &**piece));
        let lost = pieces.iter().flatten().map(|(piece, _)| convert::rounded(piece, kind));
        let rounded = rounded + lost.sum::<u64>();
        let (written, codes, dictionary) = (Strings::new(), Vec::new(), None);
        let mut plan =
            Plan { name, kind, dictionary, pieces, dictionaries, written, codes, rounded };
        if kind == Kind::Text {
            plan.write_as_text();
            let rows = rows.iter().map(|&rows| rows as usize).sum();
            plan.choose_dictionary(rows, packing.spelled_bytes);
        }
        plan
    }

    /// Returns the segment in its form in the table; `scratch` is scratch memory.
    pub(super) fn segment(
        &self,
        piece: Piece,
        rows: usize,
        scratch: &mut Vec<u32>,
    ) -> Arc<SegmentColumn> {
        let Some((piece, number)) = piece else {
            return Arc::new(SegmentColumn::nulls(self.kind, rows));
        };
        let Data::Codes(codes) = piece.data() else {
            return convert::widened(piece, self.kind);
        };
        if self.dictionary.is_none() {
            return Arc::new(convert::spelled_out(&piece, codes, self.strings(number)));
        }
        match &self.codes[number] {
            Some(new) => Arc::new(Arc::unwrap_or_clone(piece).recoded(new, scratch)),
            None => {
                // Scans rely on this.
                let has_strings = piece.zone().max < self.strings(number).len() as i128;
                assert!(has_strings, "a code without a string");
                piece
            }
        }
    }

    fn strings(&self, number: usize) -> &Strings {
        self.dictionaries.get(number).copied().unwrap_or(&self.written)
    }

    /// Converts segments of other types to strings, with a separate dictionary.
    fn write_as_text(&mut self) {
        let number = self.dictionaries.len();
        let mut writer: Option<RowBuilder> = None;
        for piece in self.pieces.iter_mut().flatten() {
            if piece.0.kind() != Kind::Text && *piece.0.data() != Data::Null {
                let writer = writer.get_or_insert_with(|| RowBuilder::new(1));
                *piece = (Arc::new(convert::written(&piece.0, writer)), number);
            }
        }
        if let Some(writer) = writer {
            let (ends, bytes) = writer.dictionary(crate::build::FieldId::new(0));
            self.written = Strings::from_parts(ends.to_vec(), bytes.to_vec());
        }
    }

    fn choose_dictionary(&mut self, rows: usize, spelled_bytes: usize) {
        let is_plain = |piece: &SegmentColumn| matches!(piece.data(), Data::Text(_));
        let has_plain = self.pieces.iter().flatten().any(|(piece, _)| is_plain(piece));
        if has_plain && self.can_be_spelled_out(spelled_bytes) {
            return;
        }
        let mut all = self.dictionaries.clone();
        all.push(&self.written);
        let Some(Merged { strings, codes }) = merge(&all) else { return };
        let comes_again = rows <= ROWS_TRIED || strings.len() <= rows / 2;
        if !has_plain && !comes_again && self.can_be_spelled_out(spelled_bytes) {
            return;
        }
        self.codes = codes;
        self.dictionary = Some(Arc::new(Dictionary::from_sorted(strings)));
    }

    /// Whether plain strings in place of codes would take little more memory than `free`: a few
    /// long repeated strings could take any amount.
    fn can_be_spelled_out(&self, free: usize) -> bool {
        let dictionaries = self.dictionaries.iter().copied().chain([&self.written]);
        let mut now: usize = dictionaries.map(|strings| strings.bytes().len()).sum();
        let mut then = 0;
        for (piece, number) in self.pieces.iter().flatten() {
            match piece.data() {
                Data::Codes(codes) => {
                    let bytes = convert::spelled_bytes(piece, codes, self.strings(*number));
                    if bytes > STRINGS_BYTES_MAX {
                        return false;
                    }
                    then += bytes;
                }
                Data::Text(strings) => now += strings.bytes().len(),
                _ => {}
            }
        }
        free > 0 && then <= 2 * now + free
    }
}
