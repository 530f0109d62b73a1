//! The tables whose columns an expression can refer to.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectNamePart, Select, TableFactor, TableWithJoins, VisitMut,
};
use quarrier_filter::sql::{Element, elements, ends_without_value, list_fields, list_names};
use quarrier_messages::{HiddenColumns, LIST_ENDS_COLUMN};

use super::super::hidden::HiddenTables;
use super::super::names::{joined, names_of_with, parts};
use super::super::refused;
use crate::Result;

/// The columns of tables, by table name.
pub(crate) type TableColumns = HashMap<String, Vec<String>>;

/// A list in a table.
#[derive(Debug)]
pub(super) struct List<'t> {
    qualifier: String,
    /// Its names, which may differ in case; empty if the table does not have the ends of lists.
    pub(super) names_with_ends: Vec<&'t str>,
    pub(super) elements: Vec<Element<'t>>,
}

impl List<'_> {
    /// A column of the list's table.
    pub(super) fn column(&self, name: &str) -> Expr {
        column(&self.qualifier, name)
    }

    /// The conditions under which it ends with an element without a value.
    pub(super) fn ends(&self) -> Vec<Expr> {
        let names = self.names_with_ends.iter();
        names.map(|name| ends_without_value(name, self.column(LIST_ENDS_COLUMN))).collect()
    }
}

/// A column, qualified by its table.
pub(super) fn column(table: &str, name: &str) -> Expr {
    let quoted = |name: &str| Ident::with_quote('"', name);
    Expr::CompoundIdentifier(vec![quoted(table), quoted(name)])
}

/// The fields of a list, each with its elements. The name is empty if elements have no fields.
pub(super) type Fields<'t> = Vec<(&'t str, List<'t>)>;

/// A table of a FROM.
#[derive(Debug, Clone)]
pub(super) struct Relation<'t> {
    /// The name that qualifies its columns.
    pub(super) qualifier: Option<String>,
    /// Its columns, if it is an open table.
    pub(super) columns: Option<&'t [String]>,
    /// Whether it has the hidden column of the ends of lists.
    has_list_ends: bool,
}

/// The tables of all SELECTs around an expression, from the outermost to the innermost.
pub(super) struct Scopes<'t> {
    tables: &'t TableColumns,
    hidden: &'t HiddenTables,
    given: HashSet<String>,
    scopes: Vec<Vec<Relation<'t>>>,
    /// The tables that were replaced by a query, by the names that qualify their columns.
    replaced: RefCell<HashMap<String, ReplacedTable<'t>>>,
}

/// A table that was replaced by a query.
#[derive(Debug, Clone, Copy)]
struct ReplacedTable<'t> {
    columns: Option<&'t [String]>,
    /// The hidden columns that the query selects.
    hidden: HiddenColumns,
}

/// The parts of an expression that may be a path.
pub(super) fn path_of(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Nested(inner) => path_of(inner),
        other => parts(other),
    }
}

impl<'t> Scopes<'t> {
    /// The scopes of a statement, before its first SELECT.
    pub(super) fn new<S: VisitMut>(
        statement: &mut S,
        (tables, hidden): (&'t TableColumns, &'t HiddenTables),
    ) -> Self {
        let given = names_of_with(statement);
        Scopes { tables, hidden, given, scopes: Vec::new(), replaced: RefCell::default() }
    }

    /// Records that a query will replace a table. Returns the hidden columns that the query has to
    /// select.
    pub(super) fn replaced(&self, qualifier: &str, factor: &TableFactor) -> HiddenColumns {
        let TableFactor::Table { name, .. } = factor else { return HiddenColumns::default() };
        let hidden = match name.0.as_slice() {
            [ObjectNamePart::Identifier(ident)] => self.hidden_columns(&ident.value),
            _ => HiddenColumns::default(),
        };
        let table = ReplacedTable { columns: self.relation(factor).columns, hidden };
        self.replaced.borrow_mut().insert(qualifier.to_string(), table);
        hidden
    }

    /// The hidden columns that a table's replacement selects.
    pub(super) fn hidden_of(&self, qualifier: &str) -> HiddenColumns {
        self.replaced.borrow().get(qualifier).map(|table| table.hidden).unwrap_or_default()
    }

    /// Enters a SELECT.
    pub(super) fn enter(&mut self, select: &Select) {
        let scope = self.relations(&select.from);
        self.scopes.push(scope);
    }

    /// Leaves the current SELECT.
    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// The tables of a FROM, in order.
    pub(super) fn relations(&self, from: &[TableWithJoins]) -> Vec<Relation<'t>> {
        let mut relations = Vec::new();
        for tables in from {
            self.add(&tables.relation, &mut relations);
            tables.joins.iter().for_each(|join| self.add(&join.relation, &mut relations));
        }
        relations
    }

    fn add(&self, factor: &TableFactor, to: &mut Vec<Relation<'t>>) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => {
                to.extend(self.relations(std::slice::from_ref(table_with_joins)));
            }
            factor => to.push(self.relation(factor)),
        }
    }

    /// Resolves one table of a FROM.
    pub(super) fn relation(&self, factor: &TableFactor) -> Relation<'t> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let ident = match name.0.as_slice() {
                    [ObjectNamePart::Identifier(ident)] => Some(&ident.value),
                    _ => None,
                };
                let alias_name = alias.as_ref().map(|alias| alias.name.value.clone());
                let is_renamed = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
                let columns = ident.filter(|_| !is_renamed).and_then(|name| self.columns(name));
                let has_list_ends = ident.is_some_and(|name| self.hidden_columns(name).list_ends);
                let qualifier = alias_name.or_else(|| ident.cloned());
                Relation { qualifier, columns, has_list_ends }
            }
            TableFactor::Derived { alias: Some(alias), .. } => {
                let qualifier = alias.name.value.clone();
                let replaced = self.replaced.borrow().get(&qualifier).copied();
                let columns = replaced.and_then(|table| table.columns);
                let has_list_ends = replaced.is_some_and(|table| table.hidden.list_ends);
                Relation { qualifier: Some(qualifier), columns, has_list_ends }
            }
            TableFactor::Table { alias, .. } | TableFactor::UNNEST { alias, .. } => {
                let qualifier = alias.as_ref().map(|alias| alias.name.value.clone());
                Relation { qualifier, columns: None, has_list_ends: false }
            }
            _ => Relation { qualifier: None, columns: None, has_list_ends: false },
        }
    }

    /// The hidden columns with which a table of a FROM is read.
    fn hidden_columns(&self, table: &str) -> HiddenColumns {
        if self.given.contains(&table.to_ascii_lowercase()) {
            return HiddenColumns::default();
        }
        let mut alike = self.hidden.iter().filter(|(name, _)| name.eq_ignore_ascii_case(table));
        let only = || alike.next().filter(|_| alike.next().is_none()).map(|(_, hidden)| hidden);
        self.hidden.get(table).or_else(only).copied().unwrap_or_default()
    }

    fn columns(&self, table: &str) -> Option<&'t [String]> {
        if self.given.contains(&table.to_ascii_lowercase()) {
            return None;
        }
        let mut alike = self.tables.iter().filter(|(name, _)| name.eq_ignore_ascii_case(table));
        let only = || alike.next().filter(|_| alike.next().is_none()).map(|(_, columns)| columns);
        self.tables.get(table).or_else(only).map(Vec::as_slice)
    }

    /// The list that a path with `[*]` refers to.
    ///
    /// # Errors
    /// No table has it, or several do.
    pub(super) fn list(&self, path: &[String]) -> Result<List<'t>> {
        let found = self.find(path, |columns, path| elements(path, columns))?;
        let found = found.map(|(found, elements)| List::of(&found.rest_of(path), &found, elements));
        found.ok_or_else(|| {
            refused(format!(
                "there is no list '{}' in the tables of messages after FROM",
                joined(path)
            ))
        })
    }

    /// The fields of the list that a path refers to; `None` if it refers to none.
    ///
    /// # Errors
    /// Several tables have the list.
    pub(super) fn fields(&self, path: &[String]) -> Result<Option<Fields<'t>>> {
        Ok(self.find(path, fields)?.map(|found| named(path, found)))
    }

    /// As [`fields`](Self::fields), but only among some tables. Also returns the table's name.
    ///
    /// # Errors
    /// As [`fields`](Self::fields).
    pub(super) fn fields_in(
        &self,
        relations: &[Relation<'t>],
        path: &[String],
    ) -> Result<Option<(String, Fields<'t>)>> {
        let found = find_in(relations, path, fields)?;
        Ok(found.map(|found| (found.0.qualifier.clone(), named(path, found))))
    }

    /// Resolves a path in the innermost SELECT that can. Also returns the table's name.
    fn find<T>(
        &self,
        path: &[String],
        named: impl Fn(&[&'t str], &str) -> Option<T> + Copy,
    ) -> Result<Option<(ResolvedTable, T)>> {
        for scope in self.scopes.iter().rev() {
            if let Some(found) = find_in(scope, path, named)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Resolves a path in one of these tables. Also returns the table's name.
fn find_in<'t, T>(
    relations: &[Relation<'t>],
    path: &[String],
    named: impl Fn(&[&'t str], &str) -> Option<T>,
) -> Result<Option<(ResolvedTable, T)>> {
    let found = relations.iter().filter_map(|relation| {
        let columns: Vec<&'t str> = relation.columns?.iter().map(String::as_str).collect();
        let qualifier = relation.qualifier.clone()?;
        let (first, rest) = path.split_first()?;
        let is_qualified = !rest.is_empty() && first.eq_ignore_ascii_case(&qualifier);
        let by_table = match is_qualified {
            true => named(&columns, &joined(rest)),
            false => None,
        };
        let qualifier_parts = usize::from(by_table.is_some());
        let found = by_table.or_else(|| named(&columns, &joined(path)))?;
        let has_list_ends = relation.has_list_ends;
        Some((ResolvedTable { qualifier, qualifier_parts, has_list_ends }, found))
    });
    let mut found: Vec<(ResolvedTable, T)> = found.collect();
    match (found.pop(), found.is_empty()) {
        (Some(_), false) => {
            let path = joined(path);
            Err(refused(format!("several tables have '{path}'; name the table, too")))
        }
        (found, _) => Ok(found),
    }
}

/// The table in which a path was resolved.
struct ResolvedTable {
    /// The name of the table.
    qualifier: String,
    /// How many parts of the path are that name.
    qualifier_parts: usize,
    has_list_ends: bool,
}

/// The fields of a list, each with its elements.
type FieldElements<'t> = Vec<(&'t str, Vec<Element<'t>>)>;

/// The fields of the list that a path refers to, given a table's columns.
fn fields<'t>(columns: &[&'t str], path: &str) -> Option<FieldElements<'t>> {
    let is_column = columns.contains(&path);
    let fields = list_fields(path, columns).into_iter().map(|field| {
        let list = elements(&format!("{path}[*]{field}"), columns).unwrap_or_default();
        (field.strip_prefix('.').unwrap_or(field), list)
    });
    let fields: FieldElements<'t> = fields.collect();
    (!is_column && !fields.is_empty()).then_some(fields)
}

fn named<'t>(path: &[String], (found, fields): (ResolvedTable, FieldElements<'t>)) -> Fields<'t> {
    let path = format!("{}[*]", found.rest_of(path));
    fields.into_iter().map(|(name, list)| (name, List::of(&path, &found, list))).collect()
}

impl ResolvedTable {
    /// A path without the name of the table.
    fn rest_of(&self, path: &[String]) -> String {
        joined(&path[self.qualifier_parts..])
    }
}

impl<'t> List<'t> {
    /// The list of a path such as `leg[*].qty` with these elements.
    fn of(path: &str, found: &ResolvedTable, elements: Vec<Element<'t>>) -> Self {
        let names_with_ends = match found.has_list_ends {
            true => list_names(path, &elements),
            false => Vec::new(),
        };
        List { qualifier: found.qualifier.clone(), names_with_ends, elements }
    }
}
