//! The graph of tests that all conditions of a scan share.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Calculation, Prefixes, Set};
use crate::{Expr, Keys};

/// The index of a node in its graph; operands have lower ones.
pub(crate) type NodeId = usize;

/// A set of rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// No rows.
    None,
    /// All rows.
    All,
    /// The rows whose value in a column is in the set.
    Set {
        /// The column.
        column: usize,
        /// The set of its keys.
        set: Arc<Set>,
    },
    /// The rows whose value in a column is one of the keys, which are stored as a bitmap.
    Among {
        /// The column.
        column: usize,
        /// The keys as bits.
        keys: Arc<Keys>,
    },
    /// The rows for which a comparison of calculated numbers is true: the index in [`Graph::calculations`].
    Calculated(usize),
    /// The rows for which an expression, evaluated row by row, has this outcome.
    Row {
        /// The index in [`Graph::rows`].
        test: usize,
        /// The outcome.
        outcome: Outcome,
    },
    /// The rows for which a condition on a column of strings has this outcome: by the set of codes if the
    /// column's segment is dictionary-encoded, and by the expression if it has plain strings.
    Mixed {
        /// The column.
        column: usize,
        /// The set of its codes.
        set: Arc<Set>,
        /// The index in [`Graph::rows`].
        test: usize,
        /// The outcome.
        outcome: Outcome,
    },
    /// The rows in all of the operands; two or more.
    And(Box<[NodeId]>),
    /// The rows in one of the operands; two or more.
    Or(Box<[NodeId]>),
    /// The rows not in the operand.
    Not(NodeId),
}

/// The outcome of a condition for a row, other than UNKNOWN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// TRUE.
    True,
    /// FALSE.
    False,
    /// No value, because of a fault.
    Fault,
}

/// An expression that is evaluated row by row.
#[derive(Debug)]
pub(crate) struct RowTest {
    /// The condition.
    pub(crate) expr: Expr,
    /// The same condition, if it tests prefixes.
    pub(crate) prefixes: Option<Prefixes>,
}

/// The ranges of sets to merge, and whether NULL is in one of them.
type Union = (Vec<(i128, i128)>, bool);

/// All conditions of a scan.
#[derive(Debug)]
pub(crate) struct Graph {
    /// The nodes; operands precede the nodes made of them.
    pub(crate) nodes: Vec<Node>,
    /// For each node, the number of nodes and conditions that use it.
    pub(crate) uses: Vec<u32>,
    pub(crate) calculations: Vec<Calculation>,
    pub(crate) rows: Vec<RowTest>,
    known: HashMap<Node, NodeId>,
    known_rows: HashMap<String, usize>,
}

impl Graph {
    pub(crate) const NONE: NodeId = 0;
    pub(crate) const ALL: NodeId = 1;

    pub(crate) fn new() -> Graph {
        let nodes = vec![Node::None, Node::All];
        let known = nodes.iter().cloned().zip(0..).collect();
        Graph {
            nodes,
            uses: vec![0; 2],
            calculations: Vec::new(),
            rows: Vec::new(),
            known,
            known_rows: HashMap::new(),
        }
    }

    /// Returns the index of the node, and adds the node if there is no equal one.
    fn node(&mut self, node: Node) -> NodeId {
        if let Some(&known) = self.known.get(&node) {
            return known;
        }
        match &node {
            Node::And(operands) | Node::Or(operands) => {
                operands.iter().for_each(|&operand| self.uses[operand] += 1);
            }
            Node::Not(operand) => self.uses[*operand] += 1,
            _ => {}
        }
        let id = self.nodes.len();
        self.nodes.push(node.clone());
        self.uses.push(0);
        self.known.insert(node, id);
        id
    }

    pub(crate) fn set(&mut self, column: usize, set: Set) -> NodeId {
        if set.is_none() {
            return Graph::NONE;
        }
        if set.is_all() {
            return Graph::ALL;
        }
        self.node(Node::Set { column, set: Arc::new(set) })
    }

    pub(crate) fn among(&mut self, column: usize, keys: &Arc<Keys>) -> NodeId {
        if keys.is_empty() {
            return Graph::NONE;
        }
        self.node(Node::Among { column, keys: Arc::clone(keys) })
    }

    pub(crate) fn calculated(&mut self, calculation: Calculation) -> NodeId {
        let at = self.calculations.iter().position(|known| known.is_same(&calculation));
        let at = at.unwrap_or_else(|| {
            self.calculations.push(calculation);
            self.calculations.len() - 1
        });
        self.node(Node::Calculated(at))
    }

    pub(crate) fn row(&mut self, expr: &Expr, outcome: Outcome) -> NodeId {
        let test = self.row_test(expr);
        self.node(Node::Row { test, outcome })
    }

    /// Makes a mixed node. `set` are the codes of `column` for which `expr` has this outcome.
    pub(crate) fn mixed(
        &mut self,
        (column, set): (usize, Set),
        expr: &Expr,
        outcome: Outcome,
    ) -> NodeId {
        let test = self.row_test(expr);
        self.node(Node::Mixed { column, set: Arc::new(set), test, outcome })
    }

    fn row_test(&mut self, expr: &Expr) -> usize {
        let rows = &mut self.rows;
        *self.known_rows.entry(format!("{expr:?}")).or_insert_with(|| {
            rows.push(RowTest { expr: expr.clone(), prefixes: Prefixes::of(expr) });
            rows.len() - 1
        })
    }

    pub(crate) fn not(&mut self, operand: NodeId) -> NodeId {
        match &self.nodes[operand] {
            Node::None => Graph::ALL,
            Node::All => Graph::NONE,
            Node::Not(twice) => *twice,
            Node::Set { column, set } => {
                let (column, set) = (*column, set.complement());
                self.set(column, set)
            }
            _ => self.node(Node::Not(operand)),
        }
    }

    /// Returns the node of the rows in all of `operands`. Sets of one column become one set.
    pub(crate) fn and(&mut self, operands: impl IntoIterator<Item = NodeId>) -> NodeId {
        let mut others = Vec::new();
        let mut sets: Vec<(usize, Set)> = Vec::new();
        let mut left: Vec<NodeId> = operands.into_iter().collect();
        left.reverse();
        while let Some(operand) = left.pop() {
            match &self.nodes[operand] {
                Node::None => return Graph::NONE,
                Node::All => {}
                Node::And(inner) => left.extend(inner.iter().rev()),
                Node::Set { column, set } => {
                    match sets.iter_mut().find(|(known, _)| known == column) {
                        Some((_, known)) => *known = known.intersection(set),
                        None => sets.push((*column, Set::clone(set))),
                    }
                }
                _ if others.contains(&operand) => {}
                _ => others.push(operand),
            }
        }
        for (column, set) in sets {
            match self.set(column, set) {
                Graph::NONE => return Graph::NONE,
                Graph::ALL => {}
                node => others.push(node),
            }
        }
        others.sort_unstable();
        match others.as_slice() {
            [] => Graph::ALL,
            [one] => *one,
            _ => self.node(Node::And(others.into())),
        }
    }

    /// Returns the node of the rows in one of `operands`. Sets of one column become one set.
    pub(crate) fn or(&mut self, operands: impl IntoIterator<Item = NodeId>) -> NodeId {
        let mut others = Vec::new();
        let mut sets: Vec<(usize, Union)> = Vec::new();
        let mut left: Vec<NodeId> = operands.into_iter().collect();
        left.reverse();
        while let Some(operand) = left.pop() {
            match &self.nodes[operand] {
                Node::None => {}
                Node::All => return Graph::ALL,
                Node::Or(inner) => left.extend(inner.iter().rev()),
                Node::Set { column, set } => {
                    match sets.iter_mut().find(|(known, _)| known == column) {
                        Some((_, (ranges, nulls))) => {
                            ranges.extend(set.ranges());
                            *nulls |= set.nulls;
                        }
                        None => sets.push((*column, (set.ranges().to_vec(), set.nulls))),
                    }
                }
                _ if others.contains(&operand) => {}
                _ => others.push(operand),
            }
        }
        for (column, (ranges, nulls)) in sets {
            match self.set(column, Set::union_of(ranges, nulls)) {
                Graph::NONE => {}
                Graph::ALL => return Graph::ALL,
                node => others.push(node),
            }
        }
        others.sort_unstable();
        match others.as_slice() {
            [] => Graph::NONE,
            [one] => *one,
            _ => self.node(Node::Or(others.into())),
        }
    }
}
