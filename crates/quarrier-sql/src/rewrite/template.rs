//! Builds expressions from SQL text with a placeholder for a query.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::sql::parser::DFParserBuilder;
use datafusion::sql::sqlparser::ast::{Expr, Query, SelectItem, SetExpr, TableFactor, VisitorMut};

use super::walk::{Flow, Stop, walk};
use crate::Result;
use crate::dialect::{DEPTH_MAX, Sql};

/// The placeholder's name in templates.
const OPEN: &str = "quantified";

/// Parses `text`, with `query` as its table `quantified`. The table gets a unique name, since
/// DataFusion confuses columns of tables with the same name.
pub(super) fn filled(text: &str, query: Query) -> Result<Expr> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("{OPEN}{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let text = text.replace(OPEN, &name);
    let mut parser = DFParserBuilder::new(text.as_str())
        .with_dialect(&Sql)
        .with_recursion_limit(DEPTH_MAX)
        .build()?;
    let mut expr = parser.parse_into_expr()?.expr;
    let _ = walk(&mut expr, &mut Filler { name, query: Some(query) });
    Ok(Expr::Nested(Box::new(expr)))
}

struct Filler {
    name: String,
    query: Option<Query>,
}

impl VisitorMut for Filler {
    type Break = Stop;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> Flow {
        if let TableFactor::Derived { subquery, alias: Some(alias), .. } = factor
            && alias.name.value == self.name
            && let Some(query) = self.query.take()
        {
            **subquery = query;
            return ControlFlow::Break(None);
        }
        ControlFlow::Continue(())
    }
}

/// The number of columns of a query; `None` if its text does not determine it.
pub(super) fn columns(query: &Query) -> Option<usize> {
    let mut body = &*query.body;
    loop {
        match body {
            SetExpr::Select(select) => {
                let is_one = |item: &SelectItem| {
                    matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
                };
                let all = select.projection.iter().all(is_one);
                return all.then_some(select.projection.len()).filter(|&count| count > 0);
            }
            SetExpr::SetOperation { left, .. } => body = left,
            SetExpr::Query(query) => body = &query.body,
            SetExpr::Values(values) => return values.rows.first().map(|row| row.len()),
            _ => return None,
        }
    }
}
