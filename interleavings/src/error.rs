//! The reasons why a write failed.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Error {
    Closed,
    Stopped { reason: String },
}

pub(crate) type Result<T> = std::result::Result<T, Error>;
