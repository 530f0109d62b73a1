//! Why a query has not the answer that is expected.

use std::fmt;

/// The kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// The table lies in a file that is not in the package, or of a kind that is not built in.
    NoFile,
    /// It compares or calculates what SQL-92 does not let be compared.
    Kinds,
    /// It asks functions or kinds that are no part of quarrier-sql.
    NotBuiltIn,
    /// An error is expected, and comes in other words.
    OtherWords,
    /// The answer differs.
    Different,
    /// It is refused.
    Refused,
}

impl Reason {
    /// Told by the words of the error.
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
        } else if has(&["do not compare", "calculates nothing"]) {
            Reason::Kinds
        } else if has(&["not found", "No such file", "no such file"]) {
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
            Reason::Kinds => "compare or add up what SQL-92 does not let",
            Reason::NotBuiltIn => "need functions that are not built in",
            Reason::OtherWords => "expect an error in other words",
            Reason::Different => "differ",
            Reason::Refused => "are refused",
        })
    }
}
