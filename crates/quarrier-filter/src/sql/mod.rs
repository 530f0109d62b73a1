//! Parses and binds expressions and statements.
//!
//! ```text
//!  text ─→ tokens ─→ parse (grammar: sqlparser with the prefixes of `dialect`) ─→ bind ─→ Expr
//!           bounded   no backtracking, so that hostile text costs no more           types checked
//! ```

use std::sync::Arc;

use quarrier_messages::{Schema, Table};
use sqlparser::ast;
use sqlparser::tokenizer::Location;

use crate::{Error, Expr, Query, Result};

mod arithmetic;
mod backslashes;
mod bind;
mod calls;
mod casts;
mod dialect;
mod growing;
mod lists;
mod literals;
mod nearest;
mod parse;
mod predicates;
mod rows;
mod shapes;
mod statement;
mod tables;
mod types;

pub use backslashes::{in_backslashes, push_literally};
use bind::Binder;
pub use bind::place;
pub use dialect::row;
pub(crate) use growing::List;
pub use growing::Lists;
pub use lists::{
    Element, elements, ends_without_value, is_list, list_fields, list_names, quantified,
};
pub use nearest::unknown_column;
pub use parse::{failed, on_a_large_stack, together};
pub use tables::{TableName, files, table};

/// Maximum length of an input in bytes.
pub const TEXT_BYTES_MAX: usize = 4 << 20;

/// Maximum number of tokens of an input.
pub const TOKENS_MAX: usize = 1 << 18;

/// Maximum nesting of a bound expression, and of its input. Chains of AND and OR count once.
pub const DEPTH_MAX: usize = 200;

/// Maximum number of nodes of a bound expression. Operands that SQL-92 evaluates twice, such as
/// those of BETWEEN, count twice.
pub const NODES_MAX: usize = 1 << 19;

/// Binds a search condition. Takes time proportional to the length of the text, and up to 2 KiB of
/// stack per token, on another thread if the caller's stack is too small.
///
/// # Errors
/// [`Error::Text`] with the position and what to try: if the text is not a condition, names an
/// unknown column, or applies an operation to types that lack it (`'10' < 9`); if it nests deeper
/// than [`DEPTH_MAX`], or is longer than [`TEXT_BYTES_MAX`] or [`TOKENS_MAX`].
pub fn condition(text: &str, schema: &Schema) -> Result<Expr> {
    bound(text, |expr| Binder::new(schema, None).bind(expr)?.condition())
}

/// Binds a condition as [`condition`] does, on messages whose lists may have elements without a
/// column in the schema.
///
/// # Errors
/// The errors of [`condition`], and [`Error::List`] for a list to be added to `lists` first.
pub fn condition_of_messages(text: &str, schema: &Schema, lists: &Lists) -> Result<Expr> {
    bound(text, |expr| Binder::new(schema, None).with_lists(lists).bind(expr)?.condition())
}

/// Parses a condition, unless one of its shape was parsed before, and binds it.
fn bound(text: &str, bind: impl Fn(ast::Expr) -> Result<Expr> + Sync) -> Result<Expr> {
    // Errors need the positions in this text.
    if let Some(Ok(bound)) = shapes::known(text).map(&bind) {
        return Ok(bound);
    }
    parse::parsed(text, |parser| {
        parse::alone(parser)?;
        let expr = parse::expression(parser)?;
        parse::end(parser)?;
        shapes::learn(text, &expr);
        bind(expr)
    })
}

/// Binds an expression of any type.
///
/// # Errors
/// The errors of [`condition`].
pub fn expression(text: &str, schema: &Schema) -> Result<Expr> {
    parse::parsed(text, |parser| {
        parse::alone(parser)?;
        let expr = parse::expression(parser)?;
        parse::end(parser)?;
        Ok(Binder::new(schema, None).bind(expr)?.expr)
    })
}

/// Binds `SELECT … FROM table [WHERE …] [ORDER BY …] [LIMIT …]` over this one table.
///
/// # Errors
/// The errors of [`condition`], and an error for all other SQL: joins, grouping, subqueries.
pub fn statement(text: &str, table: &str, schema: &Schema) -> Result<Query> {
    let visible = schema.fields.len();
    parse::parsed(text, |parser| statement::bound(parser, table, (schema, visible)))
}

/// Binds a statement as [`statement`] does, over a table of this name. `*` leaves out its hidden
/// columns.
///
/// # Errors
/// The errors of [`statement`].
pub fn statement_of(text: &str, name: &str, table: &Table) -> Result<Query> {
    let columns = (table.schema(), table.visible());
    parse::parsed(text, |parser| statement::bound(parser, name, columns))
}

/// Binds a statement as [`statement`] does, over the table that `find` returns for the name in it.
/// Parses the text once; calling [`table`] first would parse it twice.
///
/// # Errors
/// The errors of [`statement`], and an error if `find` returns no table.
pub fn statement_over(
    text: &str,
    find: impl FnOnce(&str) -> Option<Arc<Table>> + Send,
) -> Result<Query> {
    parse::parsed(text, |parser| statement::bound_over(parser, find))
}

/// Makes an error at a position.
pub fn wrong(at: Location, reason: impl Into<String>) -> Error {
    Error::text(at.line, at.column, reason)
}

/// Makes the error at a position for SQL that this crate does not support.
pub fn unanswered(at: Location, reason: impl std::fmt::Display) -> Error {
    Error::Unanswered(Box::new(wrong(at, format!("{reason}; {ELSEWHERE}"))))
}

/// The hint for unsupported parts of SQL.
const ELSEWHERE: &str = "`quarrier query` answers it";
