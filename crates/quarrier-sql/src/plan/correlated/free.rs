//! The outer columns that a query refers to: its free variables.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Subquery, SubqueryAlias};

/// A column outside of a query, with its field.
pub(super) type Outer = (FieldRef, Column);

/// The subquery, if the expression is one.
pub(super) fn query(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery)
        | Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

/// The subquery, if the plan is the right side of a lateral join.
pub(super) fn of_lateral(plan: &LogicalPlan) -> Option<&Subquery> {
    match plan {
        LogicalPlan::Subquery(subquery) => Some(subquery),
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => of_lateral(input),
        _ => None,
    }
}

/// All outer columns that a plan refers to, without duplicates.
pub(super) fn of(plan: &LogicalPlan) -> Result<Vec<Outer>> {
    let mut found = Vec::new();
    let inputs = merge_schema(&plan.inputs());
    plan.apply_expressions(|expr| {
        expr.apply(|part| {
            if let Expr::OuterReferenceColumn(field, column) = part {
                add(&mut found, (field.clone(), column.clone()));
            }
            if let Some(subquery) = query(part) {
                add_but(&mut found, of(&subquery.subquery)?, &inputs);
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    match plan {
        LogicalPlan::Join(Join { left, right, .. }) if of_lateral(right).is_some() => {
            of(left)?.into_iter().for_each(|outer| add(&mut found, outer));
            add_but(&mut found, of(right)?, left.schema());
        }
        other => {
            for input in other.inputs() {
                of(input)?.into_iter().for_each(|outer| add(&mut found, outer));
            }
        }
    }
    Ok(found)
}

/// Adds outer columns, except those that `near` has: names refer to the innermost query that has
/// them.
fn add_but(found: &mut Vec<Outer>, more: Vec<Outer>, near: &DFSchema) {
    let far = more.into_iter().filter(|(_, column)| !near.has_column(column));
    far.for_each(|outer| add(found, outer));
}

fn add(found: &mut Vec<Outer>, outer: Outer) {
    if found.iter().all(|(_, column)| *column != outer.1) {
        found.push(outer);
    }
}
