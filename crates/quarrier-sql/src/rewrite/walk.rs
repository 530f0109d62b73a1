//! Walks syntax trees with little generated code.
//!
//! The compiler instantiates `sqlparser`'s walk for each visitor type, a third of a megabyte each.
//! For eight visitors, that was two thirds of this crate's code and compile time. So a single type
//! visits the tree, and dispatches dynamically to the others.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, VisitMut, VisitorMut,
};

use crate::Error;

/// Why a walk ends early: an error, or `None` if the visitor has found enough.
pub(super) type Stop = Option<Box<Error>>;

/// A visitor's result for each node.
pub(super) type Flow = ControlFlow<Stop>;

/// Shows every node of a tree to `visitor`.
pub(super) fn walk(tree: &mut impl VisitMut, visitor: &mut dyn VisitorMut<Break = Stop>) -> Flow {
    tree.visit(&mut Walk(visitor))
}

/// The error that ended a walk, if any.
pub(super) fn ended(flow: Flow) -> crate::Result<()> {
    match flow {
        ControlFlow::Break(Some(error)) => Err(*error),
        ControlFlow::Break(None) | ControlFlow::Continue(()) => Ok(()),
    }
}

struct Walk<'v>(&'v mut (dyn VisitorMut<Break = Stop> + 'v));

impl VisitorMut for Walk<'_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        self.0.pre_visit_query(query)
    }

    fn post_visit_query(&mut self, query: &mut Query) -> Flow {
        self.0.post_visit_query(query)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        self.0.pre_visit_select(select)
    }

    fn post_visit_select(&mut self, select: &mut Select) -> Flow {
        self.0.post_visit_select(select)
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> Flow {
        self.0.pre_visit_relation(relation)
    }

    fn post_visit_relation(&mut self, relation: &mut ObjectName) -> Flow {
        self.0.post_visit_relation(relation)
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> Flow {
        self.0.pre_visit_table_factor(factor)
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> Flow {
        self.0.post_visit_table_factor(factor)
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        self.0.pre_visit_expr(expr)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        self.0.post_visit_expr(expr)
    }

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> Flow {
        self.0.pre_visit_statement(statement)
    }

    fn post_visit_statement(&mut self, statement: &mut Statement) -> Flow {
        self.0.post_visit_statement(statement)
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> Flow {
        self.0.pre_visit_value(value)
    }

    fn post_visit_value(&mut self, value: &mut ValueWithSpan) -> Flow {
        self.0.post_visit_value(value)
    }
}
