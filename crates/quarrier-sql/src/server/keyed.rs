//! Statements that replace, change and remove rows of tables with a key.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::Field;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Delete, Expr, FromTable, Ident, ObjectName,
    OnConflict, OnConflictAction, OnInsert, TableFactor, TableWithJoins, Update,
};
use quarrier_wire::{Failure, Result, TableInfo, state};

use super::create::{folded, table_name};
use super::failure::of_folder;
use crate::Engine;

/// Rows that a DELETE removes.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) table: String,
    /// The names of the key's columns.
    pub(super) key: Vec<String>,
    /// The query that selects their keys.
    pub(super) query: String,
}

/// A lock on a table with a key, released when it is dropped. It excludes either all other writers,
/// or only statements that change rows they read.
pub(super) type TableLock = Box<dyn Any + Send>;

fn not_there(what: &str) -> Failure {
    Failure::new(state::UNSUPPORTED, format!("{what} is not supported here"))
}

/// Returns the columns of a table's key, in order; empty if it has no key.
///
/// # Errors
/// There is no such table.
pub(super) fn key_of(engine: &Engine, table: &str) -> Result<Vec<String>> {
    let Some(kept) = engine.kept() else { return Ok(Vec::new()) };
    let Some(definition) = kept.definition(table).map_err(|error| of_folder(&error))? else {
        return Ok(Vec::new());
    };
    let columns = definition.key().iter().filter_map(|place| definition.columns().get(*place));
    Ok(columns.map(|column| column.name.to_string()).collect())
}

/// Takes the shared lock of a table: other inserts may run, but not statements that change rows
/// they read. `None` if the table has no key.
pub(super) async fn shared(engine: &Engine, table: &str) -> Result<Option<TableLock>> {
    if key_of(engine, table)?.is_empty() {
        return Ok(None);
    }
    match engine.gate(table) {
        Some(gate) => Ok(Some(Box::new(gate.read_owned().await))),
        None => Ok(None),
    }
}

/// Takes the exclusive lock of a table: waits for all writers and excludes others, so that rows do
/// not change between being read and being written.
pub(super) async fn alone(engine: &Engine, table: &str) -> Option<TableLock> {
    Some(Box::new(engine.gate(table)?.write_owned().await))
}

/// Returns the table of a DELETE.
pub(super) fn table_of_delete(tree: &Delete) -> Result<String> {
    let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &tree.from;
    for (is_there, what) in [
        (!tree.tables.is_empty() || tables.len() != 1, "DELETE from several tables"),
        (tree.using.is_some(), "DELETE … USING"),
        (tree.returning.is_some() || tree.output.is_some(), "RETURNING"),
        (!tree.order_by.is_empty() || tree.limit.is_some(), "DELETE … LIMIT"),
    ] {
        if is_there {
            return Err(not_there(what));
        }
    }
    match tables.first() {
        Some(table) => name_of(table),
        None => Err(not_there("DELETE without a table")),
    }
}

/// Returns the table of an UPDATE.
pub(super) fn table_of_update(tree: &Update) -> Result<String> {
    for (is_there, what) in [
        (tree.from.is_some(), "UPDATE … FROM"),
        (tree.returning.is_some() || tree.output.is_some(), "RETURNING"),
        (tree.or.is_some(), "UPDATE OR"),
        (!tree.order_by.is_empty() || tree.limit.is_some(), "UPDATE … LIMIT"),
    ] {
        if is_there {
            return Err(not_there(what));
        }
    }
    name_of(&tree.table)
}

fn name_of(table: &TableWithJoins) -> Result<String> {
    match &table.relation {
        TableFactor::Table { name, args: None, .. } if table.joins.is_empty() => table_name(name),
        _ => Err(not_there("a change of anything but a table")),
    }
}

fn needs_key(verb: &str, table: &str) -> Failure {
    let hint = "create a table with a key by CREATE TABLE … (…, PRIMARY KEY (…)) WITH \
                (on_conflict = 'replace')";
    not_there(&format!("{verb} of \"{table}\", which has no key,")).hint(hint)
}

/// Checks a DELETE from a table with this key, and converts it.
pub(super) fn delete(tree: &Delete, info: &TableInfo, key: Vec<String>) -> Result<Removal> {
    if key.is_empty() {
        return Err(needs_key("DELETE", &info.name));
    }
    let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &tree.from;
    let Some(table) = tables.first() else { return Err(not_there("DELETE without a table")) };
    let shown: Vec<String> = key.iter().map(|name| quoted(name)).collect();
    let query = query(&shown, table, tree.selection.as_ref());
    Ok(Removal { table: info.name.clone(), key, query })
}

/// Returns the query for the rows that an UPDATE writes, with all columns of the table in order.
pub(super) fn update(tree: &Update, info: &TableInfo, key: &[String]) -> Result<String> {
    if key.is_empty() {
        return Err(needs_key("UPDATE", &info.name));
    }
    let fields = info.columns.fields();
    let mut shown: Vec<String> = fields.iter().map(|field| quoted(field.name())).collect();
    let mut are_set = vec![false; shown.len()];
    for assignment in &tree.assignments {
        let (place, value) = assigned(assignment, info)?;
        let name = fields[place].name();
        if key.contains(name) {
            let what = format!("UPDATE of \"{name}\", a column of the key,");
            return Err(not_there(&what).hint("delete the row and insert another one"));
        }
        if std::mem::replace(&mut are_set[place], true) {
            let said = format!("multiple assignments to same column \"{name}\"");
            return Err(Failure::new(state::SYNTAX, said));
        }
        shown[place] = match value {
            Expr::Identifier(word) if is_default(word) => format!("NULL AS {}", quoted(name)),
            value => format!("({value}) AS {}", quoted(name)),
        };
    }
    Ok(query(&shown, &tree.table, tree.selection.as_ref()))
}

fn is_default(word: &Ident) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case("DEFAULT")
}

fn query(shown: &[String], table: &TableWithJoins, condition: Option<&Expr>) -> String {
    let mut text = format!("SELECT {} FROM {table}", shown.join(", "));
    if let Some(condition) = condition {
        text += &format!(" WHERE {condition}");
    }
    text
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the position of the assigned column, and the assigned expression.
fn assigned<'t>(assignment: &'t Assignment, info: &TableInfo) -> Result<(usize, &'t Expr)> {
    let name = match &assignment.target {
        AssignmentTarget::ColumnName(name) => single(name),
        AssignmentTarget::Tuple(_) => return Err(not_there("a row on the left of SET")),
    };
    let name = name.ok_or_else(|| not_there("a part of a column on the left of SET"))?;
    Ok((place_of(&name, info)?, &assignment.value))
}

fn single(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(folded),
        _ => None,
    }
}

fn place_of(name: &str, info: &TableInfo) -> Result<usize> {
    let fields = info.columns.fields();
    let is_named = |field: &Arc<Field>| field.name() == name;
    let is_alike = |field: &Arc<Field>| field.name().eq_ignore_ascii_case(name);
    let place = fields.iter().position(is_named).or_else(|| fields.iter().position(is_alike));
    place.ok_or_else(|| {
        let said = format!("column \"{name}\" of relation \"{}\" does not exist", info.name);
        Failure::new(state::NO_COLUMN, said)
    })
}

/// Checks that ON CONFLICT agrees with the table, where a new row replaces the one with its key.
/// `given` is the number of columns for which rows have values.
pub(super) fn check_conflict(
    on: &OnInsert,
    info: &TableInfo,
    (key, given): (&[String], usize),
) -> Result<()> {
    let OnInsert::OnConflict(OnConflict { conflict_target, action }) = on else {
        return Err(not_there("ON DUPLICATE KEY"));
    };
    let OnConflictAction::DoUpdate(update) = action else {
        return Err(not_there("ON CONFLICT DO NOTHING"));
    };
    let Some(ConflictTarget::Columns(target)) = conflict_target else {
        return Err(not_there("ON CONFLICT without the columns of the key"));
    };
    let mut places =
        target.iter().map(|it| place_of(&folded(it), info)).collect::<Result<Vec<_>>>()?;
    places.sort_unstable();
    places.dedup();
    let mut of_key = key.iter().map(|name| place_of(name, info)).collect::<Result<Vec<_>>>()?;
    of_key.sort_unstable();
    if key.is_empty() || places != of_key {
        let said = "there is no key with the columns of the ON CONFLICT specification";
        return Err(Failure::new("42P10", said));
    }
    let count = info.columns.fields().len();
    let whole = || {
        let what =
            "ON CONFLICT DO UPDATE that keeps a column of the old row, or changes it otherwise,";
        not_there(what)
            .hint("a row replaces the one with its key: SET each column = EXCLUDED.column")
    };
    if update.selection.is_some() || given < count {
        return Err(whole());
    }
    for assignment in &update.assignments {
        let (place, value) = assigned(assignment, info)?;
        let is_excluded = match value {
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [of, name] => folded(of) == "excluded" && place_of(&folded(name), info)? == place,
                _ => false,
            },
            _ => false,
        };
        if !is_excluded {
            return Err(whole());
        }
        places.push(place);
    }
    places.sort_unstable();
    places.dedup();
    if places.len() < count { Err(whole()) } else { Ok(()) }
}
