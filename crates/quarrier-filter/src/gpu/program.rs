//! Translates conditions into the kernel's nodes.

use std::sync::Arc;

use quarrier_messages::Table;
use quarrier_messages::column::Data;

use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::predicate::{Compiler, Graph, Node, NodeId, Set};

/// Must match the kernel.
const NOTHING: u32 = 0;
const ALL: u32 = 1;
const TEST: u32 = 2;
const AND: u32 = 3;
const OR: u32 = 4;
const NOT: u32 = 5;

/// The program of one launch, named like the kernel's parameters.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// The operation; its test or first operand; the number of operands.
    pub(super) nodes: Vec<[u32; 4]>,
    pub(super) operands: Vec<u32>,
    /// The node of each condition.
    pub(super) roots: Vec<u32>,
    pub(super) tests: Vec<(usize, Arc<Set>)>,
}

/// Translates the conditions into as few programs as possible, each with the index of its first
/// condition.
///
/// # Errors
///
/// [`Error::NotOnDevice`] for a condition that the kernel does not support, or that is too large.
pub(super) fn all(
    table: &Table,
    conditions: &[Expr],
    nodes_max: usize,
) -> Result<Vec<(usize, Program)>> {
    let mut programs = Vec::new();
    let mut left = vec![(0, conditions.len())];
    while let Some((first, end)) = left.pop() {
        let range = first..end;
        if range.is_empty() {
            continue;
        }
        let program = Program::new(table, &conditions[range.clone()], first)?;
        if program.nodes.len() <= nodes_max && range.len() <= nodes_max {
            programs.push((first, program));
        } else if range.len() == 1 {
            let what = format!("has more than {nodes_max} tests");
            return Err(Error::NotOnDevice { condition: first, what });
        } else {
            let middle = first + range.len() / 2;
            left.extend([(middle, end), (first, middle)]);
        }
    }
    Ok(programs)
}

impl Program {
    fn new(table: &Table, conditions: &[Expr], first: usize) -> Result<Self> {
        let mut compiler = Compiler::new(table, 1);
        let conditions: Vec<_> = conditions.iter().map(|c| compiler.condition(c)).collect();
        let graph = compiler.finish();
        let mut program = Program::default();
        let mut places = vec![None; graph.nodes.len()];
        for (at, (truth, fault)) in conditions.into_iter().enumerate() {
            let refuse =
                |what: &str| Error::NotOnDevice { condition: first + at, what: what.to_string() };
            if fault != Graph::NONE {
                return Err(refuse("may have no value for a row"));
            }
            let root = program.enter(&graph, truth, &mut places).map_err(refuse)?;
            if program.tests.iter().any(|(column, _)| is_too_wide(table, *column)) {
                return Err(refuse("compares numbers of 128 bits"));
            }
            program.roots.push(root);
        }
        Ok(program)
    }

    /// Returns the index of a node, after those of its operands; or the part of it that the kernel
    /// does not support.
    fn enter(
        &mut self,
        graph: &Graph,
        root: NodeId,
        places: &mut [Option<u32>],
    ) -> std::result::Result<u32, &'static str> {
        // Operands have lower indexes than the nodes that use them, so one backward pass is enough.
        let mut is_needed = vec![false; root + 1];
        is_needed[root] = true;
        for id in (0..=root).rev().filter(|&id| places[id].is_none()) {
            if is_needed[id] {
                operands_of(&graph.nodes[id]).iter().for_each(|&operand| is_needed[operand] = true);
            }
        }
        for id in 0..=root {
            if is_needed[id] && places[id].is_none() {
                let node = self.node(&graph.nodes[id], places)?;
                places[id] = Some(self.nodes.len() as u32);
                self.nodes.push(node);
            }
        }
        places[root].ok_or("has no node")
    }

    fn node(
        &mut self,
        node: &Node,
        places: &[Option<u32>],
    ) -> std::result::Result<[u32; 4], &'static str> {
        let place = |operand: NodeId| places[operand].ok_or("has no operand");
        let (what, operands) = match node {
            Node::None => return Ok([NOTHING, 0, 0, 0]),
            Node::All => return Ok([ALL, 0, 0, 0]),
            Node::Set { column, set } => {
                self.tests.push((*column, Arc::clone(set)));
                return Ok([TEST, self.tests.len() as u32 - 1, 0, 0]);
            }
            Node::Among { .. } => return Err("looks into a table of keys"),
            Node::Not(operand) => return Ok([NOT, place(*operand)?, 0, 0]),
            Node::Calculated(_) => return Err("compares calculated values"),
            Node::Row { .. } => return Err("is evaluated row by row"),
            Node::Mixed { .. } => return Err("tests strings without a dictionary"),
            Node::And(operands) => (AND, operands),
            Node::Or(operands) => (OR, operands),
        };
        let first = self.operands.len() as u32;
        for &operand in operands {
            self.operands.push(place(operand)?);
        }
        Ok([what, first, operands.len() as u32, 0])
    }
}

/// Whether a column has numbers that no lane of a device can hold.
fn is_too_wide(table: &Table, column: usize) -> bool {
    let mut segments = table.columns()[column].segments().iter();
    segments.any(|segment| matches!(segment.data(), Data::Exact(_)))
}

fn operands_of(node: &Node) -> &[NodeId] {
    match node {
        Node::And(operands) | Node::Or(operands) => operands,
        Node::Not(operand) => std::slice::from_ref(operand),
        _ => &[],
    }
}
