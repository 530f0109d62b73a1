//! Casts that do not change the result of a comparison.

use datafusion::arrow::datatypes::DataType;
use quarrier_filter::Expr;
use quarrier_filter::expr::CastTo;
use quarrier_messages::Kind;

use super::Valued;
use crate::literal::{Class, class_of};

/// Translates a cast, written or inserted for a common type. `None` if it may change or lose
/// values.
pub(super) fn converted(value: Valued, from: &DataType, to: &DataType) -> Option<Valued> {
    use DataType as T;
    let class = class_of(to)?;
    if value.class == Class::Null {
        return Some(Valued { class, ..value });
    }
    match (from, to) {
        (from, to) if from == to => Some(value),
        _ if value.class != class => None,
        (from, T::Float64) if value.is_float && *from != T::Float32 => Some(value),
        (from, T::Float64) if from.is_integer() || from.is_decimal() => Some(floating(value)),
        (from, to) if from.is_integer() && is_wider(from, to) => Some(value),
        (T::Decimal128(precision, scale), T::Decimal128(wider, finer)) => {
            let digits = i16::from(*precision) - i16::from(*scale);
            let room = i16::from(*wider) - i16::from(*finer);
            (finer >= scale && room >= digits).then_some(value)
        }
        (T::Utf8 | T::LargeUtf8 | T::Utf8View, T::Utf8 | T::LargeUtf8 | T::Utf8View) => Some(value),
        (T::Date32, T::Timestamp(_, None)) => Some(value),
        _ => None,
    }
}

/// Casts a number to a float.
pub(super) fn floating(value: Valued) -> Valued {
    let operand = Box::new(value.expr);
    let expr = Expr::Cast { operand, to: CastTo::Kind(Kind::Float) };
    Valued { expr, class: Class::Number, is_float: true }
}

/// Whether the target type holds every integer of the source type.
fn is_wider(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let digits = match from {
        T::Int8 | T::UInt8 => 3,
        T::Int16 | T::UInt16 => 5,
        T::Int32 | T::UInt32 => 10,
        T::Int64 => 19,
        _ => 20,
    };
    match to {
        T::Int64 => *from != T::UInt64,
        T::Int32 => matches!(from, T::Int8 | T::Int16 | T::UInt8 | T::UInt16),
        T::Int16 => matches!(from, T::Int8 | T::UInt8),
        T::Decimal128(precision, scale) => {
            *scale >= 0 && i16::from(*precision) - i16::from(*scale) >= digits
        }
        _ => false,
    }
}

/// Removes the cast to a float from a column that is compared with a float literal: the scan
/// compares as floats anyway.
pub(super) fn plain(value: Valued, other: &Valued) -> Valued {
    let other_is_floating = matches!(other.expr, Expr::Literal(quarrier_messages::Value::Float(_)));
    match value.expr {
        Expr::Cast { operand, to: CastTo::Kind(Kind::Float) }
            if other_is_floating && matches!(*operand, Expr::Column(_)) =>
        {
            Valued { expr: *operand, ..value }
        }
        expr => Valued { expr, ..value },
    }
}
