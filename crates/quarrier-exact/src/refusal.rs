//! The error of a calculation.

use std::fmt;

use datafusion::error::DataFusionError;

/// Why a calculation has no result; the message says what to try instead.
#[derive(Debug)]
pub struct Refusal {
    reason: String,
    concerns_arguments: bool,
}

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Refusal { reason: reason.into(), concerns_arguments: false }
    }

    /// A refusal of arguments that are wrong for any values.
    pub(crate) fn of_arguments(reason: impl Into<String>) -> Self {
        Refusal { reason: reason.into(), concerns_arguments: true }
    }

    /// Whether the statement is wrong, rather than a value in its rows.
    pub fn concerns_arguments(&self) -> bool {
        self.concerns_arguments
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for DataFusionError {
    fn from(refusal: Refusal) -> Self {
        DataFusionError::External(Box::new(refusal))
    }
}
