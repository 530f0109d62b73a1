//! A condition, or any expression in it, bound to the columns of a schema.

use std::sync::Arc;

use quarrier_messages::{Kind, Value};

use crate::Keys;
use crate::calendar::Part;
pub use crate::matching::Matcher;
use crate::matching::Matching;

/// A typed expression. `BETWEEN`, row values and simple CASE are expressed by the nodes below, with
/// their operands repeated; NOT keeps its place. Nothing in it depends on the time or the place:
/// `CURRENT_TIMESTAMP` is a literal.
///
/// Expressions bound by [`sql`](crate::sql) nest at most [`DEPTH_MAX`](crate::sql::DEPTH_MAX) deep, so
/// that recursion may walk them.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Value),
    /// The value of the column at this place of the schema.
    Column(usize),
    /// True where the operand is false.
    Not(Box<Expr>),
    /// All are true. At least one.
    And(Vec<Expr>),
    /// One is true. At least one.
    Or(Vec<Expr>),
    /// Two values compared; UNKNOWN where one is NULL.
    Compare {
        /// How.
        op: Comparison,
        /// Left of the operator.
        left: Box<Expr>,
        /// Right of it.
        right: Box<Expr>,
    },
    /// `operand IN (list)`: `=` to each, joined by OR.
    In {
        /// The value to look for.
        operand: Box<Expr>,
        /// Where. At least one.
        list: Vec<Expr>,
    },
    /// The column's value is an integer in `keys`; UNKNOWN for NULL. No text can express this: it is a
    /// runtime filter of a plan.
    Among {
        /// Where in the schema.
        column: usize,
        /// The keys to look for.
        keys: Arc<Keys>,
    },
    /// Text that matches a pattern; UNKNOWN where one is NULL.
    Match {
        /// The text.
        operand: Box<Expr>,
        /// The pattern to match.
        pattern: Pattern,
    },
    /// `IS NULL`.
    IsNull(Box<Expr>),
    /// `IS TRUE` (`Some(true)`), `IS FALSE`, `IS UNKNOWN` (`None`).
    Is {
        /// A boolean.
        operand: Box<Expr>,
        /// Which.
        truth: Option<bool>,
    },
    /// Arithmetic on numbers, dates and intervals; `||` on text.
    Arithmetic {
        /// Which.
        op: Arithmetic,
        /// Left of the operator.
        left: Box<Expr>,
        /// Right of it.
        right: Box<Expr>,
    },
    /// The operand with its sign turned.
    Negate(Box<Expr>),
    /// The result of the first condition that is true; simple CASE is written as this one.
    Case {
        /// Conditions and results.
        branches: Vec<(Expr, Expr)>,
        /// The result where no condition is true; NULL where absent.
        otherwise: Option<Box<Expr>>,
    },
    /// The operand as another type.
    Cast {
        /// The value to convert.
        operand: Box<Expr>,
        /// Into what.
        to: CastTo,
    },
    /// A function of the table in `function`.
    Call {
        /// Which.
        function: Function,
        /// As many as it takes.
        arguments: Vec<Expr>,
    },
}

/// How two values are compared.
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
    /// Written in the condition, so compiled once.
    Fixed(Matching),
    /// Known with the row.
    Computed {
        /// In the language of `by`.
        text: Box<Expr>,
        /// The character of `ESCAPE`, text of one character.
        escape: Option<char>,
        /// Which language.
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
        /// Digits in all, at most 38.
        precision: u8,
        /// Digits after the point, at most `precision`.
        scale: u8,
    },
    /// Strings of exactly this many characters, padded with blanks or cut.
    Character(u32),
    /// Strings of at most this many characters, cut.
    Varying(u32),
    /// A time of day.
    Time,
    /// A interval in years and months.
    IntervalMonths,
    /// A interval in days, hours, minutes and seconds.
    IntervalSeconds,
}

/// Functions of SQL-92 on text, dates and numbers. NULL where an argument is, but for
/// `Coalesce` and `NullIf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Function {
    /// The first argument that is not NULL; later ones are not evaluated. The result has the common
    /// type of all arguments.
    Coalesce,
    /// The first argument, NULL where both are equal.
    NullIf,
    /// Letters large, by Unicode.
    Upper,
    /// Letters small, by Unicode.
    Lower,
    /// Characters of a string.
    CharacterLength,
    /// Bytes of a string.
    OctetLength,
    /// Where the first text stands in the second, from 1 in characters; 0 where it does not.
    Position,
    /// Text, start from 1, and the number of characters if there is a third argument.
    Substring,
    /// The string, and the character to remove.
    Trim {
        /// At the beginning.
        leading: bool,
        /// At the end.
        trailing: bool,
    },
    /// The string, its replacement, the start from 1, and the number of characters to replace; without
    /// a fourth argument, the length of the replacement.
    Overlay,
    /// A part of a date, time or interval. Seconds are exact with 9 decimals, all other parts are
    /// integers.
    Extract(Part),
    /// The number without its sign.
    Absolute,
    /// The least integer not below.
    Ceiling,
    /// The greatest integer not above.
    Floor,
    /// Whether two periods have a timestamp in common: start and end of one, start and end of the
    /// other. Not NULL if two ends are enough to decide.
    Overlaps,
    /// -1, 0 or 1 as the first string is less than, equal to or greater than the second, with the
    /// shorter one padded with blanks: how CHAR(n) compares.
    ComparePadded,
}
