//! Computes GROUP BY with few groups in the scan, on packed columns. DataFusion would have every
//! row produced, hash its keys and look them up. DataFusion merges the results of partitions.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, replace_children_if_necessary};
use quarrier_filter::group::{Grouping, Measure, Number};
use quarrier_messages::Kind;

use super::rule::source;
use crate::scan::{GroupsExec, MessagesExec, State};
use quarrier_exact::{Checked, Exact};

/// Replaces the partial aggregate over a scan by grouping in the scan.
pub(super) fn instead(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>().filter(|plan| is_plain(plan)) else {
        return Ok(None);
    };
    match aggregate.mode() {
        AggregateMode::Partial => grouped(plan, aggregate),
        AggregateMode::Single | AggregateMode::SinglePartitioned => halved(aggregate),
        _ => Ok(None),
    }
}

/// Splits an aggregate with a single stage in two, whose second merges groups.
fn halved(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let half = |mode, groups, filters, input| {
        let (aggregates, schema) = (aggregate.aggr_expr().to_vec(), aggregate.input_schema());
        AggregateExec::try_new(mode, groups, aggregates, filters, input, schema).map(Arc::new)
    };
    if aggregate.input().properties().output_partitioning().partition_count() > 1 {
        return Ok(None);
    }
    let (groups, filters) = (aggregate.group_expr(), aggregate.filter_expr().to_vec());
    let input = Arc::clone(aggregate.input());
    let first = half(AggregateMode::Partial, groups.clone(), filters.clone(), input)?;
    let plan: Arc<dyn ExecutionPlan> = Arc::<AggregateExec>::clone(&first);
    let Some(grouped) = grouped(&plan, &first)? else { return Ok(None) };
    let whole = Arc::new(CoalescePartitionsExec::new(grouped));
    Ok(Some(half(AggregateMode::Final, groups.as_final(), filters, whole)?))
}

/// Whether each row counts in one group, and the order of rows does not matter.
fn is_plain(aggregate: &AggregateExec) -> bool {
    let is_plain = |one: &Arc<AggregateFunctionExpr>| {
        !one.is_distinct() && one.order_bys().is_empty() && !one.ignore_nulls()
    };
    aggregate.aggr_expr().iter().all(is_plain)
        && aggregate.filter_expr().iter().all(Option::is_none)
        && aggregate.limit_options().is_none()
        && !aggregate.group_expr().has_grouping_set()
}

fn grouped(
    plan: &Arc<dyn ExecutionPlan>,
    aggregate: &AggregateExec,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let rows = source(aggregate.input());
    let projection = rows.downcast_ref::<ProjectionExec>();
    let scan = projection.map_or(rows, |projection| source(projection.input()));
    let Some((grouping, states)) = scan_request(aggregate, projection, scan) else {
        return Ok(None);
    };
    // The same aggregate over the scan's own partitions.
    let rows = match projection {
        Some(_) => replace_children_if_necessary(Arc::clone(rows), vec![Arc::clone(scan)])?,
        None => Arc::clone(scan),
    };
    let aggregate = replace_children_if_necessary(Arc::clone(plan), vec![rows])?;
    let groups = GroupsExec::new(aggregate, Arc::clone(scan), grouping, states);
    Ok(groups.map(|groups| Arc::new(groups) as _))
}

/// The grouping to compute in a scan, and the state columns of the aggregates.
fn scan_request(
    aggregate: &AggregateExec,
    projection: Option<&ProjectionExec>,
    input: &Arc<dyn ExecutionPlan>,
) -> Option<(Grouping, Vec<State>)> {
    let scan = input.downcast_ref::<MessagesExec>()?;
    let spec = scan.spec();
    // A scan without columns is only counted, which `counts` does.
    if spec.columns.is_empty() || !spec.order.is_empty() || spec.fetch.is_some() {
        return None;
    }
    let mut request = ScanRequest { scan, grouping: Grouping::default() };
    let rows = Row {
        schema: aggregate.input_schema(),
        projected: projection.map(|projection| (projection.expr(), input.schema())),
    };
    for (key, _) in aggregate.group_expr().expr() {
        let key = request.key(key, &rows)?;
        request.grouping.keys.push(key);
    }
    let mut states = Vec::new();
    for one in aggregate.aggr_expr() {
        states.extend(request.states(one, &rows)?);
    }
    Some((request.grouping, states))
}

/// The rows that expressions refer to.
struct Row<'p> {
    schema: SchemaRef,
    /// The columns as expressions over the scan's rows; `None` if they are the scan's columns.
    projected: Option<(&'p [ProjectionExpr], SchemaRef)>,
}

/// The grouping to compute in a scan.
struct ScanRequest<'p> {
    scan: &'p MessagesExec,
    grouping: Grouping,
}

/// A numeric expression over a row.
#[derive(Clone, Copy)]
struct Valued {
    /// Its index among the grouping's numbers.
    number: usize,
    kind: Kind,
}

impl ScanRequest<'_> {
    /// The table's column of a grouping key.
    fn key(&self, expr: &Arc<dyn PhysicalExpr>, row: &Row<'_>) -> Option<usize> {
        self.column(expr, row).filter(|&column| self.kind(column) != Kind::Null)
    }

    /// The table's column, if the expression is one.
    fn column(&self, expr: &Arc<dyn PhysicalExpr>, row: &Row<'_>) -> Option<usize> {
        let mut place = expr.downcast_ref::<Column>()?.index();
        if let Some((projected, _)) = &row.projected {
            place = projected.get(place)?.expr.downcast_ref::<Column>()?.index();
        }
        self.scan.spec().columns.get(place).copied()
    }

    fn kind(&self, column: usize) -> Kind {
        self.scan.table().schema().fields[column].kind
    }

    /// The state columns of an aggregate, in DataFusion's order.
    fn states(&mut self, one: &AggregateFunctionExpr, row: &Row<'_>) -> Option<Vec<State>> {
        let values = one.expressions();
        let [value] = values.as_slice() else { return None };
        let name = one.fun().name();
        if name == "count"
            && value.downcast_ref::<Literal>().is_some_and(|it| !it.value().is_null())
        {
            return Some(vec![State::count(self.measure(Measure::Rows))]);
        }
        if name == "count"
            && let Some(column) = self.column(value, row)
        {
            let number = self.push(Number::Column(column));
            return Some(vec![State::count(self.measure(Measure::Count(number)))]);
        }
        // The mean of integers casts them to floats; the scan adds them as integers first.
        let cast = value.downcast_ref::<CastExpr>();
        let cast = cast.filter(|cast| *cast.cast_type() == DataType::Float64);
        let value = match cast {
            Some(cast) if matches!(name, "sum" | "avg" | "count") => cast.expr(),
            _ => value,
        };
        let added = value.data_type(&row.schema).ok()?;
        let has_carry = cast.is_none() && Exact::of(&added).is_some_and(Exact::has_carry);
        let Valued { number, kind } = self.number(value, row)?;
        let is_added = matches!(kind, Kind::Integer | Kind::Decimal { .. } | Kind::Float);
        // Adding mantissas would differ from adding floats.
        let is_scaled = cast.is_some() && matches!(kind, Kind::Decimal { .. });
        Some(match name {
            "count" => vec![State::count(self.measure(Measure::Count(number)))],
            "sum" if is_added && !is_scaled => self.sum(number, has_carry).collect(),
            "avg" if is_added && !is_scaled => {
                let count = State::value_count(self.measure(Measure::Count(number)));
                std::iter::once(count).chain(self.sum(number, has_carry)).collect()
            }
            "min" => vec![State::value(self.measure(Measure::Least(number)))],
            "max" => vec![State::value(self.measure(Measure::Greatest(number)))],
            _ => return None,
        })
    }

    /// The state columns of a sum.
    fn sum(&mut self, number: usize, has_carry: bool) -> impl Iterator<Item = State> + use<> {
        let measure = self.measure(Measure::Sum(number));
        let carry = has_carry.then(|| State::carry(measure));
        std::iter::once(State::value(measure)).chain(carry)
    }

    /// The index of a measure, which is added if it is new.
    fn measure(&mut self, measure: Measure) -> usize {
        place_of(&mut self.grouping.measures, measure)
    }

    fn push(&mut self, number: Number) -> usize {
        place_of(&mut self.grouping.numbers, number)
    }

    fn number(&mut self, expr: &Arc<dyn PhysicalExpr>, row: &Row<'_>) -> Option<Valued> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return self.of_column(column.index(), row);
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            let (value, kind) = constant(literal.value())?;
            return Some(Valued { number: self.push(Number::Constant(value)), kind });
        }
        let valued = if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            self.widened(cast, row)?
        } else if let Some(both) = expr.downcast_ref::<BinaryExpr>() {
            self.calculated(*both.op(), both.left(), both.right(), row)?
        } else {
            self.called(expr.downcast_ref::<ScalarFunctionExpr>()?, row)?
        };
        // DataFusion decides the type of the result; this must be the same.
        (kind_of(&expr.data_type(&row.schema).ok()?) == Some(valued.kind)).then_some(valued)
    }

    fn of_column(&mut self, place: usize, row: &Row<'_>) -> Option<Valued> {
        if let Some((projected, schema)) = &row.projected {
            let row = Row { schema: Arc::clone(schema), projected: None };
            return self.number(&projected.get(place)?.expr, &row);
        }
        let column = *self.scan.spec().columns.get(place)?;
        let kind = self.kind(column);
        if matches!(kind, Kind::Null | Kind::Boolean | Kind::Text) {
            return None;
        }
        Some(Valued { number: self.push(Number::Column(column)), kind })
    }

    /// A cast to a decimal with a larger scale, and no fewer digits before the point.
    fn widened(&mut self, cast: &CastExpr, row: &Row<'_>) -> Option<Valued> {
        let from = cast.expr().data_type(&row.schema).ok()?;
        let (digits, scale) = match from {
            DataType::Int64 => (19, 0),
            DataType::Decimal128(precision, scale) => (precision, scale),
            _ => return None,
        };
        let DataType::Decimal128(wider, finer) = *cast.cast_type() else { return None };
        let before = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
        if before(wider, finer) < before(digits, scale) {
            return None;
        }
        let Valued { number, .. } = self.number(cast.expr(), row)?;
        let number = self.scaled(number, scale, finer)?;
        Some(Valued { number, kind: Kind::Decimal { scale: finer.try_into().ok()? } })
    }

    /// Scales the mantissa from `scale` to `finer`.
    fn scaled(&mut self, number: usize, scale: i8, finer: i8) -> Option<usize> {
        let power = 10_i64.checked_pow(u32::try_from(finer.checked_sub(scale)?).ok()?)?;
        if power == 1 {
            return Some(number);
        }
        let power = self.push(Number::Constant(power));
        Some(self.push(Number::Times(number, power)))
    }

    /// Arithmetic on integers, which the scan computes only if it cannot overflow.
    fn called(&mut self, call: &ScalarFunctionExpr, row: &Row<'_>) -> Option<Valued> {
        let op = match Checked::of(call.fun().name())? {
            Checked::Add => Operator::Plus,
            Checked::Subtract => Operator::Minus,
            Checked::Multiply => Operator::Multiply,
            Checked::Negate => return None,
        };
        let [left, right] = call.args() else { return None };
        self.calculated(op, left, right, row)
    }

    fn calculated(
        &mut self,
        op: Operator,
        left: &Arc<dyn PhysicalExpr>,
        right: &Arc<dyn PhysicalExpr>,
        row: &Row<'_>,
    ) -> Option<Valued> {
        let (a, b) = (self.number(left, row)?, self.number(right, row)?);
        let scale = |kind: Kind| match kind {
            Kind::Decimal { scale } => i8::try_from(scale).ok(),
            _ => None,
        };
        let step = match op {
            Operator::Plus => Number::Plus,
            Operator::Minus => Number::Minus,
            Operator::Multiply => Number::Times,
            _ => return None,
        };
        if (a.kind, b.kind) == (Kind::Integer, Kind::Integer) {
            return Some(Valued { number: self.push(step(a.number, b.number)), kind: a.kind });
        }
        let (left, right) = (scale(a.kind)?, scale(b.kind)?);
        let (a, b, scale) = if op == Operator::Multiply {
            (a.number, b.number, left.checked_add(right)?)
        } else {
            let scale = left.max(right);
            (self.scaled(a.number, left, scale)?, self.scaled(b.number, right, scale)?, scale)
        };
        let kind = Kind::Decimal { scale: scale.try_into().ok()? };
        Some(Valued { number: self.push(step(a, b)), kind })
    }
}

fn place_of<T: PartialEq>(known: &mut Vec<T>, one: T) -> usize {
    known.iter().position(|other| *other == one).unwrap_or_else(|| {
        known.push(one);
        known.len() - 1
    })
}

fn constant(value: &ScalarValue) -> Option<(i64, Kind)> {
    match value {
        ScalarValue::Int64(Some(value)) => Some((*value, Kind::Integer)),
        ScalarValue::Decimal128(Some(mantissa), _, scale) => {
            let kind = Kind::Decimal { scale: (*scale).try_into().ok()? };
            Some(((*mantissa).try_into().ok()?, kind))
        }
        _ => None,
    }
}

/// The column type for an Arrow type.
fn kind_of(data_type: &DataType) -> Option<Kind> {
    match data_type {
        DataType::Int64 => Some(Kind::Integer),
        DataType::Decimal128(_, scale) => Some(Kind::Decimal { scale: (*scale).try_into().ok()? }),
        _ => None,
    }
}
