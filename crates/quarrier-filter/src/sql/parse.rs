//! Text into the library's tree, within bounds.

use std::cell::Cell;
use std::sync::Mutex;
use std::thread;

use quarrier_core::sync::lock;
use quarrier_core::threads;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::dialect::Sql92;
use super::{DEPTH_MAX, TEXT_BYTES_MAX, TOKENS_MAX, unanswered, wrong};
use crate::{Error, Result};

/// Stack for what nests as deep as it may.
const STACK_BYTES: usize = 48 << 20;

/// Stack for each word and mark: a chain of operators is as deep a tree as it is long, and the
/// library takes it down by recursion.
const STACK_BYTES_PER_TOKEN: usize = 2 << 10;

/// Hands the text to `then`, on a stack that is large enough for whatever the text may be.
pub(super) fn parsed<T: Send>(
    text: &str,
    then: impl FnOnce(&mut Parser<'_>) -> Result<T> + Send,
) -> Result<T> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::text(0, 0, format!("the text is longer than {TEXT_BYTES_MAX} bytes")));
    }
    let dialect = Sql92;
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
    let mut tokens =
        tokens.map_err(|error| failed(&ParserError::TokenizerError(error.to_string())))?;
    check(&tokens)?;
    tokens.iter_mut().for_each(|token| rename(&mut token.token));
    let end = tokens.last().map_or(Location::new(1, 1), |last| last.span.end);
    on_a_large_stack(tokens.len(), || {
        let mut parser = Parser::new(&dialect)
            .with_recursion_limit(DEPTH_MAX)
            .with_tokens_with_locations(tokens);
        then(&mut parser).map_err(|error| match error {
            // The library gives the end no place.
            Error::Text { line: 0, reason, .. } if reason.ends_with(THE_END) => wrong(end, reason),
            other => other,
        })
    })
}

thread_local! {
    /// The number of tokens for which this thread's stack has room.
    static ROOM_TOKENS: Cell<usize> = const { Cell::new(0) };
}

/// So long a text has room where many are read together.
const TOKENS_TOGETHER_MAX: usize = 4 << 10;

/// Runs `then`, which parses many texts one after another, on one stack that is large enough for most
/// of them: a thread for each would take ten times as long as parsing it.
pub fn together<T: Send>(then: impl FnOnce() -> T + Send) -> T {
    // A thread that is refused takes nothing out.
    let then = Mutex::new(Some(then));
    let take = || lock(&then).take();
    let run = || {
        ROOM_TOKENS.set(TOKENS_TOGETHER_MAX);
        take().map(|then| then())
    };
    let stack_bytes = STACK_BYTES + STACK_BYTES_PER_TOKEN * TOKENS_TOGETHER_MAX;
    let done = thread::scope(|scope| {
        let thread = threads::in_scope_on_stack(scope, "parse", stack_bytes, run);
        thread.ok().and_then(threads::joined)
    });
    match (done, take()) {
        (Some(done), _) => done,
        // The system refused a thread: each text has to find room itself.
        (None, Some(then)) => then(),
        (None, None) => unreachable!("a thread that ran has returned something"),
    }
}

/// So short a text nests less deeply than the caller's stack allows, should there be no other.
const TOKENS_IN_PLACE_MAX: usize = 16;

/// Runs `then` on a stack that is large enough for any text of this many tokens: that of a thread,
/// which has ended when this returns. A short text is parsed in place if there is no thread.
///
/// # Errors
/// The errors of `then`, and if there is no room for the stack.
pub fn on_a_large_stack<T: Send>(
    tokens: usize,
    then: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let room = ROOM_TOKENS.get();
    if tokens <= room {
        // Texts parsed within it have less room.
        ROOM_TOKENS.set(0);
        let done = then();
        ROOM_TOKENS.set(room);
        return done;
    }
    let stack_bytes = STACK_BYTES + STACK_BYTES_PER_TOKEN * tokens;
    // A thread that is refused takes nothing out.
    let then = Mutex::new(Some(then));
    let run = || {
        let then = lock(&then).take();
        // It is run once.
        then.map_or_else(|| Err(Error::text(0, 0, "it was parsed before")), |then| then())
    };
    let refused =
        thread::scope(|scope| match threads::in_scope_on_stack(scope, "parse", stack_bytes, run) {
            Ok(thread) => Ok(threads::joined(thread)),
            Err(error) => Err(error),
        });
    match refused {
        Ok(done) => done,
        Err(_) if tokens <= TOKENS_IN_PLACE_MAX => run(),
        Err(error) => Err(Error::text(
            0,
            0,
            format!("no stack of {stack_bytes} bytes to parse it on: {error}"),
        )),
    }
}

/// How an error says that the text is over.
const THE_END: &str = "found the end";

/// Refuses statements that cost too much to parse, or for which the parser has a less helpful error.
fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let said = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut open = 0_usize;
    let mut before: Option<&Token> = None;
    for (place, TokenWithSpan { token, span }) in said.enumerate() {
        if place >= TOKENS_MAX {
            let reason = format!("more than {TOKENS_MAX} words and marks; ask in several queries");
            return Err(wrong(span.start, reason));
        }
        match token {
            Token::LParen | Token::LBracket => open += 1,
            Token::RParen | Token::RBracket => open = open.saturating_sub(1),
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::SELECT | Keyword::WITH if before.is_some_and(opens) => {
                    let reason = "a subquery is not a part of a condition here";
                    return Err(unanswered(span.start, reason));
                }
                _ => {}
            },
            _ => {}
        }
        if open > DEPTH_MAX {
            return Err(wrong(span.start, too_deep()));
        }
        before = Some(token);
    }
    Ok(())
}

/// Replaces the standard's word by the library's.
fn rename(token: &mut Token) {
    if let Token::Word(word) = token
        && word.quote_style.is_none()
        && word.value.eq_ignore_ascii_case("LIKE_REGEX")
    {
        *token = Token::make_keyword("REGEXP");
    }
}

fn opens(token: &Token) -> bool {
    matches!(token, Token::LParen)
}

pub(super) fn too_deep() -> String {
    format!("nested deeper than {DEPTH_MAX}; put the conditions side by side with AND and OR")
}

/// Refuses the statement, or the piece of one, that people write where a condition stands alone.
pub(super) fn alone(parser: &Parser<'_>) -> Result<()> {
    let first = parser.peek_token_ref();
    let Token::Word(word) = &first.token else { return Ok(()) };
    match word.keyword {
        Keyword::SELECT if word.quote_style.is_none() => Err(unanswered(
            first.span.start,
            "a statement, where a condition as price > 5 is expected",
        )),
        Keyword::WHERE if word.quote_style.is_none() => {
            Err(wrong(first.span.start, "a condition begins without WHERE, as price > 5"))
        }
        _ => Ok(()),
    }
}

/// An expression, as far as it goes.
pub(super) fn expression(parser: &mut Parser<'_>) -> Result<ast::Expr> {
    parser.parse_expr().map_err(|error| failed(&error))
}

/// Nothing must follow but a semicolon.
pub(super) fn end(parser: &mut Parser<'_>) -> Result<()> {
    let _ = parser.consume_token(&Token::SemiColon);
    let rest = parser.peek_token_ref();
    match &rest.token {
        Token::EOF => Ok(()),
        token => Err(wrong(rest.span.start, format!("expected the end, found {token}"))),
    }
}

/// The library's error as ours: its place is at the end of its text.
pub fn failed(error: &ParserError) -> Error {
    let said = match error {
        ParserError::RecursionLimitExceeded => return Error::text(0, 0, too_deep()),
        ParserError::TokenizerError(said) | ParserError::ParserError(said) => said,
    };
    let (reason, at) = match said.rsplit_once(" at Line: ") {
        Some((reason, place)) => (reason, location(place)),
        None => (said.as_str(), None),
    };
    let at = at.unwrap_or(Location::new(0, 0));
    let reason = reason.replacen("Expected: ", "expected ", 1).replacen(", found: ", ", found ", 1);
    let reason = reason.replacen("found EOF", THE_END, 1);
    wrong(at, reason)
}

/// `1, Column: 8`
fn location(place: &str) -> Option<Location> {
    let (line, column) = place.split_once(", Column: ")?;
    Some(Location::new(line.parse().ok()?, column.parse().ok()?))
}
