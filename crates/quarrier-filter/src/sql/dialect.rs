//! The keywords and symbols of SQL-92, and the prefixes of its expressions.
//!
//! The library determines by trial how an expression begins, and backtracks after an error, which
//! takes time exponential in the depth. So this dialect distinguishes the prefixes by the next two
//! tokens, without backtracking, and leaves the rest of the grammar to the library.

use sqlparser::ast::{self, Expr, Ident, ObjectName};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

type Parsed = Result<Expr, ParserError>;

/// SQL-92, with LIKE_REGEX, BETWEEN SYMMETRIC, and paths such as `order.leg[0].qty` for columns.
#[derive(Debug)]
pub(super) struct Sql92;

/// Marks the lower bound of a BETWEEN SYMMETRIC.
pub(super) const SYMMETRIC: &str = "SYMMETRIC";

impl Dialect for Sql92 {
    fn is_identifier_start(&self, character: char) -> bool {
        character.is_alphabetic() || character == '_' || character == '@'
    }

    fn is_identifier_part(&self, character: char) -> bool {
        character.is_alphanumeric() || matches!(character, '_' | '@' | '$')
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        character == '"'
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_interval_options(&self) -> bool {
        true
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_string_literal_concatenation_with_newline(&self) -> bool {
        true
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Parsed> {
        Some(prefix(parser))
    }
}

/// Parses the prefix of an expression.
fn prefix(parser: &mut Parser<'_>) -> Parsed {
    let token = parser.peek_token_ref();
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => {
            let keyword = word.keyword;
            unquoted(parser, keyword)
        }
        Token::Word(_) => path(parser),
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::NationalStringLiteral(_)
        | Token::UnicodeStringLiteral(_) => parser.parse_value().map(Expr::Value),
        Token::Minus => sign(parser, ast::UnaryOperator::Minus),
        Token::Plus => sign(parser, ast::UnaryOperator::Plus),
        Token::LParen => row(parser),
        _ => parser.expected_ref("an expression", token),
    }
}

fn unquoted(parser: &mut Parser<'_>, keyword: Keyword) -> Parsed {
    let next = &parser.peek_nth_token_ref(1).token;
    let is_path = matches!(next, Token::Period | Token::LBracket);
    let is_call = *next == Token::LParen;
    let is_text = matches!(next, Token::SingleQuotedString(_));
    match keyword {
        _ if is_path => path(parser),
        Keyword::TRUE | Keyword::FALSE | Keyword::NULL => parser.parse_value().map(Expr::Value),
        Keyword::NOT => {
            parser.advance_token();
            let precedence = Sql92.prec_value(Precedence::UnaryNot);
            let expr = Box::new(parser.parse_subexpr(precedence)?);
            Ok(Expr::UnaryOp { op: ast::UnaryOperator::Not, expr })
        }
        Keyword::SYMMETRIC | Keyword::ASYMMETRIC => symmetric(parser),
        Keyword::CASE => {
            parser.advance_token();
            parser.parse_case_expr()
        }
        Keyword::DATE | Keyword::TIME | Keyword::TIMESTAMP if is_text => typed(parser, keyword),
        Keyword::INTERVAL
            if is_text || matches!(next, Token::Minus | Token::Plus | Token::Number(..)) =>
        {
            interval(parser)
        }
        Keyword::CAST if is_call => {
            parser.advance_token();
            parser.parse_cast_expr(ast::CastKind::Cast)
        }
        Keyword::EXTRACT if is_call => {
            parser.advance_token();
            parser.parse_extract_expr()
        }
        Keyword::SUBSTRING if is_call => parser.parse_substring(),
        Keyword::OVERLAY if is_call => {
            parser.advance_token();
            parser.parse_overlay_expr()
        }
        Keyword::POSITION if is_call => position(parser),
        Keyword::TRIM if is_call => trim(parser),
        _ if is_call => call(parser),
        keyword if is_reserved(keyword) => {
            parser.expected_ref("an expression", parser.peek_token_ref())
        }
        _ => path(parser),
    }
}

/// Parses the lower bound of a `BETWEEN SYMMETRIC`, after that keyword.
fn symmetric(parser: &mut Parser<'_>) -> Parsed {
    let is_symmetric = parser.parse_keyword(Keyword::SYMMETRIC);
    if !is_symmetric {
        parser.advance_token();
    }
    let low = parser.parse_subexpr(Sql92.prec_value(Precedence::Between))?;
    if !is_symmetric {
        return Ok(low);
    }
    Ok(Expr::Named { expr: Box::new(low), name: Ident::new(SYMMETRIC) })
}

/// Whether a keyword cannot name a column, unless it is quoted or begins a path.
fn is_reserved(keyword: Keyword) -> bool {
    use Keyword::{
        ALL, AND, ANY, AS, ASC, BETWEEN, BY, CAST, DESC, ELSE, END, ESCAPE, EXCEPT, EXISTS, FETCH,
        FROM, GROUP, HAVING, IN, INTERSECT, IS, JOIN, LIKE, LIMIT, OFFSET, OR, ORDER, OVERLAPS,
        SELECT, SIMILAR, SOME, THEN, UNION, UNIQUE, WHEN, WHERE, WITH,
    };
    #[rustfmt::skip]
    let is_reserved = matches!(keyword,
        ALL | AND | ANY | AS | ASC | BETWEEN | BY | CAST | DESC | ELSE | END | ESCAPE | EXCEPT
        | EXISTS | FETCH | FROM | GROUP | HAVING | IN | INTERSECT | IS | JOIN | LIKE | LIMIT
        | OFFSET | OR | ORDER | OVERLAPS | SELECT | SIMILAR | SOME | THEN | UNION | UNIQUE | WHEN
        | WHERE | WITH);
    is_reserved
}

/// Parses the name of a column: words, `.word` and `[number]`, or of a list: `[*]`.
fn path(parser: &mut Parser<'_>) -> Parsed {
    let mut name = parser.parse_identifier()?;
    let first_bytes = name.value.len();
    loop {
        if parser.consume_token(&Token::Period) {
            name.value.push('.');
            name.value.push_str(&parser.parse_identifier()?.value);
        } else if parser.consume_token(&Token::LBracket) {
            match all_elements(parser) {
                true => name.value.push_str("[*]"),
                false => name.value.push_str(&format!("[{}]", parser.parse_literal_uint()?)),
            }
            parser.expect_token(&Token::RBracket)?;
        } else {
            break;
        }
    }
    // A single word may be more than a name (CURRENT_DATE); a path cannot.
    if name.value.len() > first_bytes && name.quote_style.is_none() {
        name.quote_style = Some('"');
    }
    Ok(Expr::Identifier(name))
}

/// Consumes the `*` of `leg[*]`, which `quarrier query` writes as a name.
fn all_elements(parser: &mut Parser<'_>) -> bool {
    let is_all = match &parser.peek_token_ref().token {
        Token::Mul => true,
        Token::Word(word) => word.quote_style == Some('"') && word.value == "*",
        _ => false,
    };
    if is_all {
        parser.advance_token();
    }
    is_all
}

fn sign(parser: &mut Parser<'_>, op: ast::UnaryOperator) -> Parsed {
    parser.advance_token();
    let precedence = Sql92.prec_value(Precedence::MulDivModOp);
    let expr = Box::new(parser.parse_subexpr(precedence)?);
    Ok(Expr::UnaryOp { op, expr })
}

/// Parses one expression in parentheses at the position of `parser`, or the values of a row.
///
/// # Errors
/// If there is neither.
pub fn row(parser: &mut Parser<'_>) -> Parsed {
    parser.advance_token();
    let mut inner = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(match (inner.len(), inner.pop()) {
        (1, Some(only)) => Expr::Nested(Box::new(only)),
        (_, last) => {
            inner.extend(last);
            Expr::Tuple(inner)
        }
    })
}

/// Parses `DATE '…'` and the like.
fn typed(parser: &mut Parser<'_>, keyword: Keyword) -> Parsed {
    parser.advance_token();
    let data_type = match keyword {
        Keyword::DATE => ast::DataType::Date,
        Keyword::TIME => ast::DataType::Time(None, ast::TimezoneInfo::None),
        _ => ast::DataType::Timestamp(None, ast::TimezoneInfo::None),
    };
    let value = parser.parse_value()?;
    Ok(Expr::TypedString(ast::TypedString { data_type, value, uses_odbc_syntax: false }))
}

/// Parses `INTERVAL [+|-] '…' field [TO field]`; the quotes around a number are optional.
fn interval(parser: &mut Parser<'_>) -> Parsed {
    parser.advance_token();
    let is_negative = parser.consume_token(&Token::Minus);
    if !is_negative {
        let _ = parser.consume_token(&Token::Plus);
    }
    let mut value = Expr::Value(parser.parse_value()?);
    if is_negative {
        value = Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr: Box::new(value) };
    }
    let leading_field = Some(parser.parse_date_time_field()?);
    let leading_precision = parser.parse_optional_precision()?;
    let mut last_field = None;
    let mut fractional_seconds_precision = None;
    if parser.parse_keyword(Keyword::TO) {
        last_field = Some(parser.parse_date_time_field()?);
        fractional_seconds_precision = parser.parse_optional_precision()?;
    }
    Ok(Expr::Interval(ast::Interval {
        value: Box::new(value),
        leading_field,
        leading_precision,
        last_field,
        fractional_seconds_precision,
    }))
}

/// Parses `POSITION(part IN text)`.
fn position(parser: &mut Parser<'_>) -> Parsed {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let precedence = Sql92.prec_value(Precedence::Between);
    let expr = Box::new(parser.parse_subexpr(precedence)?);
    parser.expect_keyword_is(Keyword::IN)?;
    let r#in = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Position { expr, r#in })
}

/// Parses `TRIM([[LEADING | TRAILING | BOTH] [character] FROM] text)`.
fn trim(parser: &mut Parser<'_>) -> Parsed {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let side = [Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING];
    let is_side = side.into_iter().any(|side| is_keyword(parser, 0, side))
        && parser.peek_nth_token_ref(1).token != Token::RParen;
    let trim_where = if is_side { Some(parser.parse_trim_where()?) } else { None };
    let mut trim_what = None;
    let expr = if parser.parse_keyword(Keyword::FROM) {
        parser.parse_expr()?
    } else {
        let first = parser.parse_expr()?;
        if parser.parse_keyword(Keyword::FROM) {
            trim_what = Some(Box::new(first));
            parser.parse_expr()?
        } else {
            first
        }
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Trim { expr: Box::new(expr), trim_where, trim_what, trim_characters: None })
}

/// Parses `NAME(argument, …)`.
fn call(parser: &mut Parser<'_>) -> Parsed {
    let name = parser.parse_identifier()?;
    parser.expect_token(&Token::LParen)?;
    let mut arguments = Vec::new();
    if !parser.consume_token(&Token::RParen) {
        arguments = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen)?;
    }
    let args = arguments
        .into_iter()
        .map(|argument| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument)))
        .collect();
    Ok(Expr::Function(ast::Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }))
}

fn is_keyword(parser: &Parser<'_>, ahead: usize, keyword: Keyword) -> bool {
    matches!(&parser.peek_nth_token_ref(ahead).token,
        Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword)
}
