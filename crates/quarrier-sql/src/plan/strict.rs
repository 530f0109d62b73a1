//! Checks types before any row is read, as in SQL-92: it refuses `'10' < 9`, where DataFusion would
//! convert the string to a number.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

use crate::Error;
use crate::literal::{Class, class_of};

/// Refuses comparisons of strings with other types, and arithmetic on strings. Runs before
/// DataFusion's type coercion.
#[derive(Debug)]
pub(crate) struct StrictKinds;

impl AnalyzerRule for StrictKinds {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(dated)?.data;
        plan.apply_with_subqueries(|node| {
            let schema = inputs(node);
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    check(expr, &schema)?;
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "strict_kinds"
    }
}

/// The columns that expressions of a node refer to.
fn inputs(node: &LogicalPlan) -> DFSchema {
    let mut schema = merge_schema(&node.inputs());
    if let LogicalPlan::TableScan(scan) = node {
        schema.merge(&scan.projected_schema);
    }
    schema
}

/// Replaces string literals that are compared with a date by dates.
fn dated(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = inputs(&node);
    let names = NamePreserver::new(&node);
    let node = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let dated = super::dated::dated(expr, &schema)?;
        if !dated.transformed {
            return Ok(dated);
        }
        Ok(Transformed::yes(name.restore(dated.data)))
    })?;
    match node.transformed {
        true => Ok(Transformed::yes(node.data.recompute_schema()?)),
        false => Ok(node),
    }
}

fn check(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if is_comparison(*op) {
                comparable(left, right, schema)
            } else if is_arithmetic(*op) {
                calculable(left, *op, right, schema)
            } else {
                Ok(())
            }
        }
        Expr::Between(between) => {
            comparable(&between.expr, &between.low, schema)?;
            comparable(&between.expr, &between.high, schema)
        }
        Expr::InList(list) => {
            list.list.iter().try_for_each(|element| comparable(&list.expr, element, schema))
        }
        Expr::Case(case) => match &case.expr {
            Some(operand) => {
                let mut whens = case.when_then_expr.iter();
                whens.try_for_each(|(when, _)| comparable(operand, when, schema))
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

pub(super) fn is_comparison(op: Operator) -> bool {
    use Operator as O;
    matches!(
        op,
        O::Eq
            | O::NotEq
            | O::Lt
            | O::LtEq
            | O::Gt
            | O::GtEq
            | O::IsDistinctFrom
            | O::IsNotDistinctFrom
    )
}

pub(super) fn is_arithmetic(op: Operator) -> bool {
    use Operator as O;
    matches!(op, O::Plus | O::Minus | O::Multiply | O::Divide | O::Modulo)
}

fn comparable(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<()> {
    let (Some(a), Some(b)) = (class(left, schema), class(right, schema)) else { return Ok(()) };
    if a == b || a == Class::Null || b == Class::Null {
        return Ok(());
    }
    let hint = match (a, b) {
        (Class::Text, Class::Time) | (Class::Time, Class::Text) => {
            "convert the text with CAST (… AS DATE) or CAST (… AS TIMESTAMP)"
        }
        _ => "convert one of them with CAST",
    };
    let reason = format!(
        "{} is {} and {} is {}, which cannot be compared; {hint}",
        shown(left),
        named(a),
        shown(right),
        named(b)
    );
    Err(Error::text(reason).into())
}

fn calculable(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Result<()> {
    for side in [left, right] {
        if class(side, schema) == Some(Class::Text) {
            let reason = format!(
                "{} is text, for which {op} is not defined; convert it with CAST",
                shown(side)
            );
            return Err(Error::text(reason).into());
        }
    }
    Ok(())
}

/// The class of an expression's type. `None` if DataFusion reports an error for it, or messages
/// have no such type.
fn class(expr: &Expr, schema: &DFSchema) -> Option<Class> {
    let data_type: DataType = expr.get_type(schema).ok()?;
    class_of(&data_type)
}

fn named(class: Class) -> &'static str {
    match class {
        Class::Null => "NULL",
        Class::Boolean => "a boolean",
        Class::Number => "a number",
        Class::Text => "text",
        Class::Time => "a date or time",
    }
}

fn shown(expr: &Expr) -> String {
    const SHOWN_MAX: usize = 60;
    let text = expr.human_display().to_string();
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
