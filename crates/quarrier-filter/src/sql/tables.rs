//! Finds the tables in a statement before it is bound.

use sqlparser::keywords::Keyword;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Token, Tokenizer, Word};

use super::{TEXT_BYTES_MAX, dialect, parse, statement};
use crate::{Error, Result};

/// The name of a table in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The name, without its quotes.
    pub name: String,
    /// Whether it is in single quotes: `FROM 'orders.ndjson'`.
    pub is_file: bool,
}

/// Returns the table of a statement that [`statement`](super::statement) may be able to answer.
///
/// # Errors
/// The errors of [`statement`](super::statement), except those that depend on the table's columns.
pub fn table(text: &str) -> Result<TableName> {
    let name = parse::parsed(text, statement::table)?;
    Ok(TableName { name: name.value, is_file: name.quote_style == Some('\'') })
}

/// Returns the files in place of tables (`FROM 'a.csv' JOIN 'b.csv'`) in any SQL statement, each
/// once. Takes time proportional to the text.
///
/// # Errors
/// [`Error::Text`] if the text is longer than [`TEXT_BYTES_MAX`] or ends within quotes.
pub fn files(text: &str) -> Result<Vec<String>> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::text(0, 0, format!("the text is longer than {TEXT_BYTES_MAX} bytes")));
    }
    let tokens = Tokenizer::new(&dialect::Sql92, text).tokenize();
    let tokens =
        tokens.map_err(|error| parse::failed(&ParserError::TokenizerError(error.to_string())))?;
    let mut files = Vec::new();
    let mut place = Place::Other;
    // The places outside each open parenthesis.
    let mut around = Vec::new();
    for token in tokens {
        match (token, place) {
            (Token::Whitespace(_), _) => {}
            (Token::Word(word), _) => place = place.after(&word),
            (Token::LParen, _) => {
                around.push(place.behind_distinct());
                place = if place == Place::Table { Place::Table } else { Place::Other };
            }
            (Token::RParen, _) => place = around.pop().unwrap_or(place),
            (Token::SingleQuotedString(file), Place::Table) => {
                place = Place::Tables;
                if !files.contains(&file) {
                    files.push(file);
                }
            }
            (Token::Comma, Place::Tables) => place = Place::Table,
            _ => place = place.behind_distinct(),
        }
    }
    Ok(files)
}

/// A place in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside lists of tables; TRIM and EXTRACT have their own FROM.
    Other,
    /// After SELECT.
    Outputs,
    /// After DISTINCT, which also occurs in `IS DISTINCT FROM`.
    Distinct,
    /// A table's name is expected.
    Table,
    /// After a table.
    Tables,
}

impl Place {
    fn after(self, word: &Word) -> Self {
        use Keyword::{
            DISTINCT, EXCEPT, FROM, GROUP, HAVING, INTERSECT, JOIN, LIMIT, ORDER, SELECT, UNION,
            WHERE,
        };
        let keyword = if word.quote_style.is_some() { Keyword::NoKeyword } else { word.keyword };
        match (keyword, self) {
            (SELECT, _) => Place::Outputs,
            (DISTINCT, Place::Outputs) => Place::Distinct,
            (FROM, Place::Outputs) | (JOIN, Place::Tables) => Place::Table,
            (WHERE | GROUP | HAVING | ORDER | LIMIT | UNION | INTERSECT | EXCEPT, _) => {
                Place::Other
            }
            (_, Place::Table) => Place::Tables,
            _ => self.behind_distinct(),
        }
    }

    fn behind_distinct(self) -> Self {
        if self == Place::Distinct { Place::Outputs } else { self }
    }
}
