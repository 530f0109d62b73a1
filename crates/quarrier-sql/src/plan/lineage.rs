//! Where the columns of a plan come from.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};

/// A column in the output of a leaf of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    leaf: *const (),
    column: usize,
}

impl Origin {
    pub(super) fn of(leaf: &Arc<dyn ExecutionPlan>, column: usize) -> Origin {
        Origin { leaf: Arc::as_ptr(leaf).cast(), column }
    }
}

/// The columns of leaves that a column of `plan` originates from, as far as they can be traced. A
/// filter on the column may drop the rows of such a leaf. A union has an origin in each input, and
/// a semi-join one on both sides of its key.
pub(super) fn origins(plan: &Arc<dyn ExecutionPlan>, column: usize) -> Vec<Origin> {
    let mut found = Vec::new();
    let mut open = vec![(plan, column)];
    while let Some((plan, column)) = open.pop() {
        match plan.children().as_slice() {
            [] => found.push(Origin::of(plan, column)),
            [input] => open.extend(below(plan, input, column).map(|column| (*input, column))),
            inputs if is_union(plan) => open.extend(inputs.iter().map(|input| (*input, column))),
            [left, right] => open.extend(sides(plan, left, right, column)),
            _ => {}
        }
    }
    found
}

fn is_union(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<UnionExec>().is_some() || plan.downcast_ref::<InterleaveExec>().is_some()
}

/// The input's column that a plan with one input passes on as `column`.
fn below(
    plan: &Arc<dyn ExecutionPlan>,
    input: &Arc<dyn ExecutionPlan>,
    column: usize,
) -> Option<usize> {
    let place = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().map(Column::index);
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return place(&projection.expr().get(column)?.expr);
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return place(&aggregate.group_expr().expr().get(column)?.0);
    }
    let (above, below) = (plan.schema(), input.schema());
    if above.fields().starts_with(below.fields()) {
        return (column < below.fields().len()).then_some(column);
    }
    // Other plans pass on some of their input's columns, in any order.
    let name = above.fields().get(column)?.name();
    let called = |schema: &datafusion::arrow::datatypes::Schema| {
        let mut all = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
        let one = all.next().map(|(place, _)| place);
        one.filter(|_| all.next().is_none())
    };
    called(&above).and(called(&below))
}

type Side<'p> = (&'p Arc<dyn ExecutionPlan>, usize);

/// The columns of a join's inputs that it passes on as `column`.
fn sides<'p>(
    plan: &Arc<dyn ExecutionPlan>,
    left: &'p Arc<dyn ExecutionPlan>,
    right: &'p Arc<dyn ExecutionPlan>,
    column: usize,
) -> Vec<Side<'p>> {
    let columns = left.schema().fields().len();
    let of_both = |column: usize| match column.checked_sub(columns) {
        None => vec![(left, column)],
        Some(column) => vec![(right, column)],
    };
    if plan.downcast_ref::<CrossJoinExec>().is_some() {
        return of_both(column);
    }
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Vec::new() };
    let column = match &join.projection {
        Some(projection) => match projection.get(column) {
            Some(&column) => column,
            None => return Vec::new(),
        },
        None => column,
    };
    let key = |expr: &Arc<dyn PhysicalExpr>, column: usize| {
        expr.downcast_ref::<Column>().is_some_and(|key| key.index() == column)
    };
    let place = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().map(Column::index);
    match join.join_type() {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => of_both(column),
        JoinType::LeftSemi => {
            let keys = join.on().iter().filter(|(mine, _)| key(mine, column));
            let others = keys.filter_map(|(_, other)| Some((right, place(other)?)));
            std::iter::once((left, column)).chain(others).collect()
        }
        JoinType::RightSemi => {
            let keys = join.on().iter().filter(|(_, mine)| key(mine, column));
            let others = keys.filter_map(|(other, _)| Some((left, place(other)?)));
            std::iter::once((right, column)).chain(others).collect()
        }
        JoinType::LeftAnti | JoinType::LeftMark if column < columns => vec![(left, column)],
        JoinType::RightAnti | JoinType::RightMark if column < right.schema().fields().len() => {
            vec![(right, column)]
        }
        _ => Vec::new(),
    }
}
