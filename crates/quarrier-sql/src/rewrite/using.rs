//! Turns joins by USING and NATURAL into joins by ON, and the names of merged columns into their values: those of
//! the left side; of the right side for a RIGHT JOIN; of the side that is not NULL for a FULL JOIN. DataFusion shows
//! the column of the table whose name sorts first, which may be NULL, and refuses the name in WHERE.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    OrderBy, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableFactor, TableWithJoins, Value, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use super::hidden::{exclude, last};
use super::merged::{constraint, is_plain};
use super::names::{KnownNames, names_of_with};
use super::refused;
use super::walk::{Flow, Stop, ended, walk};
use crate::dialect::call;
use crate::{Error, Result};

/// Whether a statement has a join by USING or NATURAL.
pub(super) fn merges_columns<S: VisitMut>(statement: &mut S) -> bool {
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
        let mut all = Side::default();
        for tables in &mut tables {
            let side = self.tables(tables, &mut from);
            all.merged.extend(side.merged);
            all.order.extend(side.order);
        }
        match from.outputs(&all, &select.projection) {
            Some(outputs) if !from.is_unclear => {
                (select.projection, select.from) = (outputs, tables);
                replace(&all.merged, select, order)
            }
            // DataFusion shows any of the equal columns.
            _ if !from.is_outer => Ok(()),
            _ => Err(unclear("its columns are")),
        }
    }

    fn tables(&self, tables: &mut TableWithJoins, from: &mut From<'c>) -> Side {
        let mut left = self.table(&mut tables.relation, from);
        for join in &mut tables.joins {
            let right = self.table(&mut join.relation, from);
            if let Some(JoinConstraint::Using(names)) = constraint(&mut join.join_operator) {
                names.iter_mut().for_each(|name| self.spell(name));
            }
            left = from.join(&mut join.join_operator, left, right);
        }
        left
    }

    /// Replaces the name of a merged column by its known spelling.
    fn spell(&self, name: &mut ObjectName) {
        if let Some(ObjectNamePart::Identifier(ident)) = name.0.last_mut()
            && let Some(known) = self.known.spelling(&ident.value)
        {
            *ident = Ident::with_quote('"', known);
        }
    }

    fn table(&self, table: &mut TableFactor, from: &mut From<'c>) -> Side {
        let relation = match table {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                return self.tables(table_with_joins, from);
            }
            TableFactor::Table { name, alias, args, .. } => {
                let columns = match args {
                    None => self.known.columns_of(name, alias.as_ref(), self.given),
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
        let table = from.relations.len() - 1;
        Side { tables: vec![table], merged: Vec::new(), order: vec![Shown::Rest(table)] }
    }
}

/// A table of a FROM.
struct Relation<'c> {
    /// The name that qualifies its columns.
    qualifier: Option<Ident>,
    /// Its columns, if they are known.
    columns: Option<&'c [String]>,
}

/// The tables of a FROM.
#[derive(Default)]
struct From<'c> {
    relations: Vec<Relation<'c>>,
    /// Whether a join stays as it is, because the table of a column is not known.
    is_unclear: bool,
    /// Whether a join that merges columns is an outer one.
    is_outer: bool,
}

/// One side of a join, or its result.
#[derive(Default)]
struct Side {
    /// The places of its tables.
    tables: Vec<usize>,
    merged: Vec<Merged>,
    /// The parts of `*` in the order of SQL-92: the columns that the last join merged come first.
    order: Vec<Shown>,
}

/// A part of `*`.
enum Shown {
    Merged(Box<Merged>),
    /// The columns of this table that are not merged.
    Rest(usize),
}

/// A merged column.
#[derive(Clone, PartialEq)]
struct Merged {
    name: Ident,
    /// Its value; `None` if the table that has it is not known.
    value: Option<Expr>,
    /// The tables that have it; `None` is an unknown table.
    tables: Vec<Option<usize>>,
}

impl From<'_> {
    /// Joins two sides, and merges the columns that the constraint names.
    fn join(&mut self, operator: &mut JoinOperator, left: Side, right: Side) -> Side {
        let values = Values::of(operator);
        let names = match constraint(operator) {
            Some(JoinConstraint::Using(names)) => {
                Some(names.iter().filter_map(last).cloned().collect())
            }
            Some(JoinConstraint::Natural) => self.common(&left, &right),
            _ => return joined_sides(left, right, Vec::new()),
        };
        self.is_outer |= !matches!(values, Values::Both | Values::None);
        let merged = names.and_then(|names: Vec<String>| {
            let merged = names.iter().map(|name| self.merge(name, (&left, &right), values));
            merged.collect::<Option<Vec<_>>>()
        });
        let Some(columns) = merged else {
            self.is_unclear = true;
            return joined_sides(left, right, Vec::new());
        };
        let (merged, equalities): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        if let Some(equalities) = equalities.into_iter().collect::<Option<Vec<_>>>() {
            constrain(operator, equalities);
        }
        joined_sides(left, right, merged)
    }

    /// Merges a column of both sides. Returns it with their equality; without that, USING remains, for
    /// DataFusion to find the table of the left column. `None` if the value is not clear.
    fn merge(
        &self,
        name: &str,
        (left, right): (&Side, &Side),
        values: Values,
    ) -> Option<(Merged, Option<Expr>)> {
        let (one, other) = (self.column(name, left), self.column(name, right)?);
        match (&one, values) {
            (_, Values::None) | (None, Values::Right | Values::First) => None,
            _ => {
                let equality = one.as_ref().and_then(|one| equal(one, &other));
                Some((joined(one, other, values), equality))
            }
        }
    }

    /// The column of one side with this name, which may be merged; `None` if its table is not known.
    fn column(&self, name: &str, side: &Side) -> Option<Merged> {
        if let Some(merged) = side.merged.iter().find(|merged| merged.name.value == name) {
            return Some(merged.clone());
        }
        let table = match side.tables.as_slice() {
            &[table] => table,
            tables => {
                let mut found = Vec::new();
                for &table in tables {
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
    fn common(&self, left: &Side, right: &Side) -> Option<Vec<String>> {
        let columns = |side: &Side| -> Option<Vec<&String>> {
            let tables = side.tables.iter();
            let columns: Option<Vec<&[String]>> =
                tables.map(|&table| self.relations[table].columns).collect();
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

    /// The outputs, with the parts of `*` in its place. `None` if a `*` has options, or a table has no
    /// name.
    fn outputs(&self, all: &Side, outputs: &[SelectItem]) -> Option<Vec<SelectItem>> {
        let mut written = Vec::with_capacity(outputs.len());
        for output in outputs {
            match output {
                SelectItem::Wildcard(options) => {
                    if !is_plain(options) {
                        return None;
                    }
                    for part in &all.order {
                        written.push(match part {
                            Shown::Merged(merged) => shown(merged)?,
                            &Shown::Rest(table) => self.rest(table, &all.merged)?,
                        });
                    }
                }
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                    let merged = all.merged.iter().find(|merged| merged.name.value == name.value);
                    written.push(match merged {
                        Some(merged) if self.is_shown(merged, outputs) => shown(merged)?,
                        // [`replace`] puts the value in the place of the name.
                        Some(merged) => SelectItem::ExprWithAlias {
                            expr: Expr::Identifier(name.clone()),
                            alias: merged.name.clone(),
                        },
                        None => output.clone(),
                    });
                }
                other => written.push(other.clone()),
            }
        }
        Some(written)
    }

    /// Whether a `t.*` of the outputs shows the column, too.
    fn is_shown(&self, merged: &Merged, outputs: &[SelectItem]) -> bool {
        use SelectItemQualifiedWildcardKind::ObjectName;
        let qualifiers = || {
            merged
                .tables
                .iter()
                .flatten()
                .filter_map(|&table| self.relations[table].qualifier.as_ref())
        };
        outputs.iter().any(|output| match output {
            SelectItem::QualifiedWildcard(ObjectName(name), _) => {
                qualifiers().any(|qualifier| last(name) == Some(&qualifier.value))
            }
            _ => false,
        })
    }

    /// `t.*` without merged columns; `None` if the table has no name.
    fn rest(&self, table: usize, merged: &[Merged]) -> Option<SelectItem> {
        let name = ObjectName::from(vec![self.relations[table].qualifier.clone()?]);
        let mut options = WildcardAdditionalOptions::default();
        let here = merged.iter().filter(|merged| merged.tables.contains(&Some(table)));
        exclude(&mut options, here.map(|merged| merged.name.value.clone()));
        let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
        Some(SelectItem::QualifiedWildcard(kind, options))
    }
}

/// A merged column as an output; `None` if one of its tables is not known: `t.*` of that table would show the
/// column again.
fn shown(merged: &Merged) -> Option<SelectItem> {
    let value = merged.value.clone().filter(|_| !merged.tables.contains(&None))?;
    Some(match value {
        // Keeps its qualifier, so that other tables may have a column of its name.
        Expr::CompoundIdentifier(_) => SelectItem::UnnamedExpr(value),
        expr => SelectItem::ExprWithAlias { expr, alias: merged.name.clone() },
    })
}

/// Both sides with the columns that their join merges.
fn joined_sides(left: Side, right: Side, merged: Vec<Merged>) -> Side {
    // A merged column of one side may be merged again.
    let stays = |before: &Merged| {
        let is_part = |whole: &Merged| {
            whole.name.value == before.name.value
                && before.tables.iter().all(|table| whole.tables.contains(table))
        };
        !merged.iter().any(is_part)
    };
    let mut all: Vec<Merged> = left.merged.into_iter().chain(right.merged).filter(stays).collect();
    let mut order: Vec<Shown> = merged.iter().cloned().map(Box::new).map(Shown::Merged).collect();
    order.extend(left.order.into_iter().chain(right.order).filter(|part| match part {
        Shown::Merged(merged) => stays(merged),
        Shown::Rest(_) => true,
    }));
    all.extend(merged);
    let tables = left.tables.into_iter().chain(right.tables).collect();
    Side { tables, merged: all, order }
}

/// Replaces the constraint of a join by equalities; a NATURAL JOIN of sides without common columns has
/// none.
fn constrain(operator: &mut JoinOperator, equalities: Vec<Expr>) {
    let condition = equalities.into_iter().reduce(and);
    if let (None, JoinOperator::Join(_) | JoinOperator::Inner(_)) = (&condition, &*operator) {
        *operator = JoinOperator::CrossJoin(JoinConstraint::None);
    } else if let Some(constraint) = constraint(operator) {
        let always = || Expr::value(Value::Boolean(true));
        *constraint = JoinConstraint::On(condition.unwrap_or_else(always));
    }
}

/// Replaces the names of merged columns by their values.
fn replace(merged: &[Merged], select: &mut Select, order: Option<&mut OrderBy>) -> Result<()> {
    let mut values = HashMap::new();
    for merged in merged {
        // Two merged columns of one name are ambiguous.
        let value = merged.value.as_ref();
        values.entry(&*merged.name.value).and_modify(|value| *value = None).or_insert(value);
    }
    let mut replacer = Replacer { values, depth: 0 };
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

impl Values {
    fn of(operator: &JoinOperator) -> Values {
        use JoinOperator as J;
        match operator {
            J::Join(_) | J::Inner(_) => Values::Both,
            J::Left(_) | J::LeftOuter(_) => Values::Left,
            J::Right(_) | J::RightOuter(_) => Values::Right,
            J::FullOuter(_) => Values::First,
            _ => Values::None,
        }
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
    /// The number of subqueries that contain the current node; names in them mean their own columns.
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

fn and(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) }
}

fn unclear(what: &str) -> Error {
    refused(format!(
        "an outer join by USING or NATURAL: {what} not clear; write ON, and t.column for its columns"
    ))
}
