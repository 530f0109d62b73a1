//! Writes syntax trees as SQL with the same meaning.
//!
//! `sqlparser` takes two quotes in a string for one that is already escaped, and writes them unchanged: the
//! string `a''b` becomes `'a''b'`, which is the string `a'b`. It does not change strings in which every
//! quote is doubled, so this module doubles them first.

use std::fmt::Display;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Value, ValueWithSpan, VisitMut, VisitorMut};

use super::walk::{Flow, Stop, walk};

/// Writes a syntax tree as SQL.
pub(crate) fn text_of(tree: &(impl Clone + VisitMut + Display)) -> String {
    let mut tree = tree.clone();
    let _ = walk(&mut tree, &mut Doubler);
    tree.to_string()
}

/// Doubles the quotes of strings.
struct Doubler;

impl VisitorMut for Doubler {
    type Break = Stop;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> Flow {
        if let Value::SingleQuotedString(text) = &mut value.value
            && text.contains('\'')
        {
            *text = text.replace('\'', "''");
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;
    use crate::dialect::Sql;

    fn parsed(text: &str) -> Statement {
        Parser::parse_sql(&Sql, text).unwrap().remove(0)
    }

    #[test]
    fn strings_are_written_as_they_were() {
        let mut strings = vec![String::new()];
        for _ in 0..5 {
            let longer =
                |text: &String| ["'", "\\", "a", " "].map(|letter| format!("{text}{letter}"));
            strings = strings.iter().flat_map(longer).chain([String::new()]).collect();
        }
        for text in strings {
            let literal = format!("'{}'", text.replace('\'', "''"));
            let statement = format!(
                "SELECT {literal} FROM t WHERE a LIKE {literal} AND b IN ({literal}, 'x') \
                 AND c = DATE {literal} AND d IN (SELECT {literal} FROM u)"
            );
            assert_eq!(text_of(&parsed(&statement)), statement);
        }
    }

    #[test]
    fn sqlparser_still_loses_quotes() {
        let text = parsed("SELECT 'a''''b'").to_string();
        assert_eq!(text, "SELECT 'a''b'", "sqlparser is right now: use its Display");
    }
}
