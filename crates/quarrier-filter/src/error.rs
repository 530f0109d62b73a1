//! The error type of this crate: what failed, where, and what to try.

use std::fmt;

/// Why a condition or a statement cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a condition or a statement that can be bound.
    Text {
        /// Line of the text, from 1; 0 if the position is unknown.
        line: u64,
        /// Character of the line, from 1; 0 if the position is unknown.
        column: u64,
        /// Why it is invalid, and what to try.
        reason: String,
    },
    /// The text names an unknown column.
    Column {
        /// The name as written.
        name: Box<str>,
        /// The position, and what to try: an [`Error::Text`].
        error: Box<Error>,
    },
    /// The text names a list of messages that was not added: see
    /// [`condition_of_messages`](crate::sql::condition_of_messages).
    List {
        /// Its path as written: `leg[*].qty`.
        path: Box<str>,
        /// The error if no message has the list: an [`Error::Text`].
        error: Box<Error>,
    },
    /// The text is SQL, but a part of it that this crate does not answer: joins, grouping,
    /// subqueries. The [`Error::Text`] in it names the part.
    Unanswered(Box<Error>),
    /// The expression has no value for a row, and that row's result depends on it.
    Row {
        /// The row, from 0.
        row: u64,
        /// The fault.
        fault: Fault,
    },
    /// The scan was stopped before its end.
    Cancelled,
    /// The device's kernel does not support a part of a condition.
    NotOnDevice {
        /// The index of the condition, from 0.
        condition: usize,
        /// The unsupported part of it.
        what: String,
    },
    /// The device failed, or has no room for the columns.
    Device(quarrier_gpu::Error),
}

/// Why an expression has no value for a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Something was divided by zero.
    DivisionByZero,
    /// A number, date or interval is out of the range of its type.
    Overflow {
        /// The kind of value.
        what: &'static str,
    },
    /// A value cannot be converted.
    Cast {
        /// The value, shortened.
        value: String,
        /// The target type, with its article, and how to write a value of it.
        to: &'static str,
    },
    /// A pattern is invalid.
    Pattern {
        /// Why it is invalid.
        reason: String,
    },
    /// A function does not take an argument.
    Argument {
        /// The function, and the arguments it takes.
        reason: String,
    },
    /// The expression combines incompatible types.
    Kinds {
        /// The operation.
        what: &'static str,
    },
}

impl Error {
    pub(crate) fn text(line: u64, column: u64, reason: impl Into<String>) -> Self {
        // The maximum length of a quoted reason.
        const REASON_CHARACTERS_MAX: usize = 600;
        Error::Text { line, column, reason: one_line(&reason.into(), REASON_CHARACTERS_MAX) }
    }
}

/// At most `characters_max` characters, without line ends and other control characters.
pub(crate) fn one_line(text: &str, characters_max: usize) -> String {
    let mut shown: String = text
        .chars()
        .take(characters_max)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    if text.chars().nth(characters_max).is_some() {
        shown.push('…');
    }
    shown
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Text { line: 0, reason, .. } => f.write_str(reason),
            Error::Text { line, column, reason } => {
                write!(f, "line {line}, column {column}: {reason}")
            }
            Error::Column { error, .. } | Error::List { error, .. } | Error::Unanswered(error) => {
                error.fmt(f)
            }
            Error::Row { row, fault } => write!(f, "row {row}: {fault}"),
            Error::Cancelled => f.write_str("cancelled before the scan was finished"),
            Error::NotOnDevice { condition, what } => {
                write!(
                    f,
                    "condition {condition} {what}, which devices do not support; try the scan"
                )
            }
            Error::Device(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<quarrier_gpu::Error> for Error {
    fn from(error: quarrier_gpu::Error) -> Self {
        Error::Device(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::DivisionByZero => f.write_str(
                "division by zero; try NULLIF(divisor, 0), which makes the quotient NULL",
            ),
            Fault::Overflow { what } => write!(f, "{what} out of range"),
            Fault::Cast { value, to } => write!(f, "'{value}' is not {to}"),
            Fault::Pattern { reason } | Fault::Argument { reason } => f.write_str(reason),
            Fault::Kinds { what } => write!(f, "{what} of incompatible types"),
        }
    }
}

impl std::error::Error for Fault {}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
