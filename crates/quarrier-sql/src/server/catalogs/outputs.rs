//! Names the output columns as PostgreSQL does. Clients read columns by these names, and select some
//! twice, as in `SELECT c.oid, c.*`, which DataFusion refuses. So columns get unique names, which end
//! with a number, and lose that number in the result.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, SelectItem, SetExpr,
};

/// Precedes the number. Names do not contain control characters otherwise.
const MARK: char = '\u{1}';
/// The name of a column that is an expression without a name.
const NAMELESS: &str = "?column?";

/// Gives the output columns of a query unique names.
pub(super) fn name(body: &mut SetExpr) {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::Query(query) => return name(&mut query.body),
        SetExpr::SetOperation { left, .. } => return name(left),
        _ => return,
    };
    let is_named = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
    };
    let has_wildcard = !select.projection.iter().all(is_named);
    let mut taken = HashSet::new();
    for (number, item) in select.projection.iter_mut().enumerate() {
        let Some(caption) = caption(item) else { continue };
        let is_new = taken.insert(caption.clone());
        let unique = Ident::with_quote('"', format!("{caption}{MARK}{number}"));
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_))
                if is_new && !has_wildcard => {}
            SelectItem::UnnamedExpr(expr) => {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: unique };
            }
            SelectItem::ExprWithAlias { alias, .. } if !is_new => *alias = unique,
            _ => {}
        }
    }
}

/// Returns the name of an output column in PostgreSQL; `None` for a wildcard.
pub(super) fn caption(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(normal(alias)),
        SelectItem::UnnamedExpr(expr) => Some(of(expr).unwrap_or_else(|| NAMELESS.to_string())),
        _ => None,
    }
}

fn normal(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_ascii_lowercase(),
    }
}

fn of(expr: &Expr) -> Option<String> {
    let fixed = |name: &str| Some(name.to_string());
    match expr {
        Expr::Identifier(ident) => Some(normal(ident)),
        Expr::CompoundIdentifier(parts) => parts.last().map(normal),
        Expr::Function(function) => last(&function.name),
        Expr::Nested(inner) => of(inner),
        Expr::Cast { expr, data_type, .. } => {
            of(expr).or_else(|| Some(data_type.to_string().to_ascii_lowercase()))
        }
        Expr::CompoundFieldAccess { root, .. } => of(root),
        Expr::Subquery(query) => match &*query.body {
            SetExpr::Select(select) => select.projection.first().and_then(caption),
            _ => None,
        },
        Expr::Case { .. } => fixed("case"),
        Expr::Exists { .. } => fixed("exists"),
        Expr::Array(_) => fixed("array"),
        Expr::Substring { .. } => fixed("substring"),
        Expr::Trim { .. } => fixed("btrim"),
        Expr::Extract { .. } => fixed("extract"),
        _ => None,
    }
}

fn last(name: &ObjectName) -> Option<String> {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(ident)) => Some(normal(ident)),
        _ => None,
    }
}

/// Removes the numbers from the names of columns.
pub(super) fn renamed(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let name = match field.name().rsplit_once(MARK) {
            Some((name, number)) if number.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => field.name().as_str(),
        };
        field.as_ref().clone().with_name(name)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Removes the numbers from the names of a batch's columns.
pub(super) fn renamed_batch(batch: &RecordBatch) -> datafusion::common::Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let schema = renamed(&batch.schema());
    Ok(RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &options)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn named(text: &str) -> (String, Vec<String>) {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap();
        let Some(Statement::Query(mut query)) = statements.pop() else { panic!("no query") };
        name(&mut query.body);
        let SetExpr::Select(select) = &*query.body else { panic!("no SELECT") };
        let fields = select.projection.iter().map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => normal(alias),
            other => caption(other).unwrap_or_default(),
        });
        let fields: Vec<Field> =
            fields.map(|name| Field::new(name, DataType::Int64, true)).collect();
        let renamed = renamed(&Schema::new(fields));
        let names = renamed.fields().iter().map(|field| field.name().clone()).collect();
        (query.to_string().replace(MARK, "#"), names)
    }

    #[test]
    fn columns_have_postgresql_names() {
        let (text, names) =
            named("SELECT c.OID, version(), CASE WHEN a THEN 1 END, x::text, 1 FROM c");
        assert_eq!(names, ["oid", "version", "case", "x", "?column?"]);
        assert!(text.starts_with("SELECT c.OID, version() AS \"version#1\", "), "{text}");
    }

    #[test]
    fn columns_that_occur_twice_get_unique_names() {
        let (text, names) = named("SELECT c.oid, c.* FROM c");
        assert_eq!(text, "SELECT c.oid AS \"oid#0\", c.* FROM c");
        assert_eq!(names, ["oid", ""]);
        let (text, names) = named("SELECT a.x, b.x, y AS x FROM a, b");
        assert_eq!(text, "SELECT a.x, b.x AS \"x#1\", y AS \"x#2\" FROM a, b");
        assert_eq!(names, ["x", "x", "x"]);
    }
}
