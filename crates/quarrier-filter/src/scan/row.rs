//! Tests without a kernel: evaluated row by row, each row at most once.

use std::borrow::Cow;

use super::block::{Place, each};
use super::heap::Heap;
use crate::arch::Bits;
use crate::naive::{self, Datum};
use crate::predicate::{Outcome, RowTest};

/// Cached results of one test in one block.
pub(crate) struct RowCache {
    stamp: u64,
    known: Bits,
    /// Rows where it is true, false, and a fault.
    found: [Bits; 3],
}

/// A test in a block.
pub(crate) struct RowTests<'a> {
    pub(crate) test: &'a RowTest,
    pub(crate) place: Place<'a>,
}

/// A row of a segment.
pub(crate) struct SegmentRow<'a> {
    pub(crate) place: Place<'a>,
    /// The row's index in the segment.
    pub(crate) row: usize,
}

impl RowCache {
    pub(crate) fn new() -> RowCache {
        RowCache { stamp: u64::MAX, known: Bits::NONE, found: [Bits::NONE; 3] }
    }

    /// Keeps in `rows` those with this outcome, and returns a mask of the words that are not 0.
    pub(crate) fn narrow(
        &mut self,
        tests: &RowTests<'_>,
        outcome: Outcome,
        rows: &mut Bits,
    ) -> u64 {
        if self.stamp != tests.place.stamp {
            self.stamp = tests.place.stamp;
            self.known = Bits::NONE;
            self.found = [Bits::NONE; 3];
        }
        let mut open = rows.clone();
        for (open, known) in open.0.iter_mut().zip(&self.known.0) {
            *open &= !known;
        }
        match Heap::of(tests.test, tests.place) {
            Some(heap) => self.learn(&heap.narrow(tests.place, &open)),
            None => self.learn(&evaluated(tests, &open)),
        }
        let found = match outcome {
            Outcome::True => 0,
            Outcome::False => 1,
            Outcome::Fault => 2,
        };
        for at in 0..rows.0.len() {
            self.known.0[at] |= open.0[at];
            rows.0[at] &= self.found[found].0[at];
        }
        rows.words()
    }

    fn learn(&mut self, outcomes: &[Bits]) {
        for (found, outcome) in self.found.iter_mut().zip(outcomes) {
            for (found, outcome) in found.0.iter_mut().zip(&outcome.0) {
                *found |= outcome;
            }
        }
    }
}

/// Returns the rows of `open` for which a test is true, false, and a fault.
fn evaluated(tests: &RowTests<'_>, open: &Bits) -> [Bits; 3] {
    let mut found = [Bits::NONE; 3];
    for (at, &word) in open.0.iter().enumerate() {
        each(word, |bit| {
            let row = tests.place.first() + at * 64 + bit;
            let outcome = naive::truth(&tests.test.expr, &SegmentRow { place: tests.place, row });
            let which = match outcome {
                Ok(Some(true)) => 0,
                Ok(Some(false)) => 1,
                Ok(None) => return,
                Err(_) => 2,
            };
            found[which].0[at] |= 1 << bit;
        });
    }
    found
}

impl naive::Row for SegmentRow<'_> {
    fn datum(&self, column: usize) -> Datum<'_> {
        let column = &self.place.table.columns()[column];
        column.value(self.place.segment, self.row).map_text(Cow::Borrowed)
    }
}
