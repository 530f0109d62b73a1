//! Conditions as trees: drawn, written as SQL, and evaluated row by row.

mod drawn;
mod evaluate;
mod written;

pub use drawn::condition;
pub use evaluate::{Fault, matching, matching_whatever, may_fault};

use crate::value::Value;

/// How two operands are compared.
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

/// How whole numbers are calculated with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
}

/// What has a value in each row.
#[derive(Debug, Clone)]
pub enum Operand {
    /// The column at this place of the table.
    Column(usize),
    /// The same in every row, and how it is written.
    Literal(Value, String),
    /// Whole numbers, calculated with 64 bits.
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

/// What is true, false or unknown in each row.
#[derive(Debug, Clone)]
pub enum Condition {
    /// A comparison.
    Compare(Comparison, Operand, Operand),
    /// `[NOT] BETWEEN`
    Between {
        /// What lies between.
        operand: Operand,
        /// Whether `NOT` stands before `BETWEEN`.
        negated: bool,
        /// The least.
        low: Operand,
        /// The greatest.
        high: Operand,
    },
    /// `[NOT] IN (…)`
    In {
        /// What is looked for.
        operand: Operand,
        /// Whether `NOT` stands before `IN`.
        negated: bool,
        /// Where.
        list: Vec<Operand>,
    },
    /// `[NOT] LIKE … [ESCAPE '!']`
    Like {
        /// What is compared with the pattern.
        operand: Operand,
        /// Whether `NOT` stands before `LIKE`.
        negated: bool,
        /// The pattern.
        pattern: String,
        /// Whether `!` escapes.
        is_escaped: bool,
    },
    /// `IS [NOT] NULL`
    IsNull(Operand, bool),
    /// A column of truth values alone.
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
