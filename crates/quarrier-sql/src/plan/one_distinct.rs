//! DataFusion computes `COUNT(DISTINCT x), SUM(y)` in two steps, the first grouped by `x`. That is
//! fast, but makes sums of sums. The sum for one `x` may exceed 64 bits when the total does not.
//! For exact decimals, DataFusion 55 gives these sums more digits than the rest of the plan
//! expects. Sums of floats have neither problem.
//!
//! Not reported yet: `SELECT k, count(DISTINCT n), sum(p) FROM q GROUP BY k HAVING sum(p) > 0.01`,
//! where `p` is a DECIMAL(3, 2), is refused: Decimal128(23, 2) is compared with Decimal128(13, 2).

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
