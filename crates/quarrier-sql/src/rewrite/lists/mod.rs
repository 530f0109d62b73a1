//! Lists in messages, whose elements are columns: `leg[0].qty`, `leg[1].qty` and so on.
//!
//! | written | becomes |
//! |---|---|
//! | `5 < ANY (leg[*].qty)` | a comparison with each element: see `quarrier_filter::sql::quantified` |
//! | the same with a long list | `sql_any('<', 5, …)` of an array of the columns |
//! | `UNNEST(leg[*].qty)`, `UNNEST(tag)` in SELECT | `unnest(…)` of an array of the columns, as long as the list |
//! | `UNNEST(leg)` in SELECT | the same for each field, as a struct |
//! | `FROM m, UNNEST(leg) AS l` | `FROM (SELECT *, unnest(…) AS "l.qty", … FROM m) AS m`, and that column for `l.qty` |

mod arrays;
mod scope;
mod tables;

pub(crate) use scope::TableColumns;

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, Query, Select, SelectItem, Subscript, TableFactor, Value, VisitMut, VisitorMut,
};
use quarrier_filter::sql::{is_list, quantified};

use self::scope::{Scopes, path_of};
use self::tables::Unnested;
use super::hidden::HiddenTables;
use super::names::joined;
use super::refused;
use super::walk::{Flow, Stop, ended, walk};
use crate::Result;
use crate::dialect::call;

/// Represents all elements in `leg[*]`, since the grammar of `sqlparser` has no such subscript.
pub(crate) const ALL: &str = "*";

/// Whether a statement may name lists.
pub(crate) fn has_lists<S: VisitMut>(statement: &mut S) -> bool {
    walk(statement, &mut Finder).is_break()
}

struct Finder;

impl VisitorMut for Finder {
    type Break = Stop;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        let is_one = match expr {
            Expr::CompoundFieldAccess { access_chain, .. } => access_chain.iter().any(is_all),
            Expr::Function(function) => is_unnest(function),
            _ => false,
        };
        if is_one { ControlFlow::Break(None) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> Flow {
        match factor {
            TableFactor::UNNEST { .. } => ControlFlow::Break(None),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn is_all(access: &AccessExpr) -> bool {
    match access {
        AccessExpr::Subscript(Subscript::Index { index }) => is_star(index),
        _ => false,
    }
}

/// Whether a subscript is the `*` of all elements.
pub(super) fn is_star(index: &Expr) -> bool {
    matches!(index, Expr::Identifier(ident) if ident.value == ALL && ident.quote_style.is_some())
}

fn is_unnest(function: &Function) -> bool {
    function.name.to_string().eq_ignore_ascii_case("unnest")
}

/// Replaces lists by their columns.
///
/// # Errors
/// No table has a list, or a list occurs where it is not supported.
pub(super) fn expand<S: VisitMut>(
    statement: &mut S,
    tables: (&TableColumns, &HiddenTables),
) -> Result<()> {
    if !has_lists(statement) {
        return Ok(());
    }
    let scopes = Scopes::new(statement, tables);
    ended(walk(statement, &mut Expander { scopes }))
}

struct Expander<'t> {
    scopes: Scopes<'t>,
}

impl VisitorMut for Expander<'_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        flow(Unnested::in_query(&self.scopes, query))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        self.scopes.enter(select);
        select.projection.iter_mut().for_each(caption);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> Flow {
        self.scopes.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        flow(self.rewrite(expr))
    }
}

/// Maximum number of elements to compare column by column, which scans evaluate themselves.
/// Planning longer expressions takes seconds.
const COLUMNS_MAX: usize = 64;

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(op, B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq)
}

/// Whether it is a string literal, which is converted when it is compared with dates.
fn is_string(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_string(inner),
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
        _ => false,
    }
}

fn flow(result: Result<()>) -> Flow {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Some(Box::new(error))),
    }
}

/// Gives an output its original text as alias, if rewriting will change that text.
fn caption(item: &mut SelectItem) {
    if let SelectItem::UnnamedExpr(expr) = item
        && !matches!(expr, Expr::CompoundFieldAccess { .. })
        && has_lists(expr)
    {
        let text: String = expr.to_string().replace("[\"*\"]", "[*]").chars().take(80).collect();
        *item =
            SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', text) };
    }
}

impl Expander<'_> {
    fn rewrite(&self, expr: &mut Expr) -> Result<()> {
        let (left, op, right, is_all) = match expr {
            Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, false),
            Expr::AllOp { left, compare_op, right } => (left, compare_op, right, true),
            Expr::Function(function) if is_unnest(function) => {
                if let Some(rewritten) = self.unnested(function)? {
                    *expr = rewritten;
                }
                return Ok(());
            }
            Expr::CompoundFieldAccess { access_chain, .. } if access_chain.iter().any(is_all) => {
                return Err(refused(
                    "[*], all elements of a list, needs ANY (…), ALL (…) or UNNEST (…)",
                ));
            }
            _ => return Ok(()),
        };
        let Some(path) = path_of(right).filter(|path| is_list(&joined(path))) else {
            return Ok(());
        };
        let list = self.scopes.list(&path)?;
        if list.elements.len() > COLUMNS_MAX
            && is_comparison(op)
            && !is_string(left)
            && let Ok(array) = arrays::array(&list)
        {
            let name = if is_all { "sql_all" } else { "sql_any" };
            let op = Expr::Value(Value::SingleQuotedString(op.to_string()).into());
            *expr = call(name, vec![op, (**left).clone(), array]);
            return Ok(());
        }
        let column = |name: &str| list.column(name);
        let elements = (list.elements.as_slice(), list.ends());
        let rewritten = quantified(left, (op, is_all), elements, &column).map_err(refused)?;
        *expr = rewritten;
        Ok(())
    }

    /// Rewrites UNNEST of a list; `None` if its argument is not a list.
    fn unnested(&self, function: &Function) -> Result<Option<Expr>> {
        let FunctionArguments::List(list) = &function.args else { return Ok(None) };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_slice() else {
            return Ok(None);
        };
        let Some(path) = path_of(argument) else { return Ok(None) };
        if is_list(&joined(&path)) {
            let list = self.scopes.list(&path)?;
            return Ok(Some(arrays::unnest(arrays::array(&list)?)));
        }
        match self.scopes.fields(&path)? {
            Some(fields) => Ok(Some(arrays::structs(&fields)?)),
            None => Ok(None),
        }
    }
}
