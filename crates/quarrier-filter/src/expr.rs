//! A condition, or any expression in it, bound to the columns of a schema.

use std::sync::Arc;

use quarrier_messages::{Kind, Value};

use crate::Keys;
use crate::calendar::Part;
pub use crate::matching::Matcher;
use crate::matching::Matching;

/// A typed expression. It expresses `BETWEEN`, row values and simple CASE by the nodes below, with
/// their operands repeated; NOT stays where it is. Its value does not depend on when or where it is
/// evaluated: `CURRENT_TIMESTAMP` is a literal.
///
/// Expressions bound by [`sql`](crate::sql) nest at most [`DEPTH_MAX`](crate::sql::DEPTH_MAX) deep,
/// so that recursion over them is safe.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Value),
    /// The value of the column at this position of the schema.
    Column(usize),
    /// True if the operand is false.
    Not(Box<Expr>),
    /// True if all operands are true. At least one.
    And(Vec<Expr>),
    /// True if one operand is true. At least one.
    Or(Vec<Expr>),
    /// Compares two values; UNKNOWN if one is NULL.
    Compare {
        /// The comparison.
        op: Comparison,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `operand IN (list)`: an `=` for each element, joined by OR.
    In {
        /// The value to look for.
        operand: Box<Expr>,
        /// The elements. At least one.
        list: Vec<Expr>,
    },
    /// True if the column's value is an integer in `keys`; UNKNOWN for NULL. No SQL expresses this: it is a
    /// runtime filter of a plan.
    Among {
        /// The column's position in the schema.
        column: usize,
        /// The keys to look for.
        keys: Arc<Keys>,
    },
    /// Matches a string against a pattern; UNKNOWN if one is NULL.
    Match {
        /// The string.
        operand: Box<Expr>,
        /// The pattern to match.
        pattern: Pattern,
    },
    /// `IS NULL`.
    IsNull(Box<Expr>),
    /// `IS TRUE` (`Some(true)`), `IS FALSE`, `IS UNKNOWN` (`None`).
    Is {
        /// The boolean to test.
        operand: Box<Expr>,
        /// The outcome to test for.
        truth: Option<bool>,
    },
    /// Arithmetic on numbers, dates and intervals; `||` on strings.
    Arithmetic {
        /// The operation.
        op: Arithmetic,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// The operand with the opposite sign.
    Negate(Box<Expr>),
    /// The result of the first condition that is true; also expresses simple CASE.
    Case {
        /// Conditions and results.
        branches: Vec<(Expr, Expr)>,
        /// The result if no condition is true; NULL if absent.
        otherwise: Option<Box<Expr>>,
    },
    /// Converts the operand to another type.
    Cast {
        /// The value to convert.
        operand: Box<Expr>,
        /// The target type.
        to: CastTo,
    },
    /// Calls a function of the table in `function`.
    Call {
        /// The function.
        function: Function,
        /// Its arguments, as many as it takes.
        arguments: Vec<Expr>,
    },
}

/// An operator that compares two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// The pattern of a [`Expr::Match`].
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// A literal pattern, compiled once.
    Fixed(Matching),
    /// A pattern computed for each row.
    Computed {
        /// The pattern, in the language of `by`.
        text: Box<Expr>,
        /// The character of `ESCAPE`.
        escape: Option<char>,
        /// The language of the pattern.
        by: Matcher,
    },
}

/// An operation on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%` and `MOD`
    Remainder,
    /// `||`
    Concatenate,
}

/// The target of a `CAST`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CastTo {
    /// A type of columns; never [`Kind::Decimal`], which is `Numeric`, and never [`Kind::Null`].
    Kind(Kind),
    /// Integers of this many bits.
    Integer {
        /// 16 or 32; 64 is [`Kind::Integer`].
        bits: u8,
    },
    /// Exact numbers.
    Numeric {
        /// Total number of digits, at most 38.
        precision: u8,
        /// Digits after the point, at most `precision`.
        scale: u8,
    },
    /// Strings of exactly this many characters, padded with blanks or truncated.
    Character(u32),
    /// Strings of at most this many characters, truncated.
    Varying(u32),
    /// A time of day.
    Time,
    /// An interval in years and months.
    IntervalMonths,
    /// An interval in days, hours, minutes and seconds.
    IntervalSeconds,
}

/// Functions of SQL-92 on strings, dates and numbers. The result is NULL if an argument is, except for
/// `Coalesce` and `NullIf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Function {
    /// The first argument that is not NULL; later ones are not evaluated. The result has the common
    /// type of all arguments.
    Coalesce,
    /// The first argument, or NULL if both are equal.
    NullIf,
    /// The string in upper case, by Unicode.
    Upper,
    /// The string in lower case, by Unicode.
    Lower,
    /// The number of characters of a string.
    CharacterLength,
    /// The number of bytes of a string.
    OctetLength,
    /// The position of the first string in the second, from 1 in characters; 0 if it does not occur.
    Position,
    /// The string, the start from 1, and the number of characters if there is a third argument.
    Substring,
    /// The string, and the character to remove.
    Trim {
        /// Whether to remove it at the beginning.
        leading: bool,
        /// Whether to remove it at the end.
        trailing: bool,
    },
    /// The string, its replacement, the start from 1, and the number of characters to replace; without
    /// a fourth argument, the length of the replacement.
    Overlay,
    /// A field of a date, time or interval. Seconds are exact with 9 decimals, all other fields are integers.
    Extract(Part),
    /// The absolute value.
    Absolute,
    /// The least integer not below the number.
    Ceiling,
    /// The greatest integer not above the number.
    Floor,
    /// Whether two periods have a timestamp in common: start and end of one, start and end of the
    /// other. Not NULL if two ends are enough to decide.
    Overlaps,
    /// -1, 0 or 1 as the first string is less than, equal to or greater than the second, with the shorter one
    /// padded with blanks: the comparison of CHAR(n).
    ComparePadded,
}
