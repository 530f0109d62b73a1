//! Converts exact numbers to the nearest floats, where DataFusion would round twice: the mantissa,
//! then the quotient. Also brings compared floats into a canonical form.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast};
use datafusion::optimizer::AnalyzerRule;

use super::numbers::schema_of;
use super::orders;
use quarrier_exact::{Floats, nearest};

/// Runs after DataFusion's type coercion.
#[derive(Debug)]
pub(crate) struct Conversions;

impl AnalyzerRule for Conversions {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(node)?.data)
    }

    fn name(&self) -> &str {
        "conversions"
    }
}

fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = schema_of(&plan)?;
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten =
            expr.transform_up(|expr| orders::compared(converted(expr, &schema).data, &schema))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })?
    .map_data(orders::node)
}

fn converted(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (Expr::Cast(Cast { expr: operand, field })
    | Expr::TryCast(TryCast { expr: operand, field })) = &expr
    else {
        return Transformed::no(expr);
    };
    let is_decimal = *field.data_type() == DataType::Float64
        && operand
            .get_type(schema)
            .is_ok_and(|from| matches!(from, DataType::Decimal128(..) | DataType::Decimal256(..)));
    if !is_decimal {
        return Transformed::no(expr);
    }
    Transformed::yes(match &**operand {
        Expr::Literal(value, metadata) => match nearest(value) {
            Some(float) => Expr::Literal(float, metadata.clone()),
            None => return Transformed::no(expr),
        },
        operand => Floats::Double.call(operand.clone()),
    })
}
