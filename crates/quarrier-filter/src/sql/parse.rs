//! Parses text into the library's syntax tree, within limits.

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

/// Stack size for the deepest allowed nesting.
const STACK_BYTES: usize = 48 << 20;

/// Stack size per token: the tree of a chain of operators is as deep as the chain is long, and the
/// library drops it recursively.
const STACK_BYTES_PER_TOKEN: usize = 2 << 10;

/// Passes the text to `then`, on a stack that is large enough for any text.
pub(super) fn parsed<T: Send>(
    text: &str,
    then: impl FnOnce(&mut Parser<'_>) -> Result<T> + Send,
) -> Result<T> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::text(0, 0, format!("the text is longer than {TEXT_BYTES_MAX} bytes")));
    }
    let dialect = Sql92;
    let mut tokens = TOKENS.take();
    tokens.clear();
    Tokenizer::new(&dialect, text)
        .tokenize_with_location_into_buf_with_mapper(&mut tokens, renamed)
        .map_err(|error| failed(&ParserError::TokenizerError(error.to_string())))?;
    check(&tokens)?;
    let end = tokens.last().map_or(Location::new(1, 1), |last| last.span.end);
    on_a_large_stack(tokens.len(), || {
        let mut parser = Parser::new(&dialect)
            .with_recursion_limit(DEPTH_MAX)
            .with_tokens_with_locations(tokens);
        let done = then(&mut parser).map_err(|error| match error {
            // The library gives no position for the end.
            Error::Text { line: 0, reason, .. } if reason.ends_with(THE_END) => wrong(end, reason),
            other => other,
        });
        if PARSES_MANY.get() {
            TOKENS.set(parser.into_tokens());
        }
        done
    })
}

thread_local! {
    /// The number of tokens for which this thread's stack has room.
    static ROOM_TOKENS: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread parses many inputs, and ends after them.
    static PARSES_MANY: Cell<bool> = const { Cell::new(false) };
    /// The buffer for the tokens of the next input, so that it does not have to grow again.
    static TOKENS: Cell<Vec<TokenWithSpan>> = const { Cell::new(Vec::new()) };
}

/// Inputs of up to this many tokens fit the stack when many are parsed together.
const TOKENS_TOGETHER_MAX: usize = 4 << 10;

/// Runs `then`, which parses many inputs, on one stack that is large enough for most of them: a
/// thread per input would take ten times as long as parsing it.
pub fn together<T: Send>(then: impl FnOnce() -> T + Send) -> T {
    // If the thread is refused, the closure stays here.
    let then = Mutex::new(Some(then));
    let take = || lock(&then).take();
    let run = || {
        ROOM_TOKENS.set(TOKENS_TOGETHER_MAX);
        PARSES_MANY.set(true);
        take().map(|then| then())
    };
    let stack_bytes = STACK_BYTES + STACK_BYTES_PER_TOKEN * TOKENS_TOGETHER_MAX;
    let done = thread::scope(|scope| {
        let thread = threads::in_scope_on_stack(scope, "parse", stack_bytes, run);
        thread.ok().and_then(threads::joined)
    });
    match (done, take()) {
        (Some(done), _) => done,
        // The system refused the thread: each input gets its own stack.
        (None, Some(then)) => then(),
        (None, None) => unreachable!("a thread that ran has returned something"),
    }
}

/// Whether this thread parses many inputs, with room on its stack for any short one.
pub(super) fn parses_many() -> bool {
    PARSES_MANY.get()
}

/// Inputs of up to this many tokens fit the caller's stack, if no other is available.
const TOKENS_IN_PLACE_MAX: usize = 16;

/// Runs `then` on a stack that is large enough for any input of this many tokens: that of a thread,
/// which has ended when this returns. A short input is parsed in place if the system refuses a
/// thread.
///
/// # Errors
/// The errors of `then`, and an error if there is no memory for the stack.
pub fn on_a_large_stack<T: Send>(
    tokens: usize,
    then: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let room = ROOM_TOKENS.get();
    if tokens <= room {
        // Inputs parsed inside have less room.
        ROOM_TOKENS.set(0);
        let done = then();
        ROOM_TOKENS.set(room);
        return done;
    }
    let stack_bytes = STACK_BYTES + STACK_BYTES_PER_TOKEN * tokens;
    // If the thread is refused, the closure stays here.
    let then = Mutex::new(Some(then));
    let run = || {
        let then = lock(&then).take();
        // The closure runs once.
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

/// How the library's error says that the text has ended.
const THE_END: &str = "found the end";

/// Refuses statements that cost too much to parse, or for which the parser has a less helpful error.
fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let said = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut open = 0_usize;
    let mut before: Option<&Token> = None;
    for (place, TokenWithSpan { token, span }) in said.enumerate() {
        if place >= TOKENS_MAX {
            let reason = format!("more than {TOKENS_MAX} tokens; split the query");
            return Err(wrong(span.start, reason));
        }
        match token {
            Token::LParen | Token::LBracket => open += 1,
            Token::RParen | Token::RBracket => open = open.saturating_sub(1),
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::SELECT | Keyword::WITH if before.is_some_and(opens) => {
                    let reason = "subqueries are not supported in conditions";
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

/// Replaces a keyword of the standard by the library's.
fn renamed(mut token: TokenWithSpan) -> TokenWithSpan {
    if let Token::Word(word) = &token.token
        && word.quote_style.is_none()
        && word.value.eq_ignore_ascii_case("LIKE_REGEX")
    {
        token.token = Token::make_keyword("REGEXP");
    }
    token
}

fn opens(token: &Token) -> bool {
    matches!(token, Token::LParen)
}

pub(super) fn too_deep() -> String {
    format!("nested deeper than {DEPTH_MAX}; put the conditions side by side with AND and OR")
}

/// Refuses a statement, or a clause of one, in place of a condition.
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

/// Parses an expression; more text may follow.
pub(super) fn expression(parser: &mut Parser<'_>) -> Result<ast::Expr> {
    parser.parse_expr().map_err(|error| failed(&error))
}

/// Requires that only a semicolon follows.
pub(super) fn end(parser: &mut Parser<'_>) -> Result<()> {
    let _ = parser.consume_token(&Token::SemiColon);
    let rest = parser.peek_token_ref();
    match &rest.token {
        Token::EOF => Ok(()),
        token => Err(wrong(rest.span.start, format!("expected the end, found {token}"))),
    }
}

/// Converts the library's error; its message ends with the position.
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

/// Parses `1, Column: 8`.
fn location(place: &str) -> Option<Location> {
    let (line, column) = place.split_once(", Column: ")?;
    Some(Location::new(line.parse().ok()?, column.parse().ok()?))
}
