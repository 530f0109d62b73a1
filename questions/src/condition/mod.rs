//! Conditions as trees: drawn, written as SQL, and evaluated row by row.

mod drawn;
mod evaluate;
mod written;

pub use drawn::condition;
pub use evaluate::{Fault, matching, matching_whatever, may_fault};

use crate::value::Value;

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// An arithmetic operator on integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
}

/// An expression with a value in each row.
#[derive(Debug, Clone)]
pub enum Operand {
    /// The column with this index.
    Column(usize),
    /// A literal, and its SQL.
    Literal(Value, String),
    /// Arithmetic on 64-bit integers.
    Calculated(Arithmetic, Box<Operand>, Box<Operand>),
    /// `CHAR_LENGTH(…)`
    Length(Box<Operand>),
    /// `UPPER(…)`
    Upper(Box<Operand>),
    /// `… || …`
    Joined(Box<Operand>, Box<Operand>),
    /// `COALESCE(…, …)`
    Coalesce(Box<Operand>, Box<Operand>),
    /// `CASE WHEN … THEN … ELSE … END`
    Case(Box<Condition>, Box<Operand>, Box<Operand>),
}

/// An expression that is true, false or unknown in each row.
#[derive(Debug, Clone)]
pub enum Condition {
    /// A comparison.
    Compare(Comparison, Operand, Operand),
    /// `[NOT] BETWEEN`
    Between {
        /// The value to test.
        operand: Operand,
        /// Whether it is `NOT BETWEEN`.
        negated: bool,
        /// The lower bound.
        low: Operand,
        /// The upper bound.
        high: Operand,
    },
    /// `[NOT] IN (…)`
    In {
        /// The value to find.
        operand: Operand,
        /// Whether it is `NOT IN`.
        negated: bool,
        /// The list.
        list: Vec<Operand>,
    },
    /// `[NOT] LIKE … [ESCAPE '!']`
    Like {
        /// The value to match.
        operand: Operand,
        /// Whether it is `NOT LIKE`.
        negated: bool,
        /// The pattern.
        pattern: String,
        /// Whether `!` is the escape character.
        is_escaped: bool,
    },
    /// `IS [NOT] NULL`
    IsNull(Operand, bool),
    /// A column of booleans as a condition.
    Truth(usize),
    /// `NOT`
    Not(Box<Condition>),
    /// `AND`
    And(Box<Condition>, Box<Condition>),
    /// `OR`
    Or(Box<Condition>, Box<Condition>),
    /// `IS UNKNOWN`
    Unknown(Box<Condition>),
}
