//! Rewrites PostgreSQL's expressions that DataFusion does not have.
//!
//! | written | becomes |
//! |---|---|
//! | `ARRAY(query)` | `(SELECT array_agg(item) FROM (query) AS items(item))` |
//! | `x = ANY('{a,b}')` | `x IN ('a', 'b')` |
//! | `x IN (SELECT … FROM …, string_to_array(current_setting('search_path'), ',') s)` | `x IN ('public')` |
//! | `CAST(x AS regclass)`, `CAST(x AS oid)` | `x` |
//! | `substring(x FROM 'a(b)')` | `(regexp_match(x, 'a(b)'))[1]` |
//! | `SELECT EXISTS (SELECT …) …` | `SELECT (SELECT count(*) …) > 0 …` |
//! | `(SELECT x)` | `(x)` |
//! | `(SELECT a FROM t WHERE t.b = u.c)` | `(SELECT max(a) FROM t WHERE t.b = u.c)` |
//! | `array_upper(x, 1)` | `array_length(x, 1)` |
//! | `SELECT DISTINCT ON (a) a, (SELECT …) …` | `SELECT DISTINCT a, (SELECT …) …` |
//! | `FROM pg_show_all_settings()` | `FROM pg_settings` |

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Function, FunctionArguments, GroupByExpr, Ident, ObjectName,
    ObjectNamePart, Query, Select, SelectItem, SetExpr, TableFactor, Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::rewrite::text_of;

/// Types whose values the catalogs have as numbers and strings.
const OWN_TYPES: &[&str] =
    &["regclass", "regtype", "regproc", "regnamespace", "regrole", "oid", "name"];

/// Rewrites an expression, but not those in it.
pub(super) fn rewrite(expr: &mut Expr) {
    while let Expr::Cast { expr: inner, data_type, .. } = expr
        && OWN_TYPES.iter().any(|own| data_type.to_string().eq_ignore_ascii_case(own))
    {
        *expr = (**inner).clone();
    }
    let instead = match expr {
        Expr::Subquery(query) => {
            aggregate(query);
            alone(query).cloned().map(|value| Expr::Nested(Box::new(value)))
        }
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. }
            if string(right).is_some() =>
        {
            string(right).map(|items| is_any_of(left, items))
        }
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => {
            keep_rows(right);
            None
        }
        Expr::InSubquery { expr, subquery, negated } if is_search_path(subquery) => {
            let public = Value::SingleQuotedString("public".to_string());
            let list = vec![Expr::value(public)];
            Some(Expr::InList { expr: expr.clone(), list, negated: *negated })
        }
        Expr::Substring { expr, substring_from: Some(from), substring_for: None, .. }
            if string(from).is_some() =>
        {
            parsed(&format!("(regexp_match({}, {}))[1]", text_of(&**expr), text_of(&**from)))
        }
        Expr::Function(function) => {
            if is_named(&function.name, "array_upper") {
                function.name = named("array_length");
            }
            list_of(function).and_then(|query| {
                let query = text_of(query);
                parsed(&format!("(SELECT array_agg(item) FROM ({query}) AS items(item))"))
            })
        }
        _ => None,
    };
    if let Some(instead) = instead {
        *expr = instead;
    }
}

/// Rewrites a table.
pub(super) fn rewrite_table(factor: &mut TableFactor) {
    if let TableFactor::Table { name, args, .. } = factor
        && args.is_some()
        && is_named(name, "pg_show_all_settings")
    {
        *args = None;
        *name = named("pg_settings");
    }
}

/// Returns the query of `ARRAY(query)`.
pub(super) fn list_of(function: &Function) -> Option<&Query> {
    match &function.args {
        FunctionArguments::Subquery(query) if is_named(&function.name, "array") => Some(query),
        _ => None,
    }
}

/// Parses an expression.
pub(super) fn parsed(text: &str) -> Option<Expr> {
    Parser::new(&PostgreSqlDialect {}).try_with_sql(text).ok()?.parse_expr().ok()
}

fn is_named(name: &ObjectName, wanted: &str) -> bool {
    matches!(
        name.0.last(),
        Some(ObjectNamePart::Identifier(ident)) if ident.value.eq_ignore_ascii_case(wanted)
    )
}

fn named(name: &str) -> ObjectName {
    ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))])
}

fn string(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::Nested(inner) => string(inner),
        _ => None,
    }
}

fn is_any_of(left: &Expr, items: &str) -> Expr {
    let items = items.trim().trim_start_matches('{').trim_end_matches('}').split(',');
    let items = items.map(|item| item.trim().trim_matches('"').to_string());
    let list = items.map(|item| Expr::value(Value::SingleQuotedString(item))).collect();
    Expr::InList { expr: Box::new(left.clone()), list, negated: false }
}

/// Rewrites EXISTS in an output, which DataFusion supports only in conditions.
pub(super) fn rewrite_output(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => rewrite_output(inner),
        Expr::BinaryOp { left, right, .. } => {
            rewrite_output(left);
            rewrite_output(right);
        }
        Expr::Case { conditions, else_result, .. } => {
            for when in conditions {
                rewrite_output(&mut when.condition);
                rewrite_output(&mut when.result);
            }
            if let Some(value) = else_result {
                rewrite_output(value);
            }
        }
        Expr::Exists { subquery, negated } => {
            if let Some(count) = count_of(subquery) {
                let compared = if *negated { "=" } else { ">" };
                if let Some(instead) = parsed(&format!("(({count}) {compared} 0)")) {
                    *expr = instead;
                }
            }
        }
        _ => {}
    }
}

/// Rewrites DISTINCT ON beside subqueries, which DataFusion does not support there. Clients use it to get one of
/// several descriptions of an object, but no object has several here.
pub(super) fn rewrite_distinct(select: &mut Select) {
    let has_subquery = || select.projection.iter().any(|item| text_of(item).contains("(SELECT"));
    if matches!(select.distinct, Some(Distinct::On(_))) && has_subquery() {
        select.distinct = Some(Distinct::Distinct);
    }
}

/// Returns a query for the number of rows of another; `None` if it has groups.
fn count_of(query: &Query) -> Option<String> {
    let mut query = query.clone();
    query.order_by = None;
    query.limit_clause = None;
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let is_grouped = !matches!(
        &select.group_by,
        GroupByExpr::Expressions(keys, _) if keys.is_empty()
    );
    if is_grouped || select.having.is_some() || select.distinct.is_some() {
        return None;
    }
    select.projection = vec![SelectItem::UnnamedExpr(parsed("count(*)")?)];
    Some(text_of(&query))
}

/// Returns the value of `(SELECT value)`.
fn alone(query: &Query) -> Option<&Expr> {
    let SetExpr::Select(select) = &*query.body else { return None };
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(value)]
            if select.from.is_empty() && select.selection.is_none() =>
        {
            Some(value)
        }
        _ => None,
    }
}

/// Makes an aggregate of a column that a subquery selects, since DataFusion does not know that the query
/// returns at most one row.
fn aggregate(query: &mut Query) {
    let may_be_cut = query.order_by.is_some() || query.limit_clause.is_some();
    let SetExpr::Select(select) = &mut *query.body else { return };
    let [SelectItem::UnnamedExpr(column)] = select.projection.as_mut_slice() else { return };
    let is_column = matches!(column, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let is_plain = matches!(
        &select.group_by,
        GroupByExpr::Expressions(keys, _) if keys.is_empty()
    ) && select.distinct.is_none()
        && !may_be_cut;
    if is_column
        && is_plain
        && !select.from.is_empty()
        && let Some(max) = parsed(&format!("max({column})"))
    {
        *column = max;
    }
}

/// Excludes the query of ANY or ALL, which may return many rows, from [`aggregate`].
fn keep_rows(right: &mut Expr) {
    match right {
        Expr::Nested(inner) => keep_rows(inner),
        Expr::Subquery(query) => {
            if let SetExpr::Select(select) = &mut *query.body {
                select.distinct.get_or_insert(Distinct::Distinct);
            }
        }
        _ => {}
    }
}

/// Whether a query returns the schemas of the search path.
fn is_search_path(query: &Query) -> bool {
    const START: &str = "string_to_array(current_setting('search_path')";
    let SetExpr::Select(select) = &*query.body else { return false };
    let is_it = |factor: &TableFactor| factor.to_string().to_ascii_lowercase().starts_with(START);
    select.from.iter().any(|table| is_it(&table.relation))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_postgresql_are_rewritten() {
        for (written, expected) in [
            (
                "ARRAY(SELECT 'it''s' FROM t)",
                "(SELECT array_agg(item) FROM (SELECT 'it''s' FROM t) AS items (item))",
            ),
            ("x = ANY('{a, \"b\"}')", "x IN ('a', 'b')"),
            ("x = ANY(y)", "x = ANY(y)"),
            ("x > ALL(SELECT a FROM t)", "x > ALL(SELECT DISTINCT a FROM t)"),
            (
                "x IN (SELECT s[i] FROM generate_series(1, 2) AS i, string_to_array(current_setting('search_path'), ',') s)",
                "x IN ('public')",
            ),
            ("CAST(CAST(x AS REGCLASS) AS OID)", "x"),
            ("CAST(x AS TEXT)", "CAST(x AS TEXT)"),
            ("substring(x FROM 'a(b)')", "(regexp_match(x, 'a(b)'))[1]"),
            ("substring(x FROM 2)", "SUBSTRING(x FROM 2)"),
            ("array_upper(x, 1)", "array_length(x, 1)"),
            ("(SELECT a FROM t WHERE b = c)", "(SELECT max(a) FROM t WHERE b = c)"),
            ("(SELECT a FROM t LIMIT 1)", "(SELECT a FROM t LIMIT 1)"),
            ("(SELECT f('a'))", "(f('a'))"),
        ] {
            let mut expr = parsed(written).unwrap();
            rewrite(&mut expr);
            assert_eq!(text_of(&expr), expected, "{written}");
        }
    }
    #[test]
    fn outputs_count_instead_of_exists() {
        let mut expr =
            parsed("a = 1 AND NOT EXISTS (SELECT 1 FROM t WHERE b = c LIMIT 1)").unwrap();
        rewrite_output(&mut expr);
        let expected = "a = 1 AND ((SELECT count(*) FROM t WHERE b = c) = 0)";
        assert_eq!(text_of(&expr), expected);
    }
}
