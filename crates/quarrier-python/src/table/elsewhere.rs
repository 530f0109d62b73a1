//! Statements for the engine of the Python package `datafusion`: what SQL-92 means in its words, or
//! that it has none.
//!
//! | written | there |
//! |---|---|
//! | `x LIKE 'a!_b' ESCAPE '!'`, `x LIKE 'a\b'` | LIKE whose escape is always the backslash |
//! | SIMILAR TO, row values, BETWEEN SYMMETRIC and the like | refused: it would answer otherwise |
//!
//! The text is changed in these places only; all else stays as it is written.

use std::collections::HashSet;
use std::ops::ControlFlow;

use quarrier_filter::sql::{
    self, DEPTH_MAX, TEXT_BYTES_MAX, failed, in_backslashes, on_a_large_stack, place, wrong,
};
use quarrier_filter::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, CastKind, CharacterLength, DataType, DateTimeField, Expr, Ident, Query,
    SetExpr, SetOperator, SetQuantifier, Statement, Value, ValueWithSpan, Visit, Visitor,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// A statement of any kind of SQL for the Python package `datafusion`, which takes the backslash in
/// patterns for an escape.
///
/// # Errors
/// [`Error::Text`] where the text is no statement of its dialect, [`Error::Unanswered`] where it
/// would be answered otherwise than SQL-92 has it.
pub(super) fn for_datafusion(text: &str) -> Result<String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(wrong(
            Location::new(0, 0),
            format!("the text is longer than {TEXT_BYTES_MAX} bytes"),
        ));
    }
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location();
    let tokens = tokens.map_err(|error| failed(&error.into()))?;
    symmetric(&tokens)?;
    let edits = on_a_large_stack(tokens.len(), || {
        let mut parser = Parser::new(&GenericDialect {})
            .with_recursion_limit(DEPTH_MAX)
            .with_tokens_with_locations(tokens.clone());
        let statements = parser.parse_statements().map_err(|error| failed(&error))?;
        let mut meaning = Meaning::default();
        for statement in &statements {
            only_a_query(statement)?;
            if let ControlFlow::Break(error) = statement.visit(&mut meaning) {
                return Err(error);
            }
        }
        Ok(meaning.edits)
    })?;
    Ok(edited(text, &tokens, &edits))
}

fn only_a_query(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Query(_) | Statement::Explain { .. } => Ok(()),
        _ => {
            Err(wrong(Location::new(0, 0), "a statement is a query: SELECT …, WITH … or VALUES …"))
        }
    }
}

/// BETWEEN SYMMETRIC is not a part of the dialect.
fn symmetric(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut said = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut before = None;
    let is = |token: &Token, keyword| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword);
    let found = said.find(|token| {
        let is_behind = before.replace(&token.token).is_some_and(|t| is(t, Keyword::BETWEEN));
        is_behind && (is(&token.token, Keyword::SYMMETRIC) || is(&token.token, Keyword::ASYMMETRIC))
    });
    match found {
        Some(token) => Err(refused(token.span.start, "BETWEEN SYMMETRIC")),
        None => Ok(()),
    }
}

fn refused(at: Location, what: &str) -> Error {
    sql::unanswered(at, format!("{what} is not answered as in SQL-92 by the package datafusion"))
}

/// Another text in the place of the token that begins there.
struct Edit {
    at: Location,
    text: String,
}

/// What is to be written otherwise in a statement.
#[derive(Default)]
struct Meaning {
    edits: Vec<Edit>,
    /// IN (SELECT …) where UNKNOWN counts as FALSE, by which the engine answers it.
    plain: HashSet<*const Expr>,
}

impl Visitor for Meaning {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        match self.body(&query.body) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        match self.meant(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Meaning {
    /// What the selects of a query are joined by, and their conditions.
    fn body(&mut self, body: &SetExpr) -> Result<()> {
        match body {
            // The engine looks only whether a row is on the other side.
            SetExpr::SetOperation { op, set_quantifier: SetQuantifier::All, .. }
                if *op != SetOperator::Union =>
            {
                Err(refused(Location::new(0, 0), &format!("{op} ALL")))
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left)?;
                self.body(right)
            }
            SetExpr::Select(select) => {
                let conditions = select.selection.iter().chain(&select.having);
                conditions.for_each(|condition| self.memberships(condition, true));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn memberships(&mut self, condition: &Expr, is_conjunct: bool) {
        match condition {
            Expr::Nested(inner) => self.memberships(inner, is_conjunct),
            Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
                let is_conjunct = is_conjunct && *op == BinaryOperator::And;
                self.memberships(left, is_conjunct);
                self.memberships(right, is_conjunct);
            }
            Expr::InSubquery { negated, expr, .. } => {
                let is_constant = matches!(**expr, Expr::Value(_));
                if !negated || (is_conjunct && !is_constant) {
                    self.plain.insert(std::ptr::from_ref(condition));
                }
            }
            _ => {}
        }
    }

    fn meant(&mut self, expr: &Expr) -> Result<()> {
        let at = place(expr);
        match expr {
            Expr::Like { any: false, pattern, escape_char, .. }
            | Expr::ILike { any: false, pattern, escape_char, .. } => {
                self.pattern(pattern, escape_char.as_ref(), at)
            }
            Expr::Like { .. } | Expr::ILike { .. } => Err(refused(at, "LIKE ANY")),
            Expr::SimilarTo { .. } => Err(refused(at, "SIMILAR TO")),
            Expr::Tuple(_) => Err(refused(at, "a row of values (a, b)")),
            Expr::Extract { field: DateTimeField::Second | DateTimeField::Seconds, .. } => {
                Err(refused(at, "EXTRACT(SECOND …), which with its fraction,"))
            }
            Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, data_type, .. }
                if has_length(data_type) =>
            {
                Err(refused(at, &format!("{data_type}, text of that length,")))
            }
            Expr::InSubquery { .. } if !self.plain.contains(&std::ptr::from_ref(expr)) => {
                Err(refused(
                    at,
                    "IN (SELECT …) among outputs or below NOT, CASE or IS, or NOT IN below OR,",
                ))
            }
            _ => Ok(()),
        }
    }

    fn pattern(
        &mut self,
        pattern: &Expr,
        escape: Option<&ValueWithSpan>,
        at: Location,
    ) -> Result<()> {
        let escape_character = match escape.map(|escape| &escape.value) {
            None => None,
            Some(Value::SingleQuotedString(text)) if text.chars().count() == 1 => {
                text.chars().next()
            }
            Some(other) => {
                return Err(wrong(at, format!("ESCAPE names one character, not {other}")));
            }
        };
        match (literal(pattern), pattern) {
            (Some((text, start)), _) => {
                let engine = in_backslashes(text, escape_character)
                    .map_err(|reason| wrong(start, reason))?;
                let quoted = format!("'{}'", engine.replace('\'', "''"));
                self.edits.push(Edit { at: start, text: quoted });
            }
            (None, Expr::Value(ValueWithSpan { value: Value::Null, .. })) => {}
            (None, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) if escape.is_none() => {
                // Around the column, wherever its name ends.
                let names: &[Ident] = match pattern {
                    Expr::CompoundIdentifier(names) => names,
                    Expr::Identifier(name) => std::slice::from_ref(name),
                    _ => &[],
                };
                if let (Some(first), Some(last)) = (names.first(), names.last()) {
                    self.column(first, last);
                }
            }
            _ => {
                let what = "LIKE with a pattern that is calculated, or a column's with an ESCAPE,";
                return Err(refused(at, what));
            }
        }
        if let Some(escape) = escape {
            self.edits.push(Edit { at: escape.span.start, text: r"'\'".to_string() });
        }
        Ok(())
    }

    /// A pattern that is a column: its backslashes mean themselves.
    fn column(&mut self, first: &Ident, last: &Ident) {
        let (open, close) = ("replace(", r", '\', '\\')");
        if first.span == last.span {
            let text = format!("{open}{first}{close}");
            self.edits.push(Edit { at: first.span.start, text });
        } else {
            self.edits.push(Edit { at: first.span.start, text: format!("{open}{first}") });
            self.edits.push(Edit { at: last.span.start, text: format!("{last}{close}") });
        }
    }
}

/// Whether a kind of text says how long it is.
fn has_length(kind: &DataType) -> bool {
    match kind {
        DataType::Varchar(length)
        | DataType::CharVarying(length)
        | DataType::CharacterVarying(length)
        | DataType::Nvarchar(length) => {
            matches!(length, Some(CharacterLength::IntegerLength { .. }))
        }
        DataType::Char(_) | DataType::Character(_) => true,
        _ => false,
    }
}

/// The text of a literal, and where it stands.
fn literal(expr: &Expr) -> Option<(&str, Location)> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), span }) => {
            Some((text, span.start))
        }
        Expr::Nested(inner) => literal(inner),
        _ => None,
    }
}

/// The text with other words where tokens begin.
fn edited(text: &str, tokens: &[TokenWithSpan], edits: &[Edit]) -> String {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|edit| edit.at);
    let mut edits = edits.into_iter().peekable();
    let mut places = Places { text, at: Location::new(1, 1), byte: 0 };
    let (mut whole, mut taken) = (String::with_capacity(text.len()), 0);
    for token in tokens {
        let Some(edit) = edits.next_if(|edit| edit.at == token.span.start) else { continue };
        let start = places.byte_of(token.span.start);
        whole.push_str(&text[taken..start]);
        whole.push_str(&edit.text);
        taken = places.byte_of(token.span.end);
    }
    whole.push_str(&text[taken..]);
    whole
}

/// Bytes of lines and columns, in their order.
struct Places<'t> {
    text: &'t str,
    at: Location,
    byte: usize,
}

impl Places<'_> {
    fn byte_of(&mut self, place: Location) -> usize {
        for character in self.text[self.byte..].chars() {
            if self.at >= place {
                break;
            }
            self.byte += character.len_utf8();
            self.at = match character {
                '\n' => Location::new(self.at.line + 1, 1),
                _ => Location::new(self.at.line, self.at.column + 1),
            };
        }
        self.byte
    }
}
