//! Floats have one zero and one NaN, which is greater than all others. Where floats are compared,
//! grouped, joined or sorted, they are brought into that canonical form first. DataFusion goes by
//! their bits: to it, -0.0 is less than 0.0, and a NaN with a sign less than everything.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::{AggregateFunction, InList, InSubquery, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Between, BinaryExpr, Distinct, Expr, ExprSchemable, Join, LogicalPlan,
    LogicalPlanBuilder, Operator, Sort,
};

use quarrier_messages::Kind;

use super::strict::is_comparison;
use crate::Messages;
use quarrier_exact::Floats;

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| data_type == DataType::Float64)
}

/// The canonical form of a float.
fn ordered(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(float)), metadata) => {
            let float = if float.is_nan() { f64::NAN } else { float + 0.0 };
            Expr::Literal(ScalarValue::Float64(Some(float)), metadata)
        }
        literal @ Expr::Literal(..) => literal,
        Expr::ScalarFunction(call) if Floats::of(call.name()) == Some(Floats::Ordered) => {
            Expr::ScalarFunction(call)
        }
        expr => Floats::Ordered.call(expr),
    }
}

fn put(expr: &mut Expr, schema: &DFSchema) {
    if is_float(expr, schema) {
        *expr = ordered(std::mem::take(expr));
    }
}

/// Whether equality with a literal needs no canonical form: it is neither zero nor NaN.
fn is_plain(expr: &Expr) -> bool {
    let value = |float: &f64| *float != 0.0 && !float.is_nan();
    matches!(expr, Expr::Literal(ScalarValue::Float64(float), _) if float.iter().all(value))
}

/// Makes an expression compare floats by value.
pub(super) fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { mut left, op, mut right })
            if is_comparison(op) && is_float(&left, schema) && is_float(&right, schema) =>
        {
            // `=` with a literal keeps the column unchanged, so that files can use their
            // statistics.
            let is_found = op == Operator::Eq && (is_plain(&left) || is_plain(&right));
            let is_outer = left.contains_outer() || right.contains_outer();
            if !is_found && !is_outer {
                put(&mut left, schema);
                put(&mut right, schema);
            }
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(Between { mut expr, negated, mut low, mut high })
            if is_float(&expr, schema) =>
        {
            [&mut expr, &mut low, &mut high].into_iter().for_each(|part| put(part, schema));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::InList(InList { mut expr, mut list, negated })
            if is_float(&expr, schema) && (negated || !list.iter().all(is_plain)) =>
        {
            put(&mut expr, schema);
            list.iter_mut().for_each(|part| put(part, schema));
            Transformed::yes(Expr::InList(InList { expr, list, negated }))
        }
        Expr::InSubquery(InSubquery { mut expr, subquery, negated })
            if is_float(&expr, schema) && !expr.contains_outer() =>
        {
            put(&mut expr, schema);
            let subquery = match formed(&subquery.subquery)? {
                Some(plan) => subquery.with_plan(Arc::new(plan)),
                None => subquery,
            };
            Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated }))
        }
        Expr::Case(mut case) => {
            if let Some(operand) = case.expr.as_mut().filter(|operand| is_float(operand, schema)) {
                put(operand, schema);
                case.when_then_expr.iter_mut().for_each(|(when, _)| put(when, schema));
            }
            Transformed::no(Expr::Case(case))
        }
        Expr::WindowFunction(window) => Transformed::no(windowed(window, schema)),
        other => Transformed::no(other),
    })
}

fn windowed(mut window: Box<WindowFunction>, schema: &DFSchema) -> Expr {
    let params = &mut window.params;
    params.partition_by.iter_mut().for_each(|part| put(part, schema));
    params.order_by.iter_mut().for_each(|sort| put(&mut sort.expr, schema));
    Expr::WindowFunction(window)
}

/// Makes a plan group, join and sort floats by value.
pub(super) fn node(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate)?,
        LogicalPlan::Sort(Sort { mut expr, input, fetch }) => {
            expr.iter_mut().for_each(|sort| put(&mut sort.expr, input.schema()));
            LogicalPlan::Sort(Sort { expr, input, fetch })
        }
        LogicalPlan::Join(mut join) => {
            joined(&mut join);
            LogicalPlan::Join(join)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => match formed(&input)? {
            Some(input) => LogicalPlan::Distinct(Distinct::All(Arc::new(input))),
            None => LogicalPlan::Distinct(Distinct::All(input)),
        },
        other => other,
    })
}

fn joined(join: &mut Join) {
    for (left, right) in &mut join.on {
        if is_float(left, join.left.schema()) && is_float(right, join.right.schema()) {
            put(left, join.left.schema());
            put(right, join.right.schema());
        }
    }
}

/// The rows with floats in canonical form; `None` if there are no floats.
fn formed(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let schema = plan.schema();
    if schema.fields().iter().all(|field| *field.data_type() != DataType::Float64) {
        return Ok(None);
    }
    let outputs = schema.columns().into_iter().map(|column| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        let column = Expr::Column(column);
        match is_float(&column, schema) {
            true => ordered(column).alias_qualified(relation, name),
            false => column,
        }
    });
    let outputs: Vec<Expr> = outputs.collect();
    Ok(Some(LogicalPlanBuilder::from(plan.clone()).project(outputs)?.build()?))
}

fn grouped(aggregate: Aggregate) -> Result<LogicalPlan> {
    let schema = aggregate.input.schema();
    let names = NamePreserver::new_for_projection();
    let is_known = is_of_messages(&aggregate.input)?;
    let is_float_expr = |one: &Expr| is_float(one, schema);
    let is_bound = |call: &AggregateFunction| {
        // The statistics of messages give these bounds by value, without a scan.
        let is_known = is_known && matches!(call.params.args.as_slice(), [Expr::Column(_)]);
        matches!(call.func.name(), "min" | "max") && !is_known
    };
    let of_floats = |call: &AggregateFunction| call.params.args.iter().any(is_float_expr);
    let mut is_changed = aggregate.group_expr.iter().any(is_float_expr);
    let groups = aggregate.group_expr.iter().map(|group| {
        let name = names.save(group);
        let mut group = group.clone();
        put(&mut group, schema);
        name.restore(group)
    });
    let groups: Vec<Expr> = groups.collect();
    let mut all = Vec::with_capacity(aggregate.aggr_expr.len());
    let mut bounds = Vec::with_capacity(all.capacity());
    for one in &aggregate.aggr_expr {
        let name = names.save(one);
        let mut has_keys = false;
        let changed = one.clone().transform_up(|expr| match expr {
            Expr::AggregateFunction(mut call) if of_floats(&call) && is_bound(&call) => {
                has_keys = true;
                let keys = call.params.args.drain(..).map(|arg| Floats::Key.call(arg));
                call.params.args = keys.collect();
                Ok(Transformed::yes(Expr::AggregateFunction(call)))
            }
            Expr::AggregateFunction(mut call) if of_floats(&call) && call.params.distinct => {
                call.params.args.iter_mut().for_each(|arg| put(arg, schema));
                Ok(Transformed::yes(Expr::AggregateFunction(call)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        is_changed |= changed.transformed;
        all.push(name.restore(changed.data));
        bounds.push(has_keys);
    }
    if !is_changed {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let groups_count = aggregate.schema.fields().len() - all.len();
    let changed = Aggregate::try_new(Arc::clone(&aggregate.input), groups, all)?;
    let is_key = |place: usize| place >= groups_count && bounds[place - groups_count];
    of_keys(LogicalPlan::Aggregate(changed), is_key)
}

/// Converts columns of keys back to floats.
fn of_keys(plan: LogicalPlan, is_key: impl Fn(usize) -> bool) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    if !(0..columns.len()).any(&is_key) {
        return Ok(plan);
    }
    let outputs = columns.into_iter().enumerate().map(|(place, column)| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        let column = Expr::Column(column);
        match is_key(place) {
            true => Floats::OfKey.call(column).alias_qualified(relation, name),
            false => column,
        }
    });
    let outputs: Vec<Expr> = outputs.collect();
    LogicalPlanBuilder::from(plan).project(outputs)?.build()
}

/// Whether no float column has a NaN, whose key would be the maximum of its segment.
fn is_without_nan(messages: &Messages) -> bool {
    let table = messages.table();
    let mut columns = table.schema().fields.iter().zip(table.columns());
    columns.all(|(field, column)| {
        let has_nan =
            column.segments().iter().any(|segment| segment.zone().max == i128::from(i64::MAX));
        field.kind != Kind::Float || !has_nan
    })
}

/// Whether all rows come from tables of messages without NaN.
fn is_of_messages(plan: &LogicalPlan) -> Result<bool> {
    let mut is_one = true;
    plan.apply(|part| {
        if let LogicalPlan::TableScan(scan) = part {
            let provider = source_as_provider(&scan.source)?;
            is_one &= provider.downcast_ref::<Messages>().is_some_and(is_without_nan);
        }
        is_one &= !matches!(part, LogicalPlan::Values(_));
        Ok(if is_one { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(is_one)
}
