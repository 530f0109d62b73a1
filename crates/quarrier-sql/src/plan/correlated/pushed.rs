//! Evaluates a query for every combination of a domain, whose columns become part of its rows.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprFunctionExt, Filter, Join, Limit, LogicalPlan,
    LogicalPlanBuilder, Projection, SortExpr, SubqueryAlias, Union, Window, lit,
};

use super::domain::{self, Domain};
use super::{columns, free, renamed_windows};
use crate::Error;

/// Pushes a domain into the plan of a query.
pub(super) struct DomainPushdown<'d> {
    domain: &'d Domain,
}

impl<'d> DomainPushdown<'d> {
    pub(super) fn new(domain: &'d Domain) -> Self {
        DomainPushdown { domain }
    }

    /// The rows of `plan` for each combination, with the columns of both.
    ///
    /// # Errors
    /// The plan has a node that this cannot handle.
    pub(super) fn plan(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        if !self.concerns(plan)? {
            return self.beside(plan);
        }
        match plan {
            LogicalPlan::Filter(filter) => {
                let input = self.plan(&filter.input)?;
                let predicate = self.expr(filter.predicate.clone())?;
                Ok(LogicalPlan::Filter(Filter::try_new(predicate, input.into())?))
            }
            LogicalPlan::Projection(projection) => {
                let mut outputs = self.named(&projection.expr)?;
                outputs.extend(self.domain.exprs());
                project(self.plan(&projection.input)?, outputs)
            }
            LogicalPlan::SubqueryAlias(alias) => self.alias(alias),
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
                self.ungrouped(aggregate)
            }
            LogicalPlan::Aggregate(aggregate) => self.grouped(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                LogicalPlanBuilder::from(self.plan(input)?).distinct()?.build()
            }
            // ORDER BY has no effect here without LIMIT, and `limit` handles it with one.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.plan(&sort.input),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Unnest(unnest) => {
                let exec = unnest.exec_columns.clone();
                LogicalPlanBuilder::from(self.plan(&unnest.input)?)
                    .unnest_columns_with_options(exec, unnest.options.clone())?
                    .build()
            }
            other => Err(unknown(&other.display().to_string())),
        }
    }

    /// The rows of a plan without outer columns, combined with every row of the domain.
    fn beside(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => self.domain.plan(),
            plan => LogicalPlanBuilder::from(plan.clone()).cross_join(self.domain.plan()?)?.build(),
        }
    }

    fn concerns(&self, plan: &LogicalPlan) -> Result<bool> {
        let outer = free::of(plan)?;
        Ok(outer.iter().any(|(_, column)| self.domain.name(column).is_some()))
    }

    /// Replaces outer columns in an expression by columns of the domain.
    fn expr(&self, expr: Expr) -> Result<Expr> {
        let replaced = expr.transform_down(|part| {
            let Expr::OuterReferenceColumn(_, column) = &part else {
                return Ok(Transformed::no(part));
            };
            match self.domain.name(column) {
                Some((_, name)) => Ok(Transformed::yes(Expr::Column(name.clone()))),
                None => Ok(Transformed::no(part)),
            }
        })?;
        let mut has_query = false;
        replaced.data.apply(|part| {
            if let Some(query) = free::query(part) {
                has_query |= self.concerns(&query.subquery)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if has_query {
            return Err(unknown("nested queries"));
        }
        Ok(replaced.data)
    }

    fn exprs(&self, exprs: &[Expr]) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.expr(expr.clone())).collect()
    }

    /// As [`exprs`](Self::exprs), and keeps the names of the expressions.
    fn named(&self, exprs: &[Expr]) -> Result<Vec<Expr>> {
        let names = NamePreserver::new_for_projection();
        let named = |expr: &Expr| Ok(names.save(expr).restore(self.expr(expr.clone())?));
        exprs.iter().map(named).collect()
    }

    fn alias(&self, alias: &SubqueryAlias) -> Result<LogicalPlan> {
        let inner = alias.input.schema().columns();
        let named = inner.into_iter().zip(alias.schema.iter()).map(|(column, (table, field))| {
            Expr::Column(column).alias_qualified(table.cloned(), field.name())
        });
        let outputs: Vec<Expr> = named.chain(self.domain.exprs()).collect();
        project(self.plan(&alias.input)?, outputs)
    }

    fn grouped(&self, aggregate: &Aggregate) -> Result<LogicalPlan> {
        if aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_))) {
            return Err(unknown("GROUPING SETS"));
        }
        let mut groups = self.named(&aggregate.group_expr)?;
        groups.extend(self.domain.exprs());
        let values = self.named(&aggregate.aggr_expr)?;
        let plan = Aggregate::try_new(self.plan(&aggregate.input)?.into(), groups, values)?;
        Ok(LogicalPlan::Aggregate(plan))
    }

    /// An aggregate without GROUP BY: a row for every combination, even one without input rows.
    fn ungrouped(&self, aggregate: &Aggregate) -> Result<LogicalPlan> {
        let marker = domain::column("row");
        let marked = |plan: LogicalPlan| {
            let mut outputs = columns(plan.schema());
            outputs.push(lit(true).alias(marker.name.clone()));
            project(plan, outputs)
        };
        let (rows, keys, filter) = match &*aggregate.input {
            LogicalPlan::Filter(filter) if !self.concerns(&filter.input)? => {
                let condition = self.expr(filter.predicate.clone())?;
                (marked((*filter.input).clone())?, Vec::new(), Some(condition))
            }
            input => {
                let again = self.domain.again();
                let rows = marked(DomainPushdown::new(&again).plan(input)?)?;
                (rows, self.domain.keys_with(&again)?, None)
            }
        };
        let rows = domain::join(self.domain.plan()?, rows, keys, filter, JoinType::Left)?;
        let is_row = Expr::Column(marker);
        let names = NamePreserver::new_for_projection();
        let values = aggregate.aggr_expr.iter().map(|value| {
            let name = names.save(value);
            let kept = self.expr(value.clone())?.transform_down(|part| of_rows(part, &is_row))?;
            Ok(name.restore(kept.data))
        });
        let values: Vec<Expr> = values.collect::<Result<_>>()?;
        let plan = Aggregate::try_new(rows.into(), self.domain.exprs(), values)?;
        Ok(LogicalPlan::Aggregate(plan))
    }

    /// LIMIT and OFFSET within the rows of each combination.
    fn limit(&self, limit: &Limit) -> Result<LogicalPlan> {
        let below = |input: &Arc<LogicalPlan>| {
            let limit = Limit { input: Arc::clone(input), ..limit.clone() };
            Arc::new(LogicalPlan::Limit(limit))
        };
        let (input, order): (&LogicalPlan, &[SortExpr]) = match &*limit.input {
            LogicalPlan::Projection(projection) => {
                let input = below(&projection.input);
                let (outputs, schema) = (projection.expr.clone(), Arc::clone(&projection.schema));
                let moved = Projection::try_new_with_schema(outputs, input, schema)?;
                return self.plan(&LogicalPlan::Projection(moved));
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let moved = SubqueryAlias::try_new(below(&alias.input), alias.alias.clone())?;
                return self.plan(&LogicalPlan::SubqueryAlias(moved));
            }
            LogicalPlan::Sort(sort) => (&sort.input, &sort.expr),
            other => (other, &[]),
        };
        let by = order.iter().map(|by| Ok(by.with_expr(self.expr(by.expr.clone())?)));
        let by: Vec<SortExpr> = by.collect::<Result<_>>()?;
        let number = domain::column("number");
        let numbered = row_number().partition_by(self.domain.exprs());
        let numbered = if by.is_empty() { numbered } else { numbered.order_by(by) }.build()?;
        let plan = LogicalPlanBuilder::from(self.plan(input)?).window([numbered])?.build()?;
        let schema = plan.schema();
        let last = Column::from(schema.qualified_field(schema.fields().len() - 1));
        let mut outputs = columns(input.schema());
        outputs.extend(self.domain.exprs());
        let kept = outputs.clone();
        outputs.push(Expr::Column(last).alias(number.name.clone()));
        let number = Expr::Column(number);
        let skip = limit.skip.as_deref().cloned().unwrap_or_else(|| lit(0_i64));
        let mut conditions = vec![number.clone().gt(skip.clone())];
        if let Some(fetch) = limit.fetch.as_deref() {
            conditions.push(number.lt_eq(skip + fetch.clone()));
        }
        let condition = conjunction(conditions).unwrap_or_else(|| lit(true));
        LogicalPlanBuilder::from(plan).project(outputs)?.filter(condition)?.project(kept)?.build()
    }

    fn window(&self, window: &Window) -> Result<LogicalPlan> {
        let functions = self.exprs(&window.window_expr)?.into_iter().map(|function| {
            let within = function.transform_down(|part| match part {
                Expr::WindowFunction(mut function) => {
                    function.params.partition_by.extend(self.domain.exprs());
                    let function = Expr::WindowFunction(function);
                    Ok(Transformed::new(function, true, TreeNodeRecursion::Jump))
                }
                other => Ok(Transformed::no(other)),
            })?;
            Ok(within.data)
        });
        let functions: Vec<Expr> = functions.collect::<Result<_>>()?;
        let input = self.plan(&window.input)?;
        renamed_windows(window, functions, input, &self.domain.columns())
    }

    fn join(&self, join: &Join) -> Result<LogicalPlan> {
        use JoinType as J;
        if !matches!(join.join_type, J::Inner | J::Left | J::LeftSemi | J::LeftAnti) {
            return Err(unknown("joins other than inner and left ones"));
        }
        if join.null_aware {
            return Err(unknown("NOT IN (query)"));
        }
        let is_right = self.concerns(&join.right)?;
        let left = self.plan(&join.left)?;
        let again = self.domain.again();
        let right = match is_right {
            true => DomainPushdown::new(&again).plan(&join.right)?,
            false => (*join.right).clone(),
        };
        let mut on = Vec::with_capacity(join.on.len());
        for (left, right) in &join.on {
            let right = if is_right {
                DomainPushdown::new(&again).expr(right.clone())?
            } else {
                right.clone()
            };
            on.push((self.expr(left.clone())?, right));
        }
        let filter = match &join.filter {
            Some(filter) => Some(self.expr(filter.clone())?),
            None => None,
        };
        if is_right {
            on.extend(self.domain.keys_with(&again)?);
        }
        let joined = LogicalPlan::Join(Join::try_new(
            Arc::new(left),
            Arc::new(right),
            on,
            filter,
            join.join_type,
            join.join_constraint,
            join.null_equality,
            false,
        )?);
        let mut outputs = columns(&join.schema);
        outputs.extend(self.domain.exprs());
        project(joined, outputs)
    }

    fn union(&self, union: &Union) -> Result<LogicalPlan> {
        let inputs = union.inputs.iter().map(|input| {
            let mut outputs = columns(input.schema());
            outputs.extend(self.domain.exprs());
            Ok(Arc::new(project(self.plan(input)?, outputs)?))
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let plan = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
        let named = renamed(&plan, &union.schema, &self.domain.columns());
        project(plan, named)
    }
}

/// The columns of `plan`, renamed in order to those of `schema` and then `more`.
fn renamed(plan: &LogicalPlan, schema: &DFSchema, more: &[Column]) -> Vec<Expr> {
    let mut inner = plan.schema().columns().into_iter().map(Expr::Column);
    let mut named = Vec::with_capacity(plan.schema().fields().len());
    for ((table, field), column) in schema.iter().zip(&mut inner) {
        named.push(column.alias_qualified(table.cloned(), field.name()));
    }
    named.extend(inner.zip(more).map(|(column, name)| column.alias(name.name.clone())));
    named
}

fn project(plan: LogicalPlan, outputs: Vec<Expr>) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(plan).project(outputs)?.build()
}

/// Restricts an aggregate to the rows that exist, excluding those that the outer join added.
fn of_rows(part: Expr, is_row: &Expr) -> Result<Transformed<Expr>> {
    let Expr::AggregateFunction(mut function) = part else { return Ok(Transformed::no(part)) };
    let filter = function.params.filter.take();
    let filter = filter.map(|filter| *filter).into_iter().chain([is_row.clone()]);
    function.params.filter = conjunction(filter).map(Box::new);
    let function = Expr::AggregateFunction(function);
    Ok(Transformed::new(function, true, TreeNodeRecursion::Jump))
}

fn unknown(what: &str) -> datafusion::error::DataFusionError {
    let reason = format!("a correlated query over {what} is not supported; write it as a join");
    Error::text(reason).into()
}
