//! Descriptions of a scan: its plan, and the work it did.

use std::fmt;

use quarrier_core::isa::Isa;
use quarrier_messages::Table;

use super::plan::Plan;
use crate::predicate::{Graph, Node, NodeId, wording};

/// How a scan answers its queries; shown as text for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The instruction set of the loops.
    pub isa: Isa,
    /// The number of threads.
    pub workers: usize,
    /// The number of rows of the table.
    pub rows: u64,
    /// The number of blocks of the table, of up to 4,096 rows.
    pub blocks: u64,
    /// The number of different tests in all queries.
    pub tests: usize,
    /// How many of these and of their combinations are cached for repeated use.
    pub kept: usize,
    /// A plan for each query.
    pub queries: Vec<QueryPlan>,
    /// The work done; `None` before the scan has run.
    pub work: Option<Work>,
}

/// How one query is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPlan {
    /// The steps in order of evaluation; operands follow the node they belong to. Each step
    /// examines only the rows that the steps before it have left.
    pub steps: Vec<PlanStep>,
    /// The steps that find the rows where the condition has no value; empty if it always has one.
    pub faults: Vec<PlanStep>,
    /// The number of blocks tested; `None` before the scan has run.
    pub blocks_tested: Option<u64>,
    /// The number of blocks that zone maps, an order or a limit decided; `None` before the scan has
    /// run.
    pub blocks_skipped: Option<u64>,
}

/// A test, or an AND, OR or NOT of the deeper steps that follow it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanStep {
    /// The depth; a step is an operand of the last step before it with a lesser depth.
    pub depth: usize,
    /// `AND`, `OR`, `NOT`, or the test as SQL would write it, as far as it fits a line.
    pub text: String,
    /// The number of the step; equal for the same step in any query.
    pub id: usize,
    /// The expected share of the table's rows that pass; for tests, measured on a sample.
    pub share: f64,
    /// The expected cycles for 64 rows.
    pub cost: f64,
    /// The number of operators and queries that use it.
    pub uses: u32,
    /// Whether its rows are cached for other users.
    pub kept: bool,
    /// Whether it is evaluated row by row, which takes hundreds of cycles per row.
    pub by_row: bool,
}

/// The work of a scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// The number of tested blocks, summed over the queries.
    pub blocks_tested: u64,
    /// The number of blocks that zone maps, orders or limits decided, summed over the queries.
    pub blocks_skipped: u64,
    /// Bytes of packed columns that tests compared; bytes that two tests compare count twice.
    pub bytes_compared: u64,
    /// Bytes of packed columns that were read at least once while their block was in the cache,
    /// which is the amount that memory had to deliver. Rows evaluated one by one are not included.
    pub bytes_touched: u64,
}

impl Work {
    /// Adds the work of another worker.
    pub(crate) fn add(&mut self, other: Work) {
        self.blocks_tested += other.blocks_tested;
        self.blocks_skipped += other.blocks_skipped;
        self.bytes_compared += other.bytes_compared;
        self.bytes_touched += other.bytes_touched;
    }
}

/// `nodes` has, for each query, the nodes of its rows and of its faults.
pub(super) fn explain(
    (table, workers): (&Table, usize),
    plan: &Plan,
    nodes: &[(NodeId, NodeId)],
) -> Explanation {
    let is_test = |node: &&Node| {
        let is_of_column =
            matches!(node, Node::Set { .. } | Node::Among { .. } | Node::Mixed { .. });
        is_of_column || matches!(node, Node::Calculated(_) | Node::Row { .. })
    };
    Explanation {
        isa: plan.isa,
        workers,
        rows: table.rows(),
        blocks: (0..table.segments()).map(|segment| blocks(table, segment)).sum(),
        tests: plan.graph.nodes.iter().filter(is_test).count(),
        kept: plan.slots,
        queries: nodes.iter().map(|&nodes| query(table, plan, nodes)).collect(),
        work: None,
    }
}

fn blocks(table: &Table, segment: usize) -> u64 {
    table.segment_rows(segment).div_ceil(quarrier_messages::column::raw::BLOCK_ROWS) as u64
}

fn query(table: &Table, plan: &Plan, (truth, fault): (NodeId, NodeId)) -> QueryPlan {
    let (mut steps, mut faults) = (Vec::new(), Vec::new());
    push_steps(table, plan, truth, &mut steps);
    if fault != Graph::NONE {
        push_steps(table, plan, fault, &mut faults);
    }
    QueryPlan { steps, faults, blocks_tested: None, blocks_skipped: None }
}

fn push_steps(table: &Table, plan: &Plan, node: NodeId, steps: &mut Vec<PlanStep>) {
    let mut open = vec![(0, node)];
    while let Some((depth, id)) = open.pop() {
        let node = &plan.nodes[id];
        steps.push(PlanStep {
            depth,
            text: wording::test(&plan.graph, id, table),
            id,
            share: node.share,
            cost: node.cost,
            uses: plan.graph.uses[id],
            kept: node.slot.is_some(),
            by_row: matches!(plan.graph.nodes[id], Node::Row { .. } | Node::Mixed { .. }),
        });
        if let Node::Not(operand) = plan.graph.nodes[id] {
            open.push((depth + 1, operand));
        }
        open.extend(node.operands.iter().rev().map(|&operand| (depth + 1, operand)));
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} rows in {} blocks; {}, workers: {}; {} different tests, {} results kept",
            self.rows,
            self.blocks,
            self.isa.name(),
            self.workers,
            self.tests,
            self.kept
        )?;
        for (at, query) in self.queries.iter().enumerate() {
            writeln!(f, "query {}", at + 1)?;
            write!(f, "{query}")?;
        }
        if let Some(work) = self.work {
            writeln!(f, "{work}")?;
        }
        Ok(())
    }
}

impl fmt::Display for QueryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "  {step}")?;
        }
        if !self.faults.is_empty() {
            writeln!(f, "  and rows without a value are looked for:")?;
        }
        for step in &self.faults {
            writeln!(f, "    {step}")?;
        }
        if let (Some(tested), Some(skipped)) = (self.blocks_tested, self.blocks_skipped) {
            writeln!(f, "  {tested} blocks tested, {skipped} skipped")?;
        }
        Ok(())
    }
}

impl fmt::Display for PlanStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = 2 * self.depth;
        write!(f, "{:indent$}{}  ", "", self.text)?;
        write!(f, "[{:.3} % of rows, {:.1} cycles for 64", 100.0 * self.share, self.cost)?;
        if self.by_row {
            write!(f, ", row by row")?;
        }
        if self.uses > 1 {
            write!(f, ", used {} times", self.uses)?;
        }
        if self.kept {
            write!(f, ", kept")?;
        }
        write!(f, "]")
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} blocks tested, {} skipped; {} bytes of columns touched, {} compared",
            self.blocks_tested, self.blocks_skipped, self.bytes_touched, self.bytes_compared
        )
    }
}
