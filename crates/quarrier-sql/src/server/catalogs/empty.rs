//! Catalogs that are always empty: indexes, triggers, partitions, publications and dozens more. A
//! query that joins one of them has no rows, whatever its other clauses, so nothing else in it has
//! to be supported.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    Expr, JoinOperator, ObjectName, ObjectNamePart, Select, SelectItem, SetExpr, Statement,
    TableFactor, TableWithJoins, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use quarrier_wire::{Failure, Result, state};

use super::no_query;
use super::tables::has_rows;
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
    let _ = query.visit(&mut Emptier);
    Ok((text_of(&query), None))
}

/// Replaces subqueries without rows by their values.
struct Emptier;

impl VisitorMut for Emptier {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Subquery(query) if is_empty(&query.body) => {
                *expr = Expr::value(Value::Null);
            }
            Expr::Exists { subquery, negated } if is_empty(&subquery.body) => {
                *expr = Expr::value(Value::Boolean(*negated));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn is_empty(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => !has_aggregate(select) && select.from.iter().any(needs_empty),
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
        let name = match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => ident.value.clone(),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                parts.last().map(|ident| ident.value.clone()).unwrap_or_default()
            }
            _ => "?column?".to_string(),
        };
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
        assert!(none("SELECT 1 FROM pg_class c LEFT JOIN pg_index i ON true").is_none());
        let (text, _) = without(
            "SELECT a, (SELECT d.x FROM pg_attrdef d WHERE d.y = a), EXISTS (SELECT 1 FROM pg_index) \
             FROM pg_class",
        )
        .unwrap();
        assert_eq!(text, "SELECT a, NULL, false FROM pg_class");
    }
}
