//! Translates dynamic filters: conditions that become known while a plan runs, such as the join
//! keys of the build side.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, Column, InListExpr, Literal};
use quarrier_filter::Expr;
use quarrier_messages::{Kind, Schema, Value};

use super::logical::comparison_of;
use crate::literal::{self, Class, class_of};

/// Maximum number of values in a list.
const LIST_MAX: usize = 16_384;

/// A condition implied by `expr`; `None` if the scan can use no part of it. `columns` are the
/// indices of the plan's columns in the schema. DataFusion evaluates `expr` again.
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
            None => parts.extend(
                listed(&next, columns, schema).or_else(|| of_any_case(&next, columns, schema)),
            ),
        }
    }
    if parts.len() > 1 { Some(Expr::And(parts)) } else { parts.pop() }
}

/// The disjunction of all branches of a `CASE`: a partitioned join filters each row by the branch
/// of the row's partition.
fn of_any_case(expr: &Arc<dyn PhysicalExpr>, columns: &[usize], schema: &Schema) -> Option<Expr> {
    let case = expr.downcast_ref::<CaseExpr>()?;
    let conditions = case.when_then_expr().iter().map(|(_, then)| then);
    // Without ELSE, the result is NULL, which is not true.
    let never = |expr: &&Arc<dyn PhysicalExpr>| {
        let literal = expr.downcast_ref::<Literal>();
        literal.is_some_and(|it| *it.value() == ScalarValue::Boolean(Some(false)))
    };
    let open = conditions.chain(case.else_expr()).filter(|expr| !never(expr));
    let any: Vec<Expr> = open.map(|one| physical(one, columns, schema)).collect::<Option<_>>()?;
    (!any.is_empty()).then_some(Expr::Or(any))
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

#[cfg(test)]
mod tests {
    use datafusion::physical_expr::expressions::lit;
    use quarrier_filter::expr::Comparison;
    use quarrier_messages::Field;

    use super::*;

    type Part = Arc<dyn PhysicalExpr>;

    fn is(value: i64) -> Part {
        let id = Arc::new(Column::new("id", 0));
        Arc::new(BinaryExpr::new(id, Operator::Eq, lit(value)))
    }

    fn asked(thens: [Part; 2], otherwise: Part) -> Option<Expr> {
        let [first, second] = thens;
        let whens = vec![(lit(0_i64), first), (lit(1_i64), second)];
        let case = CaseExpr::try_new(Some(lit(1_i64)), whens, Some(otherwise)).unwrap();
        let case: Part = Arc::new(case);
        let fields = vec![Field { name: "id".into(), kind: Kind::Integer }];
        physical(&case, &[0], &Schema { fields })
    }

    #[test]
    fn partitioned_joins_filter_by_any_branch() {
        let one = |value| Expr::Compare {
            op: Comparison::Equal,
            left: Box::new(Expr::Column(0)),
            right: Box::new(Expr::Literal(Value::Integer(value))),
        };
        let both = asked([is(3), is(5)], lit(false));
        assert_eq!(both, Some(Expr::Or(vec![one(3), one(5)])));
        assert_eq!(asked([is(3), lit(false)], lit(false)), Some(Expr::Or(vec![one(3)])));
        // A branch that cannot be translated may be true for every row.
        assert_eq!(asked([is(3), lit(true)], lit(false)), None);
        assert_eq!(asked([is(3), is(5)], lit(true)), None);
    }
}
