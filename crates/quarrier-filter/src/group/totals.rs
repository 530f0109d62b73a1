//! The totals of each group, in arrays indexed by slot.

use quarrier_messages::Table;

use super::chunk::{Chunk, is_valid};
use super::{CHUNK_ROWS, GroupPlan, Measure};

/// Up to this number of groups, adjacent rows are mostly in the same one: four copies of each total
/// take turns, so that no row waits for the one before it. (With one copy: 1.9 times as long for
/// four sums of two groups.)
const SPREAD_SLOTS_MAX: usize = 256;
const SPREAD: usize = 4;

/// A measure of all groups, in their order; `None` is NULL.
#[derive(Debug, Clone, PartialEq)]
pub enum Total {
    /// Counts, and integers.
    Whole(Vec<Option<i128>>),
    /// Floats.
    Float(Vec<Option<f64>>),
}

/// The totals so far.
#[derive(Debug)]
pub(super) struct Totals {
    /// Slots of one copy.
    slots: usize,
    spread: usize,
    /// The number of rows of each slot.
    rows: Vec<u64>,
    measures: Vec<MeasureTotals>,
}

/// The totals of one measure, for all groups.
#[derive(Debug)]
struct MeasureTotals {
    /// The number of values that are not NULL, for each group; empty if that is the number of rows.
    counts: Vec<u64>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Only the counts.
    Counted,
    Sum(Sum),
    Least(Vec<i64>),
    Greatest(Vec<i64>),
    FloatSum(Vec<f64>),
    FloatLeast(Vec<f64>),
    FloatGreatest(Vec<f64>),
}

/// Sums of 64 bits, and 128-bit sums to which they are moved before they could overflow.
#[derive(Debug)]
struct Sum {
    near: Vec<i64>,
    /// For each slot, the sum moved so far; empty before the first move.
    far: Vec<i128>,
    slots: usize,
    /// Number of rows that `near` can still add, whatever their values.
    room: u64,
    left: u64,
}

impl Sum {
    fn flush(&mut self) {
        self.far.resize(self.slots, 0);
        for (at, near) in self.near.iter_mut().enumerate() {
            self.far[at % self.slots] += i128::from(std::mem::take(near));
        }
        self.left = self.room;
    }
}

/// Returns the number of copies for a plan, and the length of their arrays.
fn spread(plan: &GroupPlan) -> (usize, usize) {
    let spread = if plan.slots <= SPREAD_SLOTS_MAX { SPREAD } else { 1 };
    (spread, plan.slots * spread)
}

/// Returns the maximum number of bytes of the totals: for each measure an array, its counts, and
/// its moved sums.
pub(super) fn nbytes(plan: &GroupPlan) -> usize {
    let (_, size) = spread(plan);
    let measures = plan.grouping.measures.len();
    size_of::<u64>() * size * (1 + 2 * measures) + size_of::<i128>() * plan.slots * measures
}

impl Totals {
    pub(super) fn new(plan: &GroupPlan) -> Self {
        let (spread, size) = spread(plan);
        let known = |&measure: &Measure| {
            let reach = measure.number().map(|number| &plan.reaches[number]);
            let has_null = reach.is_some_and(|reach| !reach.with_null.is_empty());
            let counts = if has_null { vec![0; size] } else { Vec::new() };
            let most = reach.and_then(|reach| reach.most());
            let state = match (measure, most) {
                (Measure::Rows | Measure::Count(_), _) => State::Counted,
                (Measure::Sum(_), Some(most)) => {
                    let room = i64::MAX as u64 / most.max(1);
                    let (near, far) = (vec![0; size], Vec::new());
                    State::Sum(Sum { near, far, slots: plan.slots, room, left: room })
                }
                (Measure::Least(_), Some(_)) => State::Least(vec![i64::MAX; size]),
                (Measure::Greatest(_), Some(_)) => State::Greatest(vec![i64::MIN; size]),
                (Measure::Sum(_), None) => State::FloatSum(vec![0.0; size]),
                (Measure::Least(_), None) => State::FloatLeast(vec![f64::INFINITY; size]),
                (Measure::Greatest(_), None) => State::FloatGreatest(vec![f64::NEG_INFINITY; size]),
            };
            MeasureTotals { counts, state }
        };
        let measures = plan.grouping.measures.iter().map(known).collect();
        Totals { slots: plan.slots, spread, rows: vec![0; size], measures }
    }

    /// Adds the rows of a chunk, all of one segment.
    pub(super) fn add(&mut self, table: &Table, plan: &GroupPlan, segment: usize, chunk: &Chunk) {
        let mut spread = Vec::new();
        let slots: &[u32] = if self.spread > 1 {
            let slots = self.slots as u32;
            spread.extend_from_slice(&chunk.slots);
            for four in spread.chunks_mut(SPREAD) {
                four.iter_mut().zip(0..).for_each(|(slot, turn)| *slot += turn * slots);
            }
            &spread
        } else {
            &chunk.slots
        };
        for &slot in slots {
            self.rows[slot as usize] += 1;
        }
        for (measure, known) in plan.grouping.measures.iter().zip(&mut self.measures) {
            let Some(number) = measure.number() else { continue };
            let with_null = plan.reaches[number].with_null.iter();
            let with_null = with_null.map(|&column| &*table.columns()[column].segments()[segment]);
            let with_null: Vec<_> = with_null.filter(|segment| segment.zone().nulls > 0).collect();
            let rows = SlottedRows { slots, places: &chunk.places };
            let numbers = (&chunk.wholes[number][..], &chunk.floats[number][..]);
            if with_null.is_empty() {
                known.add(rows, numbers);
                continue;
            }
            let is_there = |&at: &usize| {
                with_null.iter().all(|segment| is_valid(segment, chunk.rows[at] as usize))
            };
            let there: Vec<usize> = (0..slots.len()).filter(is_there).collect();
            let slots: Vec<u32> = there.iter().map(|&at| slots[at]).collect();
            let places: Vec<u32> = there
                .iter()
                .map(|&at| chunk.places.get(at).copied().unwrap_or(at as u32))
                .collect();
            known.add(SlottedRows { slots: &slots, places: &places }, numbers);
        }
    }

    /// Returns the slots of groups that have rows; without keys, the only one.
    pub(super) fn taken(&self, plan: &GroupPlan) -> Vec<usize> {
        let rows =
            |slot: usize| (0..self.spread).map(move |turn| self.rows[turn * self.slots + slot]);
        let is_taken = |&slot: &usize| plan.domains.is_empty() || rows(slot).sum::<u64>() > 0;
        (0..self.slots).filter(is_taken).collect()
    }

    /// Returns the measures of these slots.
    pub(super) fn finish(mut self, plan: &GroupPlan, slots: &[usize]) -> Vec<Total> {
        let size = self.slots;
        let turns = |slot: usize| (0..self.spread).map(move |turn| turn * size + slot);
        let rows = &self.rows;
        let measures = plan.grouping.measures.iter().zip(&mut self.measures);
        measures
            .map(|(_, known)| {
                let counts = if known.counts.is_empty() { rows } else { &known.counts };
                let count = |slot: usize| turns(slot).map(|at| counts[at]).sum::<u64>();
                let whole = |value: &dyn Fn(usize) -> i128| {
                    let total = |&slot: &usize| (count(slot) > 0).then(|| value(slot));
                    Total::Whole(slots.iter().map(total).collect())
                };
                let float = |values: &[f64], start: f64, step: fn(f64, f64) -> f64| {
                    let value = |slot| turns(slot).map(|at| values[at]).fold(start, step);
                    let total = |&slot: &usize| (count(slot) > 0).then(|| value(slot));
                    Total::Float(slots.iter().map(total).collect())
                };
                match &mut known.state {
                    State::Counted => {
                        let counts = slots.iter().map(|&slot| Some(count(slot).into()));
                        Total::Whole(counts.collect())
                    }
                    State::Sum(sum) => {
                        sum.flush();
                        whole(&|slot| sum.far[slot])
                    }
                    State::Least(values) => {
                        let least =
                            |slot| turns(slot).map(|at| values[at]).fold(i64::MAX, i64::min);
                        whole(&|slot| least(slot).into())
                    }
                    State::Greatest(values) => {
                        let most = |slot| turns(slot).map(|at| values[at]).fold(i64::MIN, i64::max);
                        whole(&|slot| most(slot).into())
                    }
                    State::FloatSum(values) => float(values, 0.0, |a, b| a + b),
                    State::FloatLeast(values) => float(values, f64::INFINITY, f64::min),
                    State::FloatGreatest(values) => float(values, f64::NEG_INFINITY, f64::max),
                }
            })
            .collect()
    }
}

/// Rows with their slots, and the indexes of their numbers.
#[derive(Clone, Copy)]
struct SlottedRows<'c> {
    slots: &'c [u32],
    /// Empty if the numbers have the same indexes as the slots.
    places: &'c [u32],
}

impl SlottedRows<'_> {
    fn each<T: Copy>(self, numbers: &[T], mut each: impl FnMut(usize, T)) {
        if self.places.is_empty() {
            for (&slot, &number) in self.slots.iter().zip(numbers) {
                each(slot as usize, number);
            }
        } else {
            for (&slot, &place) in self.slots.iter().zip(self.places) {
                each(slot as usize, numbers[place as usize]);
            }
        }
    }
}

impl MeasureTotals {
    fn add(&mut self, rows: SlottedRows<'_>, (wholes, floats): (&[i64], &[f64])) {
        if !self.counts.is_empty() {
            rows.slots.iter().for_each(|&slot| self.counts[slot as usize] += 1);
        }
        match &mut self.state {
            State::Counted => {}
            State::Sum(sum) if sum.room < CHUNK_ROWS as u64 => {
                sum.far.resize(sum.slots, 0);
                let (far, slots) = (&mut sum.far, sum.slots);
                rows.each(wholes, |slot, number| far[slot % slots] += i128::from(number));
            }
            State::Sum(sum) => {
                if sum.left < rows.slots.len() as u64 {
                    sum.flush();
                }
                sum.left -= rows.slots.len() as u64;
                rows.each(wholes, |slot, number| sum.near[slot] += number);
            }
            State::Least(least) => {
                rows.each(wholes, |slot, number| least[slot] = least[slot].min(number));
            }
            State::Greatest(most) => {
                rows.each(wholes, |slot, number| most[slot] = most[slot].max(number));
            }
            State::FloatSum(sums) => rows.each(floats, |slot, number| sums[slot] += number),
            State::FloatLeast(least) => {
                rows.each(floats, |slot, number| least[slot] = least[slot].min(number));
            }
            State::FloatGreatest(most) => {
                rows.each(floats, |slot, number| most[slot] = most[slot].max(number));
            }
        }
    }
}
