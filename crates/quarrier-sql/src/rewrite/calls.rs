//! Rewrites functions that DataFusion has under another name or with another meaning.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DateTimeField, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, ObjectName, Query,
};

use super::{refused, template, text_of};
use crate::Result;
use crate::dialect::{MATCH, UNIQUE, call};

/// Rewrites a call for DataFusion.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Extract { field: DateTimeField::Second, expr: operand, .. } => {
            *expr = call("sql_seconds", vec![(**operand).clone()]);
        }
        Expr::Function(function) => {
            let arguments = arguments(function);
            match (function.name.to_string().to_ascii_uppercase().as_str(), arguments.as_slice()) {
                (UNIQUE, [Expr::Subquery(query)]) => *expr = unique((**query).clone())?,
                (MATCH, [operand, Expr::Subquery(query), way, unique]) => {
                    let is_unique = unique.to_string() == UNIQUE;
                    *expr = matched(operand, (**query).clone(), &way.to_string(), is_unique)?;
                }
                ("MOD", [left, right]) => {
                    *expr = Expr::Nested(Box::new(Expr::BinaryOp {
                        left: Box::new(left.clone()),
                        op: BinaryOperator::Modulo,
                        right: Box::new(right.clone()),
                    }));
                }
                ("ROW_NUMBER" | "RANK" | "DENSE_RANK" | "NTILE", _) if function.over.is_some() => {
                    *expr = signed(expr.clone());
                }
                ("CEILING", [_]) => function.name = ObjectName::from(vec![Ident::new("ceil")]),
                _ => {}
            }
        }
        _ => {}
    }
    Ok(())
}

/// Converts an unsigned result of DataFusion to a signed integer, so that it can be halved or
/// negated like others.
fn signed(expr: Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type: DataType::BigInt(None),
        array: false,
        format: None,
    }
}

fn arguments(function: &Function) -> Vec<Expr> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let argument = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    list.args.iter().map(argument).collect::<Option<_>>().unwrap_or_default()
}

/// UNIQUE: no two rows without NULL are equal.
fn unique(query: Query) -> Result<Expr> {
    let columns = template::columns(&query).ok_or_else(|| {
        refused("UNIQUE takes a query that lists its columns, not one with * or in parentheses")
    })?;
    let names: Vec<String> = (1..=columns).map(|number| format!("c{number}")).collect();
    let known: Vec<String> = names.iter().map(|name| format!("{name} IS NOT NULL")).collect();
    let names = names.join(", ");
    template::filled(
        &format!(
            "(SELECT count(*) FROM (SELECT count(*) AS times FROM (SELECT 1) AS quantified \
             ({names}) WHERE {} GROUP BY {names} HAVING count(*) > 1) AS twice) = 0",
            known.join(" AND ")
        ),
        query,
    )
}

/// MATCH: the query has an equal row. NULLs in the operand decide according to the option.
fn matched(operand: &Expr, query: Query, way: &str, is_unique: bool) -> Result<Expr> {
    let values = match operand {
        Expr::Tuple(values) => values.clone(),
        Expr::Nested(inner) => vec![(**inner).clone()],
        value => vec![value.clone()],
    };
    let names: Vec<String> = (1..=values.len()).map(|number| format!("c{number}")).collect();
    let values: Vec<String> = values.iter().map(text_of).collect();
    let pairs = || names.iter().zip(&values);
    let all = |test: &dyn Fn((&String, &String)) -> String, by: &str| {
        pairs().map(|pair| format!("({})", test(pair))).collect::<Vec<_>>().join(by)
    };
    let null = |(_, value): (&String, &String)| format!("{value} IS NULL");
    let equal = |(name, value): (&String, &String)| format!("quantified.{name} = {value}");
    let partly = |(name, value): (&String, &String)| {
        format!("{value} IS NULL OR quantified.{name} = {value}")
    };
    let (settled, rows) = match way {
        "FULL" => {
            let (every, some) = (all(&null, " AND "), all(&null, " OR "));
            (format!("WHEN {every} THEN TRUE WHEN {some} THEN FALSE"), all(&equal, " AND "))
        }
        "PARTIAL" => (format!("WHEN {} THEN TRUE", all(&null, " AND ")), all(&partly, " AND ")),
        _ => (format!("WHEN {} THEN TRUE", all(&null, " OR ")), all(&equal, " AND ")),
    };
    let count = if is_unique { "= 1" } else { ">= 1" };
    template::filled(
        &format!(
            "CASE {settled} ELSE (SELECT count(*) FROM (SELECT 1) AS quantified ({}) \
             WHERE {rows}) {count} END",
            names.join(", ")
        ),
        query,
    )
}
