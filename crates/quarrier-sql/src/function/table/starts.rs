//! Converts conditions on `offset` to the range in which findings start.

use std::ops::Range;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};

/// The range of `offset` for which `filter` is true; `None` if it is not a single range.
pub(super) fn of(filter: &Expr) -> Option<Range<u64>> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            match (is_offset(left), is_offset(right)) {
                (true, false) => compared(*op, whole(right)?),
                (false, true) => compared(op.swap()?, whole(left)?),
                _ => None,
            }
        }
        Expr::Between(Between { expr, negated: false, low, high }) if is_offset(expr) => {
            let (from, to) =
                (compared(Operator::GtEq, whole(low)?)?, compared(Operator::LtEq, whole(high)?)?);
            Some(both(from, to))
        }
        _ => None,
    }
}

/// The intersection of both ranges.
pub(super) fn both(one: Range<u64>, other: Range<u64>) -> Range<u64> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

fn is_offset(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(column) if column.name == "offset")
}

/// The value of an integer literal.
fn whole(expr: &Expr) -> Option<i128> {
    let Expr::Literal(value, _) = expr else { return None };
    match value {
        ScalarValue::Int8(value) => value.map(i128::from),
        ScalarValue::Int16(value) => value.map(i128::from),
        ScalarValue::Int32(value) => value.map(i128::from),
        ScalarValue::Int64(value) => value.map(i128::from),
        ScalarValue::UInt8(value) => value.map(i128::from),
        ScalarValue::UInt16(value) => value.map(i128::from),
        ScalarValue::UInt32(value) => value.map(i128::from),
        ScalarValue::UInt64(value) => value.map(i128::from),
        _ => None,
    }
}

fn compared(op: Operator, value: i128) -> Option<Range<u64>> {
    let (start, end) = match op {
        Operator::Eq => (value, value + 1),
        Operator::Lt => (0, value),
        Operator::LtEq => (0, value + 1),
        Operator::Gt => (value + 1, i128::MAX),
        Operator::GtEq => (value, i128::MAX),
        _ => return None,
    };
    let bounded = |at: i128| at.clamp(0, i128::from(u64::MAX)) as u64;
    Some(bounded(start)..bounded(end).max(bounded(start)))
}

#[cfg(test)]
mod tests {
    use super::{both, of};
    use datafusion::prelude::{col, lit};

    #[test]
    fn comparisons_of_the_offset_with_whole_numbers_are_ranges() {
        assert_eq!(of(&col("offset").gt_eq(lit(10_i64))), Some(10..u64::MAX));
        assert_eq!(of(&col("offset").lt(lit(10_i32))), Some(0..10));
        assert_eq!(of(&lit(10_u64).lt(col("offset"))), Some(11..u64::MAX));
        assert_eq!(of(&col("offset").eq(lit(7_i64))), Some(7..8));
        assert_eq!(of(&col("offset").between(lit(3_i64), lit(5_i64))), Some(3..6));
        assert_eq!(of(&col("offset").lt(lit(-1_i64))), Some(0..0));
    }

    #[test]
    fn nothing_else_is_a_range() {
        assert_eq!(of(&col("length").lt(lit(10_i64))), None);
        assert_eq!(of(&col("offset").not_eq(lit(10_i64))), None);
        assert_eq!(of(&col("offset").lt(col("length"))), None);
        assert_eq!(of(&col("offset").lt(lit(1.5))), None);
    }

    #[test]
    fn ranges_without_anything_in_common_are_empty() {
        assert_eq!(both(0..10, 5..20), 5..10);
        assert!(both(0..5, 10..20).is_empty());
    }
}
