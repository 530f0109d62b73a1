//! Catalogs that are always empty: indexes, triggers, partitions, publications and dozens more. A
//! query that joins one of them has no rows, whatever its other clauses, so nothing else in it has
//! to be supported. The same walk rewrites the expressions of [`super::foreign`].

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, JoinOperator, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SetExpr, SetOperator, SetQuantifier, Statement, TableFactor, TableWithJoins, Value,
    VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use quarrier_wire::{Failure, Result, state};

use super::tables::has_rows;
use super::{foreign, no_query, outputs};
use crate::rewrite::text_of;

/// Maximum nesting depth of a statement.
const DEPTH_MAX: usize = 50;

/// Removes subqueries without rows from a statement. Returns the columns of the whole statement if
/// it has no rows.
pub(super) fn without(text: &str) -> Result<(String, Option<SchemaRef>)> {
    let parser = Parser::new(&PostgreSqlDialect {}).with_recursion_limit(DEPTH_MAX);
    let parsed = parser.try_with_sql(text).and_then(|mut parser| parser.parse_statements());
    let parsed = parsed.map_err(|error| Failure::new(state::SYNTAX, error.to_string()))?;
    let [statement] = <[Statement; 1]>::try_from(parsed).map_err(|_| no_query())?;
    let Statement::Query(mut query) = statement else { return Ok((text_of(&statement), None)) };
    if is_empty(&query.body) {
        let known = first_select(&query.body).map(columns);
        return Ok((String::new(), known));
    }
    if let (Some(value), Some(select)) = (aggregate_of_none(&query), first_select(&query.body)) {
        let name = select.projection.first().and_then(outputs::caption).unwrap_or_default();
        let name = Ident::with_quote('"', name);
        return Ok((format!("SELECT {value} AS {name}"), None));
    }
    outputs::name(&mut query.body);
    let _ = query.visit(&mut Emptier);
    Ok((text_of(&query), None))
}

/// Replaces subqueries without rows by their values.
struct Emptier;

impl VisitorMut for Emptier {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        shorten(&mut query.body);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                foreign::rewrite_output(expr);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        foreign::rewrite_distinct(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        foreign::rewrite_table(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let instead = match expr {
            Expr::Subquery(query) => value_of_none(query),
            Expr::Exists { subquery, negated } if is_empty(&subquery.body) => {
                Some(Expr::value(Value::Boolean(*negated)))
            }
            Expr::AnyOp { right, .. } => match &**right {
                Expr::Subquery(query) if selects_nothing(query) => Some(Expr::value(Value::Null)),
                Expr::Function(function) if foreign::list_of(function).is_some_and(of_members) => {
                    Some(Expr::value(Value::Boolean(false)))
                }
                _ => None,
            },
            Expr::Function(function) => match foreign::list_of(function) {
                Some(query) if is_empty(&query.body) => foreign::parsed("CAST(ARRAY[] AS TEXT[])"),
                _ => None,
            },
            _ => None,
        };
        match instead {
            Some(instead) => *expr = instead,
            None => foreign::rewrite(expr),
        }
        ControlFlow::Continue(())
    }
}

/// Removes the second query of a UNION if it has no rows.
fn shorten(body: &mut SetExpr) {
    let SetExpr::SetOperation { left, op: SetOperator::Union, right, set_quantifier } = body else {
        return;
    };
    shorten(left);
    if !is_empty(right) || is_empty(left) {
        return;
    }
    let keeps_duplicates = matches!(set_quantifier, SetQuantifier::All);
    let mut kept = (**left).clone();
    if !keeps_duplicates && let SetExpr::Select(select) = &mut kept {
        select.distinct.get_or_insert(Distinct::Distinct);
    }
    *body = kept;
}

/// Returns the value of a subquery if its tables have no rows.
fn value_of_none(query: &Query) -> Option<Expr> {
    if is_empty(&query.body) || selects_nothing(query) {
        return Some(Expr::value(Value::Null));
    }
    aggregate_of_none(query)
}

/// Returns the value of an aggregate if its tables have no rows: 0 for a count, and NULL otherwise.
fn aggregate_of_none(query: &Query) -> Option<Expr> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let [
        SelectItem::UnnamedExpr(Expr::Function(function))
        | SelectItem::ExprWithAlias { expr: Expr::Function(function), .. },
    ] = select.projection.as_slice()
    else {
        return None;
    };
    let may_have_rows = !select.from.iter().any(needs_empty);
    if may_have_rows || !has_aggregate(select) || select.having.is_some() {
        return None;
    }
    Some(Expr::value(match last(&function.name)?.to_ascii_lowercase().as_str() {
        "count" => Value::Number("0".to_string(), false),
        _ => Value::Null,
    }))
}

/// Whether a query selects only a column of a catalog without rows, which other tables may be joined
/// to.
fn selects_nothing(query: &Query) -> bool {
    let SetExpr::Select(select) = &*query.body else { return false };
    let [SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))] = select.projection.as_slice()
    else {
        return false;
    };
    let is_of = |factor: &TableFactor| match factor {
        TableFactor::Table { alias: Some(alias), .. } => {
            parts.len() == 2
                && alias.name.value.eq_ignore_ascii_case(&parts[0].value)
                && factor_is_empty(factor)
        }
        _ => false,
    };
    select
        .from
        .iter()
        .any(|table| is_of(&table.relation) || table.joins.iter().any(|join| is_of(&join.relation)))
}

/// Whether a query asks for the roles that a role is a member of. No role is a member of another.
fn of_members(query: &Query) -> bool {
    query.to_string().to_ascii_lowercase().contains("pg_auth_members")
}

fn is_empty(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => {
            let is_grouped =
                matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if !keys.is_empty());
            (is_grouped || !has_aggregate(select)) && select.from.iter().any(needs_empty)
        }
        SetExpr::Query(query) => is_empty(&query.body),
        SetExpr::SetOperation { left, right, .. } => is_empty(left) && is_empty(right),
        _ => false,
    }
}

/// An aggregate returns a row even without input; an aggregate in a subquery belongs to the subquery.
fn has_aggregate(select: &Select) -> bool {
    const NAMES: [&str; 6] = ["count(", "max(", "min(", "sum(", "array_agg(", "string_agg("];
    let outputs = select.projection.iter().map(|item| item.to_string().to_ascii_lowercase());
    outputs.into_iter().any(|output| NAMES.iter().any(|name| output.starts_with(name)))
}

fn needs_empty(table: &TableWithJoins) -> bool {
    let inner = table.joins.iter().filter(|join| {
        matches!(
            join.join_operator,
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_)
        )
    });
    factor_is_empty(&table.relation) || inner.into_iter().any(|it| factor_is_empty(&it.relation))
}

fn factor_is_empty(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table { name, args: None, .. } => last(name).is_some_and(|name| {
            let name = name.to_ascii_lowercase();
            name.starts_with("pg_") && !has_rows(&name)
        }),
        TableFactor::Derived { subquery, .. } => is_empty(&subquery.body),
        TableFactor::NestedJoin { table_with_joins, .. } => needs_empty(table_with_joins),
        _ => false,
    }
}

fn last(name: &ObjectName) -> Option<&str> {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(ident)) => Some(&ident.value),
        _ => None,
    }
}

fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// Returns the columns of a query without rows, as strings.
fn columns(select: &Select) -> SchemaRef {
    let fields = select.projection.iter().map(|item| {
        let name = outputs::caption(item).unwrap_or_else(|| "?column?".to_string());
        Field::new(name, DataType::Utf8, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use super::*;

    #[test]
    fn queries_of_empty_catalogs_have_no_rows() {
        let none = |text: &str| without(text).unwrap().1;
        let names = |text: &str| {
            let schema = none(text).unwrap();
            schema.fields().iter().map(|it| it.name().clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            names("SELECT i.indexrelid, 1 AS a FROM pg_class c, pg_index i"),
            ["indexrelid", "a"]
        );
        assert!(none("SELECT count(*) FROM pg_index").is_none());
        assert_eq!(names("SELECT a, array_agg(b) FROM pg_index GROUP BY a"), ["a", "array_agg"]);
        assert!(none("SELECT 1 FROM pg_class c LEFT JOIN pg_index i ON true").is_none());
        let (text, _) = without(
            "SELECT a, (SELECT d.x FROM pg_attrdef d WHERE d.y = a), EXISTS (SELECT 1 FROM pg_index) \
             FROM pg_class",
        )
        .unwrap();
        assert_eq!(
            text.replace('\u{1}', "#"),
            "SELECT a, NULL AS \"x#1\", (0 > 0) AS \"exists#2\" FROM pg_class"
        );
    }

    #[test]
    fn parts_without_rows_are_replaced() {
        let text = |text: &str| without(text).unwrap().0;
        assert_eq!(text("SELECT COUNT(*) FROM pg_policy"), "SELECT 0 AS \"count\"");
        for (written, expected) in [
            ("(SELECT count(1) FROM pg_policy WHERE a = c.oid LIMIT 1)", "0"),
            ("(SELECT array_agg(a || b) FROM pg_policy)", "NULL"),
            ("ARRAY(SELECT a FROM pg_policy)", "CAST(ARRAY[] AS TEXT[])"),
            ("x = ANY((SELECT p.y FROM pg_class c LEFT JOIN pg_policy p ON true))", "NULL"),
            (
                "'a' = ANY(ARRAY(WITH RECURSIVE r AS (SELECT 1 UNION ALL \
                 SELECT m.x FROM r JOIN pg_auth_members m ON true) SELECT x FROM r))",
                "false",
            ),
        ] {
            let text = text(&format!("SELECT {written} AS v FROM pg_class c"));
            assert_eq!(text, format!("SELECT {expected} AS v FROM pg_class c"), "{written}");
        }
        assert_eq!(
            text(
                "SELECT DISTINCT ON (a) a AS v, (SELECT max(b) FROM pg_type WHERE c = a) AS w FROM pg_class"
            ),
            "SELECT DISTINCT a AS v, (SELECT max(b) FROM pg_type WHERE c = a) AS w FROM pg_class"
        );
        let query = "SELECT t.a FROM (SELECT a FROM pg_tables UNION SELECT b FROM pg_views \
                     UNION SELECT c FROM pg_matviews) t";
        assert_eq!(text(query), "SELECT t.a FROM (SELECT DISTINCT a FROM pg_tables) t");
    }
}
