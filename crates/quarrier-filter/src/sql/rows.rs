//! Comparisons of values and of rows of values, and predicates expressed by them.

use sqlparser::ast::{self, BinaryOperator};
use sqlparser::tokenizer::Location;

use quarrier_messages::Value;

use super::bind::{Binder, Bound, place};
use super::types::Type;
use super::{literals, wrong};
use crate::Result;
use crate::expr::{Comparison, Expr, Function};
use crate::{naive, number};

/// Returns the comparison of an operator.
pub(super) fn comparison(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

impl Binder<'_> {
    /// Binds an operator whose left side may be a row of values.
    pub(super) fn first_operator(
        &mut self,
        left: ast::Expr,
        op: BinaryOperator,
        right: ast::Expr,
    ) -> Result<Bound> {
        if op == BinaryOperator::Overlaps {
            return self.overlaps(left, right);
        }
        let is_row = matches!(stripped(&left), ast::Expr::Tuple(_))
            || matches!(stripped(&right), ast::Expr::Tuple(_));
        if let (Some(op), true) = (comparison(&op), is_row) {
            let at = place(&left);
            let (left, right) = (self.row(left)?, self.row(right)?);
            return self.compare_rows(op, left, right, at);
        }
        let left = self.bind(left)?;
        self.operator(left, &op, right)
    }

    /// Returns the values of a row; a single one if it is not a row.
    pub(super) fn row(&mut self, expr: ast::Expr) -> Result<Vec<Bound>> {
        match expr {
            ast::Expr::Nested(inner) if matches!(stripped(&inner), ast::Expr::Tuple(_)) => {
                self.row(*inner)
            }
            ast::Expr::Tuple(values) => values.into_iter().map(|value| self.bind(value)).collect(),
            other => Ok(vec![self.bind(other)?]),
        }
    }

    /// Compares rows from the left, as in SQL-92.
    pub(super) fn compare_rows(
        &mut self,
        op: Comparison,
        left: Vec<Bound>,
        right: Vec<Bound>,
        at: Location,
    ) -> Result<Bound> {
        if left.len() != right.len() {
            let (left, right) = (left.len(), right.len());
            return Err(wrong(at, format!("a row of {left} is compared with a row of {right}")));
        }
        let is_equality = matches!(op, Comparison::Equal | Comparison::NotEqual);
        let mut pairs = left.into_iter().zip(right);
        if is_equality {
            let compared: Result<Vec<Bound>> =
                pairs.map(|(left, right)| self.compare(op, left, right)).collect();
            return self.joined(compared?, op == Comparison::Equal);
        }
        // a < c OR (a = c AND b < d)
        let Some((left, right)) = pairs.next_back() else {
            return Err(wrong(at, "a row without values"));
        };
        let mut result = self.compare(op, left, right)?;
        let strict = match op {
            Comparison::LessOrEqual => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::Greater,
            other => other,
        };
        while let Some((left, right)) = pairs.next_back() {
            let decided = self.compare(strict, left.clone(), right.clone())?;
            let same = self.compare(Comparison::Equal, left, right)?;
            let undecided = self.join(vec![same, result], true)?;
            result = self.join(vec![decided, undecided], false)?;
        }
        Ok(result)
    }

    /// As `join`, for one or more operands.
    pub(super) fn joined(&mut self, mut operands: Vec<Bound>, is_and: bool) -> Result<Bound> {
        match (operands.len(), operands.pop()) {
            (1, Some(only)) => Ok(only),
            (_, last) => {
                operands.extend(last);
                self.join(operands, is_and)
            }
        }
    }

    /// Binds `left op right` if their types compare.
    pub(super) fn compare(&mut self, op: Comparison, left: Bound, right: Bound) -> Result<Bound> {
        let at = left.at;
        let (left, right) = both_dated(left, right)?;
        self.comparable(&left, &right)?;
        let (left, right) = (literal_as(left, &right), right);
        let right = literal_as(right, &left);
        if left.kind == Type::Character || right.kind == Type::Character {
            let order = self.node([left, right], Type::Integer, at, |[left, right]| {
                Expr::Call { function: Function::ComparePadded, arguments: vec![left, right] }
            })?;
            let zero = Bound::literal(Value::Integer(0), Type::Integer, at);
            return self.plain_compare(op, order, zero);
        }
        self.plain_compare(op, left, right)
    }

    fn plain_compare(&mut self, op: Comparison, left: Bound, right: Bound) -> Result<Bound> {
        let at = left.at;
        self.node([left, right], Type::Boolean, at, |[left, right]| Expr::Compare {
            op,
            left: Box::new(left),
            right: Box::new(right),
        })
    }

    /// Returns an error if the two do not compare.
    pub(super) fn comparable(&self, left: &Bound, right: &Bound) -> Result<()> {
        if left.kind.common(right.kind).is_some() {
            return Ok(());
        }
        let hint = match (left.kind, right.kind) {
            (Type::Date | Type::Time | Type::Timestamp, Type::Text)
            | (Type::Text, Type::Date | Type::Time | Type::Timestamp) => {
                "CAST the text AS DATE or AS TIMESTAMP"
            }
            (Type::Boolean, _) | (_, Type::Boolean) => "check the parentheses",
            _ => "CAST one of them, as in CAST(x AS INTEGER)",
        };
        let (left_name, right_name) = (left.kind.named(), right.kind.named());
        let reason = format!("{left_name} cannot be compared with {right_name}; {hint}");
        Err(wrong(left.at, reason))
    }

    /// Binds `(start, end) OVERLAPS (start, end)`, in which an end may be an interval.
    fn overlaps(&mut self, left: ast::Expr, right: ast::Expr) -> Result<Bound> {
        let at = place(&left);
        let mut ends = Vec::with_capacity(4);
        for period in [left, right] {
            let period = self.row(period)?;
            let Ok([start, end]) = <[Bound; 2]>::try_from(period) else {
                return Err(wrong(at, "OVERLAPS needs a pair (start, end) on either side"));
            };
            let end = if end.kind.is_interval() {
                self.calculate(crate::expr::Arithmetic::Add, start.clone(), end)?
            } else {
                end
            };
            ends.extend([start, end]);
        }
        let ends = literals::all_dated(ends)?;
        for end in &ends {
            if !matches!(end.kind, Type::Null | Type::Date | Type::Time | Type::Timestamp) {
                return Err(wrong(
                    end.at,
                    format!("OVERLAPS needs dates or times, not {}", end.kind.named()),
                ));
            }
            self.comparable(&ends[0], end)?;
        }
        self.node_of(ends, Type::Boolean, at, |arguments| Expr::Call {
            function: Function::Overlaps,
            arguments,
        })
    }
}

/// Returns both. If one is a date or time and the other a string literal, converts the literal.
pub(super) fn both_dated(left: Bound, right: Bound) -> Result<(Bound, Bound)> {
    let left = literals::dated(left, right.kind)?;
    let right = literals::dated(right, left.kind)?;
    Ok((left, right))
}

/// Returns the expression without the parentheses around it.
pub(super) fn stripped(mut expr: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// Returns a literal in the type in which it is compared, so that it is not converted for each row.
pub(super) fn literal_as(bound: Bound, other: &Bound) -> Bound {
    if !bound.is_literal() {
        return bound;
    }
    let Expr::Literal(value) = &bound.expr else { return bound };
    let converted = match (value, other.kind) {
        (Value::Integer(number), Type::Float) => Value::Float(*number as f64),
        (Value::Decimal { mantissa, scale }, Type::Float) => {
            Value::Float(number::Exact::new(*mantissa, *scale).float())
        }
        (Value::Date(day), Type::Timestamp) => match crate::calendar::join(*day, 0) {
            Some(at) => Value::Timestamp(at),
            None => return bound,
        },
        _ => return bound,
    };
    debug_assert_eq!(
        naive::compare(&naive::Datum::from(&converted), &naive::Datum::from(value)),
        Ok(Some(std::cmp::Ordering::Equal))
    );
    Bound::literal(converted, other.kind, bound.at)
}
