//! The hidden columns of messages. A statement that names one reads the variant of its tables that
//! has hidden columns, which is registered under another name, and `*` excludes them.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, ObjectName, ObjectNamePart, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins,
    VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use quarrier_messages::HiddenColumns;

use super::lists::has_lists;
use super::merged::{ComparesHidden, Relation, Relations};
use super::names::names_of_with;
use super::refused;
use super::walk::{Flow, Stop, ended, walk};
use crate::{Error, Result};

/// The hidden columns of tables, by table name.
pub(crate) type HiddenTables = HashMap<String, HiddenColumns>;

/// The name under which a table is registered with its hidden columns. No file can have such a
/// name.
pub(crate) fn name_with_hidden(name: &str) -> String {
    format!("{name}\0")
}

/// The name of a table that may be registered with its hidden columns.
pub(super) fn name_without_hidden(name: &str) -> &str {
    name.trim_end_matches('\0')
}

/// Whether a name is that of a table with its hidden columns.
pub(crate) fn is_name_with_hidden(name: &str) -> bool {
    name.ends_with('\0')
}

/// The hidden columns that a statement names, or that its lists need.
pub(crate) fn hidden_columns<S: VisitMut>(statement: &mut S) -> HiddenColumns {
    let list_ends = has_lists(statement);
    let found = HiddenColumns { list_ends, ..HiddenColumns::default() };
    let mut finder = Finder { found };
    let _ = walk(statement, &mut finder);
    finder.found
}

struct Finder {
    found: HiddenColumns,
}

impl VisitorMut for Finder {
    type Break = Stop;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        let name = match expr {
            Expr::Identifier(ident) => Some(&ident.value),
            Expr::CompoundIdentifier(parts) => parts.last().map(|ident| &ident.value),
            _ => None,
        };
        if let Some(name) = name {
            self.found = self.found | HiddenColumns::of_name(name);
        }
        ControlFlow::Continue(())
    }
}

/// Makes a statement read tables with their hidden columns.
///
/// # Errors
/// A join would compare hidden columns, or a `*` cannot exclude them.
pub(super) fn show<S: VisitMut>(statement: &mut S, tables: &HiddenTables) -> Result<()> {
    if tables.is_empty() {
        return Ok(());
    }
    let reason = reason(hidden_columns(statement));
    let given = names_of_with(statement);
    let mut reader = HiddenColumnReader { tables, given: &given, reason };
    ended(walk(statement, &mut reader))
}

/// The reason why a statement reads hidden columns, in the user's words.
fn reason(named: HiddenColumns) -> &'static str {
    let by_name = HiddenColumns { list_ends: false, ..named };
    if by_name.is_none() { "[*] and UNNEST of a list" } else { "_line, _offset and _message" }
}

struct HiddenColumnReader<'t> {
    tables: &'t HiddenTables,
    given: &'t HashSet<String>,
    /// The reason why the statement reads hidden columns, for errors.
    reason: &'static str,
}

impl VisitorMut for HiddenColumnReader<'_> {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        match self.select(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Some(Box::new(error))),
        }
    }
}

impl HiddenColumnReader<'_> {
    fn select(&self, select: &mut Select) -> Result<()> {
        let mut from = Relations::default();
        for tables in &mut select.from {
            self.tables(tables, &mut from)?;
        }
        let hidden = from.tables.iter().filter(|table| !table.hidden.is_none()).count();
        if hidden == 0 {
            return Ok(());
        }
        let mut items = Vec::with_capacity(select.projection.len());
        for mut item in std::mem::take(&mut select.projection) {
            match &mut item {
                SelectItem::Wildcard(options) if hidden == 1 => {
                    let columns = from.tables.iter().map(|table| table.hidden);
                    let columns = columns.fold(HiddenColumns::default(), |all, one| all | one);
                    exclude(options, names(columns));
                }
                SelectItem::Wildcard(options) => {
                    items.extend(from.apart(options).ok_or_else(|| self.star())?);
                    continue;
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let is_it = |table: &&Relation| {
                        let known = table.qualifier.as_ref();
                        known.is_some_and(|known| last(name) == Some(&known.value))
                    };
                    if let Some(table) = from.tables.iter().find(is_it) {
                        exclude(options, names(table.hidden));
                    }
                }
                _ => {}
            }
            items.push(item);
        }
        select.projection = items;
        Ok(())
    }

    /// The error for a `*` that cannot exclude hidden columns.
    fn star(&self) -> Error {
        refused(format!(
            "* is not supported with {} over several tables if it has EXCLUDE, if a table has no name, \
             or if USING names a column of one of several subqueries; name the columns",
            self.reason
        ))
    }

    fn tables(&self, tables: &mut TableWithJoins, from: &mut Relations) -> Result<()> {
        let first = from.tables.len();
        self.table(&mut tables.relation, from)?;
        for join in &mut tables.joins {
            self.table(&mut join.relation, from)?;
            from.join(&mut join.join_operator, first).map_err(|ComparesHidden| {
                refused(format!(
                    "NATURAL JOIN is not supported with {} if a side is a subquery or a table whose lists \
                     are unnested; write JOIN … USING (…)",
                    self.reason
                ))
            })?;
        }
        Ok(())
    }

    fn table(&self, table: &mut TableFactor, from: &mut Relations) -> Result<()> {
        let relation = match table {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                return self.tables(table_with_joins, from);
            }
            TableFactor::Table { name, alias, args: None, .. } => {
                let hidden = self.renamed(name, alias);
                let qualifier = match alias {
                    Some(alias) => Some(alias.name.clone()),
                    None => last_ident(name).cloned(),
                };
                Relation { qualifier, hidden }
            }
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::UNNEST { alias, .. } => {
                let qualifier = alias.as_ref().map(|alias| alias.name.clone());
                Relation { qualifier, hidden: HiddenColumns::default() }
            }
            _ => Relation { qualifier: None, hidden: HiddenColumns::default() },
        };
        from.tables.push(relation);
        Ok(())
    }

    /// Replaces a table's name by that with hidden columns. Returns these columns.
    fn renamed(&self, name: &mut ObjectName, alias: &mut Option<TableAlias>) -> HiddenColumns {
        let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() else {
            return HiddenColumns::default();
        };
        let is_given = self.given.contains(&ident.value.to_ascii_lowercase());
        let Some(columns) = self.tables.get(&ident.value).filter(|_| !is_given) else {
            return HiddenColumns::default();
        };
        let with_hidden = Ident::with_quote('"', name_with_hidden(&ident.value));
        let shown = std::mem::replace(ident, with_hidden);
        match alias {
            Some(alias) if !alias.columns.is_empty() => {
                let more = columns.fields().map(|field| TableAliasColumnDef {
                    name: Ident::with_quote('"', &*field.name),
                    data_type: None,
                });
                alias.columns.extend(more);
            }
            Some(_) => {}
            None => {
                let name = Ident::with_quote('"', shown.value);
                *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
            }
        }
        *columns
    }
}

fn last_ident(name: &ObjectName) -> Option<&Ident> {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(ident)) => Some(ident),
        _ => None,
    }
}

pub(super) fn last(name: &ObjectName) -> Option<&String> {
    last_ident(name).map(|ident| &ident.value)
}

fn names(columns: HiddenColumns) -> impl Iterator<Item = String> {
    columns.fields().map(|field| field.name.to_string())
}

/// Excludes these columns from a `*`.
pub(super) fn exclude(
    options: &mut WildcardAdditionalOptions,
    columns: impl Iterator<Item = String>,
) {
    let mut names = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    for column in columns {
        if !names.iter().any(|name| last(name) == Some(&column)) {
            names.push(ObjectName::from(vec![Ident::with_quote('"', column)]));
        }
    }
    options.opt_exclude = (!names.is_empty()).then_some(ExcludeSelectItem::Multiple(names));
}
