//! IN and NOT IN over a query, where DataFusion treats UNKNOWN as FALSE, or fails. This concerns
//! NOT IN that is not a top-level conjunct, is correlated, or has a constant on its left, and IN
//! below NOT, CASE or IS.
//!
//! apache/datafusion#8241, and of its kind #25336 (correlated by other than equality), #25347
//! (correlated by equality), all open, and #25340 (a constant), fixed after 55.
//!
//! | written | becomes |
//! |---|---|
//! | `x NOT IN (query)`, where only TRUE counts | no `v` of the query with `v = x`, `v` NULL or `x` NULL |
//! | `x IN (query)`, where UNKNOWN counts | TRUE, NULL or FALSE, by two EXISTS of that form |

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, Spans};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{
    BinaryExpr, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, binary_expr,
    lit, when,
};
use datafusion::optimizer::AnalyzerRule;

use crate::Error;

/// Rewrites IN as EXISTS where necessary.
#[derive(Debug)]
pub(crate) struct Memberships;

impl AnalyzerRule for Memberships {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Filter(filter) => {
                let outer = filter.input.schema().clone();
                let predicate =
                    MembershipRewriter { outer: &outer }.of(filter.predicate, Place::Conjunct)?;
                Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(rewritten.data)
    }

    fn name(&self) -> &str {
        "memberships"
    }
}

/// How the value of a condition is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// As a conjunct of WHERE: only TRUE counts.
    Conjunct,
    /// Below OR in WHERE: only TRUE counts.
    Truth,
    /// UNKNOWN and FALSE differ.
    Any,
}

/// Rewrites IN, NOT IN and quantified comparisons over the rows of an outer query.
pub(super) struct MembershipRewriter<'p> {
    /// The columns of the outer query.
    outer: &'p DFSchema,
}

impl<'p> MembershipRewriter<'p> {
    /// Rewrites conditions over rows of `outer`.
    pub(super) fn over(outer: &'p DFSchema) -> Self {
        MembershipRewriter { outer }
    }

    /// Rewrites IN where TRUE, FALSE and UNKNOWN all count.
    ///
    /// # Errors
    /// The query has several columns, or the left side contains a query.
    pub(super) fn among_values(&self, asked: InSubquery) -> Result<Expr> {
        self.membership(asked, Place::Any)
    }

    /// Rewrites `x > ANY (query)` and `x > ALL (query)`: a deciding row wins, then an UNKNOWN one.
    ///
    /// # Errors
    /// As [`among_values`](Self::among_values).
    pub(super) fn quantified(&self, asked: SetComparison) -> Result<Expr> {
        let SetComparison { expr, subquery, op, quantifier } = asked;
        let compared = binary_expr(self.inside_of(*expr)?, op, first_column(&subquery)?);
        let is_all = quantifier == SetQuantifier::All;
        let decides = if is_all { compared.clone().is_false() } else { compared.clone().is_true() };
        when(self.exists(&subquery, decides, false)?, lit(!is_all))
            .when(
                self.exists(&subquery, compared.is_unknown(), false)?,
                lit(ScalarValue::Boolean(None)),
            )
            .otherwise(lit(is_all))
    }

    fn of(&self, expr: Expr, place: Place) -> Result<Expr> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if matches!(op, Operator::And | Operator::Or) =>
            {
                let inner = match (place, op) {
                    (Place::Conjunct, Operator::Or) => Place::Truth,
                    (place, _) => place,
                };
                let (left, right) = (self.of(*left, inner)?, self.of(*right, inner)?);
                Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
            }
            Expr::Not(inner) => match *inner {
                Expr::InSubquery(asked) => {
                    let negated = !asked.negated;
                    self.membership(InSubquery { negated, ..asked }, place)
                }
                other => Ok(Expr::Not(Box::new(self.of(other, Place::Any)?))),
            },
            Expr::InSubquery(asked) => self.membership(asked, place),
            other => {
                let inner = |child| Ok(Transformed::yes(self.of(child, Place::Any)?));
                Ok(other.map_children(inner)?.data)
            }
        }
    }

    fn membership(&self, asked: InSubquery, place: Place) -> Result<Expr> {
        let is_correlated = !asked.subquery.outer_ref_columns.is_empty();
        let is_answered = match (place, asked.negated) {
            (Place::Conjunct | Place::Truth, false) => true,
            (Place::Conjunct, true) => !is_correlated && asked.expr.any_column_refs(),
            _ => false,
        };
        if is_answered {
            return Ok(Expr::InSubquery(asked));
        }
        let InSubquery { expr, subquery, negated } = asked;
        let left = self.inside_of(*expr)?;
        let value = first_column(&subquery)?;
        let is_same = value.clone().eq(left.clone());
        let is_null = value.is_null().or(left.is_null());
        if place != Place::Any && negated {
            return self.exists(&subquery, is_same.or(is_null), true);
        }
        let is_in = when(self.exists(&subquery, is_same, false)?, lit(true))
            .when(self.exists(&subquery, is_null, false)?, lit(ScalarValue::Boolean(None)))
            .otherwise(lit(false))?;
        Ok(if negated { Expr::Not(Box::new(is_in)) } else { is_in })
    }

    /// An outer expression as a subquery refers to it.
    fn inside_of(&self, expr: Expr) -> Result<Expr> {
        let mut has_query = false;
        expr.apply(|part| {
            has_query |= matches!(
                part,
                Expr::ScalarSubquery(_)
                    | Expr::InSubquery(_)
                    | Expr::Exists(_)
                    | Expr::SetComparison(_)
            );
            Ok(TreeNodeRecursion::Continue)
        })?;
        if has_query {
            let reason = "a query on the left of NOT IN (query); give it a name in WITH";
            return Err(Error::text(reason).into());
        }
        let seen = expr.transform(|part| match part {
            Expr::Column(column) => {
                let (_, field) = self.outer.qualified_field_from_column(&column)?;
                let field = Arc::clone(field);
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(seen.data)
    }

    /// EXISTS: whether the query has a row for which `condition` is TRUE.
    fn exists(&self, subquery: &Subquery, condition: Expr, negated: bool) -> Result<Expr> {
        let mut outer_ref_columns = subquery.outer_ref_columns.clone();
        condition.apply(|part| {
            if matches!(part, Expr::OuterReferenceColumn(..)) && !outer_ref_columns.contains(part) {
                outer_ref_columns.push(part.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let plan =
            LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).filter(condition)?;
        let subquery =
            Subquery { subquery: Arc::new(plan.build()?), outer_ref_columns, spans: Spans::new() };
        Ok(Expr::Exists(Exists { subquery, negated }))
    }
}

fn first_column(subquery: &Subquery) -> Result<Expr> {
    let mut columns = subquery.subquery.schema().columns();
    match columns.len() {
        1 => Ok(Expr::Column(columns.remove(0))),
        many => {
            let reason = format!("the query after IN has {many} columns instead of one");
            Err(Error::text(reason).into())
        }
    }
}
