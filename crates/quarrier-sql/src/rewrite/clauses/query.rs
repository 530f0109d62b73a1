//! Clauses around a SELECT: WITH, ORDER BY, LIMIT and those after them.

use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Fetch, LimitClause, Offset, OrderBy, OrderByExpr, OrderByKind, OrderByOptions,
    Query, SetExpr, SetOperator, TableFactor, Value, VisitorMut, With,
};

use super::super::walk::{Flow, Stop, walk};
use super::{refused, tables, unless, windows};
use crate::{Error, Result};

/// Rewrites FETCH as LIMIT, named windows in ORDER BY, and LIMIT in a WITH RECURSIVE.
pub(super) fn rewrite(query: &mut Query) -> Result<()> {
    if let Some(fetch) = query.fetch.take() {
        query.limit_clause = Some(limited(query.limit_clause.take(), fetch)?);
    }
    if let (SetExpr::Select(select), Some(order)) = (&mut *query.body, &mut query.order_by) {
        windows::written_out_in(order, &select.named_window)?;
    }
    if let Some(With { recursive: true, cte_tables, .. }) = &mut query.with {
        for cte in cte_tables {
            bounded(cte)?;
        }
    }
    Ok(())
}

fn limited(clause: Option<LimitClause>, fetch: Fetch) -> Result<LimitClause> {
    let Fetch { with_ties, percent, quantity } = fetch;
    unless(!with_ties, "FETCH … WITH TIES")?;
    unless(!percent, "FETCH … PERCENT")?;
    let one = || Expr::Value(Value::Number("1".to_string(), false).into());
    let limit = Some(quantity.unwrap_or_else(one));
    match clause {
        None => Ok(LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() }),
        Some(LimitClause::LimitOffset { limit: None, offset, limit_by }) => {
            Ok(LimitClause::LimitOffset { limit, offset, limit_by })
        }
        Some(_) => refused("FETCH together with LIMIT"),
    }
}

/// The planner ignores clauses after the UNION in a WITH RECURSIVE. If the query is not recursive
/// after all, this adds parentheses, which make the planner apply them.
fn bounded(cte: &mut Cte) -> Result<()> {
    let query = &mut *cte.query;
    let is_union = matches!(&*query.body, SetExpr::SetOperation { op: SetOperator::Union, .. });
    let is_bare = query.order_by.is_none() && query.limit_clause.is_none() && query.with.is_none();
    if !is_union || is_bare {
        return Ok(());
    }
    let name = &cte.alias.name.value;
    let mut named = Names { name, is_there: false };
    let _ = walk(query, &mut named);
    if named.is_there {
        return Err(Error::text(format!(
            "ORDER BY, LIMIT or WITH within the recursive query {name} is not supported; write it \
             where {name} is read"
        )));
    }
    let inner = Query {
        with: None,
        body: query.body.clone(),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    };
    *query.body = SetExpr::Query(Box::new(inner));
    Ok(())
}

/// Finds out whether a query reads a table with this name.
struct Names<'n> {
    name: &'n str,
    is_there: bool,
}

impl VisitorMut for Names<'_> {
    type Break = Stop;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> Flow {
        if let TableFactor::Table { name, .. } = factor {
            self.is_there |= name.to_string().eq_ignore_ascii_case(self.name);
        }
        Flow::Continue(())
    }
}

pub(super) fn check(query: &Query) -> Result<()> {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    if let Some(With { with_token: _, recursive: _, cte_tables }) = with {
        for Cte { alias, query: _, from, materialized: _, closing_paren_token: _ } in cte_tables {
            tables::alias(alias)?;
            unless(from.is_none(), "WITH … FROM")?;
        }
    }
    set(body)?;
    if let Some(OrderBy { kind, interpolate }) = order_by {
        unless(interpolate.is_none(), "INTERPOLATE")?;
        match kind {
            OrderByKind::All(OrderByOptions { asc: _, nulls_first: _ }) => {
                let is_select = matches!(&**body, SetExpr::Select(_));
                unless(is_select, "ORDER BY ALL of several queries")?;
            }
            OrderByKind::Expressions(exprs) => ordered(exprs)?,
        }
    }
    match limit_clause {
        Some(LimitClause::LimitOffset { limit: _, offset, limit_by }) => {
            unless(limit_by.is_empty(), "LIMIT … BY")?;
            if let Some(Offset { value: _, rows: _ }) = offset {}
        }
        Some(LimitClause::OffsetCommaLimit { offset: _, limit: _ }) | None => {}
    }
    unless(fetch.is_none(), "FETCH")?;
    unless(locks.is_empty(), "FOR UPDATE or FOR SHARE")?;
    unless(for_clause.is_none(), "FOR XML, FOR JSON or FOR BROWSE")?;
    unless(settings.is_none(), "SETTINGS")?;
    unless(format_clause.is_none(), "FORMAT")?;
    unless(pipe_operators.is_empty(), "|>")
}

/// Checks the operands of UNION, EXCEPT and INTERSECT, except those in parentheses.
fn set(body: &SetExpr) -> Result<()> {
    match body {
        SetExpr::SetOperation { op, left, set_quantifier: _, right } => {
            unless(!matches!(op, SetOperator::Minus), "MINUS (write EXCEPT)")?;
            set(left)?;
            set(right)
        }
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => Ok(()),
        SetExpr::Insert(_) => refused("INSERT in a query"),
        SetExpr::Update(_) => refused("UPDATE in a query"),
        SetExpr::Delete(_) => refused("DELETE in a query"),
        SetExpr::Merge(_) => refused("MERGE in a query"),
        SetExpr::Table(_) => Err(Error::text("write SELECT * FROM t instead of TABLE t")),
    }
}

/// Checks the expressions of an ORDER BY.
pub(super) fn ordered(exprs: &[OrderByExpr]) -> Result<()> {
    for OrderByExpr { expr: _, options, with_fill } in exprs {
        let OrderByOptions { asc: _, nulls_first: _ } = options;
        unless(with_fill.is_none(), "WITH FILL")?;
    }
    Ok(())
}
