//! Bounds the memory of expressions. Functions that other rules inserted get their bounds. Large
//! constants, results of `||`, and arguments that determine memory sizes are checked against
//! limits. This rule runs last.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::expr::{ScalarFunction, WindowFunctionDefinition};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::Error;
use crate::function::{Wide, bounded, is_bounded, is_wide, planned};

/// Maximum number of centroids of an approximate percentile, for which each group allocates memory.
const CENTROIDS_MAX: i64 = 10_000;

/// Aggregates that take a number of centroids, with the index of that argument.
const OF_CENTROIDS: [(&str, usize); 2] =
    [("approx_percentile_cont", 2), ("approx_percentile_cont_with_weight", 3)];

/// Window functions that need an argument.
const OF_ARGUMENTS: [&str; 6] = ["first_value", "last_value", "nth_value", "lead", "lag", "ntile"];

#[derive(Debug)]
pub(crate) struct Bounds {
    pool: Arc<dyn MemoryPool>,
    wide: Arc<ScalarUDF>,
}

impl Bounds {
    /// Bounds expressions by the free memory of `pool`.
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let wide = Arc::new(ScalarUDF::new_from_impl(Wide::new(pool)));
        Bounds { pool: Arc::clone(pool), wide }
    }
}

impl OptimizerRule for Bounds {
    fn name(&self) -> &'static str {
        "bounds"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // Table providers expect the expressions of scans unchanged.
        if matches!(plan, LogicalPlan::TableScan(_) | LogicalPlan::Values(_)) {
            return Ok(Transformed::no(plan));
        }
        // Nodes that only filter rows compare constants without repeating them.
        let has_constants = matches!(
            plan,
            LogicalPlan::Projection(_)
                | LogicalPlan::Aggregate(_)
                | LogicalPlan::Window(_)
                | LogicalPlan::Sort(_)
        );
        let names = NamePreserver::new(&plan);
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let mut bounder = ExprBounder { bounds: self, has_constants };
            Ok(expr.rewrite(&mut bounder)?.update_data(|expr| name.restore(expr)))
        })?;
        match plan.transformed {
            true => plan.map_data(LogicalPlan::recompute_schema),
            false => Ok(plan),
        }
    }
}

/// DataFusion's constant folding, except for calls with large results.
#[derive(Debug)]
pub(super) struct Constants(pub(super) Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for Constants {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        planned(|| self.0.rewrite(plan, config))
    }
}

/// Rewrites the expressions of a plan.
struct ExprBounder<'b> {
    bounds: &'b Bounds,
    has_constants: bool,
}

impl ExprBounder<'_> {
    fn wide(&self, expr: Expr) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&self.bounds.wide), vec![expr]))
    }
}

impl TreeNodeRewriter for ExprBounder<'_> {
    type Node = Expr;

    fn f_down(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        Ok(match &expr {
            Expr::ScalarFunction(call) if call.func.inner().is::<Wide>() => {
                Transformed::new(expr, false, TreeNodeRecursion::Jump)
            }
            Expr::AggregateFunction(call) => {
                check(call.func.name(), &call.params.args)?;
                return self.aggregate(expr);
            }
            Expr::WindowFunction(call) => {
                match &call.fun {
                    WindowFunctionDefinition::AggregateUDF(function) => {
                        check(function.name(), &call.params.args)?;
                    }
                    WindowFunctionDefinition::WindowUDF(function) => {
                        check_window(function.name(), &call.params.args)?;
                    }
                }
                // Some arguments have to be literals.
                Transformed::new(expr, false, TreeNodeRecursion::Jump)
            }
            _ => Transformed::no(expr),
        })
    }

    fn f_up(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::ScalarFunction(call) if is_bounded(&call.func) => {
                let func = bounded(&call.func, &self.bounds.pool).map(Arc::new);
                let is_changed = func.is_some();
                let func = func.unwrap_or_else(|| Arc::clone(&call.func));
                let call = Expr::ScalarFunction(ScalarFunction { func, ..call });
                // A call of constants that was not folded has a large result.
                match self.has_constants && !call.any_column_refs() {
                    true => Transformed::yes(self.wide(call)),
                    false => Transformed::new_transformed(call, is_changed),
                }
            }
            Expr::BinaryExpr(BinaryExpr { op: Operator::StringConcat, .. }) => {
                Transformed::yes(self.wide(expr))
            }
            Expr::Literal(ref value, _) if self.has_constants && is_wide(value) => {
                Transformed::yes(self.wide(expr))
            }
            _ => Transformed::no(expr),
        })
    }
}

impl ExprBounder<'_> {
    /// Rewrites the first argument of an aggregate; the others may have to be literals.
    fn aggregate(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        let Expr::AggregateFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
        let Some(first) = call.params.args.first_mut() else {
            let expr = Expr::AggregateFunction(call);
            return Ok(Transformed::new(expr, false, TreeNodeRecursion::Jump));
        };
        let argument = std::mem::take(first).rewrite(self)?;
        *first = argument.data;
        let expr = Expr::AggregateFunction(call);
        Ok(Transformed::new(expr, argument.transformed, TreeNodeRecursion::Jump))
    }
}

/// Checks that a window function has an argument, without which DataFusion panics.
fn check_window(name: &str, args: &[Expr]) -> Result<()> {
    match args.is_empty() && OF_ARGUMENTS.contains(&name) {
        true => Err(Error::text(format!("{name}() needs an argument, as in {name}(price)")).into()),
        false => Ok(()),
    }
}

/// Checks that an aggregate has no more centroids than allowed.
fn check(name: &str, args: &[Expr]) -> Result<()> {
    let place = OF_CENTROIDS.iter().find(|(known, _)| *known == name).map(|(_, place)| *place);
    let Some(Expr::Literal(asked, _)) = place.and_then(|place| args.get(place)) else {
        return Ok(());
    };
    let asked = asked.cast_to(&datafusion::arrow::datatypes::DataType::Int64);
    match asked {
        Ok(ScalarValue::Int64(Some(asked))) if asked <= CENTROIDS_MAX => Ok(()),
        Ok(ScalarValue::Int64(None)) => Ok(()),
        _ => Err(DataFusionError::from(Error::text(format!(
            "{name}: the number of centroids is at most {CENTROIDS_MAX}"
        )))),
    }
}
