//! Translates DataFusion's conditions to conditions of the scan: exactly, or not at all.
//!
//! Only conditions with the same meaning in both are translated, so that DataFusion need not
//! evaluate them again: comparisons of values of one class (a float makes both sides floats), AND,
//! OR, NOT, IS, IN, BETWEEN, LIKE with a literal pattern, sums, differences and products, and
//! prefixes of strings.

mod logical;
mod numbers;
mod physical;
mod written;

pub(crate) use logical::logical;
pub(crate) use physical::physical;
pub(crate) use written::is_pushed;

use std::fmt;

use quarrier_filter::Expr;
use quarrier_filter::expr::{Comparison, Matcher, Pattern};
use quarrier_filter::matching::Matching;

use crate::literal::Class;

/// A condition of a scan, with its text for EXPLAIN.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Condition {
    expr: Option<Expr>,
    text: String,
}

impl Condition {
    /// The conjunction of conditions.
    pub(crate) fn all(conditions: Vec<Condition>) -> Condition {
        let text: Vec<&str> = conditions.iter().map(|one| one.text.as_str()).collect();
        let text = text.join(" AND ");
        let mut all: Vec<Expr> = conditions.into_iter().filter_map(|one| one.expr).collect();
        let expr = if all.len() > 1 { Some(Expr::And(all)) } else { all.pop() };
        Condition { expr, text }
    }

    /// A condition parsed by `quarrier-filter`, which has no text for EXPLAIN.
    pub(crate) fn bound(expr: Expr) -> Condition {
        Condition::of(expr, "as written".to_string())
    }

    fn of(expr: Expr, text: String) -> Condition {
        Condition { expr: Some(expr), text }
    }

    /// The condition; `None` if every row is selected.
    pub(crate) fn expr(&self) -> Option<&Expr> {
        self.expr.as_ref()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A value, and the class of types that it compares with.
struct Valued {
    expr: Expr,
    class: Class,
    /// Whether the value is a float.
    is_float: bool,
}

/// Maximum depth of a translated condition: scans walk it recursively.
const DEPTH_MAX: usize = quarrier_filter::sql::DEPTH_MAX / 2;

fn compare(op: Comparison, left: Valued, right: Valued) -> Option<Expr> {
    let classes = (left.class, right.class);
    let is_same =
        left.class == right.class || matches!(classes, (Class::Null, _) | (_, Class::Null));
    is_same.then(|| Expr::Compare { op, left: Box::new(left.expr), right: Box::new(right.expr) })
}

fn not(expr: Expr, negated: bool) -> Expr {
    if negated { Expr::Not(Box::new(expr)) } else { expr }
}

/// LIKE with DataFusion's pattern, where a backslash makes the next character literal.
fn like(operand: Expr, pattern: &str) -> Option<Expr> {
    let pattern = crate::rewrite::like::written(pattern)?;
    let matching = Matching::new(&pattern, Some('\\'), Matcher::Like).ok()?;
    let pattern = Pattern::Fixed(matching);
    Some(Expr::Match { operand: Box::new(operand), pattern })
}

fn joined(mut parts: Vec<Expr>, all: bool) -> Expr {
    match (parts.len(), all) {
        (1, _) => parts.remove(0),
        (_, true) => Expr::And(parts),
        (_, false) => Expr::Or(parts),
    }
}
