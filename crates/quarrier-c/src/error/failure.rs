//! Errors of the crates below, and their translation into errors for C.

use std::ffi::CString;
use std::io;

use quarrier_sparse::Span as Range;

use super::{Details, Error, Status};

/// Why a call failed, before it becomes a message.
pub(crate) enum Failure {
    /// An argument, and what is wrong with it.
    Argument(&'static str, &'static str),
    Refused(String),
    Sparse(quarrier_sparse::Error),
    Facade(quarrier::Error),
    /// A read of an open source failed.
    Read(String, io::Error),
    Arrow(String),
    Forked,
    Stopped,
    Internal(String),
}

impl From<quarrier_sparse::Error> for Failure {
    fn from(error: quarrier_sparse::Error) -> Self {
        Failure::Sparse(error)
    }
}

/// Implements `From` for errors that `quarrier::Error` can hold.
macro_rules! of_the_facade {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Failure::Facade(error.into())
            }
        })*
    };
}

of_the_facade!(
    quarrier::Error,
    quarrier_core::Error,
    quarrier_messages::Error,
    quarrier_remote::Error,
    quarrier_search::Error
);

impl From<quarrier_filter::Error> for Failure {
    fn from(error: quarrier_filter::Error) -> Self {
        Failure::Facade(quarrier::Error::Condition { place: "statement".to_string(), error })
    }
}

impl Failure {
    pub(crate) fn status(&self) -> Status {
        match self {
            Failure::Argument(..) | Failure::Refused(_) => Status::Argument,
            Failure::Sparse(error) => of_sparse(error),
            Failure::Facade(error) => of_facade(error),
            Failure::Read(_, error) => of_io(error),
            Failure::Arrow(_) => Status::Data,
            Failure::Forked => Status::Forked,
            Failure::Stopped => Status::Stopped,
            Failure::Internal(_) => Status::Internal,
        }
    }

    fn message(&self) -> String {
        match self {
            Failure::Argument(name, reason) => format!("{name}: {reason}"),
            Failure::Sparse(error) => error.to_string(),
            Failure::Facade(error) => in_c(&error.to_string()),
            Failure::Read(name, error) => format!("{name}: cannot be read: {error}"),
            Failure::Arrow(reason) => format!("the Arrow data cannot be used: {reason}"),
            Failure::Forked => {
                "the source was opened before this process was forked; open it again \
                                in the child"
                    .to_string()
            }
            Failure::Stopped => "stopped at the caller's request".to_string(),
            Failure::Refused(message) | Failure::Internal(message) => message.clone(),
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
            Failure::Facade(error) => Details { errno: errno(error), ..Details::default() },
            Failure::Read(_, error) => {
                Details { errno: error.raw_os_error().unwrap_or(0), ..Details::default() }
            }
            _ => Details::default(),
        }
    }

    /// Creates the error object that callers get.
    pub(crate) fn into_error(self) -> Error {
        let mut message = self.message().into_bytes();
        // A zero byte ends strings in C, and names and contents of files may have some.
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

fn of_facade(error: &quarrier::Error) -> Status {
    use quarrier::Error;
    match error {
        Error::NotFound { .. } => Status::NotFound,
        Error::Unsupported { .. } | Error::Files(_) => Status::Unusable,
        Error::Range { .. } | Error::Request(_) | Error::Dictionary { .. } => Status::Argument,
        Error::Source(error) => of_core(error),
        Error::Remote(error) => of_remote(error),
        Error::Search(quarrier_search::Error::Stopped) | Error::Stopped { .. } => Status::Stopped,
        Error::Search(_) | Error::TooLong { .. } | Error::Rules(_) => Status::Pattern,
        Error::Carve(error) => of_carve(error),
        Error::Messages(error) => of_messages(error),
        Error::Condition { error: quarrier_filter::Error::Cancelled, .. } => Status::Stopped,
        Error::Condition { .. } | Error::NoColumn { .. } | Error::NoValue { .. } => Status::Query,
        Error::Kinds { .. } => Status::Data,
        Error::Rejects { error, .. }
        | Error::Output(error)
        | Error::Folder { error, .. }
        | Error::Write { error, .. } => of_io(error),
        _ => Status::Internal,
    }
}

fn of_core(error: &quarrier_core::Error) -> Status {
    use quarrier_core::Error;
    match error {
        Error::Io { error, .. } => of_io(error),
        Error::NotReadable { .. } => Status::Unusable,
        Error::Shrank { .. } => Status::Data,
        Error::BadPlan(_) => Status::Argument,
        Error::NoRoom { .. } => Status::Memory,
        _ => Status::Internal,
    }
}

fn of_remote(error: &quarrier_remote::Error) -> Status {
    use quarrier_remote::Error;
    match error {
        Error::NotFound { .. } => Status::NotFound,
        Error::Closed { .. } => Status::Stopped,
        _ => Status::Remote,
    }
}

fn of_carve(error: &quarrier_carve::Error) -> Status {
    use quarrier_carve::Error;
    match error {
        Error::Source(error) => of_core(error),
        Error::Keep(error) => of_io(error),
        Error::Signature(_) | Error::Folder(_) => Status::Argument,
        _ => Status::Internal,
    }
}

fn of_messages(error: &quarrier_messages::Error) -> Status {
    use quarrier_messages::Error;
    match error {
        Error::Source(error) => of_core(error),
        Error::Format { .. } => Status::Argument,
        Error::Cancelled => Status::Stopped,
        _ => Status::Data,
    }
}

fn of_io(error: &io::Error) -> Status {
    match error.raw_os_error() {
        Some(_) if error.kind() == io::ErrorKind::NotFound => Status::NotFound,
        Some(_) => Status::System,
        None => Status::Data,
    }
}

/// Returns the system's error number, or 0.
fn errno(error: &quarrier::Error) -> i32 {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let number = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if let Some(number) = number {
            return number;
        }
        cause = error.source();
    }
    0
}

/// Rewords advice about command-line options for C.
fn in_c(text: &str) -> String {
    let words = [
        ("; `quarrier query` answers it", ""),
        (", or give it a name with --table", ""),
        ("; try a larger --max-memory", ""),
        ("--regex-max-length", "regex_length_max"),
        ("--resume", "resume"),
        ("--unallocated", "unallocated"),
        ("--range", "range_start"),
    ];
    words.iter().fold(text.to_string(), |text, (option, field)| text.replace(option, field))
}
