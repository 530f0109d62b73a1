//! Conditions that come to be known while a plan runs: what the other side of a join has.

use std::sync::Arc;

use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};
use quarrier_filter::Expr;
use quarrier_messages::{Kind, Schema, Value};

use super::logical::comparison_of;
use crate::literal::{self, Class, class_of};

/// The most values of a list.
const LIST_MAX: usize = 4_096;

/// A condition that every row has for which `expr` is true; none where nothing of it is known to
/// the scan. `columns` are the places of the plan's columns in the schema. Who asks evaluates
/// `expr` again.
pub(crate) fn physical(
    expr: &Arc<dyn PhysicalExpr>,
    columns: &[usize],
    schema: &Schema,
) -> Option<Expr> {
    let mut parts = Vec::new();
    let mut open = vec![Arc::clone(expr)];
    while let Some(next) = open.pop() {
        match next.downcast_ref::<BinaryExpr>() {
            Some(both) if *both.op() == Operator::And => {
                open.push(Arc::clone(both.left()));
                open.push(Arc::clone(both.right()));
            }
            Some(both) => parts.extend(compared(both, columns, schema)),
            None => parts.extend(listed(&next, columns, schema)),
        }
    }
    if parts.len() > 1 { Some(Expr::And(parts)) } else { parts.pop() }
}

fn compared(both: &BinaryExpr, columns: &[usize], schema: &Schema) -> Option<Expr> {
    let op = comparison_of(*both.op())?;
    let (column, class) = column(both.left(), columns, schema)?;
    let value = value(both.right(), class)?;
    let (left, right) = (Box::new(Expr::Column(column)), Box::new(Expr::Literal(value)));
    Some(Expr::Compare { op, left, right })
}

fn listed(expr: &Arc<dyn PhysicalExpr>, columns: &[usize], schema: &Schema) -> Option<Expr> {
    let list = expr.downcast_ref::<InListExpr>().filter(|list| !list.negated())?;
    if list.list().is_empty() || list.list().len() > LIST_MAX {
        return None;
    }
    let (column, class) = column(list.expr(), columns, schema)?;
    let value = |element| value(element, class).map(Expr::Literal);
    let values: Vec<Expr> = list.list().iter().map(value).collect::<Option<_>>()?;
    Some(Expr::In { operand: Box::new(Expr::Column(column)), list: values })
}

fn column(
    expr: &Arc<dyn PhysicalExpr>,
    columns: &[usize],
    schema: &Schema,
) -> Option<(usize, Class)> {
    let place = *columns.get(expr.downcast_ref::<Column>()?.index())?;
    let class = match schema.fields.get(place)?.kind {
        Kind::Null => return None,
        Kind::Boolean => Class::Boolean,
        Kind::Integer | Kind::Decimal { .. } | Kind::Float => Class::Number,
        Kind::Date | Kind::Timestamp => Class::Time,
        Kind::Text => Class::Text,
    };
    Some((place, class))
}

fn value(expr: &Arc<dyn PhysicalExpr>, class: Class) -> Option<Value> {
    let scalar = expr.downcast_ref::<Literal>()?.value();
    let is_same = class_of(&scalar.data_type()) == Some(class);
    if is_same { literal::value(scalar) } else { None }
}
