//! The distinct combinations of outer columns for which a subquery is evaluated: its domain.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality, Result, ScalarValue};
use datafusion::logical_expr::{
    Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, lit, when,
};

use super::free::Outer;
use crate::Error;

/// A generated name, which no statement uses.
fn next(what: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("__{what}_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A column with a generated name.
pub(super) fn column(what: &str) -> Column {
    Column::new_unqualified(next(what))
}

/// The domain, with a generated name for each column.
#[derive(Debug)]
pub(super) struct Domain {
    outer: LogicalPlan,
    pairs: Vec<(Outer, Column)>,
}

impl Domain {
    /// The domain of columns of `outer`.
    ///
    /// # Errors
    /// `outer` may have other rows each time it is evaluated.
    pub(super) fn new(outer: &LogicalPlan, columns: Vec<Outer>) -> Result<Self> {
        let outer = unlimited(outer);
        if !is_repeatable(outer)? {
            let reason = "a correlated query needs the same rows each time; add ORDER BY before LIMIT, \
                          and leave out random()";
            return Err(Error::text(reason).into());
        }
        Ok(Self::of(outer.clone(), columns))
    }

    fn of(outer: LogicalPlan, columns: Vec<Outer>) -> Self {
        let named = |outer: Outer| (outer, column("outer"));
        Domain { outer, pairs: columns.into_iter().map(named).collect() }
    }

    /// The same domain under other names, for a second side of a join.
    pub(super) fn again(&self) -> Self {
        Self::of(self.outer.clone(), self.pairs.iter().map(|(outer, _)| outer.clone()).collect())
    }

    /// The plan that computes the domain.
    pub(super) fn plan(&self) -> Result<LogicalPlan> {
        let outputs = self
            .pairs
            .iter()
            .map(|((_, outer), column)| Expr::Column(outer.clone()).alias(column.name.clone()));
        LogicalPlanBuilder::from(self.outer.clone()).project(outputs)?.distinct()?.build()
    }

    /// The domain's name for an outer column.
    pub(super) fn name(&self, outer: &Column) -> Option<(&FieldRef, &Column)> {
        let found = self.pairs.iter().find(|((_, column), _)| column == outer);
        found.map(|((field, _), column)| (field, column))
    }

    /// The columns of the domain.
    pub(super) fn columns(&self) -> Vec<Column> {
        self.pairs.iter().map(|(_, column)| column.clone()).collect()
    }

    /// The columns of the domain as expressions.
    pub(super) fn exprs(&self) -> Vec<Expr> {
        self.columns().into_iter().map(Expr::Column).collect()
    }

    /// The equalities that join outer columns with the domain.
    pub(super) fn keys(&self) -> Result<Vec<(Expr, Expr)>> {
        let keys = self.pairs.iter().map(|((field, outer), column)| {
            let (outer, column) = (Expr::Column(outer.clone()), Expr::Column(column.clone()));
            same(outer, column, field.data_type())
        });
        Ok(keys.collect::<Result<Vec<_>>>()?.concat())
    }

    /// As [`keys`](Self::keys), to join the same domain under other names.
    pub(super) fn keys_with(&self, other: &Domain) -> Result<Vec<(Expr, Expr)>> {
        let keys = self.pairs.iter().zip(&other.pairs).map(|(((field, _), left), (_, right))| {
            let (left, right) = (Expr::Column(left.clone()), Expr::Column(right.clone()));
            same(left, right, field.data_type())
        });
        Ok(keys.collect::<Result<Vec<_>>>()?.concat())
    }
}

/// Equality where NULL equals NULL. DataFusion has joins with that equality, but moves later
/// conditions into their keys, for which it is wrong.
fn same(left: Expr, right: Expr, kind: &DataType) -> Result<Vec<(Expr, Expr)>> {
    let any = ScalarValue::new_default(kind)?;
    let known =
        |value: &Expr| when(value.clone().is_null(), lit(any.clone())).otherwise(value.clone());
    let values = (known(&left)?, known(&right)?);
    Ok(vec![(left.is_null(), right.is_null()), values])
}

/// Joins two plans by these equalities.
pub(super) fn join(
    left: LogicalPlan,
    right: LogicalPlan,
    on: Vec<(Expr, Expr)>,
    filter: Option<Expr>,
    join_type: JoinType,
) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Join(Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        filter,
        join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNothing,
        false,
    )?))
}

/// Removes LIMIT and ORDER BY at the top. A larger domain does no harm.
fn unlimited(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Limit(limit) => unlimited(&limit.input),
        LogicalPlan::Sort(sort) => unlimited(&sort.input),
        other => other,
    }
}

/// Whether a plan has the same rows each time it is evaluated.
fn is_repeatable(plan: &LogicalPlan) -> Result<bool> {
    let mut is_so = true;
    plan.apply(|node| {
        if let LogicalPlan::Limit(limit) = node {
            is_so &= is_ordered(&limit.input);
        }
        node.apply_expressions(|expr| {
            is_so &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_so)
}

fn is_ordered(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::Filter(Filter { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => is_ordered(input),
        LogicalPlan::Sort(_) | LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => true,
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}
