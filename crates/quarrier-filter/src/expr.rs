//! A condition, or any expression in it, bound to the columns of a schema.

use quarrier_messages::{Kind, Value};

/// An expression whose kinds agree. `BETWEEN`, row values and `<>` lists are written with the
/// nodes below; NOT stays where it was.
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
    /// Text that matches a pattern.
    Match {
        /// The text.
        operand: Box<Expr>,
        /// In the language of `by`.
        pattern: Box<Expr>,
        /// The character of `ESCAPE`, text of one character.
        escape: Option<Box<Expr>>,
        /// Which language.
        by: Matcher,
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

/// The language of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matcher {
    /// `LIKE`: `%` any text, `_` one character.
    Like,
    /// `SIMILAR TO`, the regular expressions of SQL:1999.
    Similar,
    /// `LIKE_REGEX`, `REGEXP` and `~`: a regular expression found anywhere; an extension.
    Regex,
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
    /// A kind of columns.
    Kind(Kind),
    /// Whole numbers of so many bits.
    Integer {
        /// 16, 32 or 64.
        bits: u8,
    },
    /// Exact numbers.
    Numeric {
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// Text of exactly so many characters, filled up with blanks.
    Character(u32),
    /// Text of at most so many characters.
    Varying(u32),
    /// A time of day.
    Time,
    /// A span of time.
    Interval,
}

/// Functions of SQL-92 on text, dates and numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Function {
    /// The first argument that is not NULL.
    Coalesce,
    /// The first argument, NULL where both are equal.
    NullIf,
    /// Letters large.
    Upper,
    /// Letters small.
    Lower,
    /// Characters of a text.
    CharacterLength,
    /// Bytes of a text.
    OctetLength,
}
