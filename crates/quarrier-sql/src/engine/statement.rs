//! Parses statements, within bounds.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc;

use datafusion::error::DataFusionError;
use datafusion::sql::parser::{self, CopyToSource, CopyToStatement, DFParserBuilder, ParserInput};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};
use quarrier_core::{panics, threads};
use quarrier_messages::HiddenColumns;

use super::rewrite_part;
use crate::dialect::{DEPTH_MAX, Sql};
use crate::output::Format;
use crate::rewrite::{
    ALL_ELEMENTS, KnownNames, Named, TREE_DEPTH_MAX, balance, hidden_columns, named, needs_columns,
    text_of,
};
use crate::{Error, Result};

/// Maximum length of a text in bytes.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// Maximum number of tokens in a text.
pub const WORDS_MAX: usize = 1 << 18;

/// Maximum number of tokens in a text that any stack of 32 MiB can process.
pub const WORDS_ON_ANY_STACK: usize = 500;

/// Maximum length of a short text in bytes, and its maximum number of tokens. Chains of operators nest, too.
const SHORT_BYTES_MAX: usize = 16 << 10;
const SHORT_WORDS_MAX: usize = 128;

/// Maximum depth of statements that a stack of 2 MiB can process.
const SHALLOW_MAX: usize = 8;

/// The stack for walking or freeing a tree of the maximum size.
const TREE_STACK_BYTES: usize = WORDS_MAX * (4 << 10);

/// Maximum number of UNION, EXCEPT and INTERSECT. They nest, too, but are not balanced.
const SETS_MAX: usize = 1_000;

/// A parsed statement. `Display` writes it as SQL.
#[derive(Debug, Clone)]
pub struct Statement {
    inner: parser::Statement,
}

/// Parses the statements in a text of at most `words_max` tokens.
pub(super) fn parsed(text: &str, words_max: usize) -> Result<Vec<Statement>> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::text(format!("the text is longer than {TEXT_BYTES_MAX} bytes")));
    }
    parsed_tokens(tokens_of(text)?, words_max)
}

/// Parses the statements in a text separately: each with its text, and the parsed statement or its
/// error.
pub(super) fn apart(text: &str, words_max: usize) -> Result<Vec<(String, Result<Statement>)>> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::text(format!("the text is longer than {TEXT_BYTES_MAX} bytes")));
    }
    let tokens = tokens_of(text)?;
    let mut apart = Vec::new();
    for tokens in tokens.split(|token| token.token == Token::SemiColon) {
        if tokens.iter().all(|token| matches!(token.token, Token::Whitespace(_))) {
            continue;
        }
        let written: String = tokens.iter().map(|token| token.token.to_string()).collect();
        let statement = parsed_tokens(tokens.to_vec(), words_max).and_then(|mut statements| {
            let statement = statements.pop().filter(|_| statements.is_empty());
            statement.ok_or_else(|| Error::text("expected one statement before each ;"))
        });
        let written = statement.as_ref().map_or(written.trim().to_string(), ToString::to_string);
        apart.push((written, statement));
    }
    Ok(apart)
}

fn tokens_of(text: &str) -> Result<Vec<TokenWithSpan>> {
    let tokens = Tokenizer::new(&Sql, text).tokenize_with_location();
    tokens.map_err(|error| Error::text(error.to_string()))
}

/// Parses the statements in a short text that are nested less deeply than [`SHALLOW_MAX`], which any stack can
/// process. `None` for others, and for invalid ones.
pub(super) fn parsed_shallow(text: &str) -> Option<Vec<Statement>> {
    if text.len() > SHORT_BYTES_MAX {
        return None;
    }
    parsed_within(tokens_of(text).ok()?, SHORT_WORDS_MAX, SHALLOW_MAX).ok()
}

fn parsed_tokens(tokens: Vec<TokenWithSpan>, words_max: usize) -> Result<Vec<Statement>> {
    parsed_within(tokens, words_max, DEPTH_MAX)
}

/// Parses the statements in at most `words_max` tokens, nested at most `depth_max` deep.
fn parsed_within(
    mut tokens: Vec<TokenWithSpan>,
    words_max: usize,
    depth_max: usize,
) -> Result<Vec<Statement>> {
    let words = check(&tokens, words_max)?;
    tokens.iter_mut().for_each(|token| rename(&mut token.token));
    name_all_elements(&mut tokens);
    let end = tokens.last().map_or(Location::new(1, 1), |last| last.span.end);
    let parser = DFParserBuilder::new(ParserInput::Tokens(tokens))
        .with_dialect(&Sql)
        .with_recursion_limit(depth_max)
        .build();
    let parsed = parser.and_then(|mut parser| parser.parse_statements());
    let mut statements = parsed.map_err(|error| failed(error, end))?;
    if !are_balanced(&mut statements, words)? {
        take_down(statements);
        return Err(Error::text(format!(
            "more than {TREE_DEPTH_MAX} operators in one chain; write parts of it in parentheses"
        )));
    }
    Ok(statements.into_iter().map(|inner| Statement { inner }).collect())
}

/// Balances chains of operators, and checks the depth of the statements. Both recurse, on a
/// separate stack if there are many tokens.
fn are_balanced(statements: &mut VecDeque<parser::Statement>, words: usize) -> Result<bool> {
    let mut balance = || statements.iter_mut().all(balance_of);
    if words <= WORDS_ON_ANY_STACK {
        return Ok(balance());
    }
    std::thread::scope(|scope| {
        match threads::in_scope_on_stack(scope, "", TREE_STACK_BYTES, balance) {
            Ok(walked) => walked.join().map_err(|_| Error::Internal(panics::taken())),
            Err(error) => Err(Error::Setup { reason: format!("no thread to read with: {error}") }),
        }
    })
}

/// Frees trees on a separate stack, since they may be as deep as the text is long.
fn take_down(statements: VecDeque<parser::Statement>) {
    let (sender, receiver) = mpsc::channel::<VecDeque<parser::Statement>>();
    let free = move || receiver.into_iter().for_each(drop);
    match threads::alone_on_stack("", TREE_STACK_BYTES, free) {
        Ok(_) => drop(sender.send(statements)),
        // Without such a thread, the trees are leaked.
        Err(_) => std::mem::forget(statements),
    }
}

/// Checks the tokens before parsing. Returns their number.
fn check(tokens: &[TokenWithSpan], words_max: usize) -> Result<usize> {
    let said = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let (mut count, mut open, mut sets) = (0_usize, 0_usize, 0_usize);
    for token in said {
        count += 1;
        match &token.token {
            Token::Word(word) if is_set(word) => sets += 1,
            Token::LParen | Token::LBracket => open += 1,
            Token::RParen | Token::RBracket => open = open.saturating_sub(1),
            _ => {}
        }
        if open > DEPTH_MAX {
            let at = token.span.start;
            return Err(too_deep(&format!("line {}, column {}: ", at.line, at.column)));
        }
    }
    if sets > SETS_MAX {
        return Err(Error::text(format!(
            "more than {SETS_MAX} of UNION, EXCEPT and INTERSECT; write some of them as VALUES or as \
             a file"
        )));
    }
    if count > words_max {
        let remedy = match words_max < WORDS_MAX {
            true => "; more need a larger address space ('ulimit -v'); use several statements",
            false => "; use several statements",
        };
        return Err(Error::text(format!("more than {words_max} tokens{remedy}")));
    }
    Ok(count)
}

fn is_set(word: &Word) -> bool {
    let is_one = matches!(word.keyword, Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT);
    is_one && word.quote_style.is_none()
}

fn too_deep(place: &str) -> Error {
    Error::text(format!("{place}nested deeper than {DEPTH_MAX}; move parts of it into WITH"))
}

/// Replaces the keyword of SQL by that of `sqlparser`.
fn rename(token: &mut Token) {
    if let Token::Word(word) = token
        && word.quote_style.is_none()
        && word.value.eq_ignore_ascii_case("LIKE_REGEX")
    {
        *token = Token::make_keyword("REGEXP");
    }
}

/// Replaces the `*` of `leg[*]`, which `sqlparser` cannot parse, by a name.
fn name_all_elements(tokens: &mut [TokenWithSpan]) {
    let is_said = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let said: Vec<usize> = (0..tokens.len()).filter(is_said).collect();
    for places in said.windows(3) {
        let [before, at, after] = [places[0], places[1], places[2]];
        let is_all = tokens[before].token == Token::LBracket
            && tokens[at].token == Token::Mul
            && tokens[after].token == Token::RBracket;
        if is_all {
            tokens[at].token = Token::make_word(ALL_ELEMENTS, Some('"'));
        }
    }
}

/// How an error says that the text ended.
const THE_END: &str = "found the end";

/// Moves the position in an error of `sqlparser` to the front. At the end of the text, `sqlparser`
/// gives no position, so this adds it.
fn failed(error: DataFusionError, end: Location) -> Error {
    let said = match error.find_root() {
        DataFusionError::SQL(inner, _) => match &**inner {
            ParserError::RecursionLimitExceeded => return too_deep(""),
            ParserError::ParserError(said) | ParserError::TokenizerError(said) => said.clone(),
        },
        _ => return Error::Engine(error),
    };
    let (reason, place) = match said.rsplit_once(" at Line: ") {
        Some((reason, place)) => (reason, place.split_once(", Column: ")),
        None => (said.as_str(), None),
    };
    let reason = reason.replacen("Expected: ", "expected ", 1).replacen(", found: ", ", found ", 1);
    let reason = reason.replacen("found EOF", THE_END, 1);
    match place {
        None if reason.ends_with(THE_END) => {
            Error::text(format!("line {}, column {}: {reason}", end.line, end.column))
        }
        Some((line, column)) => Error::text(format!("line {line}, column {column}: {reason}")),
        None => Error::text(reason),
    }
}

impl Statement {
    /// The tables that the statement names. Replaces file names by table names.
    pub(super) fn named(&mut self) -> Named {
        named_of(&mut self.inner)
    }

    /// The hidden columns that the statement names.
    pub(super) fn hidden_columns(&mut self) -> HiddenColumns {
        hidden_columns_of(&mut self.inner)
    }

    /// Whether the statement is rewritten by the columns of its tables, besides its lists.
    pub(super) fn needs_columns(&mut self) -> bool {
        match &mut self.inner {
            parser::Statement::Statement(statement) => needs_columns(&mut **statement),
            // Knowing the columns of tables is never wrong.
            _ => true,
        }
    }

    pub(super) fn rewrite(&mut self, known: &KnownNames) -> Result<()> {
        rewrite_of(&mut self.inner, known)
    }

    pub(super) fn into_inner(self) -> parser::Statement {
        self.inner
    }

    /// The file and format of a `COPY … TO 'file'`.
    pub(super) fn target(&self) -> Result<Option<(String, Format)>> {
        let parser::Statement::CopyTo(copy) = &self.inner else { return Ok(None) };
        let CopyToStatement { target, partitioned_by, stored_as, .. } = copy;
        if !partitioned_by.is_empty() {
            return Err(Error::text("COPY writes one file; leave out PARTITIONED BY"));
        }
        let name = match stored_as {
            Some(name) => name.to_ascii_lowercase(),
            None => target.rsplit('.').next().unwrap_or_default().to_ascii_lowercase(),
        };
        let format = Format::of_name(&name).ok_or_else(|| {
            Error::text(format!(
                "{target}: its extension names no format; use .ndjson, .csv, .arrow, \
                 .parquet or .txt, or write STORED AS"
            ))
        })?;
        Ok(Some((target.clone(), format)))
    }

    /// The query of a COPY.
    pub(super) fn source(&self) -> Statement {
        let inner = match &self.inner {
            parser::Statement::CopyTo(copy) => match &copy.source {
                CopyToSource::Query(query) => {
                    parser::Statement::Statement(Box::new(ast::Statement::Query(query.clone())))
                }
                CopyToSource::Relation(name) => {
                    let text = format!("SELECT * FROM {name}");
                    match parsed(&text, WORDS_MAX).ok().and_then(|mut statements| statements.pop())
                    {
                        Some(statement) => statement.inner,
                        None => self.inner.clone(),
                    }
                }
            },
            other => other.clone(),
        };
        Statement { inner }
    }

    /// The syntax tree, if it is a statement of SQL.
    pub(crate) fn tree(&self) -> Option<&ast::Statement> {
        match &self.inner {
            parser::Statement::Statement(statement) => Some(&**statement),
            _ => None,
        }
    }

    /// Whether the statement shows a plan instead of an answer.
    pub fn is_explain(&self) -> bool {
        matches!(self.inner, parser::Statement::Explain(_))
    }

    /// The text of a query of one table.
    pub(super) fn query_text(&self) -> Option<String> {
        let parser::Statement::Statement(statement) = &self.inner else { return None };
        let ast::Statement::Query(query) = &**statement else { return None };
        let ast::SetExpr::Select(select) = &*query.body else { return None };
        let is_one = matches!(select.from.as_slice(), [table] if table.joins.is_empty());
        (is_one && query.with.is_none()).then(|| text_of(&**query))
    }

    /// Whether the statement is an EXPLAIN ANALYZE.
    pub(super) fn is_analyze(&self) -> bool {
        matches!(&self.inner, parser::Statement::Explain(explain) if explain.options.analyze)
    }
}

/// Balances the chains of a statement. Returns whether its depth is then within the limit.
fn balance_of(statement: &mut parser::Statement) -> bool {
    match statement {
        parser::Statement::Statement(statement) => balance(&mut **statement),
        parser::Statement::Explain(explain) => balance_of(&mut explain.statement),
        parser::Statement::CopyTo(CopyToStatement {
            source: CopyToSource::Query(query), ..
        }) => balance(&mut **query),
        _ => true,
    }
}

fn named_of(statement: &mut parser::Statement) -> Named {
    match statement {
        parser::Statement::Statement(statement) => named(&mut **statement),
        parser::Statement::Explain(explain) => named_of(&mut explain.statement),
        _ => Named::default(),
    }
}

fn hidden_columns_of(statement: &mut parser::Statement) -> HiddenColumns {
    match statement {
        parser::Statement::Statement(statement) => hidden_columns(&mut **statement),
        parser::Statement::Explain(explain) => hidden_columns_of(&mut explain.statement),
        _ => HiddenColumns::default(),
    }
}

fn rewrite_of(statement: &mut parser::Statement, known: &KnownNames) -> Result<()> {
    match statement {
        parser::Statement::Statement(statement) => rewrite_part(&mut **statement, known),
        parser::Statement::Explain(explain) => rewrite_of(&mut explain.statement, known),
        _ => Ok(()),
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tree() {
            Some(tree) => f.write_str(&text_of(tree)),
            None => self.inner.fmt(f),
        }
    }
}
