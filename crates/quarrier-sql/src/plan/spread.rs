//! Puts filters, projections and partial groups above the scan of a table that other processes read into its
//! fragment, so that they process them.
//!
//! Rows and groups arrive in the order of the units, so this moves only what does not depend on where a unit
//! ends. Sums of floats would: they stay here. `Spread::pack` decides whether an operator can be sent.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Volatility;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::replace_children_if_necessary;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PhysicalExpr};

use crate::Error;
use crate::files::{SpreadExec, Spreading};
use crate::function::{FoundExec, Notes};

/// Aggregates whose partial results are merged exactly, whatever the order, except for floats.
const MERGED: [&str; 5] = ["avg", "count", "max", "min", "sum"];

type Plan = Arc<dyn ExecutionPlan>;

/// The rule.
#[derive(Debug)]
pub(crate) struct Spreads {
    pub(crate) spread: Spreading,
    /// Where to say what this process does alone.
    pub(crate) notes: Notes,
}

impl PhysicalOptimizerRule for Spreads {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        self.check(&plan)?;
        plan.transform_up(|plan| {
            Ok(match instead(&plan)? {
                Some(other) => Transformed::yes(other),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "spread"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl Spreads {
    /// Refuses table functions that this process runs, if everything has to be spread, and else says that it does.
    fn check(&self, plan: &Plan) -> Result<()> {
        let mut found = None;
        plan.apply(|part| {
            Ok(match part.downcast_ref::<FoundExec>() {
                Some(part) if !part.is_spread() => {
                    let name = part.name().trim_end_matches("Exec").to_lowercase();
                    found = Some(format!("{name}(…)"));
                    TreeNodeRecursion::Stop
                }
                _ => TreeNodeRecursion::Continue,
            })
        })?;
        if let Some(what) = found {
            let notice = self.spread.not_spread(&what).map_err(Error::text)?;
            self.notes.add_notices([notice]);
        }
        Ok(())
    }
}

/// A plan with a larger fragment for one over a smaller one.
fn instead(plan: &Plan) -> Result<Option<Plan>> {
    let [input] = plan.children()[..] else { return Ok(None) };
    let Some((scan, dealt)) = scan_of(input) else { return Ok(None) };
    if let Some(groups) = plan.downcast_ref::<AggregateExec>() {
        return grouped(groups, scan, dealt);
    }
    let is_moved = plan.is::<FilterExec>() || plan.is::<ProjectionExec>();
    if !is_moved || !are_sent(plan)? {
        return Ok(None);
    }
    let moved = replace_children_if_necessary(Arc::clone(plan), vec![Arc::clone(scan.plan())])?;
    let Some(scan) = scan.with_plan(moved) else { return Ok(None) };
    let rows = over(Arc::new(scan), dealt)?;
    // Each unit has that many rows at most, and so has each partition here.
    Ok(Some(match plan.fetch() {
        Some(fetch) => Arc::new(LocalLimitExec::new(rows, fetch)),
        None => rows,
    }))
}

/// The scan whose rows a plan passes on, and the node that deals them to several partitions.
fn scan_of(plan: &Plan) -> Option<(&SpreadExec, Option<&RepartitionExec>)> {
    let is_dealt =
        |it: &&RepartitionExec| matches!(it.partitioning(), Partitioning::RoundRobinBatch(_));
    let dealt = plan.downcast_ref::<RepartitionExec>().filter(is_dealt);
    let scan = dealt.map_or(plan, RepartitionExec::input).downcast_ref::<SpreadExec>()?;
    Some((scan, dealt))
}

/// The scan with as many partitions as before.
fn over(scan: Plan, dealt: Option<&RepartitionExec>) -> Result<Plan> {
    Ok(match dealt {
        Some(dealt) => Arc::new(RepartitionExec::try_new(scan, dealt.partitioning().clone())?),
        None => scan,
    })
}

/// Whether the expressions of a node have the same values in another process: none depends on what happens
/// while the plan runs, nor on chance.
fn are_sent(plan: &Plan) -> Result<bool> {
    let mut are_sent = true;
    plan.apply_expressions(&mut |expr: &Arc<dyn PhysicalExpr>| {
        are_sent &= is_sent(expr)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(are_sent)
}

fn is_sent(expr: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    let changes = |part: &Arc<dyn PhysicalExpr>| {
        let function = part.downcast_ref::<ScalarFunctionExpr>();
        let is_volatile =
            function.is_some_and(|it| it.fun().signature().volatility == Volatility::Volatile);
        Ok(is_volatile || part.is::<DynamicFilterPhysicalExpr>())
    };
    Ok(!expr.exists(changes)?)
}

/// Groups of the units, which are merged here.
fn grouped(
    groups: &AggregateExec,
    scan: &SpreadExec,
    dealt: Option<&RepartitionExec>,
) -> Result<Option<Plan>> {
    let is_partial = match groups.mode() {
        AggregateMode::Partial => true,
        AggregateMode::Single => false,
        _ => return Ok(None),
    };
    if !are_merged(groups)? {
        return Ok(None);
    }
    let partial = AggregateExec::try_new(
        AggregateMode::Partial,
        groups.group_expr().clone(),
        groups.aggr_expr().to_vec(),
        groups.filter_expr().to_vec(),
        Arc::clone(scan.plan()),
        groups.input_schema(),
    )?;
    let merged = partial.group_expr().as_final();
    let partial_schema = partial.schema();
    let Some(scan) = scan.with_plan(Arc::new(partial)) else { return Ok(None) };
    let parts = over(Arc::new(scan), dealt)?;
    if is_partial {
        return Ok((groups.schema() == partial_schema).then_some(parts));
    }
    let none = vec![None; groups.aggr_expr().len()];
    let whole = AggregateExec::try_new(
        AggregateMode::Final,
        merged,
        groups.aggr_expr().to_vec(),
        none,
        parts,
        groups.input_schema(),
    )?;
    Ok((whole.schema() == groups.schema()).then(|| Arc::new(whole) as Plan))
}

/// Whether groups of units, merged, are those of all rows.
fn are_merged(groups: &AggregateExec) -> Result<bool> {
    let keys = groups.group_expr();
    let is_plain = (keys.is_single() || keys.is_true_no_grouping())
        && !keys.has_grouping_set()
        && groups.limit_options().is_none();
    if !is_plain {
        return Ok(false);
    }
    let schema = groups.input_schema();
    let mut values: Vec<Arc<dyn PhysicalExpr>> = keys.input_exprs();
    for aggregate in groups.aggr_expr() {
        let name = aggregate.fun().name();
        let is_plain =
            MERGED.contains(&name) && !aggregate.is_distinct() && aggregate.order_bys().is_empty();
        if !is_plain {
            return Ok(false);
        }
        values.extend(counted(aggregate));
    }
    for value in &values {
        if value.data_type(&schema)?.is_floating() {
            return Ok(false);
        }
    }
    let filters = groups.filter_expr().iter().flatten().cloned();
    let arguments = groups.aggr_expr().iter().flat_map(|aggregate| aggregate.expressions());
    for expr in values.iter().cloned().chain(filters).chain(arguments) {
        if !is_sent(&expr)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The arguments of an aggregate, unless it only counts them.
fn counted(aggregate: &Arc<AggregateFunctionExpr>) -> Vec<Arc<dyn PhysicalExpr>> {
    match aggregate.fun().name() {
        "count" => Vec::new(),
        _ => aggregate.expressions(),
    }
}
