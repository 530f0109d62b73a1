//! The hidden columns of messages. A statement that names one reads the variant of its tables that
//! has hidden columns, which is registered under another name, and `*` excludes them.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    Select, SelectItem, SelectItemQualifiedWildcardKind, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use quarrier_messages::HiddenColumns;

use super::lists::has_lists;
use super::names::names_of_with;
use super::refused;
use super::walk::{Flow, Stop, ended, walk};
use crate::Result;

/// The hidden columns of tables, by table name.
pub(crate) type HiddenTables = HashMap<String, HiddenColumns>;

/// The name under which a table is registered with its hidden columns. No file can have such a
/// name.
pub(crate) fn name_with_hidden(name: &str) -> String {
    format!("{name}\0")
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
    let given = names_of_with(statement);
    ended(walk(statement, &mut HiddenColumnReader { tables, given: &given }))
}

struct HiddenColumnReader<'t> {
    tables: &'t HiddenTables,
    given: &'t HashSet<String>,
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

/// The tables of a FROM.
#[derive(Default)]
struct Relations {
    /// For each table, the name that qualifies its columns, if any, and its hidden columns.
    tables: Vec<(Option<Ident>, HiddenColumns)>,
    /// Whether a join merges two columns into one.
    has_using: bool,
    is_natural: bool,
}

impl HiddenColumnReader<'_> {
    fn select(&self, select: &mut Select) -> Result<()> {
        let mut from = Relations::default();
        select.from.iter_mut().for_each(|tables| self.tables(tables, &mut from));
        let hidden = from.tables.iter().filter(|(_, columns)| !columns.is_none()).count();
        if hidden > 0 && from.is_natural {
            return Err(refused(
                "NATURAL JOIN would compare _line and _offset, too; write JOIN … USING (…)",
            ));
        }
        if hidden == 0 {
            return Ok(());
        }
        let mut items = Vec::with_capacity(select.projection.len());
        for mut item in std::mem::take(&mut select.projection) {
            match &mut item {
                SelectItem::Wildcard(options) if hidden == 1 => {
                    let columns = from.tables.iter().map(|(_, columns)| *columns);
                    exclude(options, columns.fold(HiddenColumns::default(), |all, one| all | one));
                }
                SelectItem::Wildcard(options) => {
                    items.extend(apart(options, &from)?);
                    continue;
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let is_it = |(known, _): &&(Option<Ident>, HiddenColumns)| {
                        known.as_ref().is_some_and(|known| last(name) == Some(&known.value))
                    };
                    if let Some((_, columns)) = from.tables.iter().find(is_it) {
                        exclude(options, *columns);
                    }
                }
                _ => {}
            }
            items.push(item);
        }
        select.projection = items;
        Ok(())
    }

    fn tables(&self, tables: &mut TableWithJoins, from: &mut Relations) {
        self.table(&mut tables.relation, from);
        for join in &mut tables.joins {
            self.table(&mut join.relation, from);
            match constraint(&join.join_operator) {
                Some(JoinConstraint::Natural) => from.is_natural = true,
                Some(JoinConstraint::Using(_)) => from.has_using = true,
                _ => {}
            }
        }
    }

    fn table(&self, table: &mut TableFactor, from: &mut Relations) {
        match table {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.tables(table_with_joins, from);
            }
            TableFactor::Table { name, alias, args: None, .. } => {
                let columns = self.renamed(name, alias);
                let qualifier = match alias {
                    Some(alias) => Some(alias.name.clone()),
                    None => last_ident(name).cloned(),
                };
                from.tables.push((qualifier, columns));
            }
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::UNNEST { alias, .. } => {
                let qualifier = alias.as_ref().map(|alias| alias.name.clone());
                from.tables.push((qualifier, HiddenColumns::default()));
            }
            _ => from.tables.push((None, HiddenColumns::default())),
        }
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

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator as J;
    match operator {
        J::Join(constraint)
        | J::Inner(constraint)
        | J::Left(constraint)
        | J::LeftOuter(constraint)
        | J::Right(constraint)
        | J::RightOuter(constraint)
        | J::FullOuter(constraint)
        | J::Semi(constraint)
        | J::LeftSemi(constraint)
        | J::RightSemi(constraint)
        | J::Anti(constraint)
        | J::LeftAnti(constraint)
        | J::RightAnti(constraint) => Some(constraint),
        _ => None,
    }
}

fn last_ident(name: &ObjectName) -> Option<&Ident> {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(ident)) => Some(ident),
        _ => None,
    }
}

fn last(name: &ObjectName) -> Option<&String> {
    last_ident(name).map(|ident| &ident.value)
}

/// Excludes these columns from a `*`.
fn exclude(options: &mut WildcardAdditionalOptions, columns: HiddenColumns) {
    let mut names = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    for field in columns.fields() {
        let is_it = |name: &ObjectName| last(name).is_some_and(|known| **known == *field.name);
        if !names.iter().any(is_it) {
            names.push(ObjectName::from(vec![Ident::with_quote('"', &*field.name)]));
        }
    }
    options.opt_exclude = (!names.is_empty()).then_some(ExcludeSelectItem::Multiple(names));
}

/// Splits a `*` over several tables into one for each, since their hidden columns have the same
/// names.
fn apart(options: &WildcardAdditionalOptions, from: &Relations) -> Result<Vec<SelectItem>> {
    let is_plain = options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_ilike.is_none();
    let item = |(qualifier, columns): &(Option<Ident>, HiddenColumns)| {
        let qualifier = qualifier.clone().filter(|_| is_plain && !from.has_using)?;
        let name = ObjectName::from(vec![qualifier]);
        let mut options = WildcardAdditionalOptions::default();
        exclude(&mut options, *columns);
        let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
        Some(SelectItem::QualifiedWildcard(kind, options))
    };
    let items: Option<Vec<SelectItem>> = from.tables.iter().map(item).collect();
    items.ok_or_else(|| {
        refused(
            "* over several tables with USING, or with a table that has no name, cannot be \
             combined with _line, _offset and _message; name the columns",
        )
    })
}
