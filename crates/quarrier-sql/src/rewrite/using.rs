//! Turns joins by USING and NATURAL into joins by ON, and the names of merged columns into their values: those of
//! the left side, of the right one for a RIGHT JOIN, or of whichever is not NULL for a FULL JOIN. DataFusion shows
//! the column of the table whose name sorts first, which may be NULL, and refuses the name in WHERE.

use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    OrderBy, OrderByKind, Query, ReplaceSelectElement, ReplaceSelectItem, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, VisitMut,
    VisitorMut, WildcardAdditionalOptions,
};

use super::hidden::{exclude, last};
use super::merged::constraint;
use super::names::{KnownNames, names_of_with};
use super::refused;
use super::walk::{Flow, Stop, ended, walk};
use crate::dialect::call;
use crate::{Error, Result};

/// Whether a statement has a join by USING or NATURAL, for which the columns of tables are needed.
pub(crate) fn merges_columns<S: VisitMut>(statement: &mut S) -> bool {
    let mut finder = Finder { found: false };
    let _ = walk(statement, &mut finder);
    finder.found
}

struct Finder {
    found: bool,
}

impl VisitorMut for Finder {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        self.found |= select.from.iter_mut().any(has_merged);
        ControlFlow::Continue(())
    }
}

fn has_merged(tables: &mut TableWithJoins) -> bool {
    let is_nested = |table: &mut TableFactor| match table {
        TableFactor::NestedJoin { table_with_joins, .. } => has_merged(table_with_joins),
        _ => false,
    };
    let is_merging = |join: &mut Join| {
        let constraint = constraint(&mut join.join_operator);
        matches!(constraint, Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
    };
    is_nested(&mut tables.relation)
        || tables.joins.iter_mut().any(|join| is_merging(join) || is_nested(&mut join.relation))
}

/// Rewrites the joins of a statement.
///
/// # Errors
/// The value of a merged column is not clear.
pub(super) fn merge<S: VisitMut>(statement: &mut S, known: &KnownNames) -> Result<()> {
    if !merges_columns(statement) {
        return Ok(());
    }
    let given = names_of_with(statement);
    ended(walk(statement, &mut Merger { known, given: &given }))
}

struct Merger<'c> {
    known: &'c KnownNames,
    given: &'c HashSet<String>,
}

impl VisitorMut for Merger<'_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        let is_one = matches!(*query.body, SetExpr::Select(_));
        let order = query.order_by.as_mut().filter(|_| is_one);
        match self.body(&mut query.body, order) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Some(Box::new(error))),
        }
    }
}

impl<'c> Merger<'c> {
    fn body(&self, body: &mut SetExpr, order: Option<&mut OrderBy>) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select, order),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, None)?;
                self.body(right, None)
            }
            // The walk visits other queries.
            _ => Ok(()),
        }
    }

    fn select(&self, select: &mut Select, order: Option<&mut OrderBy>) -> Result<()> {
        if !select.from.iter_mut().any(has_merged) {
            return Ok(());
        }
        let mut tables = select.from.clone();
        let mut from = From::default();
        for tables in &mut tables {
            self.tables(tables, &mut from);
        }
        match from.outputs(&select.projection) {
            Some(outputs) if !from.is_unclear => {
                (select.projection, select.from) = (outputs, tables);
                from.replace(select, order)
            }
            // DataFusion shows any of the equal columns.
            _ if !from.is_outer => Ok(()),
            _ => Err(unclear("its columns are")),
        }
    }

    fn tables(&self, tables: &mut TableWithJoins, from: &mut From<'c>) {
        let first = from.relations.len();
        self.table(&mut tables.relation, from);
        for join in &mut tables.joins {
            let left = first..from.relations.len();
            self.table(&mut join.relation, from);
            if let Some(JoinConstraint::Using(names)) = constraint(&mut join.join_operator) {
                names.iter_mut().for_each(|name| self.spell(name));
            }
            from.join(&mut join.join_operator, left);
        }
    }

    /// Replaces the name of a merged column by its known spelling.
    fn spell(&self, name: &mut ObjectName) {
        if let Some(ObjectNamePart::Identifier(ident)) = name.0.last_mut()
            && let Some(known) = self.known.spelling(&ident.value)
        {
            *ident = Ident::with_quote('"', known);
        }
    }

    fn table(&self, table: &mut TableFactor, from: &mut From<'c>) {
        let relation = match table {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                return self.tables(table_with_joins, from);
            }
            TableFactor::Table { name, alias, args, .. } => {
                let columns = match args {
                    None => self.columns_of(name, alias.as_ref()),
                    Some(_) => None,
                };
                let own = match name.0.last() {
                    Some(ObjectNamePart::Identifier(ident)) => Some(ident.clone()),
                    _ => None,
                };
                let qualifier = alias.as_ref().map_or(own, |alias| Some(alias.name.clone()));
                Relation { qualifier, columns }
            }
            TableFactor::Derived { alias, .. } | TableFactor::UNNEST { alias, .. } => {
                let qualifier = alias.as_ref().map(|alias| alias.name.clone());
                Relation { qualifier, columns: None }
            }
            _ => Relation { qualifier: None, columns: None },
        };
        from.relations.push(relation);
    }

    /// The columns of an open table, unless it or its columns are renamed.
    fn columns_of(&self, name: &ObjectName, alias: Option<&TableAlias>) -> Option<&'c [String]> {
        let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return None };
        let is_given = self.given.contains(&ident.value.to_ascii_lowercase());
        let is_renamed = alias.is_some_and(|alias| !alias.columns.is_empty());
        let columns =
            self.known.columns().get(&ident.value).filter(|_| !is_given && !is_renamed)?;
        Some(columns)
    }
}

/// A table of a FROM.
struct Relation<'c> {
    /// The name that qualifies its columns.
    qualifier: Option<Ident>,
    /// Its columns, if they are known.
    columns: Option<&'c [String]>,
}

/// The tables of a FROM, and the columns that joins merge.
#[derive(Default)]
struct From<'c> {
    relations: Vec<Relation<'c>>,
    merged: Vec<Merged>,
    /// Whether a join stays as it is, because the table of a column is not known.
    is_unclear: bool,
    /// Whether a join that merges columns is an outer one.
    is_outer: bool,
}

/// A merged column.
#[derive(Clone)]
struct Merged {
    name: Ident,
    /// Its value; `None` if the table that has it is not known.
    value: Option<Expr>,
    /// The tables that have it; `*` shows it in the place of the first. `None` is an unknown table.
    tables: Vec<Option<usize>>,
}

impl From<'_> {
    /// Merges the columns of the tables from `left.end` on with those of `left`.
    fn join(&mut self, operator: &mut JoinOperator, left: Range<usize>) {
        use JoinOperator as J;
        let right = left.end..self.relations.len();
        let values = match operator {
            J::Join(_) | J::Inner(_) => Values::Both,
            J::Left(_) | J::LeftOuter(_) => Values::Left,
            J::Right(_) | J::RightOuter(_) => Values::Right,
            J::FullOuter(_) => Values::First,
            _ => Values::None,
        };
        let Some(constraint) = constraint(operator) else { return };
        let names = match constraint {
            JoinConstraint::Using(names) => names.iter().filter_map(last).cloned().collect(),
            JoinConstraint::Natural => self.common(left.clone(), right.clone()).unwrap_or_default(),
            _ => return,
        };
        self.is_outer |= !matches!(values, Values::Both | Values::None);
        let columns: Option<Vec<_>> = names
            .iter()
            .map(|name| Some((self.column(name, left.clone()), self.column(name, right.clone())?)))
            .collect();
        let Some(columns) = columns.filter(|columns| !columns.is_empty()) else {
            self.is_unclear = true;
            return;
        };
        let mut condition = Some(None);
        for (one, other) in columns {
            match (&one, values) {
                (_, Values::None) | (None, Values::Right | Values::First) => {
                    self.is_unclear = true;
                    return;
                }
                _ => {}
            }
            let equality = one.as_ref().and_then(|one| equal(one, &other));
            condition = condition.and_then(|before| Some(Some(and(before, equality?))));
            self.merged.retain(|merged| !merged.is_part_of(one.as_ref(), &other));
            self.merged.push(joined(one, other, values));
        }
        // Otherwise USING finds the unknown table.
        if let Some(Some(condition)) = condition {
            *constraint = JoinConstraint::On(condition);
        }
    }

    /// The column of one side with this name, which may be merged; `None` if its table is not known.
    fn column(&self, name: &str, side: Range<usize>) -> Option<Merged> {
        let is_it = |merged: &&Merged| {
            let is_here = |table: &usize| side.contains(table);
            merged.name.value == name && merged.tables.iter().flatten().all(is_here)
        };
        if let Some(merged) = self.merged.iter().find(is_it) {
            return Some(merged.clone());
        }
        let table = match side.len() {
            1 => side.start,
            _ => {
                let mut found = Vec::new();
                for table in side {
                    let columns = self.relations[table].columns?;
                    found.extend(columns.iter().any(|column| column == name).then_some(table));
                }
                let &[table] = found.as_slice() else { return None };
                table
            }
        };
        let name = Ident::with_quote('"', name);
        let qualifier = self.relations[table].qualifier.clone()?;
        let value = Some(Expr::CompoundIdentifier(vec![qualifier, name.clone()]));
        Some(Merged { name, value, tables: vec![Some(table)] })
    }

    /// The columns that both sides have; `None` if those of a table are not known.
    fn common(&self, left: Range<usize>, right: Range<usize>) -> Option<Vec<String>> {
        let columns = |side: Range<usize>| -> Option<Vec<&String>> {
            let columns: Option<Vec<&[String]>> =
                self.relations[side].iter().map(|relation| relation.columns).collect();
            Some(columns?.into_iter().flatten().collect())
        };
        let (left, right) = (columns(left)?, columns(right)?);
        let mut common: Vec<String> = Vec::new();
        for name in left {
            if right.contains(&name) && !common.contains(name) {
                common.push(name.clone());
            }
        }
        Some(common)
    }

    /// The outputs, with one `t.*` for each table in place of `*`, and each merged column once. `None` if
    /// a `*` has options, or a table has no name.
    fn outputs(&self, outputs: &[SelectItem]) -> Option<Vec<SelectItem>> {
        let mut all = Vec::with_capacity(outputs.len());
        for output in outputs {
            match output {
                SelectItem::Wildcard(options) => {
                    let is_plain = options.opt_exclude.is_none()
                        && options.opt_except.is_none()
                        && options.opt_replace.is_none()
                        && options.opt_rename.is_none()
                        && options.opt_ilike.is_none();
                    if !is_plain {
                        return None;
                    }
                    for table in 0..self.relations.len() {
                        all.push(self.columns_of(table)?);
                    }
                }
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                    let merged = self.merged.iter().find(|merged| merged.name.value == name.value);
                    all.push(match merged {
                        // The value gets its name below.
                        Some(merged) => SelectItem::ExprWithAlias {
                            expr: Expr::Identifier(name.clone()),
                            alias: merged.name.clone(),
                        },
                        None => output.clone(),
                    });
                }
                other => all.push(other.clone()),
            }
        }
        Some(all)
    }

    /// `t.*`, with the merged columns whose place is there and without the others.
    fn columns_of(&self, table: usize) -> Option<SelectItem> {
        let name = ObjectName::from(vec![self.relations[table].qualifier.clone()?]);
        let mut options = WildcardAdditionalOptions::default();
        let here = |merged: &&Merged| merged.tables.first() == Some(&Some(table));
        let copies = self.merged.iter().filter(|merged| merged.tables.contains(&Some(table)));
        let copies = copies.filter(|merged| !here(merged));
        exclude(&mut options, copies.map(|merged| merged.name.value.clone()));
        let mut replaced = Vec::new();
        for merged in self.merged.iter().filter(here) {
            let expr = merged.value.clone()?;
            let is_own = matches!(&expr, Expr::CompoundIdentifier(parts) if parts.first() == name.0[0].as_ident());
            let (column_name, as_keyword) = (merged.name.clone(), true);
            let element = ReplaceSelectElement { expr, column_name, as_keyword };
            replaced.extend((!is_own).then(|| Box::new(element)));
        }
        options.opt_replace =
            (!replaced.is_empty()).then_some(ReplaceSelectItem { items: replaced });
        let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
        Some(SelectItem::QualifiedWildcard(kind, options))
    }

    /// Replaces the names of merged columns by their values.
    fn replace(&self, select: &mut Select, order: Option<&mut OrderBy>) -> Result<()> {
        let values = self.merged.iter().map(|merged| (&*merged.name.value, merged.value.as_ref()));
        let mut replacer = Replacer { values: values.collect(), depth: 0 };
        ended(walk(select, &mut replacer))?;
        let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = order else {
            return Ok(());
        };
        for place in order {
            // A plain name is that of an output, if there is one.
            let is_output = match &place.expr {
                Expr::Identifier(name) => select.projection.iter().any(|item| is_named(item, name)),
                _ => false,
            };
            if !is_output {
                ended(walk(&mut place.expr, &mut replacer))?;
            }
        }
        Ok(())
    }
}

/// The values of the columns that a join merges.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    /// Those of both sides, which are equal.
    Both,
    /// Those of the left side.
    Left,
    /// Those of the right side.
    Right,
    /// The first one that is not NULL.
    First,
    /// The join shows one side only.
    None,
}

impl Merged {
    /// Whether a column that is merged from two others has the tables of this one.
    fn is_part_of(&self, one: Option<&Merged>, other: &Merged) -> bool {
        let is_part =
            |whole: &Merged| whole.name.value == self.name.value && whole.tables == self.tables;
        one.is_some_and(is_part) || is_part(other)
    }
}

fn joined(one: Option<Merged>, other: Merged, values: Values) -> Merged {
    let unknown = || Merged { name: other.name.clone(), value: None, tables: vec![None] };
    let one = one.unwrap_or_else(unknown);
    let value = match values {
        Values::Both => one.value.or(other.value),
        Values::Left | Values::None => one.value,
        Values::Right => other.value,
        Values::First => match (one.value, other.value) {
            (Some(one), Some(other)) => Some(call("coalesce", vec![one, other])),
            _ => None,
        },
    };
    let tables = one.tables.into_iter().chain(other.tables).collect();
    Merged { name: other.name, value, tables }
}

/// Whether an output may have this name.
fn is_named(output: &SelectItem, name: &Ident) -> bool {
    match output {
        SelectItem::ExprWithAlias { alias, .. } => alias.value == name.value,
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
            parts.last().is_some_and(|part| part.value == name.value)
        }
        SelectItem::UnnamedExpr(_) => false,
        _ => true,
    }
}

struct Replacer<'m> {
    /// The values of merged columns, by name; `None` if one is not known.
    values: HashMap<&'m str, Option<&'m Expr>>,
    /// The number of subqueries around; a name in them is that of a column of theirs.
    depth: usize,
}

impl VisitorMut for Replacer<'_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if let Expr::Identifier(name) = &*expr
            && self.depth == 0
            && let Some(value) = self.values.get(&*name.value)
        {
            match value {
                Some(value) => *expr = (*value).clone(),
                None => {
                    let error = unclear(&format!("the table of {name} is"));
                    return ControlFlow::Break(Some(Box::new(error)));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn equal(one: &Merged, other: &Merged) -> Option<Expr> {
    let (left, right) = (one.value.clone()?, other.value.clone()?);
    Some(Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Eq, right: Box::new(right) })
}

fn and(left: Option<Expr>, right: Expr) -> Expr {
    match left {
        Some(left) => {
            Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) }
        }
        None => right,
    }
}

fn unclear(what: &str) -> Error {
    refused(format!(
        "an outer join by USING or NATURAL: {what} not clear; write ON, and t.column for its columns"
    ))
}
