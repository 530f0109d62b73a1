//! Arithmetic, and the types of its results.

use sqlparser::ast;
use sqlparser::tokenizer::Location;

use super::bind::{Binder, Bound};
use super::types::Type;
use super::{literals, wrong};
use crate::Result;
use crate::expr::{Arithmetic, Expr};
use crate::number::{SCALE_MAX, quotient_scale};

impl Binder<'_> {
    /// Binds arithmetic and checks its types.
    pub(super) fn calculate(&mut self, op: Arithmetic, left: Bound, right: Bound) -> Result<Bound> {
        let at = left.at;
        let Some(kind) = result_of(op, left.kind, right.kind) else {
            return Err(wrong(at, arithmetic_hint(op, left.kind, right.kind)));
        };
        self.node([left, right], kind, at, |[left, right]| Expr::Arithmetic {
            op,
            left: Box::new(left),
            right: Box::new(right),
        })
    }

    /// Binds `- operand`.
    pub(super) fn negate(&mut self, expr: ast::Expr, at: Location) -> Result<Bound> {
        // The digits of the least 64-bit integer, without the sign, exceed the greatest one.
        if let ast::Expr::Value(value) = &expr
            && let ast::Value::Number(digits, _) = &value.value
        {
            return literals::number(&format!("-{digits}"), at);
        }
        let operand = self.bind(expr)?;
        if !operand.kind.is_number() && !operand.kind.is_interval() {
            return Err(wrong(at, format!("{} cannot be negated", operand.kind.named())));
        }
        let kind = operand.kind;
        self.node([operand], kind, at, |[operand]| Expr::Negate(Box::new(operand)))
    }
}

/// Returns the arithmetic operation of an operator.
pub(super) fn operator(op: &ast::BinaryOperator) -> Option<Arithmetic> {
    Some(match op {
        ast::BinaryOperator::Plus => Arithmetic::Add,
        ast::BinaryOperator::Minus => Arithmetic::Subtract,
        ast::BinaryOperator::Multiply => Arithmetic::Multiply,
        ast::BinaryOperator::Divide => Arithmetic::Divide,
        ast::BinaryOperator::Modulo => Arithmetic::Remainder,
        ast::BinaryOperator::StringConcat => Arithmetic::Concatenate,
        _ => return None,
    })
}

/// Returns the type of `left op right`; `None` if there is no such operator.
fn result_of(op: Arithmetic, left: Type, right: Type) -> Option<Type> {
    use Arithmetic::{Add, Concatenate, Divide, Multiply, Remainder, Subtract};
    use Type::{Date, Decimal, Float, Integer, Months, Null, Seconds, Time, Timestamp};
    if op == Concatenate {
        return (left.is_text() && right.is_text()).then_some(Type::Text);
    }
    let scale = |kind: Type| match kind {
        Decimal { scale } => scale,
        _ => 0,
    };
    Some(match (op, left, right) {
        (_, Null, Null) => Null,
        (_, Float, other) | (_, other, Float) if other.is_number() => Float,
        (_, Integer, Integer | Null) | (_, Null, Integer) => Integer,
        (Multiply, a, b) if a.is_number() && b.is_number() => {
            Decimal { scale: (scale(a) + scale(b)).min(SCALE_MAX) }
        }
        (Divide, a, b) if a.is_number() && b.is_number() => {
            Decimal { scale: quotient_scale(scale(a), scale(b)) }
        }
        (_, a, b) if a.is_number() && b.is_number() => Decimal { scale: scale(a).max(scale(b)) },
        (Add | Subtract, Date | Timestamp, Months | Seconds) => left,
        (Add, Months | Seconds, Date | Timestamp) => right,
        (Add | Subtract, Time, Seconds) | (Add, Seconds, Time) => Time,
        (Subtract, Date | Timestamp, Date | Timestamp) | (Subtract, Time, Time) => Seconds,
        (Add | Subtract, Months, Months) | (Add | Subtract, Seconds, Seconds) => left,
        (Multiply | Divide, Months | Seconds, b) if b.is_number() => left,
        (Multiply, a, Months | Seconds) if a.is_number() => right,
        (Add | Subtract, Null, Months | Seconds) => right,
        (Add | Subtract, Months | Seconds | Date | Time | Timestamp, Null) => left,
        (Add | Subtract, Null, Date | Time | Timestamp) if op == Add => right,
        (Subtract, Null, Date | Time | Timestamp) => Seconds,
        (Remainder, ..) => return None,
        _ => return None,
    })
}

fn arithmetic_hint(op: Arithmetic, left: Type, right: Type) -> String {
    let (left_name, right_name) = (left.named(), right.named());
    let sign = match op {
        Arithmetic::Add => "+",
        Arithmetic::Subtract => "-",
        Arithmetic::Multiply => "*",
        Arithmetic::Divide => "/",
        Arithmetic::Remainder => "%",
        Arithmetic::Concatenate => "||",
    };
    let is_day = |kind| matches!(kind, Type::Date | Type::Timestamp);
    let hint = if op == Arithmetic::Concatenate {
        "CAST numbers and dates AS VARCHAR first"
    } else if left.is_text() || right.is_text() {
        "CAST the text to a number or a date first"
    } else if is_day(left) || is_day(right) {
        "days are added as INTERVAL '1' DAY"
    } else {
        "CAST one of them"
    };
    format!("{left_name} {sign} {right_name} is not defined; {hint}")
}
