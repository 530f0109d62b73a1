//! Conditions as the scan's own grammar binds them, for statements that the engine does not read.

use quarrier_filter::Expr;
use quarrier_filter::expr::{Arithmetic, Pattern};
use quarrier_messages::{Kind, Value};

/// Whether [`logical`](super::logical) would translate it, had the engine read it: everything else
/// is the engine's to evaluate, whatever statement it stands in.
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

/// Whether no side is made floating for the other's sake, which the provider says to the scan.
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
