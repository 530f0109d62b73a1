//! Clauses that the parser accepts and the planner silently ignores. Each is rewritten for the
//! planner if possible, and otherwise refused by name.
//!
//! | written | becomes |
//! |---|---|
//! | `OFFSET 2 ROWS FETCH FIRST 3 ROWS ONLY` | `LIMIT 3 OFFSET 2` |
//! | `GROUP BY a, b WITH ROLLUP`, `WITH CUBE` | `GROUP BY ROLLUP (a, b)`, `CUBE (a, b)` |
//! | `OVER w`, `OVER (w ORDER BY x)` | the window that WINDOW defines, written out |
//! | `SELECT x, x`, `SELECT 1 AS x, t.x` | `SELECT x, x AS "x (2)"`, `SELECT 1 AS x, t.x AS "x (2)"` |
//! | `GROUP_CONCAT(x)`, `IF(c, a, b)` | `STRING_AGG(x, ',')`, `CASE WHEN c THEN a ELSE b END` |
//!
//! The checks destructure every node of the syntax tree without `..`, so that a field that a later
//! version of the parser adds does not compile until it is handled.

mod functions;
mod groups;
mod outputs;
mod query;
mod select;
mod tables;
mod windows;

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, TableFactor, VisitMut, VisitorMut};

use super::names::{KnownNames, names_of_with};
use super::walk::{Flow, Stop, ended, walk};
use crate::{Error, Result};

/// The names of functions that compute over several rows.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// Aggregates.
    pub(crate) aggregates: HashSet<String>,
    /// Functions that exist only as window functions.
    pub(crate) windows: HashSet<String>,
}

/// Rewrites clauses for the planner, and refuses the rest.
pub(super) fn rewrite<S: VisitMut>(statement: &mut S, functions: &Functions) -> Result<()> {
    ended(walk(statement, &mut Rewriter))?;
    ended(walk(statement, &mut Checker { functions }))
}

/// Renames output columns so that their names are unique.
pub(super) fn name_outputs<S: VisitMut>(statement: &mut S, known: &KnownNames) {
    let given = names_of_with(statement);
    let _ = walk(statement, &mut outputs::Names { known, given: &given });
}

pub(super) use outputs::has_name_beside_star;

/// The error for an unsupported clause.
fn refused<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Error::text(format!("{what} is not supported")))
}

/// Refuses a clause if it is present.
fn unless(is_absent: bool, what: &str) -> Result<()> {
    if is_absent { Ok(()) } else { refused(what) }
}

fn flow(result: Result<()>) -> Flow {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Some(Box::new(error))),
    }
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        flow(query::rewrite(query))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        flow(windows::written_out(select).and_then(|()| groups::rewrite(select)))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        flow(functions::rewrite(expr))
    }
}

struct Checker<'f> {
    functions: &'f Functions,
}

impl VisitorMut for Checker<'_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        flow(query::check(query))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        flow(select::check(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> Flow {
        flow(tables::check(factor))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        flow(functions::check(expr, self.functions))
    }
}
