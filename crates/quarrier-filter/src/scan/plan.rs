//! Plans the order in which to test operands, and the results to cache.

use std::sync::Arc;

use quarrier_core::isa::Isa;
use quarrier_messages::Table;
use quarrier_messages::column::raw::BLOCK_ROWS;

use super::bind::{self, Test, Values, Wanted};
use super::block::{Blocks, Place};
use super::members;
use crate::Keys;
use crate::arch::{Bits, kernels};
use crate::predicate::{Graph, Node, NodeId};

/// Number of sample blocks on which to try every test.
const SAMPLE_BLOCKS: usize = 3;
/// Number of words of such a block on which to try tests that run row by row.
const SAMPLE_ROW_WORDS: u64 = 1;

/// A graph, and how to evaluate it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) graph: Graph,
    /// A plan for each node.
    pub(crate) nodes: Vec<PlanNode>,
    /// Number of nodes whose rows are cached.
    pub(crate) slots: usize,
    /// The bitmaps of sets with many ranges.
    pub(crate) members: Vec<Option<Arc<Keys>>>,
    pub(crate) isa: Isa,
}

/// How to evaluate a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanNode {
    /// The operands of And and Or, in the order in which to test them.
    pub(crate) operands: Box<[NodeId]>,
    /// The index of the cache for its rows, if it has one.
    pub(crate) slot: Option<usize>,
    /// The measured share of rows in it.
    pub(crate) share: f64,
    /// Cycles for a word of 64 rows.
    pub(crate) cost: f64,
    /// Whether the cost is per remaining row rather than per word.
    pub(crate) by_row: bool,
}

impl Plan {
    /// Tries every test on a few blocks of `table` and orders operands by the results.
    pub(crate) fn new(graph: Graph, table: &Table, isa: Isa) -> Plan {
        let members = graph.nodes.iter().map(|node| members::of(node, table)).collect();
        let mut nodes = vec![PlanNode::default(); graph.nodes.len()];
        let mut slots = 0;
        for (id, node) in nodes.iter_mut().enumerate() {
            let constant = matches!(graph.nodes[id], Node::None | Node::All | Node::Row { .. });
            if graph.uses[id] > 1 && !constant {
                node.slot = Some(slots);
                slots += 1;
            }
            if let Node::And(operands) | Node::Or(operands) = &graph.nodes[id] {
                node.operands = operands.clone();
            }
        }
        let mut plan = Plan { graph, nodes, slots, members, isa };
        let shares = plan.sample(table);
        plan.order(&shares);
        plan
    }

    /// Returns the column that is tested first, to group queries that begin with the same one.
    pub(crate) fn first_column(&self, node: NodeId) -> usize {
        match &self.graph.nodes[node] {
            Node::Set { column, .. } | Node::Among { column, .. } | Node::Mixed { column, .. } => {
                *column
            }
            Node::Calculated(at) => {
                self.graph.calculations[*at].columns.first().copied().unwrap_or(usize::MAX)
            }
            Node::And(_) | Node::Or(_) => self.nodes[node]
                .operands
                .first()
                .map_or(usize::MAX, |&first| self.first_column(first)),
            Node::Not(operand) => self.first_column(*operand),
            Node::None | Node::All | Node::Row { .. } => usize::MAX,
        }
    }

    /// Returns each test's share of rows in a sample.
    fn sample(&mut self, table: &Table) -> Vec<f64> {
        let mut found = vec![(0_u64, 0_u64); self.graph.nodes.len()];
        let mut states = Vec::new();
        let mut costs = vec![(0.0, false); found.len()];
        let kernels = kernels(self.isa);
        for sample in 0..SAMPLE_BLOCKS.min(table.segments()) {
            let segment =
                (2 * sample + 1) * table.segments() / (2 * SAMPLE_BLOCKS.min(table.segments()));
            bind::bind((table, segment), &self.graph, &self.members, &mut states);
            let blocks = table.segment_rows(segment).div_ceil(BLOCK_ROWS);
            let block = (sample * 7 + 3) % blocks;
            let mut scratch = Blocks::new(self, table, kernels);
            let stamp = sample as u64;
            let place = Place { table, segment, states: &states, block, stamp };
            for (id, node) in self.graph.nodes.iter().enumerate() {
                let mut rows = Bits::first(place.rows());
                let mut words = rows.words();
                match node {
                    Node::And(_) | Node::Or(_) | Node::Not(_) => continue,
                    Node::Row { .. } | Node::Mixed { .. } => {
                        words &= SAMPLE_ROW_WORDS;
                        rows.0[1..].fill(0);
                    }
                    _ => {}
                }
                found[id].1 += rows.rows().count() as u64;
                scratch.narrow(id, place, &mut rows, words);
                found[id].0 += u64::from(kernels.bits.count(&rows));
                costs[id] = cost(node, &states[id].test, costs[id]);
            }
        }
        for (node, (cost, by_row)) in self.nodes.iter_mut().zip(costs) {
            (node.cost, node.by_row) = (cost, by_row);
        }
        found.iter().map(|&(rows, of)| rows as f64 / (of as f64).max(1.0)).collect()
    }

    /// Orders the operands of all nodes, from the lowest, as if tests were statistically
    /// independent.
    fn order(&mut self, shares: &[f64]) {
        for (id, &measured) in shares.iter().enumerate() {
            let (share, cost) = match &self.graph.nodes[id] {
                Node::None => (0.0, 0.0),
                Node::All => (1.0, 0.0),
                Node::And(_) => self.order_operands(id, |share| share),
                Node::Or(_) => {
                    let (none, cost) = self.order_operands(id, |share| 1.0 - share);
                    (1.0 - none, cost)
                }
                Node::Not(operand) => (1.0 - self.nodes[*operand].share, self.nodes[*operand].cost),
                _ => (measured, self.nodes[id].cost),
            };
            self.nodes[id].share = share;
            self.nodes[id].cost = cost;
        }
    }

    /// Takes one operand after the other, each time the one that makes the remaining cost least.
    /// `left` returns the share of rows that an operand leaves to the others. Returns the share
    /// left by all, and the cost.
    fn order_operands(&mut self, id: NodeId, left: impl Fn(f64) -> f64) -> (f64, f64) {
        let mut open = std::mem::take(&mut self.nodes[id].operands).into_vec();
        let mut ordered = Vec::with_capacity(open.len());
        let (mut rows, mut total) = (1.0, 0.0);
        // Order many operands by one number each, since the loop below takes quadratic time.
        if open.len() > 64 {
            let rank = |&id: &NodeId| {
                let node = &self.nodes[id];
                self.own_cost(id, 1.0) / (1.0 - left(node.share)).max(1e-9)
            };
            open.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
            for &operand in &open {
                total += self.own_cost(operand, rows);
                rows *= left(self.nodes[operand].share);
            }
            self.nodes[id].operands = open.into();
            return (rows, total);
        }
        while !open.is_empty() {
            let cost_first = |at: usize| {
                let rows_after = rows * left(self.nodes[open[at]].share);
                let others = open.iter().enumerate().filter(|&(other, _)| other != at);
                let rest: f64 = others.map(|(_, &other)| self.own_cost(other, rows_after)).sum();
                self.own_cost(open[at], rows) + rest
            };
            let costs: Vec<f64> = (0..open.len()).map(cost_first).collect();
            let best = (0..open.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0);
            let operand = open.remove(best);
            total += self.own_cost(operand, rows);
            rows *= left(self.nodes[operand].share);
            ordered.push(operand);
        }
        self.nodes[id].operands = ordered.into();
        (rows, total)
    }

    /// Returns the cost of a node per word if `rows` is the share of rows left; its users share the
    /// cost.
    fn own_cost(&self, id: NodeId, rows: f64) -> f64 {
        let node = &self.nodes[id];
        let words = 1.0 - (1.0 - rows).powi(64);
        let share = if node.by_row { rows.min(words) } else { words };
        node.cost * share / f64::from(self.graph.uses[id].max(1))
    }
}

/// Returns the cost of a test, in cycles per word of 64 rows, measured on Zen 4; and whether it
/// works row by row.
fn cost(node: &Node, test: &Test<'_>, before: (f64, bool)) -> (f64, bool) {
    let now = match (node, test) {
        (Node::Row { .. }, _) | (_, Test::Rows) => (64.0 * 400.0, true),
        (Node::Calculated(_), _) => (120.0, false),
        (_, Test::None) => (0.0, false),
        (_, Test::Null { .. }) => (1.0, false),
        (_, Test::Values { values, .. }) => match values {
            Values::Bits(..) => (1.0, false),
            Values::Runs(..) => (2.0, false),
            Values::Floats(_, ranges) => (25.0 * ranges.len() as f64, false),
            Values::Wide(_, ranges) => (64.0 * 5.0 * (1.0 + ranges.len() as f64).log2(), true),
            Values::U8(_, wanted) => wanted_cost(wanted, 2.5),
            Values::U16(_, wanted) => wanted_cost(wanted, 4.0),
            Values::U32(_, wanted) => wanted_cost(wanted, 9.0),
            Values::U64(_, wanted) => wanted_cost(wanted, 25.0),
        },
    };
    if now.0 > before.0 { now } else { before }
}

fn wanted_cost(wanted: &Wanted<'_>, range: f64) -> (f64, bool) {
    match wanted {
        Wanted::One(..) => (range, false),
        Wanted::Several(ranges, _) => (range * ranges.len() as f64, false),
        Wanted::Table(..) => (90.0, true),
        Wanted::Search(ranges) => (64.0 * 5.0 * (ranges.len() as f64).log2(), true),
    }
}
