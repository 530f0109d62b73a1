//! Evaluates one block: narrows its bitmap by one test after another.

use quarrier_messages::Table;
use quarrier_messages::column::raw::BLOCK_ROWS;

use super::bind::{self, State, Test, Values, Wanted};
use super::calculate;
use super::coarse::Products;
use super::plan::Plan;
use super::row::{RowCache, RowTests};
use super::touched::{Touched, WordBytes};
use crate::arch::{Bits, Kernels, Lane, Range, WORDS, lookup, ranges};
use crate::predicate::{Node, NodeId, Outcome, Set, Share};

/// A block of a bound segment.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) table: &'a Table,
    pub(crate) segment: usize,
    pub(crate) states: &'a [State<'a>],
    /// The index of the block in the segment.
    pub(crate) block: usize,
    /// A number that is different for each block.
    pub(crate) stamp: u64,
}

impl Place<'_> {
    /// The block's first row in the segment.
    pub(crate) fn first(&self) -> usize {
        self.block * BLOCK_ROWS
    }

    /// The number of rows of the block.
    pub(crate) fn rows(&self) -> usize {
        BLOCK_ROWS.min(self.table.segment_rows(self.segment) - self.first())
    }
}

/// The state of a worker between tests.
pub(crate) struct Blocks<'p> {
    plan: &'p Plan,
    kernels: &'static Kernels,
    caches: Vec<Cache>,
    rows: Vec<RowCache>,
    products: Products,
    pub(crate) touched: Touched,
}

/// The rows that a node selects, for a node that is used more than once; only the requested words are known.
struct Cache {
    stamp: u64,
    /// A mask of the words that are known.
    have: u64,
    /// `None` while it is being evaluated.
    bits: Option<Box<Bits>>,
}

impl<'p> Blocks<'p> {
    pub(crate) fn new(plan: &'p Plan, table: &Table, kernels: &'static Kernels) -> Self {
        let cache = || Cache { stamp: u64::MAX, have: 0, bits: None };
        Blocks {
            plan,
            kernels,
            caches: std::iter::repeat_with(cache).take(plan.slots).collect(),
            rows: plan.graph.rows.iter().map(|_| RowCache::new()).collect(),
            products: Products::new(),
            touched: Touched::new(table.columns().len()),
        }
    }

    /// Narrows `rows` to those that `node` selects. `words` is a mask of the words of `rows` that are not 0;
    /// returns the mask of those that are not 0 afterwards.
    pub(crate) fn narrow(
        &mut self,
        node: NodeId,
        place: Place<'_>,
        rows: &mut Bits,
        words: u64,
    ) -> u64 {
        if words == 0 {
            return 0;
        }
        let state = &place.states[node];
        if state.never >> place.block & 1 == 1 {
            *rows = Bits::NONE;
            return 0;
        }
        if state.always >> place.block & 1 == 1 {
            return words;
        }
        match self.plan.nodes[node].slot {
            Some(slot) => self.cached(node, slot, place, rows, words),
            None => self.evaluate(node, place, rows, words),
        }
    }

    /// Keeps the rows whose value in `column` is in `set`, which is not a node.
    pub(crate) fn narrow_set(
        &mut self,
        column: usize,
        set: &Set,
        place: Place<'_>,
        rows: &mut Bits,
        words: u64,
    ) -> u64 {
        let segment = &place.table.columns()[column].segments()[place.segment];
        match bind::share(set, segment.blocks()[place.block]) {
            Share::None => {
                *rows = Bits::NONE;
                0
            }
            Share::All => words,
            Share::Some => {
                let here = bind::test(segment, set, None, segment.zone());
                self.touched.add(column, place.stamp, words, WordBytes::of_test(&here));
                test(self.kernels, &here, place, rows, words)
            }
        }
    }

    fn cached(
        &mut self,
        node: NodeId,
        slot: usize,
        place: Place<'_>,
        rows: &mut Bits,
        words: u64,
    ) -> u64 {
        let cache = &mut self.caches[slot];
        if cache.stamp != place.stamp {
            (cache.stamp, cache.have) = (place.stamp, 0);
        }
        let needed = words & !cache.have;
        if needed != 0 {
            let nothing_known = cache.have == 0;
            cache.have |= needed;
            let mut bits = cache.bits.take().unwrap_or_else(|| Box::new(Bits::NONE));
            if nothing_known {
                // Evaluate in place, because a copy costs as much as a test.
                bits.set_words(needed, place.rows());
                self.evaluate(node, place, &mut bits, needed);
            } else {
                let mut found = Bits::NONE;
                found.set_words(needed, place.rows());
                self.evaluate(node, place, &mut found, needed);
                each(needed, |at| bits.0[at] = found.0[at]);
            }
            self.caches[slot].bits = Some(bits);
        }
        match &self.caches[slot].bits {
            Some(bits) => self.kernels.bits.all(rows, bits),
            None => words,
        }
    }

    fn evaluate(&mut self, node: NodeId, place: Place<'_>, rows: &mut Bits, words: u64) -> u64 {
        let plan = self.plan;
        match &plan.graph.nodes[node] {
            Node::All => words,
            Node::None => {
                *rows = Bits::NONE;
                0
            }
            Node::And(_) => {
                let mut left = words;
                for &operand in &plan.nodes[node].operands {
                    left = self.narrow(operand, place, rows, left);
                    if left == 0 {
                        break;
                    }
                }
                left
            }
            Node::Or(_) => {
                // The undecided rows, and the selected ones.
                let (mut open, mut open_words) = (rows.clone(), words);
                let mut found = Bits::NONE;
                for &operand in &plan.nodes[node].operands {
                    let mut now = open.clone();
                    if self.narrow(operand, place, &mut now, open_words) == 0 {
                        continue;
                    }
                    self.kernels.bits.any(&mut found, &now);
                    open_words = self.kernels.bits.without(&mut open, &now);
                    if open_words == 0 {
                        break;
                    }
                }
                *rows = found;
                self.kernels.bits.words(rows)
            }
            Node::Not(operand) => {
                let mut out = rows.clone();
                if self.narrow(*operand, place, &mut out, words) == 0 {
                    return words;
                }
                self.kernels.bits.without(rows, &out)
            }
            Node::Set { column, .. } | Node::Among { column, .. } => {
                let here = &place.states[node].test;
                self.touched.add(*column, place.stamp, words, WordBytes::of_test(here));
                test(self.kernels, here, place, rows, words)
            }
            Node::Calculated(at) => {
                let calculation = &plan.graph.calculations[*at];
                for &column in &calculation.columns {
                    let segment = &place.table.columns()[column].segments()[place.segment];
                    let bytes = WordBytes::of_column(segment);
                    self.touched.add(column, place.stamp, words, bytes);
                }
                let products = &mut self.products;
                calculate::narrow(self.kernels, calculation, place, products, (rows, words))
            }
            Node::Mixed { column, test, outcome, .. } => match &place.states[node].test {
                Test::Rows => self.row_by_row(*test, *outcome, place, rows),
                here => {
                    self.touched.add(*column, place.stamp, words, WordBytes::of_test(here));
                    self::test(self.kernels, here, place, rows, words)
                }
            },
            Node::Row { test, outcome } => self.row_by_row(*test, *outcome, place, rows),
        }
    }

    fn row_by_row(
        &mut self,
        test: usize,
        outcome: Outcome,
        place: Place<'_>,
        rows: &mut Bits,
    ) -> u64 {
        let plan = self.plan;
        let tests = RowTests { test: &plan.graph.rows[test], place };
        self.rows[test].narrow(&tests, outcome, rows)
    }
}

/// Calls `visit` with the index of each bit that is set in `words`.
#[inline(always)]
pub(crate) fn each(mut words: u64, mut visit: impl FnMut(usize)) {
    while words != 0 {
        visit(words.trailing_zeros() as usize);
        words &= words - 1;
    }
}

fn test(kernels: &Kernels, test: &Test<'_>, place: Place<'_>, rows: &mut Bits, words: u64) -> u64 {
    match test {
        // Tests row by row are evaluated elsewhere.
        Test::None | Test::Rows => words,
        Test::Null { valid, nulls } => narrow_valid(kernels, valid, *nulls, place, rows),
        Test::Values { values, valid, nulls: false } => {
            let words = narrow_values(kernels, values, place, rows, words);
            if valid.is_empty() || words == 0 {
                return words;
            }
            narrow_valid(kernels, valid, false, place, rows)
        }
        Test::Values { values, valid, nulls: true } => {
            if valid.is_empty() {
                return narrow_values(kernels, values, place, rows, words);
            }
            let mut nulls = rows.clone();
            narrow_values(kernels, values, place, rows, words);
            narrow_valid(kernels, valid, true, place, &mut nulls);
            kernels.bits.any(rows, &nulls)
        }
    }
}

/// Keeps the rows whose bit is set, or with `flip` those whose bit is not set.
fn narrow_valid(
    kernels: &Kernels,
    valid: &[u64],
    flip: bool,
    place: Place<'_>,
    rows: &mut Bits,
) -> u64 {
    let valid = &valid[place.block * WORDS..];
    let flip = if flip { !0 } else { 0 };
    kernels.bits.mask(rows, &valid[..valid.len().min(WORDS)], flip)
}

fn narrow_values(
    kernels: &Kernels,
    values: &Values<'_>,
    place: Place<'_>,
    rows: &mut Bits,
    words: u64,
) -> u64 {
    match values {
        Values::Bits(bits, set) => narrow_valid(kernels, bits, !set, place, rows),
        Values::U8(lanes, wanted) => narrow_lanes(kernels, lanes, wanted, place, rows, words),
        Values::U16(lanes, wanted) => narrow_lanes(kernels, lanes, wanted, place, rows, words),
        Values::U32(lanes, wanted) => narrow_lanes(kernels, lanes, wanted, place, rows, words),
        Values::U64(lanes, wanted) => narrow_lanes(kernels, lanes, wanted, place, rows, words),
        Values::Wide(numbers, wanted) => {
            let numbers = of_block(numbers, place);
            each(words, |at| {
                let mut found = 0;
                each(rows.0[at], |row| {
                    let number = numbers[at * 64 + row];
                    let range = wanted.partition_point(|range| range.1 < number);
                    found |= u64::from(wanted.get(range).is_some_and(|it| it.0 <= number)) << row;
                });
                rows.0[at] = found;
            });
            kernels.bits.words(rows)
        }
        Values::Runs(ends, wanted) => kernels.bits.all(rows, &runs(ends, wanted, place)),
        Values::Floats(floats, wanted) => {
            ranges::narrow_floats(kernels, of_block(floats, place), wanted, words, rows)
        }
    }
}

/// Returns a block's part of the lanes of a segment.
pub(crate) fn of_block<'a, T>(lanes: &'a [T], place: Place<'_>) -> &'a [T] {
    let lanes = &lanes[place.first()..];
    &lanes[..lanes.len().min(BLOCK_ROWS)]
}

fn narrow_lanes<T: Lane>(
    kernels: &Kernels,
    lanes: &[T],
    wanted: &Wanted<'_>,
    place: Place<'_>,
    rows: &mut Bits,
    words: u64,
) -> u64 {
    let lanes = of_block(lanes, place);
    let cut = |range: &Range<u64>| Range { low: T::cut(range.low), high: T::cut(range.high) };
    match wanted {
        Wanted::One(range, outside) => {
            ranges::narrow(kernels, lanes, (&[cut(range)], *outside), words, rows)
        }
        Wanted::Several(all, outside) => {
            let mut cuts = [Range { low: T::cut(0), high: T::cut(0) }; bind::RANGES_MAX];
            for (into, range) in cuts.iter_mut().zip(all) {
                *into = cut(range);
            }
            ranges::narrow(kernels, lanes, (&cuts[..all.len()], *outside), words, rows)
        }
        Wanted::Table(table, base) => lookup::narrow(kernels, (lanes, *base), table, words, rows),
        Wanted::Search(all) => {
            each(words, |at| {
                let mut found = 0;
                each(rows.0[at], |row| {
                    let lane: u64 = lanes[at * 64 + row].into();
                    let range = all.partition_point(|range| range.high < lane);
                    found |= u64::from(all.get(range).is_some_and(|r| r.low <= lane)) << row;
                });
                rows.0[at] = found;
            });
            kernels.bits.words(rows)
        }
    }
}

/// Returns the rows of the block whose run is selected. If `ends` is empty, there is one run.
fn runs(ends: &[u32], wanted: &[bool], place: Place<'_>) -> Bits {
    let (first, after) = (place.first(), place.first() + place.rows());
    let mut found = Bits::NONE;
    let mut run = ends.partition_point(|&end| end as usize <= first);
    let mut at = first;
    while at < after {
        let end = ends.get(run).map_or(after, |&end| after.min(end as usize));
        if wanted[run] {
            let (from, to) = (Bits::first(at - first), Bits::first(end - first));
            for ((found, from), to) in found.0.iter_mut().zip(from.0).zip(to.0) {
                *found |= to & !from;
            }
        }
        (at, run) = (end, run + 1);
    }
    found
}
