//! Balances long chains of AND and OR into trees of minimal depth.
//!
//! The parser nests `a OR b OR c …` as deep as the chain is long. At every level of such a tree,
//! DataFusion walks everything below it, which takes quadratic time.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator as Op, Expr, Ident, VisitMut, VisitorMut};

use super::walk::{Flow, Stop, walk};

/// Shorter chains stay unchanged.
const LENGTH_MAX: usize = 64;

/// Maximum depth of a tree. Other chains (`a + b + …`, `a IS NULL IS NULL …`) are as deep as they
/// are long, and are walked recursively.
pub(crate) const TREE_DEPTH_MAX: usize = 2_000;

/// Balances all long chains in a statement, keeping the order of operands. Returns false if the
/// tree is still too deep.
pub(crate) fn balance(statement: &mut impl VisitMut) -> bool {
    walk(statement, &mut Chains { depth: 0 }).is_continue()
}

struct Chains {
    depth: usize,
}

impl VisitorMut for Chains {
    type Break = Stop;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if let Expr::BinaryOp { op: op @ (Op::And | Op::Or), .. } = expr {
            let op = op.clone();
            if is_long(expr, &op) {
                let chain = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
                *expr = joined(operands(chain, &op), &op);
            }
        }
        self.depth += 1;
        match self.depth > TREE_DEPTH_MAX {
            true => ControlFlow::Break(None),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> Flow {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

fn is_long(chain: &Expr, op: &Op) -> bool {
    let mut rest = chain;
    for _ in 0..LENGTH_MAX {
        match rest {
            Expr::BinaryOp { left, op: inner, .. } if inner == op => rest = left,
            _ => return false,
        }
    }
    true
}

/// The operands of a chain, in order.
fn operands(chain: Expr, op: &Op) -> Vec<Expr> {
    let (mut rest, mut found) = (chain, Vec::new());
    loop {
        match rest {
            Expr::BinaryOp { left, op: inner, right } if inner == *op => {
                found.push(*right);
                rest = *left;
            }
            first => {
                found.push(first);
                found.reverse();
                return found;
            }
        }
    }
}

/// Joins neighbours until one expression is left.
fn joined(mut operands: Vec<Expr>, op: &Op) -> Expr {
    while operands.len() > 1 {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut rest = operands.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => {
                    Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
                }
                None => left,
            });
        }
        operands = pairs;
    }
    operands.pop().unwrap_or_else(|| Expr::Identifier(Ident::new("")))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::{Expr, Statement};
    use datafusion::sql::sqlparser::parser::Parser;

    use super::balance;
    use crate::dialect::Sql;

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            _ => 0,
        }
    }

    #[test]
    fn balanced_chains_are_shallow_and_print_unchanged() {
        let parts: Vec<String> = (0..1_000).map(|at| format!("a = {at} AND b = 1")).collect();
        let text = format!("SELECT {} FROM t", parts.join(" OR "));
        let mut statements = Parser::parse_sql(&Sql, &text).unwrap();
        assert!(balance(&mut statements[0]));
        assert_eq!(statements[0].to_string(), text);
        let Statement::Query(query) = &statements[0] else { panic!("{text}") };
        let outputs = &query.body.as_select().unwrap().projection;
        let datafusion::sql::sqlparser::ast::SelectItem::UnnamedExpr(expr) = &outputs[0] else {
            panic!("{text}")
        };
        assert!(depth(expr) < 14, "{}", depth(expr));
    }
}
