//! `COUNT(DISTINCT x), SUM(y)` in two steps, first by `x`: quick, but it makes sums of sums. The sum of one `x`
//! may be beyond 64 bits where that of all rows is not; and of exact decimals DataFusion 55 makes sums with
//! more digits than those that the rest of the plan was made for. Floating sums have neither.
//!
//! Not reported yet: `SELECT k, count(DISTINCT n), sum(p) FROM q GROUP BY k HAVING sum(p) > 0.01`, where
//! `p` is a DECIMAL(3, 2), is refused: Decimal128(23, 2) is compared with Decimal128(13, 2).

use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Whether a plan sums exact numbers.
pub(super) fn sums_exactly(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = plan else { return false };
    let may_be_exact = |value: &Expr| match value.get_type(aggregate.input.schema()) {
        Ok(data_type) => !data_type.is_floating(),
        Err(_) => true,
    };
    aggregate.aggr_expr.iter().any(|one| match one {
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            func.name() == "sum" && !params.distinct && params.args.iter().any(may_be_exact)
        }
        _ => false,
    })
}
