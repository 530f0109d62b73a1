//! Failures as they come from below, and what C gets of them.

use std::ffi::CString;

use quarrier_sparse::Span as Range;

use super::{Details, Error, Status};

/// Why a call failed, before anybody asked for words.
pub(crate) enum Failure {
    /// An argument, and what is wrong with it.
    Argument(&'static str, &'static str),
    Sparse(quarrier_sparse::Error),
    Stopped,
    Internal(String),
}

impl From<quarrier_sparse::Error> for Failure {
    fn from(error: quarrier_sparse::Error) -> Self {
        Failure::Sparse(error)
    }
}

impl Failure {
    pub(crate) fn status(&self) -> Status {
        match self {
            Failure::Argument(..) => Status::Argument,
            Failure::Sparse(error) => of_sparse(error),
            Failure::Stopped => Status::Stopped,
            Failure::Internal(_) => Status::Internal,
        }
    }

    fn message(&self) -> String {
        match self {
            Failure::Argument(name, reason) => format!("{name}: {reason}"),
            Failure::Sparse(error) => error.to_string(),
            Failure::Stopped => "stopped as the caller asked".to_string(),
            Failure::Internal(message) => message.clone(),
        }
    }

    fn details(&self) -> Details {
        use quarrier_sparse::Error;
        let of = |span: Range| Details { span: Some(span.into()), ..Details::default() };
        match self {
            Failure::Sparse(Error::NotHeld { missing, .. }) => of(*missing),
            Failure::Sparse(Error::Pinned { span }) => of(*span),
            Failure::Sparse(Error::Conflict { offset, held, given }) => {
                Details { values: Some((*held, *given)), ..of(Range::new(*offset, 1)) }
            }
            Failure::Sparse(
                Error::BeyondLength { offset, length, .. } | Error::Overflow { offset, length },
            ) => of(Range::new(*offset, *length)),
            _ => Details::default(),
        }
    }

    /// The object that callers get.
    pub(crate) fn into_error(self) -> Error {
        let mut message = self.message().into_bytes();
        // Text of C ends with a zero byte, which a name or the content of a file may have.
        message.retain(|&byte| byte != 0);
        Error {
            status: self.status(),
            message: CString::new(message).unwrap_or_default(),
            details: self.details(),
        }
    }
}

fn of_sparse(error: &quarrier_sparse::Error) -> Status {
    use quarrier_sparse::Error;
    match error {
        Error::Overflow { .. } => Status::Overflow,
        Error::NotHeld { .. } => Status::NotHeld,
        Error::Conflict { .. } => Status::Conflict,
        Error::BeyondLength { .. } => Status::BeyondLength,
        Error::Pinned { .. } => Status::Pinned,
        Error::Corrupt { .. } => Status::Corrupt,
        Error::Unknown { .. } => Status::UnknownFile,
        Error::Exists { .. } => Status::DuplicateFile,
        _ => Status::Internal,
    }
}
