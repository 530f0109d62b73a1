//! INSERT: turns rows of VALUES, or those of a query, into messages for a stored table.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::sql::sqlparser::ast::{
    Expr, Insert as Tree, SetExpr, TableObject, UnaryOperator, Value as Literal,
};
use quarrier_wire::{
    Failure, Result, TableInfo, Value, assigned, cast_kinds, kind, message, state,
};

use super::create::{folded, table_name};
use super::keyed::check_conflict;
use super::parameters;
use crate::rewrite::text_of;

/// Rows to insert.
#[derive(Debug)]
pub(super) struct Insert {
    pub(super) table: String,
    columns: Vec<Column>,
    pub(super) rows: Rows,
}

/// A target column.
#[derive(Debug)]
struct Column {
    name: String,
    kind: u32,
    scale: Option<u8>,
}

impl Column {
    fn of(field: &Field) -> Column {
        let scale = match field.data_type() {
            DataType::Decimal128(_, scale) => (*scale).try_into().ok(),
            _ => None,
        };
        Column { name: field.name().clone(), kind: kind::of(field.data_type()), scale }
    }
}

/// The source of rows.
#[derive(Debug)]
pub(super) enum Rows {
    Values(Vec<Vec<Cell>>),
    /// The text of a query.
    Query(String),
}

/// A value of a row.
#[derive(Debug)]
pub(super) enum Cell {
    Value(Value),
    /// The position of a parameter, from 0.
    Parameter(usize),
}

fn wrong(said: impl Into<String>) -> Failure {
    Failure::new(state::SYNTAX, said)
}

fn not_there(what: &str) -> Failure {
    Failure::new(state::UNSUPPORTED, format!("{what} is not supported here"))
}

/// Returns the target table.
pub(super) fn table_of(tree: &Tree) -> Result<String> {
    match &tree.table {
        TableObject::TableName(name) => table_name(name),
        _ => Err(not_there("INSERT into anything but a table")),
    }
}

/// Checks an INSERT for this table and key, and converts it.
pub(super) fn insert(tree: &Tree, info: &TableInfo, key: &[String]) -> Result<Insert> {
    let is_plain = tree.into && !tree.overwrite && !tree.replace_into && !tree.ignore;
    if tree.returning.is_some() {
        return Err(not_there("RETURNING"));
    }
    if !is_plain || !tree.assignments.is_empty() || tree.partitioned.is_some() {
        return Err(wrong("INSERT INTO table (columns) VALUES … or SELECT …"));
    }
    let columns = columns(tree, info)?;
    if let Some(on) = &tree.on {
        check_conflict(on, info, (key, columns.len()))?;
    }
    let Some(source) = &tree.source else { return Err(not_there("DEFAULT VALUES")) };
    let is_list =
        source.with.is_none() && source.order_by.is_none() && source.limit_clause.is_none();
    let rows = match &*source.body {
        SetExpr::Values(values) if is_list => {
            let rows: Vec<&[Expr]> = values.rows.iter().map(|row| row.content.as_slice()).collect();
            check(&rows, tree, &columns)?;
            cells(&rows).map_or_else(|| Rows::Query(text_of(&**source)), Rows::Values)
        }
        _ => Rows::Query(text_of(&**source)),
    };
    Ok(Insert { table: info.name.clone(), columns, rows })
}

fn columns(tree: &Tree, info: &TableInfo) -> Result<Vec<Column>> {
    let fields = info.columns.fields();
    let of = Column::of;
    if tree.columns.is_empty() {
        if fields.is_empty() {
            let said = format!("table \"{}\" has no columns yet; load messages first", info.name);
            return Err(Failure::new(state::NO_COLUMN, said));
        }
        return Ok(fields.iter().map(|field| of(field)).collect());
    }
    let mut columns: Vec<Column> = Vec::with_capacity(tree.columns.len());
    for name in &tree.columns {
        let name = match name.0.as_slice() {
            [part] => part.as_ident().map(folded),
            _ => None,
        };
        let name = name.ok_or_else(|| wrong("write each column as a single name"))?;
        let exact = fields.iter().find(|field| *field.name() == name);
        let mut alike = fields.iter().filter(|field| field.name().eq_ignore_ascii_case(&name));
        let only = || alike.next().filter(|_| alike.next().is_none());
        let field = exact.or_else(only).ok_or_else(|| {
            let said = format!("column \"{name}\" of relation \"{}\" does not exist", info.name);
            Failure::new(state::NO_COLUMN, said)
        })?;
        if columns.iter().any(|column| column.name == *field.name()) {
            let said = format!("column \"{name}\" specified more than once");
            return Err(Failure::new("42701", said));
        }
        columns.push(of(field));
    }
    Ok(columns)
}

/// Checks the number of values in each row.
fn check(rows: &[&[Expr]], tree: &Tree, columns: &[Column]) -> Result<()> {
    let count = rows.first().map_or(0, |row| row.len());
    if rows.iter().any(|row| row.len() != count) {
        return Err(wrong("VALUES lists must all be the same length"));
    }
    counted(count, tree.columns.is_empty(), columns)
}

fn counted(count: usize, are_all: bool, columns: &[Column]) -> Result<()> {
    if count > columns.len() {
        return Err(wrong("INSERT has more expressions than target columns"));
    }
    if count < columns.len() && !are_all {
        return Err(wrong("INSERT has more target columns than expressions"));
    }
    Ok(())
}

/// Returns the values, if all of them are literals or parameters.
fn cells(rows: &[&[Expr]]) -> Option<Vec<Vec<Cell>>> {
    rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

fn cell(expr: &Expr) -> Option<Cell> {
    match expr {
        Expr::Value(value) => literal(&value.value),
        Expr::Nested(inner) => cell(inner),
        Expr::Identifier(word) => {
            let is_default =
                word.quote_style.is_none() && word.value.eq_ignore_ascii_case("DEFAULT");
            is_default.then_some(Cell::Value(Value::Null))
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match cell(expr)? {
            Cell::Value(Value::Int(number)) => Some(Cell::Value(Value::Int(number.checked_neg()?))),
            Cell::Value(Value::Float(number)) => Some(Cell::Value(Value::Float(-number))),
            Cell::Value(Value::Decimal(text)) if !text.starts_with('-') => {
                Some(Cell::Value(Value::Decimal(format!("-{text}"))))
            }
            _ => None,
        },
        // A cast determines the type of its parameter.
        Expr::Cast { expr, .. } => match cell(expr)? {
            place @ Cell::Parameter(_) => Some(place),
            Cell::Value(_) => None,
        },
        _ => None,
    }
}

fn literal(literal: &Literal) -> Option<Cell> {
    Some(Cell::Value(match literal {
        Literal::Null => Value::Null,
        Literal::Boolean(value) => Value::Bool(*value),
        Literal::SingleQuotedString(text) => Value::Text(text.clone()),
        Literal::Number(digits, false) => {
            let digits = digits.to_string();
            match digits.parse() {
                Ok(number) => Value::Int(number),
                Err(_) if digits.contains(['e', 'E']) => Value::Float(digits.parse().ok()?),
                Err(_) => Value::Decimal(digits),
            }
        }
        Literal::Placeholder(name) => {
            let number: usize = name.strip_prefix('$')?.parse().ok()?;
            return Some(Cell::Parameter(number.checked_sub(1)?));
        }
        _ => return None,
    }))
}

impl Insert {
    /// Inserts the rows of a query that returns all columns of the table in order.
    pub(super) fn of_query(info: &TableInfo, query: String) -> Self {
        let columns = info.columns.fields().iter().map(|field| Column::of(field)).collect();
        Insert { table: info.name.clone(), columns, rows: Rows::Query(query) }
    }

    /// Returns the types of the parameters in VALUES: those that the client specified, otherwise
    /// those of casts, otherwise those of the target columns.
    pub(super) fn kinds(&self, text: &str, declared: &[u32]) -> Result<Vec<u32>> {
        let count = parameters::count(text)?;
        let mut kinds: HashMap<usize, u32> = HashMap::new();
        let known =
            declared.iter().enumerate().filter(|(_, it)| !matches!(**it, 0 | kind::UNKNOWN));
        kinds.extend(known.map(|(place, kind)| (place, *kind)));
        for (place, kind) in cast_kinds(text)? {
            kinds.entry(place).or_insert(kind);
        }
        if let Rows::Values(rows) = &self.rows {
            let cells = rows.iter().flat_map(|row| row.iter().zip(&self.columns));
            for (cell, column) in cells {
                if let Cell::Parameter(place) = cell {
                    kinds.entry(*place).or_insert(column.kind);
                }
            }
        }
        Ok((0..count).map(|place| kinds.get(&place).copied().unwrap_or(kind::TEXT)).collect())
    }

    /// Returns the rows of VALUES as messages, and their number.
    pub(super) fn messages(&self, rows: &[Vec<Cell>], values: &[Value]) -> Result<(Vec<u8>, u64)> {
        let mut out = Vec::new();
        for row in rows {
            let row = row.iter().map(|cell| match cell {
                Cell::Value(value) => value.clone(),
                Cell::Parameter(place) => values.get(*place).cloned().unwrap_or(Value::Null),
            });
            self.message(row.collect(), &mut out)?;
        }
        Ok((out, rows.len() as u64))
    }

    /// Checks the number of columns of a query.
    pub(super) fn check(&self, columns: usize, are_all: bool) -> Result<()> {
        counted(columns, are_all, &self.columns)
    }

    /// Appends a row as a message.
    pub(super) fn message(&self, row: Vec<Value>, out: &mut Vec<u8>) -> Result<()> {
        let assigned = row.into_iter().zip(&self.columns).map(|(value, column)| {
            assigned(value, column.kind, column.scale).map_err(|failure| {
                let message = format!("column \"{}\": {}", column.name, failure.message);
                Failure { message, ..failure }
            })
        });
        let values = assigned.collect::<Result<Vec<_>>>()?;
        message(self.columns.iter().map(|column| column.name.as_str()).zip(&values), out)
    }
}
