//! `GROUP BY a, b WITH ROLLUP`, and output numbers in grouping sets.

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, GroupByWithModifier, Select, SelectItem, Value,
};

use crate::{Error, Result};

pub(super) fn rewrite(select: &mut Select) -> Result<()> {
    let GroupByExpr::Expressions(exprs, modifiers) = &mut select.group_by else { return Ok(()) };
    let set = match modifiers.as_slice() {
        [GroupByWithModifier::Rollup] => Some(Expr::Rollup as fn(_) -> _),
        [GroupByWithModifier::Cube] => Some(Expr::Cube as fn(_) -> _),
        _ => None,
    };
    if let Some(set) = set {
        modifiers.clear();
        let each = std::mem::take(exprs).into_iter().map(|expr| vec![expr]).collect();
        exprs.push(set(each));
    }
    for expr in exprs {
        match expr {
            Expr::GroupingSets(sets) | Expr::Rollup(sets) | Expr::Cube(sets) => {
                for part in sets.iter_mut().flatten() {
                    numbered(part, &select.projection)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Replaces an output number by the output. The planner would take a number in a grouping set for a
/// constant.
fn numbered(expr: &mut Expr, outputs: &[SelectItem]) -> Result<()> {
    let Expr::Value(value) = &*expr else { return Ok(()) };
    let Value::Number(digits, _) = &value.value else { return Ok(()) };
    let output =
        digits.parse::<usize>().ok().and_then(|number| outputs.get(number.checked_sub(1)?));
    match output {
        Some(SelectItem::UnnamedExpr(output) | SelectItem::ExprWithAlias { expr: output, .. }) => {
            *expr = output.clone();
            Ok(())
        }
        _ => Err(Error::text(format!("GROUP BY {digits}: there is no output with that number"))),
    }
}
