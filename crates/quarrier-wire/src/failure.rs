//! Errors in the form of PostgreSQL's protocol.

use std::fmt;

/// The SQLSTATE codes in use.
pub mod state {
    /// A protocol violation.
    pub const PROTOCOL: &str = "08P01";
    /// An unsupported feature.
    pub const UNSUPPORTED: &str = "0A000";
    /// A value is out of range for its type.
    pub const OUT_OF_RANGE: &str = "22003";
    /// An invalid date or time.
    pub const DATE: &str = "22007";
    /// Division by zero.
    pub const DIVISION: &str = "22012";
    /// An invalid setting or argument.
    pub const PARAMETER: &str = "22023";
    /// Bytes are not valid UTF-8.
    pub const ENCODING: &str = "22021";
    /// A string is not a value of the requested type.
    pub const TEXT: &str = "22P02";
    /// A binary value is invalid.
    pub const BINARY: &str = "22P03";
    /// An invalid row of a COPY.
    pub const COPY: &str = "22P04";
    /// A required column has no value.
    pub const MISSING: &str = "23502";
    /// A change of read-only data.
    pub const READ_ONLY: &str = "25006";
    /// A cursor outside of a transaction.
    pub const NO_TRANSACTION: &str = "25P01";
    /// The transaction failed earlier.
    pub const FAILED_TRANSACTION: &str = "25P02";
    /// A prepared statement that does not exist.
    pub const NO_STATEMENT: &str = "26000";
    /// Authorization failed for this user.
    pub const AUTHORIZATION: &str = "28000";
    /// The password is wrong.
    pub const PASSWORD: &str = "28P01";
    /// A cursor that does not exist.
    pub const NO_CURSOR: &str = "34000";
    /// The client lacks a privilege.
    pub const DENIED: &str = "42501";
    /// A syntax error.
    pub const SYNTAX: &str = "42601";
    /// A column that does not exist.
    pub const NO_COLUMN: &str = "42703";
    /// Incompatible types.
    pub const KINDS: &str = "42804";
    /// A function that does not exist.
    pub const NO_FUNCTION: &str = "42883";
    /// A statement with this name exists.
    pub const STATEMENT_TAKEN: &str = "42P05";
    /// A table that does not exist.
    pub const NO_TABLE: &str = "42P01";
    /// A table with this name exists.
    pub const TABLE_TAKEN: &str = "42P07";
    /// A cursor with this name exists.
    pub const CURSOR_TAKEN: &str = "42P03";
    /// A parameter whose type cannot be inferred.
    pub const PARAMETER_KIND: &str = "42P18";
    /// The disk is full.
    pub const DISK_FULL: &str = "53100";
    /// There is not enough memory.
    pub const MEMORY: &str = "53200";
    /// There are too many clients.
    pub const TOO_MANY: &str = "53300";
    /// A configured limit is exceeded.
    pub const LIMIT: &str = "54000";
    /// Cancelled by the client, or timed out.
    pub const CANCELLED: &str = "57014";
    /// The server shuts down.
    pub const SHUTDOWN: &str = "57P01";
    /// The client is idle for too long, or reads too slowly.
    pub const IDLE: &str = "57P05";
    /// The operating system reported an error.
    pub const SYSTEM: &str = "58000";
    /// An internal error.
    pub const INTERNAL: &str = "XX000";
}

/// The error of a statement or connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The SQLSTATE, one of [`state`].
    pub state: &'static str,
    /// The error and its place.
    pub message: String,
    /// The remedy, if known.
    pub hint: Option<String>,
    /// Whether the error ends the connection.
    pub is_fatal: bool,
}

impl Failure {
    /// Makes an error of one statement.
    pub fn new(state: &'static str, message: impl Into<String>) -> Self {
        Failure { state, message: message.into(), hint: None, is_fatal: false }
    }

    /// Makes an error that ends the connection.
    pub fn fatal(state: &'static str, message: impl Into<String>) -> Self {
        Failure { is_fatal: true, ..Failure::new(state, message) }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Failure { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// The result of an operation of this crate.
pub type Result<T, E = Failure> = std::result::Result<T, E>;
