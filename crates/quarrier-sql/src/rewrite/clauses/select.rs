//! The clauses of one SELECT.

use datafusion::sql::sqlparser::ast::{
    Distinct, ExcludeSelectItem, GroupByExpr, Join, Select, SelectFlavor, SelectItem,
    SelectModifiers, TableWithJoins, WildcardAdditionalOptions,
};

use super::{refused, tables, unless};
use crate::Result;

pub(super) fn check(select: &Select) -> Result<()> {
    let Select {
        select_token: _,
        // Hints are comments that influence the plan, but not the rows.
        optimizer_hints: _,
        distinct,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    match distinct {
        None | Some(Distinct::All | Distinct::Distinct | Distinct::On(_)) => {}
    }
    if let Some(modifiers) = select_modifiers {
        self::modifiers(modifiers)?;
    }
    unless(top.is_none(), "TOP (write LIMIT)")?;
    projection.iter().try_for_each(item)?;
    excluded(exclude.as_ref())?;
    unless(into.is_none(), "SELECT … INTO")?;
    from.iter().try_for_each(joined)?;
    unless(lateral_views.is_empty(), "LATERAL VIEW")?;
    unless(prewhere.is_none(), "PREWHERE (write WHERE)")?;
    unless(connect_by.is_empty(), "START WITH … CONNECT BY (write WITH RECURSIVE)")?;
    grouped(group_by)?;
    unless(cluster_by.is_empty(), "CLUSTER BY")?;
    unless(distribute_by.is_empty(), "DISTRIBUTE BY")?;
    unless(sort_by.is_empty(), "SORT BY (write ORDER BY)")?;
    // `windows::written_out` has removed supported ones.
    unless(named_window.is_empty(), "WINDOW")?;
    unless(value_table_mode.is_none(), "SELECT AS STRUCT or AS VALUE")?;
    match flavor {
        SelectFlavor::Standard => Ok(()),
        SelectFlavor::FromFirst | SelectFlavor::FromFirstNoSelect => refused("FROM before SELECT"),
    }
}

fn modifiers(modifiers: &SelectModifiers) -> Result<()> {
    let SelectModifiers {
        high_priority,
        straight_join,
        sql_small_result,
        sql_big_result,
        sql_buffer_result,
        sql_no_cache,
        sql_calc_found_rows,
    } = modifiers;
    unless(!high_priority, "HIGH_PRIORITY")?;
    unless(!straight_join, "STRAIGHT_JOIN")?;
    unless(!sql_small_result, "SQL_SMALL_RESULT")?;
    unless(!sql_big_result, "SQL_BIG_RESULT")?;
    unless(!sql_buffer_result, "SQL_BUFFER_RESULT")?;
    unless(!sql_no_cache, "SQL_NO_CACHE")?;
    unless(!sql_calc_found_rows, "SQL_CALC_FOUND_ROWS")
}

fn item(item: &SelectItem) -> Result<()> {
    match item {
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { expr: _, alias: _ } => Ok(()),
        SelectItem::ExprWithAliases { expr: _, aliases: _ } => {
            refused("several names for one output")
        }
        SelectItem::QualifiedWildcard(_, options) | SelectItem::Wildcard(options) => {
            let WildcardAdditionalOptions {
                wildcard_token: _,
                opt_ilike: _,
                opt_exclude: _,
                opt_except: _,
                opt_replace: _,
                opt_rename,
                opt_alias,
            } = options;
            unless(opt_rename.is_none(), "* RENAME")?;
            unless(opt_alias.is_none(), "* AS")
        }
    }
}

fn excluded(exclude: Option<&ExcludeSelectItem>) -> Result<()> {
    unless(exclude.is_none(), "EXCLUDE after the outputs (write * EXCLUDE)")
}

fn joined(table: &TableWithJoins) -> Result<()> {
    let TableWithJoins { relation: _, joins } = table;
    joins.iter().try_for_each(join)
}

/// Checks a join. Its tables are checked separately.
pub(super) fn join(join: &Join) -> Result<()> {
    let Join { relation: _, global, join_operator } = join;
    unless(!global, "GLOBAL JOIN")?;
    tables::operator(join_operator)
}

fn grouped(group_by: &GroupByExpr) -> Result<()> {
    let modifiers = match group_by {
        GroupByExpr::All(modifiers) => modifiers,
        GroupByExpr::Expressions(_, modifiers) => modifiers,
    };
    match modifiers.first() {
        None => Ok(()),
        Some(modifier) => refused(format!("GROUP BY … {modifier}")),
    }
}
