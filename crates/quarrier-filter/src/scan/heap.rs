//! Patterns and prefixes on strings without a dictionary. The strings are stored end to end, so the
//! search for a string that a pattern requires runs over all strings of a block at once, and only
//! hits are compared.

use memchr::memmem::Finder;
use quarrier_messages::column::{Data, SegmentColumn, Strings};

use super::block::{Place, each};
use crate::Expr;
use crate::arch::Bits;
use crate::expr::Pattern;
use crate::matching::Matching;
use crate::predicate::{Prefixes, RowTest};

/// Strings are searched together if at most one in this many is selected.
const SPARSE: usize = 8;

/// The test of a string.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    Pattern(&'a Matching),
    Prefixes(&'a Prefixes),
}

impl Wanted<'_> {
    fn is_match(&self, text: &str) -> bool {
        match self {
            Wanted::Pattern(pattern) => pattern.is_match(text),
            Wanted::Prefixes(prefixes) => prefixes.is_match(text),
        }
    }

    /// Returns a string that every match contains and few others do.
    fn rare(&self) -> Option<&Finder<'static>> {
        match self {
            Wanted::Pattern(pattern) => pattern.rare(),
            Wanted::Prefixes(_) => None,
        }
    }
}

/// A test of a segment's strings.
pub(super) struct Heap<'a> {
    wanted: Wanted<'a>,
    segment: &'a SegmentColumn,
    strings: &'a Strings,
}

impl<'a> Heap<'a> {
    /// Returns `None` if the test has another form, or the column's strings are in a dictionary.
    pub(super) fn of(test: &'a RowTest, place: Place<'a>) -> Option<Self> {
        let (column, wanted) = match (&test.prefixes, &test.expr) {
            (Some(prefixes), _) => (prefixes.column, Wanted::Prefixes(prefixes)),
            (None, Expr::Match { operand, pattern: Pattern::Fixed(pattern) }) => match **operand {
                Expr::Column(column) => (column, Wanted::Pattern(pattern)),
                _ => return None,
            },
            _ => return None,
        };
        let segment = &place.table.columns()[column].segments()[place.segment];
        match segment.data() {
            Data::Text(strings) => Some(Heap { wanted, segment, strings }),
            _ => None,
        }
    }

    /// Returns the rows of `open` that match, and those that do not; the others are NULL.
    pub(super) fn narrow(&self, place: Place<'_>, open: &Bits) -> [Bits; 2] {
        let first = place.first();
        let asked = open.0.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let rare = self.wanted.rare().filter(|_| asked >= place.rows() / SPARSE);
        let likely = rare.map(|rare| having(self.strings, rare, first..first + place.rows()));
        let mut found = [Bits::NONE, Bits::NONE];
        for (at, &word) in open.0.iter().enumerate() {
            let valid = match self.segment.valid() {
                [] => word,
                valid => word & valid.get(first / 64 + at).copied().unwrap_or(0),
            };
            let mut matching = 0;
            each(valid & likely.as_ref().map_or(!0, |likely| likely.0[at]), |bit| {
                let is_match = self.wanted.is_match(self.strings.get(first + at * 64 + bit));
                matching |= u64::from(is_match) << bit;
            });
            found[0].0[at] = matching;
            found[1].0[at] = valid & !matching;
        }
        found
    }
}

/// Returns which of `rows`, at most a block, have a string that contains `rare`.
fn having(strings: &Strings, rare: &Finder<'_>, rows: std::ops::Range<usize>) -> Bits {
    let mut likely = Bits::NONE;
    let ends = &strings.ends()[..rows.end];
    let end_of = |row: usize| ends[row] as usize;
    let Some(last) = ends.last() else { return likely };
    let bytes = &strings.bytes()[..*last as usize];
    let mut row = rows.start;
    let mut at = if row == 0 { 0 } else { end_of(row - 1) };
    while let Some(found) = rare.find(&bytes[at..]) {
        let start = at + found;
        while end_of(row) <= start {
            row += 1;
        }
        if start + rare.needle().len() <= end_of(row) {
            let bit = row - rows.start;
            likely.0[bit / 64] |= 1 << (bit % 64);
            at = end_of(row);
        } else {
            // The hit crosses into the next string; another may begin inside it.
            at = start + 1;
        }
    }
    likely
}
