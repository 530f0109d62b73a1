//! Why a calculation has no value.

use std::fmt;

use datafusion::error::DataFusionError;

/// A value that no type holds, or one that cannot be added up; it says what to try instead.
#[derive(Debug)]
pub struct Refusal {
    reason: String,
    is_of_arguments: bool,
}

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Refusal { reason: reason.into(), is_of_arguments: false }
    }

    /// A refusal of arguments that are wrong whatever their values are.
    pub(crate) fn of_arguments(reason: impl Into<String>) -> Self {
        Refusal { reason: reason.into(), is_of_arguments: true }
    }

    /// Whether the statement is wrong, rather than a value that it met.
    pub fn is_of_arguments(&self) -> bool {
        self.is_of_arguments
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
