//! Output columns with the same name: `SELECT x, x` returns `x` and `x (2)`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, ObjectNamePart, Select, SelectItem, VisitorMut,
    WildcardAdditionalOptions,
};

use super::super::walk::{Flow, Stop};

/// Makes the names unique.
pub(super) struct Names;

impl VisitorMut for Names {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        let all = select.projection.iter().find_map(|item| match item {
            SelectItem::Wildcard(options) => Some(options.clone()),
            _ => None,
        });
        // Compares names with their qualifiers, since DataFusion distinguishes the columns `a.x`
        // and `b.x`.
        let mut taken = HashSet::new();
        for item in &mut select.projection {
            let (written, name) = match item {
                SelectItem::UnnamedExpr(expr @ Expr::Identifier(_)) => {
                    (expr.to_string(), last(expr))
                }
                SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(_)) => {
                    (expr.to_string(), last(expr))
                }
                SelectItem::UnnamedExpr(expr) => (expr.to_string(), expr.to_string()),
                SelectItem::ExprWithAlias { alias, .. } => {
                    (alias.value.clone(), alias.value.clone())
                }
                _ => continue,
            };
            let is_column = matches!(
                item,
                SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_))
            );
            let is_in_all = all.as_ref().is_some_and(|all| !excludes(all, &name));
            let is_first = !(is_in_all && is_column) && taken.insert(written);
            if is_first {
                continue;
            }
            let mut number = 2;
            while !taken.insert(format!("{name} ({number})")) {
                number += 1;
            }
            let alias = Ident::with_quote('"', format!("{name} ({number})"));
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item
            else {
                continue;
            };
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
        ControlFlow::Continue(())
    }
}

/// Whether a `*` excludes the column with this name.
fn excludes(all: &WildcardAdditionalOptions, name: &str) -> bool {
    let names = match &all.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => &[],
    };
    names.iter().any(|excluded| match excluded.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => ident.value == name,
        _ => false,
    })
}

/// The name of a column, without its table's name.
fn last(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => ident.value.clone(),
        Expr::CompoundIdentifier(parts) => {
            parts.last().map_or_else(String::new, |ident| ident.value.clone())
        }
        other => other.to_string(),
    }
}
