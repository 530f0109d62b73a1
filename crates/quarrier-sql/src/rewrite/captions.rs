//! Names the output columns that have no alias after their expressions.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr};

use super::{Rewritable, text_of};

/// Maximum length of a name, in characters.
const CHARACTERS_MAX: usize = 80;

impl Rewritable for Query {
    fn captions(&self) -> Vec<Option<String>> {
        let SetExpr::Select(select) = &*self.body else { return Vec::new() };
        let caption = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(
                Expr::Identifier(_)
                | Expr::CompoundIdentifier(_)
                | Expr::CompoundFieldAccess { .. },
            ) => None,
            SelectItem::UnnamedExpr(expr) => {
                let text = text_of(expr);
                Some(text.chars().take(CHARACTERS_MAX).collect())
            }
            _ => None,
        };
        select.projection.iter().map(caption).collect()
    }

    fn caption(&mut self, captions: Vec<Option<String>>) {
        let SetExpr::Select(select) = &mut *self.body else { return };
        let mut taken = HashSet::new();
        for (item, caption) in select.projection.iter_mut().zip(captions) {
            let (SelectItem::UnnamedExpr(expr), Some(text)) = (&item, caption) else { continue };
            let mut name = text.clone();
            let mut number = 1;
            while !taken.insert(name.clone()) {
                number += 1;
                name = format!("{text} ({number})");
            }
            let alias = Ident::with_quote('"', name);
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}
