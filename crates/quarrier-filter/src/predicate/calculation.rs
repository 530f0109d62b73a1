//! Comparisons of numbers calculated from columns. The columns' zone maps (least and greatest values) prove
//! that nothing overflows: then no row has a fault, and the calculation can be vectorised.

use quarrier_messages::{Kind, Table, Value};

use super::constant::{self, turned};
use super::wording;
use crate::Expr;
use crate::expr::{Arithmetic, Comparison};

/// A calculation in steps, and the range requested of it. UNKNOWN if one of the columns is NULL.
#[derive(Debug, Clone)]
pub(crate) struct Calculation {
    /// The steps, which leave one number on the stack.
    pub(crate) steps: Vec<Step>,
    /// The requested range.
    pub(crate) within: Within,
    /// Whether the number must lie outside the range instead.
    pub(crate) outside: bool,
    /// The columns in it, each once.
    pub(crate) columns: Vec<usize>,
    /// The expression as written.
    pub(crate) expr: String,
}

/// The first and last requested number, and the arithmetic to use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Within {
    /// Integers of 64 bits.
    Whole(i64, i64),
    /// Numbers of IEEE 754, none of them NaN.
    Float(f64, f64),
}

/// One step of a stack machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Pushes a column's numbers; for integers, mantissas.
    Column(usize),
    /// Pushes a constant.
    Whole(i64),
    /// Pushes a constant.
    Float(f64),
    /// Pops two numbers and pushes their sum.
    Add,
    /// Pops two numbers and pushes the lower one less the upper.
    Subtract,
    /// Pops two numbers and pushes their product.
    Multiply,
}

/// Maximum depth of the stack.
pub(crate) const STACK_MAX: usize = 8;

/// Larger integers are not calculated here.
const WHOLE_MAX: i128 = 1 << 62;
/// Up to here a float represents every integer exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// Larger floats are not calculated here.
const FLOAT_MAX: f64 = 1e300;

/// A side of the comparison under construction.
struct Side {
    steps: Vec<Step>,
    depth: usize,
    range: Range,
}

/// The range of a side's values.
#[derive(Clone, Copy)]
enum Range {
    /// Mantissas of this scale.
    Exact { low: i128, high: i128, scale: u8 },
    /// Floats, none of them NaN.
    Float { low: f64, high: f64 },
}

impl Calculation {
    /// Returns whether it selects the same rows, regardless of how it was written.
    pub(crate) fn is_same(&self, other: &Calculation) -> bool {
        self.steps == other.steps && self.within == other.within && self.outside == other.outside
    }

    /// Makes a calculation of `left op right`; `None` if it must be evaluated row by row.
    pub(crate) fn of(table: &Table, op: Comparison, left: &Expr, right: &Expr) -> Option<Self> {
        let (left_expr, right_expr) = (left, right);
        let (mut left, mut right) = match moments(table, left, right) {
            Some(moments) => moments,
            None => (side(table, left)?, side(table, right)?),
        };
        match (left.range, right.range) {
            (Range::Exact { scale: a, .. }, Range::Exact { scale: b, .. }) => {
                left = left.rescaled(a.max(b))?;
                right = right.rescaled(a.max(b))?;
            }
            _ => (left, right) = (left.floating(table)?, right.floating(table)?),
        }
        let op_written = op;
        let (mut side, op, against) = match (left.constant(), right.constant()) {
            (_, Some(constant)) => (left, op, constant),
            (Some(constant), None) => (right, turned(op), constant),
            // The bounds prove that the difference does not overflow; it is 0 only for equal
            // numbers.
            (None, None) => {
                let zero = match left.range {
                    Range::Exact { .. } => Step::Whole(0),
                    Range::Float { .. } => Step::Float(0.0),
                };
                (left.joined(right, Arithmetic::Subtract)?, op, zero)
            }
        };
        let (within, outside) = within(op, &against)?;
        let mut columns: Vec<usize> = side.steps.iter().filter_map(Step::column).collect();
        columns.sort_unstable();
        columns.dedup();
        side.steps.shrink_to_fit();
        let expr = wording::comparison(op_written, left_expr, right_expr, table);
        (side.depth <= STACK_MAX).then_some(Calculation {
            steps: side.steps,
            within,
            outside,
            columns,
            expr,
        })
    }
}

/// Returns the numbers for which `number op against` is true, or for which it is not (`true`).
fn within(op: Comparison, against: &Step) -> Option<(Within, bool)> {
    Some(match *against {
        Step::Whole(c) => {
            let (first, last) = match op {
                Comparison::Equal | Comparison::NotEqual => (c, c),
                Comparison::Less => (i64::MIN, c - 1),
                Comparison::LessOrEqual => (i64::MIN, c),
                Comparison::Greater => (c + 1, i64::MAX),
                Comparison::GreaterOrEqual => (c, i64::MAX),
            };
            (Within::Whole(first, last), op == Comparison::NotEqual)
        }
        Step::Float(c) => {
            let (first, last) = match op {
                Comparison::Equal | Comparison::NotEqual => (c, c),
                Comparison::Less => (f64::NEG_INFINITY, c.next_down()),
                Comparison::LessOrEqual => (f64::NEG_INFINITY, c),
                Comparison::Greater => (c.next_up(), f64::INFINITY),
                Comparison::GreaterOrEqual => (c, f64::INFINITY),
            };
            (Within::Float(first, last), op == Comparison::NotEqual)
        }
        _ => return None,
    })
}

impl Step {
    pub(crate) fn column(&self) -> Option<usize> {
        match self {
            Step::Column(column) => Some(*column),
            _ => None,
        }
    }
}

/// Makes the calculation of a number; `None` for anything but sums, differences and products of
/// columns and constants.
fn side(table: &Table, expr: &Expr) -> Option<Side> {
    match expr {
        Expr::Column(column) => Side::column(*column, column_range(table, *column)?),
        Expr::Literal(Value::Integer(number)) => Side::whole((*number).into(), 0),
        Expr::Literal(Value::Decimal { mantissa, scale }) => Side::whole(*mantissa, *scale),
        Expr::Literal(Value::Float(number)) => Side::float(*number),
        Expr::Negate(operand) => match side(table, operand)? {
            // -0 and 0 - 0 differ in sign, but no comparison, sum or product shows it.
            side @ Side { range: Range::Exact { scale, .. }, .. } => {
                Side::whole(0, scale)?.joined(side, Arithmetic::Subtract)
            }
            side => Side::float(0.0)?.joined(side, Arithmetic::Subtract),
        },
        Expr::Arithmetic { op, left, right } => {
            let (mut left, mut right) = (side(table, left)?, side(table, right)?);
            match (left.range, right.range) {
                (Range::Exact { scale: a, .. }, Range::Exact { scale: b, .. }) => {
                    if *op != Arithmetic::Multiply {
                        left = left.rescaled(a.max(b))?;
                        right = right.rescaled(a.max(b))?;
                    }
                }
                _ => (left, right) = (left.floating(table)?, right.floating(table)?),
            }
            left.joined(right, *op)
        }
        _ => None,
    }
}

/// Handles two columns of dates, or of timestamps: their keys are days, or nanoseconds, so one is earlier
/// than the other if its key is less.
fn moments(table: &Table, left: &Expr, right: &Expr) -> Option<(Side, Side)> {
    let (Expr::Column(left), Expr::Column(right)) = (left, right) else { return None };
    let kind = |column: usize| table.schema().fields[column].kind;
    let is_moment = matches!(kind(*left), Kind::Date | Kind::Timestamp);
    let moment = |column: usize| {
        let (low, high) = keys(table, column);
        Side::column(column, Range::Exact { low, high, scale: 0 })
    };
    (is_moment && kind(*left) == kind(*right)).then(|| Some((moment(*left)?, moment(*right)?)))?
}

impl Side {
    /// Makes a side that is a column whose values lie in this range.
    fn column(column: usize, range: Range) -> Option<Side> {
        Side { steps: vec![Step::Column(column)], depth: 1, range }.proven()
    }

    /// Returns its constant, if it is one.
    fn constant(&self) -> Option<Step> {
        match self.steps.as_slice() {
            [constant @ (Step::Whole(_) | Step::Float(_))] => Some(constant.clone()),
            _ => None,
        }
    }

    fn whole(number: i128, scale: u8) -> Option<Side> {
        let steps = vec![Step::Whole(i64::try_from(number).ok()?)];
        Side { steps, depth: 1, range: Range::Exact { low: number, high: number, scale } }.proven()
    }

    fn float(number: f64) -> Option<Side> {
        let range = Range::Float { low: number, high: number };
        Side { steps: vec![Step::Float(number)], depth: 1, range }.proven()
    }

    /// Returns `None` if a number may lie out of bounds.
    fn proven(self) -> Option<Side> {
        let within = match self.range {
            Range::Exact { low, high, scale } => {
                low >= -WHOLE_MAX && high <= WHOLE_MAX && scale <= 18
            }
            Range::Float { low, high } => low >= -FLOAT_MAX && high <= FLOAT_MAX,
        };
        within.then_some(self)
    }

    /// Rescales to `to` decimals, not fewer than it has.
    fn rescaled(self, to: u8) -> Option<Side> {
        match self.range {
            Range::Exact { scale, .. } if scale < to => {
                let factor = 10_i128.checked_pow(u32::from(to - scale))?;
                self.joined(Side::whole(factor, to - scale)?, Arithmetic::Multiply)
            }
            _ => Some(self),
        }
    }

    /// Converts to floats. A calculated exact number must be whole and also exact as a float; a column's
    /// number or a constant is converted as in every comparison of it.
    fn floating(self, table: &Table) -> Option<Side> {
        let Range::Exact { low, high, scale } = self.range else { return Some(self) };
        let near = Range::Float { low: low as f64, high: high as f64 };
        let power = 10_f64.powi(i32::from(scale));
        match self.steps.as_slice() {
            [Step::Column(column)] => {
                let exact = low as f64 > -EXACT_MAX && (high as f64) < EXACT_MAX;
                let plain = table.schema().fields[*column].kind == Kind::Integer;
                let range = Range::Float { low: low as f64 / power, high: high as f64 / power };
                (exact || plain).then_some(Side { range, ..self })
            }
            [Step::Whole(number)] => {
                let mantissa = (*number).into();
                Side::float(constant::float(&Value::Decimal { mantissa, scale })?)
            }
            _ if scale == 0 && low as f64 > -EXACT_MAX && (high as f64) < EXACT_MAX => {
                let steps = self.steps.into_iter().map(|step| match step {
                    Step::Whole(number) => Step::Float(number as f64),
                    step => step,
                });
                Some(Side { steps: steps.collect(), depth: self.depth, range: near })
            }
            _ => None,
        }
    }

    fn joined(mut self, mut other: Side, op: Arithmetic) -> Option<Side> {
        let step = match op {
            Arithmetic::Add => Step::Add,
            Arithmetic::Subtract => Step::Subtract,
            Arithmetic::Multiply => Step::Multiply,
            _ => return None,
        };
        let range = match (self.range, other.range) {
            (
                Range::Exact { low: a, high: b, scale },
                Range::Exact { low: c, high: d, scale: other },
            ) => {
                let scale = if op == Arithmetic::Multiply { scale + other } else { scale };
                let ends = match op {
                    Arithmetic::Add => [a + c, b + d, a + c, b + d],
                    Arithmetic::Subtract => [a - d, b - c, a - d, b - c],
                    _ => [a * c, a * d, b * c, b * d],
                };
                let low = ends.into_iter().fold(i128::MAX, i128::min);
                Range::Exact { low, high: ends.into_iter().fold(i128::MIN, i128::max), scale }
            }
            (Range::Float { low: a, high: b }, Range::Float { low: c, high: d }) => {
                let ends = match op {
                    Arithmetic::Add => [a + c, b + d, a + c, b + d],
                    Arithmetic::Subtract => [a - d, b - c, a - d, b - c],
                    _ => [a * c, a * d, b * c, b * d],
                };
                let low = ends.into_iter().fold(f64::INFINITY, f64::min);
                Range::Float { low, high: ends.into_iter().fold(f64::NEG_INFINITY, f64::max) }
            }
            _ => return None,
        };
        self.steps.append(&mut other.steps);
        self.steps.push(step);
        Side { steps: self.steps, depth: self.depth.max(other.depth + 1), range }.proven()
    }
}

/// Returns the range of a column's numbers; `None` for other types, and for NaN and infinity.
fn column_range(table: &Table, column: usize) -> Option<Range> {
    let (low, high) = keys(table, column);
    let float = |key: i128| {
        let key = key as i64;
        f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
    };
    let range = match table.schema().fields[column].kind {
        Kind::Integer => Range::Exact { low, high, scale: 0 },
        Kind::Decimal { scale } => Range::Exact { low, high, scale },
        Kind::Float => Range::Float { low: float(low), high: float(high) },
        _ => return None,
    };
    Some(range)
}

/// Returns the least and the greatest key of a column; 0 if it has no value.
fn keys(table: &Table, column: usize) -> (i128, i128) {
    let zones = table.columns()[column].segments().iter().map(|segment| segment.zone());
    let (low, high) = zones
        .fold((i128::MAX, i128::MIN), |(low, high), zone| (low.min(zone.min), high.max(zone.max)));
    if low > high { (0, 0) } else { (low, high) }
}
