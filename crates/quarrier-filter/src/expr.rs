//! A condition, or any expression in it, bound to the columns of a schema.

use std::sync::Arc;

use quarrier_messages::{Kind, Value};

use crate::Keys;
use crate::calendar::Part;
pub use crate::matching::Matcher;
use crate::matching::Matching;

/// An expression whose kinds agree. `BETWEEN`, row values and simple CASE are written with the
/// nodes below, their operands repeated; NOT stays where it was. Nothing in it depends on the
/// time or the place: `CURRENT_TIMESTAMP` is a literal.
///
/// What [`sql`](crate::sql) binds nests at most [`DEPTH_MAX`](crate::sql::DEPTH_MAX) deep, so
/// that it may be walked by recursion.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A value as it stands.
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
        /// What is looked for.
        operand: Box<Expr>,
        /// Where. At least one.
        list: Vec<Expr>,
    },
    /// The value of the column at this place is a whole number of `keys`; UNKNOWN where it is NULL.
    /// No text says this: it comes from what else a plan has found.
    Among {
        /// Where in the schema.
        column: usize,
        /// What is asked for.
        keys: Arc<Keys>,
    },
    /// Text that matches a pattern; UNKNOWN where one is NULL.
    Match {
        /// The text.
        operand: Box<Expr>,
        /// What it must look like.
        pattern: Pattern,
    },
    /// `IS NULL`.
    IsNull(Box<Expr>),
    /// `IS TRUE` (`Some(true)`), `IS FALSE`, `IS UNKNOWN` (`None`).
    Is {
        /// A truth value.
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
    /// The operand as another kind.
    Cast {
        /// What is converted.
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

/// What is calculated of two values.
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

/// What `CAST` converts into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CastTo {
    /// A kind of columns; never [`Kind::Decimal`], which is `Numeric`, and never [`Kind::Null`].
    Kind(Kind),
    /// Whole numbers of so many bits.
    Integer {
        /// 16 or 32; 64 is [`Kind::Integer`].
        bits: u8,
    },
    /// Exact numbers.
    Numeric {
        /// Digits in all, at most 38.
        precision: u8,
        /// Digits behind the point, at most `precision`.
        scale: u8,
    },
    /// Text of exactly so many characters, filled up with blanks or cut off.
    Character(u32),
    /// Text of at most so many characters, cut off.
    Varying(u32),
    /// A time of day.
    Time,
    /// A span of time in years and months.
    IntervalMonths,
    /// A span of time in days, hours, minutes and seconds.
    IntervalSeconds,
}

/// Functions of SQL-92 on text, dates and numbers. NULL where an argument is, but for
/// `Coalesce` and `NullIf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Function {
    /// The first argument that is not NULL; those behind it are not evaluated. The result is of
    /// the kind that all arguments have in common.
    Coalesce,
    /// The first argument, NULL where both are equal.
    NullIf,
    /// Letters large, by Unicode.
    Upper,
    /// Letters small, by Unicode.
    Lower,
    /// Characters of a text.
    CharacterLength,
    /// Bytes of a text.
    OctetLength,
    /// Where the first text stands in the second, from 1 in characters; 0 where it does not.
    Position,
    /// Text, start from 1, and the number of characters if there is a third argument.
    Substring,
    /// Text, and what is taken away: one character.
    Trim {
        /// At the beginning.
        leading: bool,
        /// At the end.
        trailing: bool,
    },
    /// Text, what is put in, start from 1, and how many characters give way; as many as are put
    /// in where there is no fourth argument.
    Overlay,
    /// A part of a date, time or span of time. Seconds are exact with 9 digits behind the point,
    /// all else whole.
    Extract(Part),
    /// The number without its sign.
    Absolute,
    /// The least whole number not below.
    Ceiling,
    /// The greatest whole number not above.
    Floor,
    /// Whether two periods have a point in common: start and end of one, start and end of the
    /// other. Not NULL where two ends are enough to tell.
    Overlaps,
    /// -1, 0 or 1 as the first text is before, equal to or behind the second, the shorter one
    /// filled up with blanks: how CHAR(n) compares.
    ComparePadded,
}
