//! Rewrites statements where DataFusion departs from SQL-92.
//!
//! | written | becomes |
//! |---|---|
//! | `x LIKE 'a!_b' ESCAPE '!'` | DataFusion's LIKE, whose escape is always the backslash |
//! | `x SIMILAR TO p` | `sql_similar(x, p)` |
//! | `(a, b) < (1, 2)`, `(a, b) IS NULL` | comparisons of values, with AND and OR |
//! | `x BETWEEN SYMMETRIC a AND b` | two BETWEEN |
//! | `(s, e) OVERLAPS (s, e)` | `sql_overlaps(s, e, s, e)` |
//! | `CAST(x AS CHAR(3)) = y` | `sql_compare_padded(…) = 0` |
//! | `x > ALL (query)`, `x IN (query)` in SELECT | `sql_all('>', x, …)` over the query's values |
//! | `1.5e300` | `CAST('1.5e300' AS DOUBLE)` |
//! | `GROUP BY x, CAST(x AS REAL)` | `GROUP BY x, sql_cast(CAST(x AS REAL), 'REAL')` |
//! | `RANK() OVER (…)` | `CAST(… AS BIGINT)` |
//! | `UNIQUE (query)`, `x MATCH (query)` | counts |
//! | `a LEFT JOIN b USING (k)`, `k` | `a LEFT JOIN b ON a.k = b.k`, `a.k` |
//! | `5 < ANY (leg[*].qty)`, `UNNEST(leg)` | the columns `leg[0].qty`, … : see [`lists`] |
//! | `SELECT *, _line FROM m` | `SELECT * EXCLUDE (_line), _line`, of `m` with that column |

pub(crate) mod like;

mod calls;
mod captions;
mod casts;
mod chains;
mod clauses;
mod exponents;
mod hidden;
mod lists;
mod merged;
mod names;
mod outputs;
mod padded;
mod predicates;
mod rows;
mod tables;
mod template;
mod text;
mod using;
mod walk;

pub(crate) use casts::NAMED_CAST;
pub(crate) use chains::{TREE_DEPTH_MAX, balance};
pub(crate) use clauses::Functions;
pub(crate) use hidden::{HiddenTables, hidden_columns, is_name_with_hidden, name_with_hidden};
pub(crate) use lists::{ALL as ALL_ELEMENTS, TableColumns};
pub(crate) use names::KnownNames;
pub(crate) use tables::{MESSAGES, Named, TypedMessages, named};
pub(crate) use text::text_of;

use datafusion::sql::sqlparser::ast::{Statement, VisitMut};

use walk::{ended, walk};

use crate::{Error, Result};

/// Resolves the spelling of names, and rewrites a statement from SQL-92 to DataFusion's dialect.
///
/// # Errors
/// The statement contains something that is not supported.
pub(crate) fn rewrite<S: Rewritable>(statement: &mut S, known: &KnownNames) -> Result<()> {
    lists::expand(statement, (known.columns(), known.hidden()))?;
    let captions = statement.captions();
    clauses::rewrite(statement, known.functions())?;
    names::spell(statement, known);
    ended(walk(statement, &mut exponents::Exponents))?;
    ended(walk(statement, &mut predicates::Predicates))?;
    ended(walk(statement, &mut outputs::Outputs))?;
    statement.caption(captions);
    using::merge(statement, known)?;
    hidden::show(statement, known.hidden())?;
    ended(walk(statement, &mut casts::Casts))?;
    clauses::name_outputs(statement, known);
    Ok(())
}

/// Whether a statement is rewritten by the columns of its tables, besides its lists.
pub(crate) fn needs_columns<S: VisitMut>(statement: &mut S) -> bool {
    using::merges_columns(statement) || clauses::has_name_beside_star(statement)
}

/// Syntax that can be rewritten: a statement, or a query in one.
pub(crate) trait Rewritable: VisitMut {
    /// For each output without an alias, the name of its column.
    fn captions(&self) -> Vec<Option<String>>;

    /// Adds these names to the outputs as aliases.
    fn caption(&mut self, captions: Vec<Option<String>>);
}

impl Rewritable for Statement {
    fn captions(&self) -> Vec<Option<String>> {
        match self {
            Statement::Query(query) => query.captions(),
            _ => Vec::new(),
        }
    }

    fn caption(&mut self, captions: Vec<Option<String>>) {
        if let Statement::Query(query) = self {
            query.caption(captions);
        }
    }
}

fn refused(reason: impl Into<String>) -> Error {
    Error::text(reason)
}
