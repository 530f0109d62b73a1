//! Names casts apart in a SELECT with functions or groups. DataFusion gives `CAST(x AS REAL)` the name of `x`, and
//! refuses groups or aggregates of which two have one name.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Value,
    VisitorMut,
};

use super::walk::{Flow, Stop, walk};
use crate::dialect::call;

/// The function that has the value of its first argument, and a name with the second one.
pub(crate) const NAMED_CAST: &str = "sql_cast";

/// Replaces the casts of a SELECT by calls of [`NAMED_CAST`], if two of its expressions differ only in casts.
pub(super) struct Casts;

impl VisitorMut for Casts {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        let SetExpr::Select(select) = &mut *query.body else { return ControlFlow::Continue(()) };
        let order = match query.order_by.as_mut().map(|order| &mut order.kind) {
            Some(OrderByKind::Expressions(order)) => order.as_mut_slice(),
            _ => &mut [],
        };
        name_apart(select, order);
        ControlFlow::Continue(())
    }

    /// The parts of a set operation.
    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        name_apart(select, &mut []);
        ControlFlow::Continue(())
    }
}

fn name_apart(select: &mut Select, order: &mut [OrderByExpr]) {
    let mut exprs = exprs_of(select);
    exprs.extend(order.iter_mut().map(|order| &mut order.expr));
    if !are_alike(&mut exprs) {
        return;
    }
    // Outputs keep their names.
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        {
            let alias = Ident::with_quote('"', expr.to_string());
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
    let order = order.iter_mut().map(|order| &mut order.expr);
    for expr in exprs_of(select).into_iter().chain(order) {
        let _ = walk(expr, &mut Naming);
    }
}

/// The expressions that see groups.
fn exprs_of(select: &mut Select) -> Vec<&mut Expr> {
    let mut exprs = Vec::new();
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            exprs.push(expr);
        }
    }
    if let GroupByExpr::Expressions(groups, _) = &mut select.group_by {
        for group in groups {
            match group {
                Expr::GroupingSets(sets) | Expr::Rollup(sets) | Expr::Cube(sets) => {
                    exprs.extend(sets.iter_mut().flatten());
                }
                group => exprs.push(group),
            }
        }
    }
    exprs.extend(&mut select.having);
    exprs.extend(&mut select.qualify);
    exprs
}

/// Whether two of the expressions are alike but for casts.
fn are_alike(exprs: &mut [&mut Expr]) -> bool {
    let mut found = Found::default();
    for expr in exprs {
        found.add(expr);
        if walk(*expr, &mut found).is_break() {
            return false;
        }
    }
    found.are_alike && found.has_casts
}

/// What expressions are alike but for casts.
#[derive(Default)]
struct Found {
    /// Expressions by their text without casts.
    exprs: HashMap<String, String>,
    has_casts: bool,
    are_alike: bool,
}

impl Found {
    fn add(&mut self, expr: &Expr) {
        let (key, whole) = (text(expr, true), text(expr, false));
        let known = self.exprs.entry(key).or_insert_with(|| whole.clone());
        self.are_alike |= *known != whole;
    }
}

impl VisitorMut for Found {
    type Break = Stop;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        match expr {
            Expr::Function(function) if function.name.to_string() == NAMED_CAST => {
                // They have names.
                return ControlFlow::Break(None);
            }
            Expr::Function(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) => self.add(expr),
            Expr::Cast { .. } => {
                self.has_casts = true;
                self.add(expr);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// An expression without parentheses and names of tables, and without casts if `is_bare`.
fn text(expr: &Expr, is_bare: bool) -> String {
    let mut expr = expr.clone();
    let _ = walk(&mut expr, &mut Stripping { is_bare });
    expr.to_string()
}

struct Stripping {
    is_bare: bool,
}

impl VisitorMut for Stripping {
    type Break = Stop;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        let instead = match expr {
            Expr::Nested(inner) => (**inner).clone(),
            Expr::Cast { expr: inner, .. } if self.is_bare => (**inner).clone(),
            Expr::CompoundIdentifier(parts) => match parts.last() {
                Some(last) => Expr::Identifier(last.clone()),
                None => return ControlFlow::Continue(()),
            },
            _ => return ControlFlow::Continue(()),
        };
        *expr = instead;
        ControlFlow::Continue(())
    }
}

/// Gives casts names.
struct Naming;

impl VisitorMut for Naming {
    type Break = Stop;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if let Expr::Cast { expr: operand, data_type, .. } = expr {
            let mut columns = Columns(false);
            let _ = walk(&mut **operand, &mut columns);
            // A constant stays one.
            if columns.0 {
                let name = Value::SingleQuotedString(data_type.to_string());
                *expr = call(NAMED_CAST, vec![expr.clone(), Expr::Value(name.into())]);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether an expression has columns.
struct Columns(bool);

impl VisitorMut for Columns {
    type Break = Stop;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        self.0 |= matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        ControlFlow::Continue(())
    }
}
