//! Replaces the subqueries in expressions by columns that joins add to the input.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    AggregateUDF, Expr, Join, LogicalPlan, LogicalPlanBuilder, Subquery, lit,
};

use super::domain::{self, Domain};
use super::free::{self, Outer};
use super::pushed::DomainPushdown;
use super::{columns, owned};
use crate::function::one_value;
use crate::plan::memberships::MembershipRewriter;

/// Where an expression occurs, which determines the subqueries that DataFusion decorrelates itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In WHERE or HAVING: DataFusion decorrelates scalar subqueries and EXISTS.
    Condition,
    /// In the SELECT list: DataFusion decorrelates scalar subqueries.
    Output,
    /// Elsewhere: DataFusion decorrelates none.
    Other,
}

/// The input of expressions, with the joins added so far.
pub(super) struct SubqueryJoins<'p> {
    outer: &'p LogicalPlan,
    grown: Option<LogicalPlan>,
    place: Place,
}

impl<'p> SubqueryJoins<'p> {
    pub(super) fn new(outer: &'p LogicalPlan, place: Place) -> Self {
        SubqueryJoins { outer, grown: None, place }
    }

    /// The new input; `None` if nothing was joined.
    pub(super) fn grown(self) -> Option<LogicalPlan> {
        self.grown
    }

    /// As [`expr`](Self::expr) for several, and keeps their names.
    pub(super) fn named(&mut self, exprs: Vec<Expr>) -> Result<Vec<Expr>> {
        let names = NamePreserver::new_for_projection();
        let taken = exprs.into_iter().map(|expr| {
            let name = names.save(&expr);
            let has_query = expr.exists(|part| Ok(free::query(part).is_some()))?;
            if has_query { Ok(name.restore(self.expr(expr)?)) } else { Ok(expr) }
        });
        taken.collect()
    }

    /// Replaces the subqueries in an expression by columns.
    pub(super) fn expr(&mut self, expr: Expr) -> Result<Expr> {
        Ok(expr.transform_down(|part| self.part(part))?.data)
    }

    fn part(&mut self, part: Expr) -> Result<Transformed<Expr>> {
        let Some(query) = free::query(&part) else { return Ok(Transformed::no(part)) };
        let plan = Arc::clone(&query.subquery);
        let outer = free::of(&plan)?;
        let schema = self.outer.schema();
        let (near, far): (Vec<Outer>, Vec<Outer>) =
            outer.into_iter().partition(|(_, column)| schema.has_column(column));
        let is_known = far.is_empty() && near.len() == query.outer_ref_columns.len();
        let is_value = is_known && self.place != Place::Other;
        let is_condition = is_known && self.place == Place::Condition;
        match part {
            Expr::ScalarSubquery(_) if near.is_empty() => Ok(Transformed::no(part)),
            Expr::ScalarSubquery(_) if is_value && owned::is_left_as_value(&plan)? => {
                Ok(Transformed::no(part))
            }
            Expr::ScalarSubquery(_) => taken(self.value(&plan, near)?),
            Expr::Exists(_) if is_condition && owned::is_left_as_rows(&plan)? => {
                Ok(Transformed::no(part))
            }
            Expr::Exists(Exists { negated, .. }) if near.is_empty() => taken(any(&plan, negated)?),
            Expr::Exists(Exists { negated, .. }) => {
                let found = self.marker(&plan, near)?;
                taken(if negated { found.is_null() } else { found.is_not_null() })
            }
            Expr::InSubquery(asked) => self.membership(asked, is_condition),
            Expr::SetComparison(asked) if !is_condition || !near.is_empty() => {
                let rewritten = MembershipRewriter::over(self.outer.schema()).quantified(asked)?;
                taken(self.expr(rewritten)?)
            }
            other => Ok(Transformed::no(other)),
        }
    }

    fn membership(&mut self, asked: InSubquery, is_condition: bool) -> Result<Transformed<Expr>> {
        if is_condition && owned::is_left_as_rows(&asked.subquery.subquery)? {
            return Ok(Transformed::no(Expr::InSubquery(asked)));
        }
        let rewritten = MembershipRewriter::over(self.outer.schema()).among_values(asked)?;
        taken(self.expr(rewritten)?)
    }

    /// A column with the value of a scalar subquery.
    fn value(&mut self, plan: &LogicalPlan, outer: Vec<Outer>) -> Result<Expr> {
        let domain = Domain::new(self.outer, outer)?;
        let rows = DomainPushdown::new(&domain).plan(plan)?;
        let first = Expr::Column(plan.schema().columns().remove(0));
        let value = domain::column("value");
        let rows = LogicalPlanBuilder::from(rows);
        let rows = if owned::is_one_row(plan) {
            let mut outputs = domain.exprs();
            outputs.push(first.alias(value.name.clone()));
            rows.project(outputs)?
        } else {
            let one = Arc::new(AggregateUDF::new_from_impl(one_value::OneValue::default()));
            let one = one.call(vec![first]).alias(value.name.clone());
            rows.aggregate(domain.exprs(), [one])?
        };
        self.join(&domain, rows.build()?)?;
        Ok(Expr::Column(value))
    }

    /// A column that is NULL if a subquery has no rows.
    fn marker(&mut self, plan: &LogicalPlan, outer: Vec<Outer>) -> Result<Expr> {
        let domain = Domain::new(self.outer, outer)?;
        let rows = DomainPushdown::new(&domain).plan(plan)?;
        let marker = domain::column("exists");
        let mut outputs = domain.exprs();
        outputs.push(lit(true).alias(marker.name.clone()));
        let rows = LogicalPlanBuilder::from(rows).project(outputs)?.distinct()?.build()?;
        self.join(&domain, rows)?;
        Ok(Expr::Column(marker))
    }

    fn join(&mut self, domain: &Domain, rows: LogicalPlan) -> Result<()> {
        let left = self.grown.take().unwrap_or_else(|| self.outer.clone());
        self.grown = Some(domain::join(left, rows, domain.keys()?, None, JoinType::Left)?);
        Ok(())
    }
}

fn taken(expr: Expr) -> Result<Transformed<Expr>> {
    Ok(Transformed::new(expr, true, TreeNodeRecursion::Jump))
}

/// EXISTS of a subquery without outer columns.
fn any(plan: &LogicalPlan, negated: bool) -> Result<Expr> {
    let count = datafusion::functions_aggregate::expr_fn::count(lit(1)).alias("count");
    let plan = LogicalPlanBuilder::from(plan.clone())
        .limit(0, Some(1))?
        .aggregate(Vec::<Expr>::new(), [count])?
        .build()?;
    let count = Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(plan),
        outer_ref_columns: Vec::new(),
        spans: Default::default(),
    });
    Ok(if negated { count.eq(lit(0_i64)) } else { count.gt(lit(0_i64)) })
}

/// Decorrelates a lateral join if DataFusion does not; `None` for other joins.
pub(super) fn lateral(lateral: &Join) -> Result<Option<LogicalPlan>> {
    let Some(query) = free::of_lateral(&lateral.right) else { return Ok(None) };
    if !matches!(lateral.join_type, JoinType::Inner | JoinType::Left) {
        return Ok(None);
    }
    let outer = free::of(&query.subquery)?;
    let schema = lateral.left.schema();
    let near = outer.into_iter().filter(|(_, column)| schema.has_column(column));
    let domain = Domain::new(&lateral.left, near.collect())?;
    let right = DomainPushdown::new(&domain).plan(&without_mark(&lateral.right)?)?;
    let equal = lateral.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let filter = conjunction(equal.chain(lateral.filter.clone()));
    let left = (*lateral.left).clone();
    let joined = domain::join(left, right, domain.keys()?, filter, lateral.join_type)?;
    let plan = LogicalPlanBuilder::from(joined).project(columns(&lateral.schema))?;
    Ok(Some(plan.build()?))
}

/// The plan without the node that marks it as lateral.
fn without_mark(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let plain = plan.clone().transform_down(|node| match node {
        LogicalPlan::Subquery(query) => {
            let inner = Arc::unwrap_or_clone(query.subquery);
            Ok(Transformed::new(inner, true, TreeNodeRecursion::Stop))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plain.data)
}
