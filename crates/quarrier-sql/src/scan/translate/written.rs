//! Conditions that the parser of `quarrier-filter` bound, for statements that bypass DataFusion.

use quarrier_filter::Expr;
use quarrier_filter::expr::{Arithmetic, Pattern};
use quarrier_messages::{Kind, Value};

/// Whether [`logical`](super::logical) would translate the condition if DataFusion had parsed it.
/// If not, DataFusion has to evaluate the condition.
pub(crate) fn is_pushed(expr: &Expr, kinds: &[Kind]) -> bool {
    let all = |parts: &[Expr]| parts.iter().all(|part| is_pushed(part, kinds));
    match expr {
        Expr::Literal(_) | Expr::Column(_) => true,
        Expr::Not(operand) | Expr::IsNull(operand) | Expr::Is { operand, .. } => {
            is_pushed(operand, kinds)
        }
        Expr::And(parts) | Expr::Or(parts) => all(parts),
        Expr::In { operand, list } => {
            all(list) && list.iter().all(|value| compare_as_they_are(operand, value, kinds))
        }
        Expr::Compare { left, right, .. } => compare_as_they_are(left, right, kinds),
        Expr::Match { operand, pattern: Pattern::Fixed(_) } => is_pushed(operand, kinds),
        Expr::Arithmetic { .. } => is_number(expr, kinds),
        Expr::Match { .. }
        | Expr::Negate(_)
        | Expr::Case { .. }
        | Expr::Cast { .. }
        | Expr::Call { .. }
        | Expr::Among { .. } => false,
    }
}

/// Whether both sides compare without converting one of them to a float, as the scan would have to.
fn compare_as_they_are(left: &Expr, right: &Expr, kinds: &[Kind]) -> bool {
    let is_mixed = is_number(left, kinds)
        && is_number(right, kinds)
        && is_floating(left, kinds) != is_floating(right, kinds);
    !is_mixed && is_pushed(left, kinds) && is_pushed(right, kinds)
}

fn is_floating(expr: &Expr, kinds: &[Kind]) -> bool {
    match expr {
        Expr::Literal(value) => matches!(value, Value::Float(_)),
        Expr::Column(column) => kinds[*column] == Kind::Float,
        Expr::Arithmetic { left, right, .. } => {
            is_floating(left, kinds) || is_floating(right, kinds)
        }
        _ => false,
    }
}

fn is_number(expr: &Expr, kinds: &[Kind]) -> bool {
    match expr {
        Expr::Literal(value) => {
            matches!(value, Value::Integer(_) | Value::Decimal { .. } | Value::Float(_))
        }
        Expr::Column(column) => {
            matches!(kinds[*column], Kind::Integer | Kind::Decimal { .. } | Kind::Float)
        }
        Expr::Arithmetic { op, left, right } => {
            matches!(op, Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply)
                && is_number(left, kinds)
                && is_number(right, kinds)
        }
        _ => false,
    }
}
