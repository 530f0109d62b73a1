//! The dialect of statements: the generic dialect of `sqlparser`, with additions for SQL-92.
//!
//! Where `sqlparser` would try one way to parse an expression and, after an error, another (which
//! takes time exponential in the depth), this dialect decides by the next words.

use datafusion::sql::sqlparser::ast::{self, Expr, Ident, ObjectName, Query};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use quarrier_filter::sql::row;

type Parsed = Result<Expr, ParserError>;

/// Marks the lower bound of a BETWEEN SYMMETRIC.
pub(crate) const SYMMETRIC: &str = "SYMMETRIC";

/// Name of the function that stands for a UNIQUE predicate until it is rewritten, before planning.
pub(crate) const UNIQUE: &str = "UNIQUE";
/// Name of the function that stands for a MATCH predicate until it is rewritten, before planning.
pub(crate) const MATCH: &str = "MATCH";

/// The maximum nesting depth of a statement.
pub(crate) const DEPTH_MAX: usize = 200;

/// The SQL dialect of statements.
#[derive(Debug)]
pub(crate) struct Sql;

/// Forwards methods to the generic dialect.
macro_rules! as_generic {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            GenericDialect.$name()
        })*
    };
}

impl Dialect for Sql {
    fn dialect(&self) -> std::any::TypeId {
        GenericDialect.dialect()
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        character == '"'
    }

    fn is_identifier_start(&self, character: char) -> bool {
        character.is_alphabetic() || matches!(character, '_' | '@')
    }

    fn is_identifier_part(&self, character: char) -> bool {
        character.is_alphanumeric() || matches!(character, '_' | '@' | '$' | '#')
    }

    as_generic!(
        supports_unicode_string_literal,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_left_associative_joins_without_parens,
        supports_window_function_null_treatment_arg,
        supports_dictionary_syntax,
        supports_window_clause_named_window_reference,
        supports_parenthesized_set_variables,
        supports_select_wildcard_except,
        supports_select_wildcard_exclude,
        supports_select_wildcard_replace,
        support_map_literal_syntax,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_parens_around_table_factor,
        supports_values_as_table_factor,
        supports_explain_with_utility_options,
        supports_named_fn_args_with_assignment_operator,
        supports_nested_comments,
        supports_filter_during_aggregation,
        supports_interval_options,
        supports_comma_separated_trim,
        supports_bitwise_shift_operators,
        supports_limit_comma,
    );

    fn supports_string_literal_concatenation_with_newline(&self) -> bool {
        true
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Parsed> {
        prefix(parser)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        is_match(parser).then(|| Ok(self.prec_value(Precedence::Like)))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, _: u8) -> Option<Parsed> {
        if is_match(parser) {
            return Some(matched(parser, expr.clone()));
        }
        let negated = is_keyword(parser, 1, Keyword::NOT);
        is_distinct(parser, usize::from(negated)).then(|| distinct(parser, expr.clone(), negated))
    }
}

fn is_keyword(parser: &Parser<'_>, ahead: usize, keyword: Keyword) -> bool {
    matches!(&parser.peek_nth_token_ref(ahead).token,
        Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword)
}

fn is_match(parser: &Parser<'_>) -> bool {
    is_keyword(parser, 0, Keyword::MATCH)
        && (parser.peek_nth_token_ref(1).token == Token::LParen
            || [Keyword::UNIQUE, Keyword::FULL, Keyword::PARTIAL, Keyword::SIMPLE]
                .into_iter()
                .any(|keyword| is_keyword(parser, 1, keyword)))
}

/// Whether `IS [NOT] DISTINCT FROM` follows.
fn is_distinct(parser: &Parser<'_>, negated: usize) -> bool {
    is_keyword(parser, 0, Keyword::IS)
        && is_keyword(parser, 1 + negated, Keyword::DISTINCT)
        && is_keyword(parser, 2 + negated, Keyword::FROM)
}

/// Parses `IS [NOT] DISTINCT FROM` and its right side. `sqlparser` would take everything that
/// follows as the right side: `a IS DISTINCT FROM b AND c` as `a IS DISTINCT FROM (b AND c)`.
fn distinct(parser: &mut Parser<'_>, left: Expr, negated: bool) -> Parsed {
    for _ in 0..3 + usize::from(negated) {
        parser.advance_token();
    }
    let right = parser.parse_subexpr(Sql.prec_value(Precedence::Is))?;
    let (left, right) = (Box::new(left), Box::new(right));
    Ok(match negated {
        true => Expr::IsNotDistinctFrom(left, right),
        false => Expr::IsDistinctFrom(left, right),
    })
}

/// Parses the prefix of an expression; `None` leaves it to `sqlparser`.
fn prefix(parser: &mut Parser<'_>) -> Option<Parsed> {
    let token = parser.peek_token_ref();
    match &token.token {
        Token::LParen => parentheses(parser),
        Token::Word(word) if word.quote_style.is_none() => {
            let is_call = parser.peek_nth_token_ref(1).token == Token::LParen;
            match word.keyword {
                Keyword::UNIQUE if is_call => Some(unique(parser)),
                Keyword::SYMMETRIC | Keyword::ASYMMETRIC if is_bound(parser) => {
                    Some(symmetric(parser))
                }
                Keyword::CASE if !is_call || is_keyword(parser, 1, Keyword::WHEN) => {
                    parser.advance_token();
                    Some(parser.parse_case_expr())
                }
                Keyword::CAST if is_call => {
                    parser.advance_token();
                    Some(parser.parse_cast_expr(ast::CastKind::Cast))
                }
                Keyword::EXTRACT if is_call => {
                    parser.advance_token();
                    Some(parser.parse_extract_expr())
                }
                Keyword::SUBSTRING if is_call => Some(parser.parse_substring()),
                Keyword::OVERLAY if is_call => {
                    parser.advance_token();
                    Some(parser.parse_overlay_expr())
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Parses an expression or row in parentheses; `None` leaves subqueries to `sqlparser`.
fn parentheses(parser: &mut Parser<'_>) -> Option<Parsed> {
    let mut ahead = 0;
    while parser.peek_nth_token_ref(ahead).token == Token::LParen {
        ahead += 1;
    }
    let is_query = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES, Keyword::TABLE];
    if is_query.into_iter().any(|keyword| is_keyword(parser, ahead, keyword)) {
        return None;
    }
    Some(row(parser))
}

/// Whether the word is a keyword rather than a name: an operand follows it.
fn is_bound(parser: &Parser<'_>) -> bool {
    match &parser.peek_nth_token_ref(1).token {
        Token::Word(word) => {
            word.quote_style.is_some()
                || !matches!(word.keyword, Keyword::AND | Keyword::OR | Keyword::FROM | Keyword::AS)
        }
        Token::Number(..) | Token::SingleQuotedString(_) | Token::LParen | Token::Minus => true,
        _ => false,
    }
}

/// Parses the lower bound after `BETWEEN SYMMETRIC` or `BETWEEN ASYMMETRIC`.
fn symmetric(parser: &mut Parser<'_>) -> Parsed {
    let is_symmetric = parser.parse_keyword(Keyword::SYMMETRIC);
    if !is_symmetric {
        parser.advance_token();
    }
    let low = parser.parse_subexpr(Sql.prec_value(Precedence::Between))?;
    if !is_symmetric {
        return Ok(low);
    }
    Ok(Expr::Named { expr: Box::new(low), name: Ident::new(SYMMETRIC) })
}

/// `UNIQUE (query)`
fn unique(parser: &mut Parser<'_>) -> Parsed {
    parser.advance_token();
    let query = subquery(parser)?;
    Ok(call(UNIQUE, vec![Expr::Subquery(query)]))
}

/// `x MATCH [UNIQUE] [SIMPLE | PARTIAL | FULL] (query)`
fn matched(parser: &mut Parser<'_>, operand: Expr) -> Parsed {
    parser.advance_token();
    let is_unique = parser.parse_keyword(Keyword::UNIQUE);
    let way = if parser.parse_keyword(Keyword::FULL) {
        "FULL"
    } else if parser.parse_keyword(Keyword::PARTIAL) {
        "PARTIAL"
    } else {
        let _ = parser.parse_keyword(Keyword::SIMPLE);
        "SIMPLE"
    };
    let query = subquery(parser)?;
    let word = |word: &str| Expr::Identifier(Ident::new(word));
    let unique = word(if is_unique { UNIQUE } else { "" });
    Ok(call(MATCH, vec![operand, Expr::Subquery(query), word(way), unique]))
}

fn subquery(parser: &mut Parser<'_>) -> Result<Box<Query>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(query)
}

/// A function call.
pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments
        .into_iter()
        .map(|argument| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument)))
        .collect();
    Expr::Function(ast::Function {
        name: ObjectName::from(vec![Ident::new(name)]),
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
    })
}
