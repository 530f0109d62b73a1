//! Why a statement has no answer, as PostgreSQL's clients hear it.

use std::fmt;

/// The codes of SQL and PostgreSQL that are given here.
pub mod state {
    /// A client speaks out of turn, or no sense.
    pub const PROTOCOL: &str = "08P01";
    /// An unsupported feature.
    pub const UNSUPPORTED: &str = "0A000";
    /// A value is too large for its kind.
    pub const OUT_OF_RANGE: &str = "22003";
    /// An invalid date or time.
    pub const DATE: &str = "22007";
    /// Division by zero.
    pub const DIVISION: &str = "22012";
    /// An invalid setting or argument.
    pub const PARAMETER: &str = "22023";
    /// Bytes that are no UTF-8.
    pub const ENCODING: &str = "22021";
    /// A text that does not say a value of the kind wanted.
    pub const TEXT: &str = "22P02";
    /// A value in binary that says none.
    pub const BINARY: &str = "22P03";
    /// An invalid row of a COPY.
    pub const COPY: &str = "22P04";
    /// A column that needs a value has none.
    pub const MISSING: &str = "23502";
    /// A change of something that is read-only.
    pub const READ_ONLY: &str = "25006";
    /// A cursor outside of a transaction.
    pub const NO_TRANSACTION: &str = "25P01";
    /// The transaction failed before.
    pub const FAILED_TRANSACTION: &str = "25P02";
    /// A statement that is not prepared.
    pub const NO_STATEMENT: &str = "26000";
    /// Authorization failed for this name.
    pub const AUTHORIZATION: &str = "28000";
    /// The password is wrong.
    pub const PASSWORD: &str = "28P01";
    /// A cursor that is not there.
    pub const NO_CURSOR: &str = "34000";
    /// Something that the client may not access.
    pub const DENIED: &str = "42501";
    /// A syntax error.
    pub const SYNTAX: &str = "42601";
    /// A column that is not there.
    pub const NO_COLUMN: &str = "42703";
    /// Kinds that do not go together.
    pub const KINDS: &str = "42804";
    /// A function that is not there.
    pub const NO_FUNCTION: &str = "42883";
    /// A statement's name that is taken.
    pub const STATEMENT_TAKEN: &str = "42P05";
    /// A table that is not there.
    pub const NO_TABLE: &str = "42P01";
    /// A table's name that is taken.
    pub const TABLE_TAKEN: &str = "42P07";
    /// A cursor's name that is taken.
    pub const CURSOR_TAKEN: &str = "42P03";
    /// A parameter whose type cannot be inferred.
    pub const PARAMETER_KIND: &str = "42P18";
    /// The disk is full.
    pub const DISK_FULL: &str = "53100";
    /// There is not enough memory.
    pub const MEMORY: &str = "53200";
    /// There are too many clients.
    pub const TOO_MANY: &str = "53300";
    /// More than the configured limit.
    pub const LIMIT: &str = "54000";
    /// Cancelled by the client, or too long.
    pub const CANCELLED: &str = "57014";
    /// The server ends.
    pub const SHUTDOWN: &str = "57P01";
    /// The client is idle for too long, or reads too slowly.
    pub const IDLE: &str = "57P05";
    /// The system refused something.
    pub const SYSTEM: &str = "58000";
    /// A defect.
    pub const INTERNAL: &str = "XX000";
}

/// Why a statement has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// One of [`state`].
    pub state: &'static str,
    /// The error, and its place.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// Whether the connection ends with it.
    pub is_fatal: bool,
}

impl Failure {
    /// A failure of one statement.
    pub fn new(state: &'static str, message: impl Into<String>) -> Self {
        Failure { state, message: message.into(), hint: None, is_fatal: false }
    }

    /// A failure that ends the connection.
    pub fn fatal(state: &'static str, message: impl Into<String>) -> Self {
        Failure { is_fatal: true, ..Failure::new(state, message) }
    }

    /// Says what to try as well.
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

/// The result of a step.
pub type Result<T, E = Failure> = std::result::Result<T, E>;
