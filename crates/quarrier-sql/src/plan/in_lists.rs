//! Keeps DataFusion from merging IN lists that it merges wrongly. Its simplifier compares their elements as
//! expressions, not as values, and ignores NULL: `x IN (a) AND x IN (b)` becomes FALSE, although `a` may
//! equal `b`; `x NOT IN (1) OR x NOT IN (2)` becomes TRUE, even if `x` is NULL.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The prefix of the aliases that operands have while the rule runs. The simplifier merges only lists with
/// equal operands.
const MARK: &str = "operand of list ";

/// Runs a rule that simplifies expressions, but keeps it from merging the lists of an operand that has
/// several in one expression.
#[derive(Debug)]
pub(super) struct InLists(pub(super) Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for InLists {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&plan);
        let marked = plan.map_expressions(|expr| {
            let operands = repeated(&expr)?;
            if operands.is_empty() {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            Ok(mark(expr, &operands)?.update_data(|expr| name.restore(expr)))
        })?;
        let simplified = self.0.rewrite(marked.data, config)?;
        if !marked.transformed {
            return Ok(simplified);
        }
        let is_changed = simplified.transformed;
        let plan = simplified.data.map_expressions(unmark)?.data;
        Ok(Transformed::new_transformed(plan, is_changed))
    }
}

/// Returns the operands that occur in several lists of an expression.
fn repeated(expr: &Expr) -> Result<HashSet<Expr>> {
    let mut lists = Lists::default();
    expr.visit(&mut lists)?;
    let several = lists.of.into_iter().filter(|(_, lists)| lists.len() > 1);
    Ok(several.map(|(operand, _)| operand.clone()).collect())
}

/// The lists of an expression. A chain of OR counts as one, since the simplifier makes a list of its
/// equalities.
#[derive(Default)]
struct Lists<'e> {
    /// The numbers of the lists of each operand.
    of: HashMap<&'e Expr, HashSet<usize>>,
    /// For each node that contains the current one, the number of the chain of OR that it is in, if any.
    chains: Vec<Option<usize>>,
    next: usize,
}

impl<'e> Lists<'e> {
    fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }
}

impl<'e> TreeNodeVisitor<'e> for Lists<'e> {
    type Node = Expr;

    fn f_down(&mut self, expr: &'e Expr) -> Result<TreeNodeRecursion> {
        let around = self.chains.last().copied().flatten();
        let mut chain = None;
        match expr {
            Expr::InList(list) => {
                let number = self.number();
                self.of.entry(&list.expr).or_default().insert(number);
            }
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
                chain = around.or_else(|| Some(self.number()));
            }
            Expr::BinaryExpr(both) => {
                if let (Some(number), Some(operand)) = (around, compared(both)) {
                    self.of.entry(operand).or_default().insert(number);
                }
            }
            _ => {}
        }
        self.chains.push(chain);
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, _: &'e Expr) -> Result<TreeNodeRecursion> {
        self.chains.pop();
        Ok(TreeNodeRecursion::Continue)
    }
}

/// The column that an equality compares with a literal.
fn compared(both: &BinaryExpr) -> Option<&Expr> {
    match (&*both.left, both.op, &*both.right) {
        (column @ Expr::Column(_), Operator::Eq, Expr::Literal(..))
        | (Expr::Literal(..), Operator::Eq, column @ Expr::Column(_)) => Some(column),
        _ => None,
    }
}

/// Gives these operands of lists and equalities different aliases.
fn mark(expr: Expr, operands: &HashSet<Expr>) -> Result<Transformed<Expr>> {
    let mut number = 0;
    let mut marked = |operand: &mut Expr| {
        let is_marked = operands.contains(operand);
        if is_marked {
            number += 1;
            *operand = std::mem::take(operand).alias(format!("{MARK}{number}"));
        }
        is_marked
    };
    expr.transform_up(|mut part| {
        let is_changed = match &mut part {
            Expr::InList(list) => marked(&mut list.expr),
            Expr::BinaryExpr(both) if compared(both).is_some() => {
                // The literal is not among the operands.
                marked(&mut both.left) | marked(&mut both.right)
            }
            _ => false,
        };
        Ok(Transformed::new_transformed(part, is_changed))
    })
}

/// Removes the aliases of [`mark`].
fn unmark(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|part| {
        Ok(match part {
            Expr::Alias(alias) if alias.relation.is_none() && alias.name.starts_with(MARK) => {
                Transformed::yes(*alias.expr)
            }
            other => Transformed::no(other),
        })
    })
}
