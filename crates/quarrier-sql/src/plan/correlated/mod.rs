//! Correlated subqueries that DataFusion does not decorrelate: those correlated by anything but
//! equality, those with LIMIT, DISTINCT, UNION or GROUP BY, and all outside of SELECT lists and
//! WHERE. Each becomes a join with its rows for every distinct combination of the outer columns it
//! names (Neumann and Kemper, Unnesting Arbitrary Queries, BTW 2015):
//!
//! ```text
//!  … (query over outer.a) …    over  outer
//!                becomes
//!  … value …                   over  outer LEFT JOIN (query over domain.a) ON outer.a = domain.a
//!                                    where domain is SELECT DISTINCT a FROM outer
//! ```
//!
//! In that join, NULL equals NULL. A scalar subquery is an error if it yields more than one row.
//!
//! apache/datafusion#5492, open, proposes the same method.

mod domain;
mod free;
mod owned;
mod pushed;
mod taken;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, Sort,
    Window,
};
use datafusion::optimizer::AnalyzerRule;

use taken::{Place, SubqueryJoins};

/// Decorrelates subqueries, from the innermost outwards.
#[derive(Debug)]
pub(crate) struct Correlated;

impl AnalyzerRule for Correlated {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(joined)?.data)
    }

    fn name(&self) -> &str {
        "correlated"
    }
}

fn joined(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Join(join) = node {
        return of_join(join);
    }
    if !has_query(&node)? {
        return Ok(Transformed::no(node));
    }
    match node {
        LogicalPlan::Filter(filter) => of_filter(filter),
        LogicalPlan::Projection(projection) => of_projection(projection),
        LogicalPlan::Aggregate(aggregate) => of_aggregate(aggregate),
        LogicalPlan::Sort(sort) => of_sort(sort),
        LogicalPlan::Window(window) => of_window(window),
        other => Ok(Transformed::no(other)),
    }
}

/// Whether an expression of the node contains a subquery.
fn has_query(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= expr.exists(|part| Ok(free::query(part).is_some()))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn of_filter(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let mut taken = SubqueryJoins::new(&filter.input, Place::Condition);
    let predicate = taken.expr(filter.predicate.clone())?;
    let Some(input) = taken.grown() else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    };
    let plan = LogicalPlanBuilder::from(input)
        .filter(predicate)?
        .project(columns(filter.input.schema()))?
        .build()?;
    Ok(Transformed::yes(plan))
}

fn of_projection(projection: Projection) -> Result<Transformed<LogicalPlan>> {
    let mut taken = SubqueryJoins::new(&projection.input, Place::Output);
    let outputs = taken.named(projection.expr.clone())?;
    let Some(input) = taken.grown() else {
        return Ok(Transformed::no(LogicalPlan::Projection(projection)));
    };
    Ok(Transformed::yes(LogicalPlanBuilder::from(input).project(outputs)?.build()?))
}

fn of_aggregate(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let mut taken = SubqueryJoins::new(&aggregate.input, Place::Other);
    let groups = taken.named(aggregate.group_expr.clone())?;
    let values = taken.named(aggregate.aggr_expr.clone())?;
    let Some(input) = taken.grown() else {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    };
    let plan = Aggregate::try_new(input.into(), groups, values)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(plan)))
}

fn of_sort(sort: Sort) -> Result<Transformed<LogicalPlan>> {
    let mut taken = SubqueryJoins::new(&sort.input, Place::Other);
    let by = sort.expr.iter().map(|by| Ok(by.with_expr(taken.expr(by.expr.clone())?)));
    let by: Vec<_> = by.collect::<Result<_>>()?;
    let Some(input) = taken.grown() else {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    };
    let plan = LogicalPlan::Sort(Sort { expr: by, input: input.into(), fetch: sort.fetch });
    let plan = LogicalPlanBuilder::from(plan).project(columns(sort.input.schema()))?.build()?;
    Ok(Transformed::yes(plan))
}

fn of_window(window: Window) -> Result<Transformed<LogicalPlan>> {
    let mut taken = SubqueryJoins::new(&window.input, Place::Other);
    let functions = window.window_expr.iter().map(|function| taken.expr(function.clone()));
    let functions: Vec<Expr> = functions.collect::<Result<_>>()?;
    let Some(input) = taken.grown() else {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    };
    let plan = renamed_windows(&window, functions, input, &[])?;
    Ok(Transformed::yes(plan))
}

/// Replaces the functions of `window` by `functions` over `input`. The output has the columns of
/// `window`, then `more`.
fn renamed_windows(
    window: &Window,
    functions: Vec<Expr>,
    input: LogicalPlan,
    more: &[Column],
) -> Result<LogicalPlan> {
    let count = functions.len();
    let plan = Window::try_new(functions, input.into())?;
    let first = plan.schema.fields().len() - count;
    let mut outputs = columns(window.input.schema());
    for (place, old) in window.window_expr.iter().enumerate() {
        let column = Column::from(plan.schema.qualified_field(first + place));
        let name = NamePreserver::new_for_projection().save(old);
        outputs.push(name.restore(Expr::Column(column)));
    }
    outputs.extend(more.iter().cloned().map(Expr::Column));
    LogicalPlanBuilder::from(LogicalPlan::Window(plan)).project(outputs)?.build()
}

/// Decorrelates a lateral join, or moves conditions with subqueries from an inner join to a filter.
fn of_join(join: Join) -> Result<Transformed<LogicalPlan>> {
    if let Some(lateral) = taken::lateral(&join)? {
        return Ok(Transformed::yes(lateral));
    }
    let is_inner = join.join_type == JoinType::Inner;
    let (Some(condition), true) = (&join.filter, is_inner) else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    let has_query = |expr: &Expr| expr.exists(|part| Ok(free::query(part).is_some()));
    if !has_query(condition)? {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let (mut left, mut moved) = (Vec::new(), Vec::new());
    for part in split_conjunction_owned(condition.clone()) {
        if has_query(&part)? { moved.push(part) } else { left.push(part) }
    }
    let plan = LogicalPlan::Join(Join { filter: conjunction(left), ..join });
    match conjunction(moved) {
        Some(condition) => {
            let filter = Filter::try_new(condition, plan.into())?;
            Ok(Transformed::yes(of_filter(filter)?.data))
        }
        None => Ok(Transformed::no(plan)),
    }
}

fn columns(schema: &DFSchema) -> Vec<Expr> {
    schema.columns().into_iter().map(Expr::Column).collect()
}
