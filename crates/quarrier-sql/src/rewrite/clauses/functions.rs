//! Function calls: their clauses, and functions that DataFusion has under another name.

use datafusion::sql::sqlparser::ast::{
    CaseWhen, CastKind, DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, NullTreatment,
    ObjectName, ObjectNamePart, Value, WindowFrame, WindowSpec, WindowType,
    helpers::attached_token::AttachedToken,
};

use super::query::ordered;
use super::{Functions, refused, unless};
use crate::Result;

/// Aggregates that support DISTINCT, or for which duplicates make no difference.
const OF_DISTINCT: [&str; 28] = [
    "any_value",
    "approx_distinct",
    "approx_median",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "count",
    "max",
    "mean",
    "median",
    "min",
    "percentile_cont",
    "quantile_cont",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var",
    "var_pop",
    "var_population",
    "var_samp",
    "var_sample",
    "every",
];

/// Window functions that support IGNORE NULLS.
const OF_NULLS: [&str; 5] = ["first_value", "lag", "last_value", "lead", "nth_value"];

fn name_of(name: &ObjectName) -> String {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => ident.value.to_ascii_lowercase(),
        _ => name.to_string().to_ascii_lowercase(),
    }
}

/// Rewrites functions that DataFusion has under another name.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expr else { return Ok(()) };
    match name_of(&function.name).as_str() {
        "group_concat" => concatenated(function),
        "if" | "iff" => {
            if let Some(choice) = choice(function) {
                *expr = choice;
            }
        }
        "mode" => most_frequent(function),
        "coalesce" | "ifnull" | "nvl" => {
            if let Some(choice) = first_known(function) {
                *expr = choice;
            }
        }
        _ => {}
    }
    Ok(())
}

/// `GROUP_CONCAT(x ORDER BY y SEPARATOR ';')`
fn concatenated(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) = list.args.first_mut() else {
        return;
    };
    *first = Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(first.clone()),
        data_type: DataType::Varchar(None),
        array: false,
        format: None,
    };
    let separator = list
        .clauses
        .iter()
        .position(|clause| matches!(clause, FunctionArgumentClause::Separator(_)));
    let separator = separator.map(|place| list.clauses.remove(place));
    let between = match separator {
        Some(FunctionArgumentClause::Separator(text)) => Expr::Value(text),
        _ => Expr::Value(Value::SingleQuotedString(",".to_string()).into()),
    };
    if list.args.len() == 1 {
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(between)));
    }
    function.name = ObjectName::from(vec![Ident::new("string_agg")]);
}

/// `IF(c, a, b)`
fn choice(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let values: Vec<Expr> = list.args.iter().map(value).collect::<Option<_>>()?;
    let [condition, result, otherwise] = <[Expr; 3]>::try_from(values).ok()?;
    Some(case(vec![CaseWhen { condition, result }], otherwise))
}

/// `COALESCE(d, '2024-12-31')`: DataFusion has no common type for a date and a string literal
/// before the literal is typed, except for the results of a CASE.
fn first_known(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let mut values = list.args.iter().map(value).collect::<Option<Vec<Expr>>>()?;
    let is_text = |value: &Expr| matches!(value, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
    if values.len() < 2 || !values.iter().any(is_text) {
        return None;
    }
    let otherwise = values.pop();
    let known = values.into_iter().map(|value| CaseWhen {
        condition: Expr::IsNotNull(Box::new(value.clone())),
        result: value,
    });
    Some(case(known.collect(), otherwise?))
}

fn case(conditions: Vec<CaseWhen>, otherwise: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result: Some(Box::new(otherwise)),
    }
}

/// The argument, if it is an unnamed expression.
fn value(argument: &FunctionArg) -> Option<Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    }
}

/// `MODE() WITHIN GROUP (ORDER BY x)`
fn most_frequent(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if let ([by], true) = (function.within_group.as_slice(), list.args.is_empty()) {
        let value = FunctionArgExpr::Expr(by.expr.clone());
        list.args.push(FunctionArg::Unnamed(value));
        function.within_group.clear();
    }
}

pub(super) fn check(expr: &Expr, functions: &Functions) -> Result<()> {
    match expr {
        Expr::Function(function) => call(function, functions),
        Expr::Collate { expr: _, collation: _ } => refused("COLLATE"),
        Expr::Prior(_) => refused("PRIOR"),
        Expr::OuterJoin(_) => refused("(+) (write LEFT JOIN)"),
        Expr::MatchAgainst { .. } => refused("MATCH … AGAINST"),
        Expr::Convert { .. } => refused("CONVERT (write CAST)"),
        Expr::IsNormalized { .. } => refused("IS NORMALIZED"),
        Expr::InUnnest { .. } => refused("IN UNNEST (write = ANY)"),
        Expr::MemberOf(_) => refused("MEMBER OF"),
        _ => Ok(()),
    }
}

fn call(function: &Function, functions: &Functions) -> Result<()> {
    let Function {
        name,
        uses_odbc_syntax: _,
        parameters,
        args,
        filter,
        null_treatment,
        over,
        within_group,
    } = function;
    let name = name_of(name);
    let is_aggregate = functions.aggregates.contains(&name);
    let is_window = over.is_some() && (functions.windows.contains(&name) || is_aggregate);
    let of = |what: &str| format!("{what} of {name}()");
    let has_parameters = *parameters != FunctionArguments::None;
    unless(!has_parameters, &of("a second list of arguments"))?;
    unless(over.is_none() || is_window, &of("OVER"))?;
    unless(filter.is_none() || is_aggregate, &of("FILTER"))?;
    unless(within_group.is_empty() || is_aggregate, &of("WITHIN GROUP"))?;
    ordered(within_group)?;
    let mut nulls = null_treatment.as_ref();
    match args {
        FunctionArguments::None => {}
        FunctionArguments::Subquery(_) => return refused(of("a query as the argument")),
        FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args: _, clauses }) => {
            match duplicate_treatment {
                None => {}
                Some(DuplicateTreatment::All) => unless(is_aggregate, &of("ALL"))?,
                Some(DuplicateTreatment::Distinct) => {
                    let is_distinct = is_aggregate && OF_DISTINCT.contains(&name.as_str());
                    unless(is_distinct, &of("DISTINCT"))?;
                }
            }
            for clause in clauses {
                argument_clause(clause, is_aggregate, &of)?;
                if let FunctionArgumentClause::IgnoreOrRespectNulls(treatment) = clause {
                    nulls = Some(treatment);
                }
            }
        }
    }
    match nulls {
        None => {}
        Some(NullTreatment::RespectNulls | NullTreatment::IgnoreNulls) => {
            // Without OVER, DataFusion reports which aggregates support it.
            let is_supported =
                if over.is_some() { OF_NULLS.contains(&name.as_str()) } else { is_aggregate };
            unless(is_supported, &of("IGNORE NULLS or RESPECT NULLS"))?;
        }
    }
    match over {
        Some(over) => window(over),
        None => Ok(()),
    }
}

fn argument_clause(
    clause: &FunctionArgumentClause,
    is_aggregate: bool,
    of: &dyn Fn(&str) -> String,
) -> Result<()> {
    use FunctionArgumentClause as F;
    match clause {
        F::IgnoreOrRespectNulls(_) => Ok(()),
        F::OrderBy(exprs) => {
            unless(is_aggregate, &of("ORDER BY"))?;
            ordered(exprs)
        }
        F::Limit(_) => refused(of("LIMIT")),
        F::OnOverflow(_) => refused(of("ON OVERFLOW")),
        F::Having(_) => refused(of("HAVING")),
        F::Separator(_) => refused(of("SEPARATOR")),
        F::JsonNullClause(_) => refused(of("NULL ON NULL or ABSENT ON NULL")),
        F::JsonReturningClause(_) => refused(of("RETURNING")),
    }
}

fn window(over: &WindowType) -> Result<()> {
    match over {
        WindowType::NamedWindow(name) => refused(format!("OVER {name} here")),
        WindowType::WindowSpec(spec) => {
            let WindowSpec { window_name, partition_by: _, order_by, window_frame } = spec;
            unless(window_name.is_none(), "the name of a window within OVER (…) here")?;
            if let Some(WindowFrame { units: _, start_bound: _, end_bound: _ }) = window_frame {}
            ordered(order_by)
        }
    }
}
