//! Resolves the spelling of names. A column is found by its exact name, or in another case if only
//! one name matches; a nested column by its path.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, ObjectName, ObjectNamePart, SelectItem, Subscript, TableAlias,
    TableFactor, Value, VisitMut, VisitorMut,
};

use super::clauses::Functions;
use super::hidden::{HiddenTables, name_without_hidden};
use super::lists::{TableColumns, is_star};
use super::walk::{Flow, Stop, walk};

/// The names of columns and tables that statements may use.
#[derive(Debug, Default, Clone)]
pub(crate) struct KnownNames {
    exact: HashSet<String>,
    /// By the lower-case name; `None` if several names differ only in case.
    folded: HashMap<String, Option<String>>,
    functions: Arc<Functions>,
    hidden: HiddenTables,
    columns: TableColumns,
}

impl KnownNames {
    /// Knows no tables or columns, only functions.
    pub(crate) fn of(functions: Functions) -> Self {
        KnownNames { functions: Arc::new(functions), ..KnownNames::default() }
    }

    /// The functions that compute over several rows.
    pub(super) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Sets the tables that a statement reads with their hidden columns.
    pub(crate) fn with_hidden(self, hidden: HiddenTables) -> Self {
        KnownNames { hidden, ..self }
    }

    /// The tables that a statement reads with their hidden columns.
    pub(super) fn hidden(&self) -> &HiddenTables {
        &self.hidden
    }

    /// Sets the columns of tables, for statements that name lists.
    pub(crate) fn with_columns(self, columns: TableColumns) -> Self {
        KnownNames { columns, ..self }
    }

    /// The visible columns of an open table, unless WITH redefines it or an alias renames its columns. `given`
    /// are the names of WITH.
    pub(super) fn columns_of(
        &self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
        given: &HashSet<String>,
    ) -> Option<&[String]> {
        let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return None };
        let is_given = given.contains(&ident.value.to_ascii_lowercase());
        let is_renamed = alias.is_some_and(|alias| !alias.columns.is_empty());
        let name = name_without_hidden(&ident.value);
        let columns = self.columns.get(name).filter(|_| !is_given && !is_renamed)?;
        Some(columns)
    }

    /// The columns of tables, for statements that name lists.
    pub(super) fn columns(&self) -> &TableColumns {
        &self.columns
    }

    /// Adds a name.
    pub(crate) fn add(&mut self, name: &str) {
        if !self.exact.insert(name.to_string()) {
            return;
        }
        self.folded
            .entry(name.to_ascii_lowercase())
            .and_modify(|only| *only = None)
            .or_insert_with(|| Some(name.to_string()));
    }

    /// The known spelling of a name.
    pub(super) fn spelling(&self, name: &str) -> Option<&str> {
        if let Some(exact) = self.exact.get(name) {
            return Some(exact);
        }
        self.folded.get(&name.to_ascii_lowercase())?.as_deref()
    }
}

/// The names of the tables that WITH defines, in lower case.
pub(super) fn names_of_with<S: VisitMut>(statement: &mut S) -> HashSet<String> {
    let mut found = WithNames { names: HashSet::new() };
    let _ = walk(statement, &mut found);
    found.names
}

struct WithNames {
    names: HashSet<String>,
}

impl VisitorMut for WithNames {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut datafusion::sql::sqlparser::ast::Query) -> Flow {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.names.insert(table.alias.name.value.to_ascii_lowercase());
        }
        ControlFlow::Continue(())
    }
}

/// Replaces every name in the statement by its known spelling.
pub(super) fn spell<S: VisitMut>(statement: &mut S, known: &KnownNames) {
    let mut known = known.clone();
    let _ = walk(statement, &mut DefinedNames { known: &mut known });
    let _ = walk(statement, &mut Speller { known: &known });
}

/// Collects the names that the statement itself defines.
struct DefinedNames<'k> {
    known: &'k mut KnownNames,
}

impl VisitorMut for DefinedNames<'_> {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut datafusion::sql::sqlparser::ast::Select) -> Flow {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.known.add(&alias.value);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut datafusion::sql::sqlparser::ast::Query) -> Flow {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.known.add(&table.alias.name.value);
            table.alias.columns.iter().for_each(|column| self.known.add(&column.name.value));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> Flow {
        let alias = match factor {
            TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } => alias,
            _ => return ControlFlow::Continue(()),
        };
        if let Some(alias) = alias {
            self.known.add(&alias.name.value);
            alias.columns.iter().for_each(|column| self.known.add(&column.name.value));
        }
        ControlFlow::Continue(())
    }
}

struct Speller<'k> {
    known: &'k KnownNames,
}

impl Speller<'_> {
    fn ident(&self, ident: &mut Ident) {
        if let Some(spelling) = self.known.spelling(&ident.value)
            && spelling != ident.value
        {
            ident.value = spelling.to_string();
        }
    }

    /// A path as a column name, qualified by a table if its first part is one.
    fn path(&self, parts: &[String]) -> Option<Expr> {
        let whole = joined(parts);
        if let Some(name) = self.known.spelling(&whole) {
            return Some(Expr::Identifier(Ident::with_quote('"', name)));
        }
        let (table, column) = parts.split_first()?;
        let name = self.known.spelling(&joined(column))?;
        let table = self.known.spelling(table)?;
        let quoted = |name: &str| Ident::with_quote('"', name);
        Some(Expr::CompoundIdentifier(vec![quoted(table), quoted(name)]))
    }
}

/// `a`, `b`, `[0]` → `a.b[0]`
pub(super) fn joined(parts: &[String]) -> String {
    let mut path = String::new();
    for part in parts {
        if !path.is_empty() && !part.starts_with('[') {
            path.push('.');
        }
        path.push_str(part);
    }
    path
}

/// The parts of an expression that may be a path.
pub(super) fn parts(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Identifier(ident) => Some(vec![ident.value.clone()]),
        Expr::CompoundIdentifier(idents) => {
            Some(idents.iter().map(|ident| ident.value.clone()).collect())
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            let mut path = parts(root)?;
            for access in access_chain {
                match access {
                    AccessExpr::Dot(expr) => path.extend(parts(expr)?),
                    AccessExpr::Subscript(Subscript::Index { index: Expr::Value(value) }) => {
                        match &value.value {
                            Value::Number(digits, _) => path.push(format!("[{digits}]")),
                            _ => return None,
                        }
                    }
                    AccessExpr::Subscript(Subscript::Index { index }) if is_star(index) => {
                        path.push("[*]".to_string());
                    }
                    AccessExpr::Subscript(_) => return None,
                }
            }
            Some(path)
        }
        _ => None,
    }
}

impl VisitorMut for Speller<'_> {
    type Break = Stop;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        match expr {
            Expr::Identifier(ident) => self.ident(ident),
            Expr::CompoundIdentifier(_) | Expr::CompoundFieldAccess { .. } => {
                let path = parts(expr).and_then(|parts| self.path(&parts));
                if let Some(path) = path {
                    *expr = path;
                } else if let Expr::CompoundIdentifier(idents) = expr {
                    idents.iter_mut().for_each(|ident| self.ident(ident));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> Flow {
        for part in &mut relation.0 {
            if let ObjectNamePart::Identifier(ident) = part {
                self.ident(ident);
            }
        }
        ControlFlow::Continue(())
    }
}
