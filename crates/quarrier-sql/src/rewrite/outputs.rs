//! Predicates on subqueries in SELECT lists, which DataFusion supports only in conditions.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, SelectItem, Value, VisitorMut};

use super::walk::{Flow, Stop, walk};
use super::{predicates, template};
use crate::Result;
use crate::dialect::call;

/// Rewrites the outputs of every SELECT.
pub(super) struct Outputs;

impl VisitorMut for Outputs {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        for item in &mut select.projection {
            let expr = match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr,
                _ => continue,
            };
            walk(expr, &mut Output { depth: 0 })?;
        }
        ControlFlow::Continue(())
    }
}

/// Rewrites one output, but not the queries in it.
struct Output {
    depth: usize,
}

impl VisitorMut for Output {
    type Break = Stop;

    fn pre_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        match rewrite(expr) {
            Ok(Some(rewritten)) => *expr = rewritten,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(Some(Box::new(error))),
        }
        ControlFlow::Continue(())
    }
}

fn rewrite(expr: &Expr) -> Result<Option<Expr>> {
    Ok(Some(match expr {
        Expr::AnyOp { left, compare_op, right, .. } => match subquery(right) {
            Some(query) => quantified("sql_any", &compare_op.to_string(), left, query)?,
            None => return Ok(None),
        },
        Expr::AllOp { left, compare_op, right } => match subquery(right) {
            Some(query) => quantified("sql_all", &compare_op.to_string(), left, query)?,
            None => return Ok(None),
        },
        Expr::InSubquery { expr, subquery, negated } => {
            let any = quantified("sql_any", "=", expr, (**subquery).clone())?;
            predicates::negated(any, *negated)
        }
        Expr::Exists { subquery, negated } => {
            let op = if *negated { "=" } else { ">" };
            let text = format!("(SELECT count(*) FROM (SELECT 1) AS quantified) {op} 0");
            template::filled(&text, (**subquery).clone())?
        }
        _ => return Ok(None),
    }))
}

fn subquery(expr: &Expr) -> Option<Query> {
    match expr {
        Expr::Subquery(query) => Some((**query).clone()),
        Expr::Nested(inner) => subquery(inner),
        _ => None,
    }
}

fn quantified(name: &str, op: &str, left: &Expr, query: Query) -> Result<Expr> {
    if super::rows::is_row(left) {
        return Err(super::refused(format!(
            "rows are compared with a query in WHERE, not in the SELECT list: {left}"
        )));
    }
    let text = "(SELECT array_agg(DISTINCT quantified.v) FROM (SELECT 1) AS quantified (v))";
    let values = template::filled(text, query)?;
    let op = Expr::Value(Value::SingleQuotedString(op.to_string()).into());
    Ok(call(name, vec![op, left.clone(), values]))
}
