//! Conditions composed of tests.

use crate::Expr;

/// A condition, or a part of it.
#[derive(Debug, Clone)]
pub(super) enum Tree {
    Constant(Option<bool>),
    /// The index of a test's outcome.
    Test(u32),
    /// The AND of some tests.
    Tests(Box<[u32]>),
    And(Box<[Tree]>),
    Or(Box<[Tree]>),
    Not(Box<Tree>),
    Is(Box<Tree>, Option<bool>),
    /// A condition that needs the complete row.
    Row(Box<Expr>),
    /// A condition in the index, by its number.
    Indexed(u32),
}

impl Tree {
    /// Makes the AND of `operands`, the cheap ones first.
    pub(super) fn and(mut operands: Vec<Tree>) -> Tree {
        if operands.len() == 1 {
            return operands.remove(0);
        }
        let test = |tree: &Tree| match tree {
            Tree::Test(test) => Some(*test),
            _ => None,
        };
        if let Some(tests) = operands.iter().map(test).collect::<Option<Box<[u32]>>>() {
            return Tree::Tests(tests);
        }
        operands.sort_by_key(Tree::cost);
        Tree::And(operands.into())
    }

    /// Makes the OR of `operands`, the cheap ones first.
    pub(super) fn or(mut operands: Vec<Tree>) -> Tree {
        if operands.len() == 1 {
            return operands.remove(0);
        }
        operands.sort_by_key(Tree::cost);
        Tree::Or(operands.into())
    }

    fn cost(&self) -> usize {
        match self {
            Tree::Constant(_) | Tree::Test(_) => 1,
            Tree::Tests(tests) => tests.len(),
            Tree::And(operands) | Tree::Or(operands) => operands.iter().map(Tree::cost).sum(),
            Tree::Not(operand) | Tree::Is(operand, _) => operand.cost(),
            Tree::Row(_) | Tree::Indexed(_) => 100,
        }
    }
}
