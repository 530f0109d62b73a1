//! `SELECT … FROM m [WHERE …] [ORDER BY …] [LIMIT …]`.

use std::collections::HashSet;
use std::sync::Arc;

use sqlparser::ast::{self, Ident};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token};

use quarrier_messages::{Schema, Table};

use super::bind::{Binder, place};
use super::{parse, unanswered, wrong};
use crate::Result;
use crate::expr::Expr;
use crate::query::{Order, Output, Query, Select};

/// A statement as written.
struct ParsedStatement {
    items: Vec<Item>,
    table: Ident,
    alias: Option<Ident>,
    condition: Option<ast::Expr>,
    order: Vec<(ast::Expr, bool, Option<bool>)>,
    limit: Option<u64>,
    offset: u64,
}

/// An item of the SELECT list.
enum Item {
    Everything,
    EverythingOf(Ident),
    /// Its alias, and the text of the call.
    Count(Option<Ident>, String),
    Value(Box<ast::Expr>, Option<Ident>),
}

/// Parses and binds a statement over the table named `table`; `*` is the first `visible` columns.
pub(super) fn bound(
    parser: &mut Parser<'_>,
    table: &str,
    (schema, visible): (&Schema, usize),
) -> Result<Query> {
    let written = read(parser)?;
    if !written.table.value.eq_ignore_ascii_case(table) {
        let reason =
            format!("there is no table '{}'; the table is called {table}", written.table.value);
        return Err(wrong(written.table.span.start, reason));
    }
    bind(written, schema, visible)
}

/// Parses a statement, and binds it over the table that `find` returns for its name.
pub(super) fn bound_over(
    parser: &mut Parser<'_>,
    find: impl FnOnce(&str) -> Option<Arc<Table>>,
) -> Result<Query> {
    let written = read(parser)?;
    let Some(table) = find(&written.table.value) else {
        let reason = format!("there is no table '{}'", written.table.value);
        return Err(wrong(written.table.span.start, reason));
    };
    bind(written, table.schema(), table.visible())
}

fn bind(written: ParsedStatement, schema: &Schema, visible: usize) -> Result<Query> {
    let name = written.alias.unwrap_or(written.table).value;
    let mut binder = Binder::new(schema, Some(name));
    let select = select(&mut binder, written.items, visible)?;
    let condition = match written.condition {
        Some(condition) => Some(binder.bind(condition)?.condition()?),
        None => None,
    };
    let order = written
        .order
        .into_iter()
        .map(|(by, descending, nulls_first)| {
            let column = ordered_by(&binder, &select, by)?;
            Ok(Order { column, descending, nulls_first: nulls_first.unwrap_or(descending) })
        })
        .collect::<Result<Vec<Order>>>()?;
    Ok(Query { select, condition, order, limit: written.limit, offset: written.offset })
}

/// Parses a statement, and returns the name of its table as written.
pub(super) fn table(parser: &mut Parser<'_>) -> Result<Ident> {
    Ok(read(parser)?.table)
}

fn read(parser: &mut Parser<'_>) -> Result<ParsedStatement> {
    if !parser.parse_keyword(Keyword::SELECT) {
        let token = parser.peek_token_ref();
        let reason = format!("only SELECT … FROM … is supported here, not {token}");
        return Err(unanswered(token.span.start, reason));
    }
    if parser.parse_keyword(Keyword::DISTINCT) {
        let at = parser.get_current_token().span.start;
        return Err(unanswered(at, "DISTINCT is not supported here"));
    }
    let _ = parser.parse_keyword(Keyword::ALL);
    let items = items(parser)?;
    library(parser.expect_keyword_is(Keyword::FROM))?;
    let table = library(parser.parse_identifier())?;
    let alias = alias(parser)?;
    let condition =
        if parser.parse_keyword(Keyword::WHERE) { Some(parse::expression(parser)?) } else { None };
    let order = order(parser)?;
    let (limit, offset) = limits(parser)?;
    let _ = parser.consume_token(&Token::SemiColon);
    let rest = parser.peek_token_ref();
    if rest.token != Token::EOF {
        let reason = format!(
            "{rest} is not supported here: only WHERE, ORDER BY, LIMIT and OFFSET of one table are"
        );
        return Err(unanswered(rest.span.start, reason));
    }
    Ok(ParsedStatement { items, table, alias, condition, order, limit, offset })
}

fn library<T>(result: std::result::Result<T, ParserError>) -> Result<T> {
    result.map_err(|error| parse::failed(&error))
}

fn items(parser: &mut Parser<'_>) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    loop {
        items.push(item(parser)?);
        if !parser.consume_token(&Token::Comma) {
            return Ok(items);
        }
    }
}

fn item(parser: &mut Parser<'_>) -> Result<Item> {
    if parser.consume_token(&Token::Mul) {
        return Ok(Item::Everything);
    }
    let token = |ahead: usize| &parser.peek_nth_token_ref(ahead).token;
    if *token(1) == Token::Period && *token(2) == Token::Mul {
        let table = library(parser.parse_identifier())?;
        parser.advance_token();
        parser.advance_token();
        return Ok(Item::EverythingOf(table));
    }
    let count = match token(0) {
        Token::Word(word)
            if word.quote_style.is_none()
                && word.value.eq_ignore_ascii_case("COUNT")
                && *token(1) == Token::LParen
                && *token(2) == Token::Mul
                && *token(3) == Token::RParen =>
        {
            Some(format!("{}(*)", word.value))
        }
        _ => None,
    };
    if let Some(count) = count {
        for _ in 0..4 {
            parser.advance_token();
        }
        return Ok(Item::Count(alias(parser)?, count));
    }
    let expr = parse::expression(parser)?;
    Ok(Item::Value(Box::new(expr), alias(parser)?))
}

/// Parses `[AS] name`.
fn alias(parser: &mut Parser<'_>) -> Result<Option<Ident>> {
    if parser.parse_keyword(Keyword::AS) {
        return library(parser.parse_identifier()).map(Some);
    }
    let is_name = match &parser.peek_token_ref().token {
        Token::Word(word) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
        _ => false,
    };
    if is_name { library(parser.parse_identifier()).map(Some) } else { Ok(None) }
}

fn order(parser: &mut Parser<'_>) -> Result<Vec<(ast::Expr, bool, Option<bool>)>> {
    let mut order = Vec::new();
    if !parser.parse_keywords(&[Keyword::ORDER, Keyword::BY]) {
        return Ok(order);
    }
    loop {
        let by = parse::expression(parser)?;
        let descending = parser.parse_keyword(Keyword::DESC);
        if !descending {
            let _ = parser.parse_keyword(Keyword::ASC);
        }
        let nulls_first = if parser.parse_keywords(&[Keyword::NULLS, Keyword::FIRST]) {
            Some(true)
        } else if parser.parse_keywords(&[Keyword::NULLS, Keyword::LAST]) {
            Some(false)
        } else {
            None
        };
        order.push((by, descending, nulls_first));
        if !parser.consume_token(&Token::Comma) {
            return Ok(order);
        }
    }
}

/// Parses LIMIT and OFFSET in either order, or in the form of the standard: `OFFSET n ROWS FETCH
/// FIRST n ROWS ONLY`.
fn limits(parser: &mut Parser<'_>) -> Result<(Option<u64>, u64)> {
    let (mut limit, mut offset) = (None, None);
    loop {
        if limit.is_none() && parser.parse_keyword(Keyword::LIMIT) {
            if parser.parse_keyword(Keyword::ALL) {
                continue;
            }
            limit = Some(library(parser.parse_literal_uint())?);
        } else if offset.is_none() && parser.parse_keyword(Keyword::OFFSET) {
            offset = Some(library(parser.parse_literal_uint())?);
            rows(parser);
        } else if limit.is_none() && parser.parse_keyword(Keyword::FETCH) {
            let _ = parser.parse_keyword(Keyword::FIRST) || parser.parse_keyword(Keyword::NEXT);
            let is_number = matches!(parser.peek_token_ref().token, Token::Number(..));
            limit = Some(if is_number { library(parser.parse_literal_uint())? } else { 1 });
            rows(parser);
            library(parser.expect_keyword_is(Keyword::ONLY))?;
        } else {
            return Ok((limit, offset.unwrap_or(0)));
        }
    }
}

fn rows(parser: &mut Parser<'_>) {
    let _ = parser.parse_keyword(Keyword::ROWS) || parser.parse_keyword(Keyword::ROW);
}

fn select(binder: &mut Binder<'_>, mut items: Vec<Item>, visible: usize) -> Result<Select> {
    if let [Item::Count(..)] = items.as_slice()
        && let Some(Item::Count(name, written)) = items.pop()
    {
        let name = name.map_or(written, |name| name.value);
        return Ok(Select::Count { name: name.into_boxed_str() });
    }
    let mut outputs = Vec::new();
    for item in items {
        match item {
            Item::EverythingOf(table) if !binder.is_table(&table.value) => {
                return Err(wrong(
                    table.span.start,
                    format!("there is no table '{}'", table.value),
                ));
            }
            Item::Everything | Item::EverythingOf(_) => {
                let fields = binder.schema().fields.iter().take(visible).enumerate();
                outputs.extend(fields.map(|(column, field)| Output {
                    name: field.name.clone(),
                    expr: Expr::Column(column),
                    kind: Some(field.kind),
                }));
            }
            Item::Count(..) => {
                let reason = "COUNT(*) cannot be combined with other columns here";
                return Err(unanswered(Location::new(0, 0), reason));
            }
            Item::Value(expr, name) => {
                let name = name.map_or_else(|| caption(&expr), |name| Some(name.value));
                let bound = binder.bind(*expr)?;
                let name = match (name, &bound.expr) {
                    (None, Expr::Column(column)) => binder.schema().fields[*column].name.clone(),
                    (name, _) => name.unwrap_or_default().into_boxed_str(),
                };
                outputs.push(Output { name, kind: bound.kind.kind(), expr: bound.expr });
            }
        }
    }
    name_apart(&mut outputs);
    Ok(Select::Rows(outputs))
}

/// Maximum number of characters of the name of an output without an alias.
const CAPTION_CHARACTERS_MAX: usize = 80;

/// Returns the name of an output without an alias, as in `quarrier query`: its text, unless it is a
/// column.
fn caption(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Identifier(_)
        | ast::Expr::CompoundIdentifier(_)
        | ast::Expr::CompoundFieldAccess { .. } => None,
        _ => Some(expr.to_string().chars().take(CAPTION_CHARACTERS_MAX).collect()),
    }
}

/// Renames outputs with equal names: `x` and `x (2)`.
fn name_apart(outputs: &mut [Output]) {
    let mut taken: HashSet<Box<str>> = HashSet::with_capacity(outputs.len());
    for output in outputs {
        if taken.insert(output.name.clone()) {
            continue;
        }
        let mut number = 2;
        let mut name = format!("{} ({number})", output.name).into_boxed_str();
        while !taken.insert(name.clone()) {
            number += 1;
            name = format!("{} ({number})", output.name).into_boxed_str();
        }
        output.name = name;
    }
}

/// Returns the column of an ORDER BY: by its name, or by the name or number of an output.
fn ordered_by(binder: &Binder<'_>, select: &Select, by: ast::Expr) -> Result<usize> {
    let at = place(&by);
    let Select::Rows(outputs) = select else {
        return Err(wrong(at, "COUNT(*) is one row; leave out ORDER BY"));
    };
    let output = match &by {
        ast::Expr::Identifier(name) => {
            let named = |output: &&Output| output.name.eq_ignore_ascii_case(&name.value);
            let output = outputs.iter().find(named);
            match (output, binder.position(&name.value)) {
                (None, Some(column)) => return Ok(column),
                (None, None) => return Err(wrong(at, binder.unknown(&name.value))),
                (output, _) => output,
            }
        }
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. }) => {
            let number = digits.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            number.and_then(|number| outputs.get(number))
        }
        _ => None,
    };
    match output.map(|output| &output.expr) {
        Some(Expr::Column(column)) => Ok(*column),
        _ => Err(unanswered(at, "ORDER BY names columns here, not expressions")),
    }
}
