//! One worker: takes segments, tests their blocks, collects the results.

use quarrier_messages::Table;
use quarrier_messages::column::raw::BLOCK_ROWS;

use super::bind::{self, State};
use super::block::{Blocks, Place};
use super::explain::Work;
use super::gather::{Goal, Shared, WorkerResult};
use super::plan::Plan;
use super::rank;
use super::row::SegmentRow;
use crate::arch::{Bits, Kernels, kernels};
use crate::predicate::{Graph, NodeId};
use crate::{Expr, Fault, naive};

/// The part of a query that workers need.
#[derive(Debug)]
pub(crate) struct ScanQuery<'q> {
    /// The node of the rows where the condition is true.
    pub(crate) truth: NodeId,
    /// The node of the rows where the condition has no value.
    pub(crate) fault: NodeId,
    pub(crate) condition: Option<&'q Expr>,
    pub(crate) shared: &'q Shared,
}

pub(crate) struct Worker<'p> {
    table: &'p Table,
    plan: &'p Plan,
    kernels: &'static Kernels,
    blocks: Blocks<'p>,
    states: Vec<State<'p>>,
    /// A number that is different for each block.
    stamp: u64,
}

impl<'p> Worker<'p> {
    pub(crate) fn new(table: &'p Table, plan: &'p Plan) -> Self {
        let kernels = kernels(plan.isa);
        let blocks = Blocks::new(plan, table, kernels);
        Worker { table, plan, kernels, blocks, states: Vec::new(), stamp: 0 }
    }

    /// Evaluates `asked` for one segment; `found` has a result for each.
    pub(crate) fn segment(
        &mut self,
        segment: usize,
        asked: &[ScanQuery<'_>],
        found: &mut [WorkerResult],
    ) {
        let (table, plan) = (self.table, self.plan);
        let mut states = std::mem::take(&mut self.states);
        bind::bind((table, segment), &plan.graph, &plan.members, &mut states);
        let blocks = table.segment_rows(segment).div_ceil(BLOCK_ROWS);
        // The end of a table usually has the greatest values, so begin there for a descending
        // order; the rows found are kept in the order of the table.
        let leading = asked.iter().find_map(|asked| asked.shared.goal.leading());
        let in_order = asked.iter().any(|asked| matches!(asked.shared.goal, Goal::Rows { .. }));
        let backwards = leading.is_some_and(|order| order.descending) && !in_order;
        // Prefetching the next block's columns did not help when tried once, on a loaded machine:
        // equal medians.
        for nth in 0..blocks {
            let block = if backwards { blocks - 1 - nth } else { nth };
            self.stamp += 1;
            let place = Place { table, segment, states: &states, block, stamp: self.stamp };
            let start = table.segment_start(segment) + place.first() as u64;
            for (asked, found) in asked.iter().zip(&mut *found) {
                if asked.shared.wants(segment, start) {
                    self.block(asked, place, found);
                } else {
                    found.blocks_skipped += 1;
                }
            }
        }
        for (asked, found) in asked.iter().zip(&*found) {
            asked.shared.finished(segment, found.rows_of(segment));
        }
        self.states = states;
    }

    /// Returns the work done; the results count the blocks.
    pub(crate) fn work(&self) -> Work {
        let touched = &self.blocks.touched;
        Work { bytes_compared: touched.compared, bytes_touched: touched.once, ..Work::default() }
    }

    fn block(&mut self, asked: &ScanQuery<'_>, place: Place<'_>, found: &mut WorkerResult) {
        let decided = |states: u16| states >> place.block & 1 == 1;
        let (truth, fault) = (&place.states[asked.truth], &place.states[asked.fault]);
        let rows = place.rows();
        if asked.fault != Graph::NONE && !decided(fault.never) {
            self.faults(asked, place);
        }
        if decided(truth.never) {
            found.blocks_skipped += 1;
            return;
        }
        let counts = asked.shared.goal == Goal::Count;
        if counts && decided(truth.always) {
            found.blocks_skipped += 1;
            found.count += rows as u64;
            return;
        }
        let mut left = Bits::first(rows);
        let mut words = Bits::first_words(rows);
        if asked.shared.goal.leading().is_some() {
            words = self.narrow_order(asked, place, &mut left, words);
            if words == 0 {
                found.blocks_skipped += 1;
                return;
            }
        }
        found.blocks_tested += 1;
        words = self.blocks.narrow(asked.truth, place, &mut left, words);
        if words == 0 {
            return;
        }
        if counts {
            found.count += u64::from(self.kernels.bits.count(&left));
        } else {
            let rows = left.rows().map(|row| place.first() + row);
            found.take(asked.shared, (self.table, place.segment), rows);
        }
    }

    /// Keeps the rows that may be among the first of an order.
    fn narrow_order(
        &mut self,
        asked: &ScanQuery<'_>,
        place: Place<'_>,
        rows: &mut Bits,
        words: u64,
    ) -> u64 {
        let (Some(order), Some(key)) = (asked.shared.goal.leading(), asked.shared.threshold())
        else {
            return words;
        };
        let set = rank::good_enough(place.table, order, place.segment, key);
        self.blocks.narrow_set(order.column, &set, place, rows, words)
    }

    /// Searches for rows without a value.
    fn faults(&mut self, asked: &ScanQuery<'_>, place: Place<'_>) {
        let mut rows = Bits::first(place.rows());
        let words = rows.words();
        if self.blocks.narrow(asked.fault, place, &mut rows, words) == 0 {
            return;
        }
        let Some(first) = rows.rows().next() else { return };
        let row = place.first() + first;
        let fault =
            asked.condition.map(|condition| naive::truth(condition, &SegmentRow { place, row }));
        // The oracle must find the fault that the graph found.
        let fault = match fault {
            Some(Err(fault)) => fault,
            _ => Fault::Kinds { what: "a condition" },
        };
        asked.shared.fail(self.table.segment_start(place.segment) + row as u64, fault);
    }
}
