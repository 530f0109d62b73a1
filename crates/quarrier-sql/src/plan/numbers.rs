//! Determines the common type of two numbers in calculations and comparisons, so that nothing is
//! lost or wraps: float if one is, otherwise 64-bit integers, or decimals for unsigned ones.
//! DataFusion would convert floats to decimals with a scale of 15, and calculate in the narrowest
//! type.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{InList, InSubquery, ScalarFunction, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Between, BinaryExpr, Case, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder,
    Operator, Subquery, Union, cast,
};
use datafusion::optimizer::AnalyzerRule;

use super::strict::{is_arithmetic, is_comparison};
use quarrier_exact::{Checked, nearest};

/// Runs before DataFusion's type coercion.
#[derive(Debug)]
pub(crate) struct Numbers;

impl AnalyzerRule for Numbers {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(node)?.data)
    }

    fn name(&self) -> &str {
        "numbers"
    }
}

/// The columns of a node's input, including those that a scan does not return.
pub(super) fn schema_of(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        let name = scan.table_name.clone();
        schema.merge(&DFSchema::try_from_qualified_schema(name, &scan.source.schema())?);
    }
    Ok(schema)
}

fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = schema_of(&plan)?;
    let names = NamePreserver::new(&plan);
    let plan = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| rewrite(expr, &schema))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })?;
    let plan = match plan.data {
        LogicalPlan::Join(join) => joined(join),
        LogicalPlan::Union(union) => united(union)?,
        other => other,
    };
    // The inputs may have other types now.
    Ok(Transformed::yes(plan.recompute_schema()?))
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(both) if is_comparison(both.op) => {
            compared(both, schema).update_data(Expr::BinaryExpr)
        }
        Expr::BinaryExpr(both) if is_arithmetic(both.op) => calculated(both, schema),
        Expr::Negative(operand) => negated(operand, schema),
        Expr::Between(between) => of_range(between, schema),
        Expr::InList(list) => of_list(list, schema),
        Expr::Case(case) => chosen(case, schema),
        Expr::ScalarFunction(call) => called(call, schema),
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let (expr, subquery) = of_query(expr, subquery, schema)?;
            Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated }))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let (expr, subquery) = of_query(expr, subquery, schema)?;
            Transformed::yes(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }))
        }
        other => Transformed::no(other),
    })
}

/// The classes of numeric types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Signed 64-bit integers, or narrower ones.
    Whole,
    /// Unsigned 64-bit integers.
    Unsigned,
    Decimal,
    Float,
    Other,
}

fn sort(data_type: &DataType) -> Sort {
    use DataType as T;
    match data_type {
        T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32 => Sort::Whole,
        T::UInt64 => Sort::Unsigned,
        data_type if data_type.is_decimal() => Sort::Decimal,
        T::Float16 | T::Float32 | T::Float64 => Sort::Float,
        T::Dictionary(_, values) => sort(values),
        _ => Sort::Other,
    }
}

fn sort_of(expr: &Expr, schema: &DFSchema) -> Sort {
    expr.get_type(schema).map_or(Sort::Other, |data_type| sort(&data_type))
}

/// Converts an expression to a 64-bit float. A decimal literal is rounded once, from its digits.
fn floating(expr: Expr, schema: &DFSchema) -> Expr {
    if expr.get_type(schema).is_ok_and(|data_type| data_type == DataType::Float64) {
        return expr;
    }
    if let Expr::Literal(value, metadata) = &expr {
        let float = nearest(value).or_else(|| value.cast_to(&DataType::Float64).ok());
        if let Some(float) = float {
            return Expr::Literal(float, metadata.clone());
        }
    }
    cast(expr, DataType::Float64)
}

/// Converts all numbers to 64-bit floats if one is a float and another is exact or a narrower
/// float.
fn level<const N: usize>(exprs: [Expr; N], schema: &DFSchema) -> Transformed<[Expr; N]> {
    let types = exprs.each_ref().map(|expr| expr.get_type(schema).unwrap_or(DataType::Null));
    let is_mixed = types.iter().any(|one| sort(one) == Sort::Float)
        && types.iter().any(|one| *one != DataType::Float64 && sort(one) != Sort::Other);
    if !is_mixed {
        return wide_enough(exprs, &types);
    }
    let mut types = types.into_iter();
    Transformed::yes(exprs.map(|expr| match types.next() {
        Some(one) if sort(&one) != Sort::Other => floating(expr, schema),
        _ => expr,
    }))
}

/// The digits of an exact number before and after the point. A literal counts only the digits it
/// has.
fn digits(expr: &Expr, data_type: &DataType) -> Option<(u8, u8)> {
    use DataType as T;
    let (before, after) = match *data_type {
        T::Int8 | T::UInt8 => (3, 0),
        T::Int16 | T::UInt16 => (5, 0),
        T::Int32 | T::UInt32 => (10, 0),
        T::Int64 => (19, 0),
        T::UInt64 => (20, 0),
        T::Decimal32(precision, scale)
        | T::Decimal64(precision, scale)
        | T::Decimal128(precision, scale)
        | T::Decimal256(precision, scale) => {
            let scale = u8::try_from(scale).ok()?;
            (precision.checked_sub(scale)?, scale)
        }
        _ => return None,
    };
    let length =
        |number: i128| number.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1) as u8;
    Some(match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => (length((*number).into()), 0),
        Expr::Literal(ScalarValue::UInt64(Some(number)), _) => (length((*number).into()), 0),
        Expr::Literal(ScalarValue::Decimal128(Some(mantissa), _, _), _) => {
            (length(*mantissa).saturating_sub(after), after)
        }
        _ => (before, after),
    })
}

/// Converts exact numbers to a decimal of up to 76 digits if they exceed DataFusion's common type
/// of 38.
fn wide_enough<const N: usize>(exprs: [Expr; N], types: &[DataType; N]) -> Transformed<[Expr; N]> {
    let mut widest = (0, 0);
    for (expr, data_type) in exprs.iter().zip(types) {
        match digits(expr, data_type) {
            Some((before, after)) => widest = (widest.0.max(before), widest.1.max(after)),
            None if *data_type == DataType::Null => {}
            None => return Transformed::no(exprs),
        }
    }
    let precision = widest.0 + widest.1;
    if widest.1 == 0 || !(39..=76).contains(&precision) {
        return Transformed::no(exprs);
    }
    let wide = DataType::Decimal256(precision, widest.1 as i8);
    Transformed::yes(exprs.map(|expr| cast(expr, wide.clone())))
}

fn compared(both: BinaryExpr, schema: &DFSchema) -> Transformed<BinaryExpr> {
    let op = both.op;
    level([*both.left, *both.right], schema).update_data(|[left, right]| BinaryExpr {
        left: Box::new(left),
        op,
        right: Box::new(right),
    })
}

fn of_range(between: Between, schema: &DFSchema) -> Transformed<Expr> {
    let Between { expr, negated, low, high } = between;
    let [a, b, c] = [&expr, &low, &high].map(|expr| sort_of(expr, schema));
    // Compares each end separately, so that an exact number stays exact with an exact end.
    if a != Sort::Float && (b == Sort::Float) != (c == Sort::Float) && !expr.is_volatile() {
        let end = |op, end| {
            let both = BinaryExpr { left: expr.clone(), op, right: end };
            Expr::BinaryExpr(compared(both, schema).data)
        };
        let inside = end(Operator::GtEq, low).and(end(Operator::LtEq, high));
        return Transformed::yes(if negated { Expr::Not(Box::new(inside)) } else { inside });
    }
    level([*expr, *low, *high], schema).update_data(|[expr, low, high]| {
        Expr::Between(Between::new(Box::new(expr), negated, Box::new(low), Box::new(high)))
    })
}

fn of_list(list: InList, schema: &DFSchema) -> Transformed<Expr> {
    let InList { expr, list, negated } = list;
    let is_float = |one: &Expr| sort_of(one, schema) == Sort::Float;
    let with = |expr: Box<Expr>, list| Expr::InList(InList { expr, list, negated });
    if is_float(&expr) {
        let as_float = |one: Expr| match sort_of(&one, schema) {
            Sort::Other => one,
            _ => floating(one, schema),
        };
        let list: Vec<Expr> = list.into_iter().map(as_float).collect();
        return Transformed::yes(with(Box::new(floating(*expr, schema)), list));
    }
    let is_exact = !matches!(sort_of(&expr, schema), Sort::Float | Sort::Other);
    if !is_exact || !list.iter().any(is_float) {
        return Transformed::no(with(expr, list));
    }
    let (floats, others): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(is_float);
    let near = with(Box::new(floating((*expr).clone(), schema)), floats);
    Transformed::yes(match (others.is_empty(), negated) {
        (true, _) => near,
        (false, true) => with(expr, others).and(near),
        (false, false) => with(expr, others).or(near),
    })
}

fn chosen(case: Case, schema: &DFSchema) -> Transformed<Expr> {
    let mut is_changed = false;
    let Case { mut expr, mut when_then_expr, mut else_expr } = case;
    if let Some(operand) = &mut expr {
        let whens = || when_then_expr.iter().map(|(when, _)| when);
        let mixed = whens().any(|when| {
            let pair = [sort_of(operand, schema), sort_of(when, schema)];
            pair.contains(&Sort::Float) && pair.contains(&Sort::Decimal)
        });
        if mixed {
            **operand = floating(std::mem::take(&mut **operand), schema);
            for (when, _) in &mut when_then_expr {
                if !matches!(sort_of(when, schema), Sort::Other) {
                    **when = floating(std::mem::take(&mut **when), schema);
                }
            }
            is_changed = true;
        }
    }
    let mut results: Vec<&mut Box<Expr>> = when_then_expr.iter_mut().map(|(_, it)| it).collect();
    results.extend(else_expr.as_mut());
    let sorts: Vec<Sort> = results.iter().map(|result| sort_of(result, schema)).collect();
    if sorts.contains(&Sort::Float) && sorts.contains(&Sort::Decimal) {
        for (result, sort) in results.into_iter().zip(sorts) {
            if sort != Sort::Other {
                **result = floating(std::mem::take(&mut **result), schema);
            }
        }
        is_changed = true;
    }
    let case = Expr::Case(Case { expr, when_then_expr, else_expr });
    Transformed::new_transformed(case, is_changed)
}

/// Functions whose arguments all have the same type.
const OF_ONE_KIND: [&str; 8] =
    ["coalesce", "nullif", "nvl", "ifnull", "greatest", "least", "mod", "nanvl"];

fn called(call: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let ScalarFunction { func, mut args } = call;
    let sorts: Vec<Sort> = args.iter().map(|arg| sort_of(arg, schema)).collect();
    let is_mixed = sorts.contains(&Sort::Float) && sorts.contains(&Sort::Decimal);
    let mut is_changed = false;
    if is_mixed && OF_ONE_KIND.contains(&func.name()) {
        args = args.into_iter().map(|arg| floating(arg, schema)).collect();
        is_changed = true;
    } else if func.name() == "abs" && sorts == [Sort::Whole] {
        args = args.into_iter().map(|arg| whole(arg, schema)).collect();
        is_changed = true;
    }
    let call = Expr::ScalarFunction(ScalarFunction { func, args });
    Transformed::new_transformed(call, is_changed)
}

/// Converts an expression to a 64-bit integer.
fn whole(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(DataType::Int64) => expr,
        _ => cast(expr, DataType::Int64),
    }
}

/// The type in which unsigned integers are calculated.
const WIDE: DataType = DataType::Decimal128(20, 0);

fn calculated(both: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let (left, right) = (sort_of(&both.left, schema), sort_of(&both.right, schema));
    let BinaryExpr { left: a, op, right: b } = both;
    let step = match op {
        Operator::Plus => Some(Checked::Add),
        Operator::Minus => Some(Checked::Subtract),
        Operator::Multiply => Some(Checked::Multiply),
        _ => None,
    };
    let with = |a: Expr, b: Expr| {
        Expr::BinaryExpr(BinaryExpr { left: Box::new(a), op, right: Box::new(b) })
    };
    match (left, right, step) {
        (Sort::Whole, Sort::Whole, Some(step)) => {
            Transformed::yes(step.call(vec![whole(*a, schema), whole(*b, schema)]))
        }
        (Sort::Whole, Sort::Whole, None) => {
            Transformed::yes(with(whole(*a, schema), whole(*b, schema)))
        }
        (Sort::Unsigned, Sort::Whole | Sort::Unsigned, Some(_))
        | (Sort::Whole, Sort::Unsigned, Some(_)) => {
            Transformed::yes(with(cast(*a, WIDE), cast(*b, WIDE)))
        }
        // Only division and remainder get here, whose results stay within the unsigned type.
        (Sort::Unsigned, Sort::Whole, None) if is_without_sign(&b) => {
            Transformed::yes(with(*a, cast(*b, DataType::UInt64)))
        }
        _ => level([*a, *b], schema).update_data(|[a, b]| with(a, b)),
    }
}

fn is_without_sign(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Int64(Some(0..)), _))
}

fn negated(operand: Box<Expr>, schema: &DFSchema) -> Transformed<Expr> {
    match sort_of(&operand, schema) {
        Sort::Whole => Transformed::yes(Checked::Negate.call(vec![whole(*operand, schema)])),
        Sort::Unsigned => Transformed::yes(Expr::Negative(Box::new(cast(*operand, WIDE)))),
        _ => Transformed::no(Expr::Negative(operand)),
    }
}

/// Converts a value and the query that it is compared with to a common type.
fn of_query(
    expr: Box<Expr>,
    subquery: Subquery,
    schema: &DFSchema,
) -> Result<(Box<Expr>, Subquery)> {
    let fields = subquery.subquery.schema().fields();
    let values = fields.first().map_or(Sort::Other, |field| sort(field.data_type()));
    match (sort_of(&expr, schema), values) {
        (Sort::Decimal, Sort::Float) => Ok((Box::new(floating(*expr, schema)), subquery)),
        (Sort::Float, Sort::Decimal) => {
            let plan = with_floats(&subquery.subquery, &[true])?;
            Ok((expr, subquery.with_plan(Arc::new(plan))))
        }
        _ => Ok((expr, subquery)),
    }
}

/// Converts these columns to floats.
fn with_floats(plan: &LogicalPlan, is_float: &[bool]) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().zip(is_float);
    let outputs = columns.map(|(column, &is_float)| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        match is_float {
            true => cast(Expr::Column(column), DataType::Float64).alias_qualified(relation, name),
            false => Expr::Column(column),
        }
    });
    let outputs: Vec<Expr> = outputs.collect();
    LogicalPlanBuilder::from(plan.clone()).project(outputs)?.build()
}

fn joined(mut join: Join) -> LogicalPlan {
    for (left, right) in &mut join.on {
        let (before, after) = (join.left.schema(), join.right.schema());
        let (exact, schema) = match [sort_of(left, before), sort_of(right, after)] {
            [Sort::Float, Sort::Decimal] => (right, after),
            [Sort::Decimal, Sort::Float] => (left, before),
            _ => continue,
        };
        *exact = floating(std::mem::take(exact), schema);
    }
    LogicalPlan::Join(join)
}

fn united(mut union: Union) -> Result<LogicalPlan> {
    let width = union.inputs.first().map_or(0, |input| input.schema().fields().len());
    let sorts = |input: &LogicalPlan| -> Vec<Sort> {
        input.schema().fields().iter().map(|field| sort(field.data_type())).collect()
    };
    let all: Vec<Vec<Sort>> = union.inputs.iter().map(|input| sorts(input)).collect();
    let is_mixed = |place: usize| {
        let has = |sort| all.iter().any(|sorts| sorts.get(place) == Some(&sort));
        has(Sort::Float) && has(Sort::Decimal)
    };
    let mixed: Vec<bool> = (0..width).map(is_mixed).collect();
    if !mixed.contains(&true) {
        return Ok(LogicalPlan::Union(union));
    }
    for input in &mut union.inputs {
        *input = Arc::new(with_floats(input, &mixed)?);
    }
    let fields = union.schema.iter().zip(&mixed).map(|((relation, field), &is_mixed)| {
        let field = match is_mixed {
            true => Arc::new(field.as_ref().clone().with_data_type(DataType::Float64)),
            false => Arc::clone(field),
        };
        (relation.cloned(), field)
    });
    let metadata = union.schema.metadata().clone();
    union.schema = Arc::new(DFSchema::new_with_metadata(fields.collect(), metadata)?);
    Ok(LogicalPlan::Union(union))
}
