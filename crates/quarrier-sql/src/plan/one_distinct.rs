//! `COUNT(DISTINCT x), SUM(y)` in two steps, first by `x`: quick, but of exact decimals DataFusion 55 makes
//! sums of sums, which have more digits than those that the rest of the plan was made for.
//!
//! Not reported yet: `SELECT k, count(DISTINCT n), sum(p) FROM q GROUP BY k HAVING sum(p) > 0.01`, where
//! `p` is a DECIMAL(3, 2), is refused: Decimal128(23, 2) is compared with Decimal128(13, 2).

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Whether a plan sums decimals.
pub(super) fn sums_decimals(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = plan else { return false };
    let may_be_decimal = |value: &Expr| match value.get_type(aggregate.input.schema()) {
        Ok(data_type) => {
            matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..))
        }
        Err(_) => true,
    };
    aggregate.aggr_expr.iter().any(|one| match one {
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            func.name() == "sum" && !params.distinct && params.args.iter().any(may_be_decimal)
        }
        _ => false,
    })
}
