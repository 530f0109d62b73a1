//! `FROM m, UNNEST(leg) AS l`: a row for each element of a list.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement, TableAlias, TableFactor,
    Value, VisitorMut, WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::super::names::{joined, parts};
use super::super::refused;
use super::super::walk::{Flow, Stop, ended, walk};
use super::arrays;
use super::scope::{Relation, Scopes, column, path_of};
use crate::Result;

/// A list that is unnested as a table in FROM.
pub(super) struct Unnested {
    /// The name of the table that has the list.
    table: String,
    /// The list's name as a table.
    alias: String,
    /// Its index among the tables of the FROM.
    place: usize,
    outputs: Vec<Output>,
}

/// A column of the unnested list.
struct Output {
    name: String,
    /// Its name in the table extended by the list's elements.
    inner: String,
    array: Expr,
}

impl Unnested {
    /// Rewrites the lists in the FROM of a query, and the references to their columns.
    ///
    /// # Errors
    /// The query has joins or outputs with which that is not supported.
    pub(super) fn in_query(scopes: &Scopes<'_>, query: &mut Query) -> Result<()> {
        if let SetExpr::Select(select) = &mut *query.body {
            let relations = scopes.relations(&select.from);
            let lists = in_select(scopes, select)?;
            if let (false, Some(order)) = (lists.is_empty(), &mut query.order_by) {
                let mut renamer = Renamer::new(&lists, &relations);
                ended(walk(order, &mut renamer))?;
            }
            return Ok(());
        }
        in_operation(scopes, &mut query.body)
    }

    fn output(&self, name: &str) -> Option<&Output> {
        let exact = self.outputs.iter().find(|output| output.name == name);
        exact.or_else(|| self.outputs.iter().find(|output| output.name.eq_ignore_ascii_case(name)))
    }

    fn column(&self, output: &Output) -> Expr {
        column(&self.table, &output.inner)
    }

    /// All columns of the list, as outputs.
    fn items(&self) -> impl Iterator<Item = SelectItem> {
        self.outputs.iter().map(|output| SelectItem::ExprWithAlias {
            expr: self.column(output),
            alias: Ident::with_quote('"', &*output.name),
        })
    }
}

fn in_operation(scopes: &Scopes<'_>, body: &mut SetExpr) -> Result<()> {
    match body {
        SetExpr::Select(select) => in_select(scopes, select).map(drop),
        SetExpr::SetOperation { left, right, .. } => {
            in_operation(scopes, left)?;
            in_operation(scopes, right)
        }
        _ => Ok(()),
    }
}

fn in_select(scopes: &Scopes<'_>, select: &mut Select) -> Result<Vec<Unnested>> {
    let relations = scopes.relations(&select.from);
    let lists = taken_out(scopes, select, &relations)?;
    if lists.is_empty() {
        return Ok(lists);
    }
    for list in &lists {
        let tables = select.from.iter_mut();
        let factors = tables.flat_map(|tables| {
            let joined = tables.joins.iter_mut().map(|join| &mut join.relation);
            std::iter::once(&mut tables.relation).chain(joined)
        });
        for factor in factors {
            if scopes.relation(factor).qualifier.as_deref() == Some(&*list.table) {
                with_elements(scopes, factor, list)?;
            }
        }
    }
    let mut replaced = lists.iter().filter(|list| !scopes.hidden_of(&list.table).is_none());
    let first = replaced.next().map(|list| &list.table);
    if replaced.any(|list| Some(&list.table) != first)
        && select.from.iter().flat_map(|tables| &tables.joins).any(is_natural)
    {
        // The join would compare the hidden columns that the queries for both tables select.
        return Err(refused(
            "NATURAL JOIN is not supported with UNNEST of lists of both tables; write JOIN … USING (…)",
        ));
    }
    outputs(scopes, select, &lists, &relations)?;
    Ok(lists)
}

/// Removes the lists from a FROM, and returns them.
fn taken_out<'t>(
    scopes: &Scopes<'t>,
    select: &mut Select,
    relations: &[Relation<'t>],
) -> Result<Vec<Unnested>> {
    let (mut lists, mut place) = (Vec::new(), 0);
    let mut from = Vec::with_capacity(select.from.len());
    for mut tables in std::mem::take(&mut select.from) {
        let first = unnested(scopes, &tables.relation, place, relations)?;
        place += 1;
        let mut joins = Vec::with_capacity(tables.joins.len());
        for join in std::mem::take(&mut tables.joins) {
            let list = unnested(scopes, &join.relation, place, relations)?;
            place += 1;
            match list {
                Some(list) if is_cross(&join) => lists.push(list),
                Some(_) => {
                    return Err(refused("UNNEST of a list needs a comma or CROSS JOIN before it"));
                }
                None => joins.push(join),
            }
        }
        match first {
            Some(list) if joins.is_empty() => lists.push(list),
            Some(_) => return Err(refused("UNNEST of a list must follow its table")),
            None => {
                tables.joins = joins;
                from.push(tables);
            }
        }
    }
    let is_outer = |join: &Join| !is_inner(&join.join_operator);
    if !lists.is_empty() && from.iter().flat_map(|tables| &tables.joins).any(is_outer) {
        return Err(refused("UNNEST of a list excludes outer joins; put the join into a subquery"));
    }
    select.from = from;
    Ok(lists)
}

/// The list, if a table of a FROM unnests one.
fn unnested<'t>(
    scopes: &Scopes<'t>,
    factor: &TableFactor,
    place: usize,
    relations: &[Relation<'t>],
) -> Result<Option<Unnested>> {
    let TableFactor::UNNEST { alias, array_exprs, .. } = factor else { return Ok(None) };
    let [array] = array_exprs.as_slice() else { return Ok(None) };
    let Some(path) = path_of(array) else { return Ok(None) };
    let Some((table, fields)) = scopes.fields_in(relations, &path)? else { return Ok(None) };
    let name = alias.as_ref().map_or("unnest", |alias| &*alias.name.value).to_string();
    let mut outputs = Vec::with_capacity(fields.len());
    for (at, (field, list)) in fields.iter().enumerate() {
        let renamed = alias.as_ref().and_then(|alias| alias.columns.get(at));
        let output = match (renamed, field.is_empty()) {
            (Some(column), _) => column.name.value.clone(),
            (None, true) if fields.len() == 1 => name.clone(),
            (None, true) => "value".to_string(),
            (None, false) => field.to_string(),
        };
        let array = arrays::unnest(arrays::array(list)?);
        // No field can have this name.
        outputs.push(Output { inner: format!("{name}\0{output}"), name: output, array });
    }
    Ok(Some(Unnested { table, alias: name, place, outputs }))
}

fn is_cross(join: &Join) -> bool {
    let is_true =
        |expr: &Expr| matches!(expr, Expr::Value(value) if value.value == Value::Boolean(true));
    match &join.join_operator {
        JoinOperator::CrossJoin(_) => true,
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => match constraint {
            JoinConstraint::None => true,
            JoinConstraint::On(on) => is_true(on),
            _ => false,
        },
        _ => false,
    }
}

fn is_natural(join: &Join) -> bool {
    use JoinOperator as J;
    // Outer joins with UNNEST were refused before.
    matches!(
        &join.join_operator,
        J::Join(JoinConstraint::Natural) | J::Inner(JoinConstraint::Natural)
    )
}

fn is_inner(operator: &JoinOperator) -> bool {
    use JoinOperator as J;
    matches!(operator, J::Join(_) | J::Inner(_) | J::CrossJoin(_))
}

/// Replaces a table by a query that adds the list's elements to its columns.
fn with_elements(scopes: &Scopes<'_>, factor: &mut TableFactor, list: &Unnested) -> Result<()> {
    let parsed = Parser::parse_sql(&GenericDialect {}, "SELECT * FROM t");
    let Some(Statement::Query(mut query)) = parsed.ok().and_then(|mut parsed| parsed.pop()) else {
        return Ok(());
    };
    let hidden = scopes.replaced(&list.table, factor);
    let name = Ident::with_quote('"', &*list.table);
    let alias = TableAlias { explicit: true, name, columns: Vec::new(), at: None };
    if let SetExpr::Select(select) = &mut *query.body
        && let Some(tables) = select.from.first_mut()
    {
        std::mem::swap(&mut tables.relation, factor);
        let columns = hidden.fields().map(|field| column(&list.table, &field.name));
        let items = columns.map(SelectItem::UnnamedExpr);
        select.projection.extend(items);
        select.projection.extend(list.outputs.iter().map(|output| SelectItem::ExprWithAlias {
            expr: output.array.clone(),
            alias: Ident::with_quote('"', &*output.inner),
        }));
    }
    *factor =
        TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None };
    Ok(())
}

/// Rewrites the references to list columns in a SELECT, and excludes the added columns from `*`.
fn outputs(
    scopes: &Scopes<'_>,
    select: &mut Select,
    lists: &[Unnested],
    relations: &[Relation<'_>],
) -> Result<()> {
    let has_using = select.from.iter().flat_map(|tables| &tables.joins).any(|join| {
        use JoinOperator as J;
        matches!(
            &join.join_operator,
            J::Join(constraint) | J::Inner(constraint)
                if matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
        )
    });
    let mut items = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::Wildcard(_) if has_using => {
                return Err(refused(
                    "* is not supported with USING and UNNEST of a list; name the columns",
                ));
            }
            SelectItem::Wildcard(_) => {
                for (place, relation) in relations.iter().enumerate() {
                    if let Some(list) = lists.iter().find(|list| list.place == place) {
                        items.extend(list.items());
                        continue;
                    }
                    let Some(qualifier) = &relation.qualifier else {
                        return Err(refused(
                            "* with UNNEST of a list needs a name for every table; name the columns",
                        ));
                    };
                    items.push(all_of(scopes, qualifier, lists));
                }
            }
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) => {
                let table = name.0.last().and_then(|part| part.as_ident());
                let table = table.map(|ident| ident.value.clone()).unwrap_or_default();
                match lists.iter().find(|list| list.alias.eq_ignore_ascii_case(&table)) {
                    Some(list) => items.extend(list.items()),
                    None if lists.iter().any(|list| list.table == table) => {
                        items.push(all_of(scopes, &table, lists));
                    }
                    None => items.push(SelectItem::QualifiedWildcard(
                        SelectItemQualifiedWildcardKind::ObjectName(name),
                        options,
                    )),
                }
            }
            SelectItem::UnnamedExpr(written) => {
                let mut expr = written.clone();
                let mut renamer = Renamer::new(lists, relations);
                let output = renamer.output(&written).map(|(_, output)| output.name.clone());
                ended(walk(&mut expr, &mut renamer))?;
                if !renamer.has_renamed {
                    items.push(SelectItem::UnnamedExpr(expr));
                    continue;
                }
                let text = || written.to_string().chars().take(80).collect();
                let alias = Ident::with_quote('"', output.unwrap_or_else(text));
                items.push(SelectItem::ExprWithAlias { expr, alias });
            }
            other => items.push(other),
        }
    }
    select.projection = items;
    ended(walk(select, &mut Renamer::new(lists, relations)))
}

/// `table.*` without the columns added to the table.
fn all_of(scopes: &Scopes<'_>, table: &str, lists: &[Unnested]) -> SelectItem {
    let mine = lists.iter().filter(|list| list.table == table);
    let mut names: Vec<String> =
        mine.flat_map(|list| &list.outputs).map(|output| output.inner.clone()).collect();
    if !names.is_empty() {
        names.extend(scopes.hidden_of(table).fields().map(|field| field.name.to_string()));
    }
    let name = |name: String| ObjectName::from(vec![Ident::with_quote('"', name)]);
    let excluded: Vec<ObjectName> = names.into_iter().map(name).collect();
    let options = WildcardAdditionalOptions {
        opt_exclude: (!excluded.is_empty()).then_some(ExcludeSelectItem::Multiple(excluded)),
        ..WildcardAdditionalOptions::default()
    };
    let kind = SelectItemQualifiedWildcardKind::ObjectName(name(table.to_string()));
    SelectItem::QualifiedWildcard(kind, options)
}

/// Renames references to list columns to the columns of the extended table.
struct Renamer<'l, 't> {
    lists: &'l [Unnested],
    relations: &'l [Relation<'t>],
    /// The number of enclosing subqueries.
    depth: usize,
    has_renamed: bool,
}

impl<'l, 't> Renamer<'l, 't> {
    fn new(lists: &'l [Unnested], relations: &'l [Relation<'t>]) -> Self {
        Renamer { lists, relations, depth: 0, has_renamed: false }
    }

    /// A path as a single column name, qualified by its table if that is given.
    fn whole(&self, path: &[String]) -> Expr {
        if let Some((table, rest)) = path.split_first().filter(|(_, rest)| !rest.is_empty()) {
            let mut qualifiers = self.relations.iter().filter_map(|it| it.qualifier.as_ref());
            if qualifiers.any(|qualifier| qualifier.eq_ignore_ascii_case(table)) {
                return column(table, &joined(rest));
            }
        }
        Expr::Identifier(Ident::with_quote('"', joined(path)))
    }

    /// The list column that a name refers to.
    fn output(&self, expr: &Expr) -> Option<(&Unnested, &Output)> {
        let path = parts(expr)?;
        if let Some((table, rest)) = path.split_first().filter(|(_, rest)| !rest.is_empty()) {
            let list = self.lists.iter().find(|list| list.alias.eq_ignore_ascii_case(table));
            if let Some(found) = list.and_then(|list| Some((list, list.output(&joined(rest))?))) {
                return Some(found);
            }
        }
        if self.depth > 0 {
            return None;
        }
        let name = joined(&path);
        let columns = self.relations.iter().filter_map(|relation| relation.columns).flatten();
        if columns.into_iter().any(|column| column.eq_ignore_ascii_case(&name)) {
            return None;
        }
        self.lists.iter().find_map(|list| Some((list, list.output(&name)?)))
    }
}

impl VisitorMut for Renamer<'_, '_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if let Some((list, output)) = self.output(expr) {
            *expr = list.column(output);
            self.has_renamed = true;
        } else if matches!(expr, Expr::CompoundFieldAccess { .. })
            && let Some(path) = parts(expr)
        {
            // A single name has no parts that the visitor would take for columns.
            *expr = self.whole(&path);
        }
        ControlFlow::Continue(())
    }
}
