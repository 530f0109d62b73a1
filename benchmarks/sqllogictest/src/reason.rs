//! Reasons why a query does not have the expected answer.

use std::fmt;

/// The reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// The table's file is not in the package, or has a format that is not built in.
    NoFile,
    /// It compares or calculates with types for which SQL-92 does not allow it.
    Kinds,
    /// It uses functions or types that quarrier-sql does not have.
    NotBuiltIn,
    /// An error is expected, and its message differs.
    OtherWords,
    /// The answer differs.
    Different,
    /// The query is refused.
    Refused,
}

impl Reason {
    /// Determines the reason from the error message.
    pub(crate) fn of(_sql: &str, error: &str) -> Reason {
        let has = |parts: &[&str]| parts.iter().any(|part| error.contains(part));
        if has(&["query result mismatch", "query columns mismatch"]) {
            Reason::Different
        } else if has(&[
            "query is expected to fail",
            "expected to fail with error",
            "error mismatch",
        ]) {
            Reason::OtherWords
        } else if has(&["cannot be compared", "is not defined"]) {
            Reason::Kinds
        } else if has(&["not found", "No such file", "no such file", "in another format"]) {
            Reason::NoFile
        } else if has(&["Invalid function", "There is no function", "no function"]) {
            Reason::NotBuiltIn
        } else {
            Reason::Refused
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::NoFile => "need a table whose file is not in the package",
            Reason::Kinds => "combine types that SQL-92 does not combine",
            Reason::NotBuiltIn => "need functions that are not built in",
            Reason::OtherWords => "expect an error with another message",
            Reason::Different => "differ",
            Reason::Refused => "are refused",
        })
    }
}
