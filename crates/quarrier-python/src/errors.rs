//! Converts Rust errors to exceptions. The classes are Python's (`quarrier/_errors.py`).

use std::path::Path;

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::sql::{self, Refused};

/// Makes an exception of the class `name` of `quarrier._errors` from the message and attributes.
pub(crate) fn raise<'py>(py: Python<'py>, name: &str, args: impl PyCallArgs<'py>) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let class = py.import("quarrier._errors")?.getattr(name)?;
        Ok(PyErr::from_value(class.call1(args)?))
    };
    make().unwrap_or_else(|error| error)
}

/// Issues warnings of the class `name` of `quarrier._errors`, one for each line.
pub(crate) fn warn(
    py: Python<'_>,
    name: &str,
    lines: impl IntoIterator<Item = impl AsRef<str>>,
) -> PyResult<()> {
    for line in lines {
        let class = py.import("quarrier._errors")?.getattr(name)?;
        py.import("warnings")?.call_method1("warn", (line.as_ref(), class))?;
    }
    Ok(())
}

/// The exception for an error of the facade.
pub(crate) fn of_facade(py: Python<'_>, error: &quarrier::Error) -> PyErr {
    use quarrier::Error;
    let message = in_python(&error.to_string());
    let written = |folder: &Path, error: &std::io::Error| match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, system_words(number), folder.to_path_buf())),
        None => PyOSError::new_err(format!("{}: {error}", folder.display())),
    };
    match error {
        Error::NotFound { name } => {
            PyOSError::new_err((NO_SUCH_FILE, system_words(NO_SUCH_FILE), name.clone()))
        }
        Error::Unsupported { name, reason } => {
            raise(py, "NotReadableError", (message, name, in_python(reason)))
        }
        Error::Range { .. } | Error::Request(_) => raise(py, "PlanError", (message,)),
        Error::Source(error) => of_core(py, error),
        Error::Remote(error) => of_remote(py, error),
        Error::Search(error) | Error::TooLong { error, .. } => of_search(py, error),
        Error::Carve(error) => of_carve(py, error),
        Error::Messages(error) => of_messages(py, error),
        Error::Dictionary { path, .. } => raise(py, "DictionaryError", (message, path.clone())),
        Error::Condition { error, .. } => of_filter(py, error),
        Error::Gauge(error) => of_gauge(py, error),
        Error::Folder { folder, error } | Error::Write { folder, error, .. } => {
            written(folder, error)
        }
        _ => raise(py, "QuarrierError", (message,)),
    }
}

/// The exception for an error of `quarrier-units`.
pub(crate) fn of_units(py: Python<'_>, error: &quarrier_units::Error) -> PyErr {
    use quarrier_units::Error;
    match error {
        Error::Search(error) => of_facade(py, error),
        Error::Request(reason) => raise(py, "PlanError", (reason,)),
        error => raise(py, "QuarrierError", (error.to_string(),)),
    }
}

/// The system's error number for a missing file, ENOENT.
const NO_SUCH_FILE: i32 = 2;

/// The system's message for an error number.
fn system_words(number: i32) -> String {
    let text = std::io::Error::from_raw_os_error(number).to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

/// The exception for an error of `quarrier-search`.
pub(crate) fn of_search(py: Python<'_>, error: &quarrier_search::Error) -> PyErr {
    use quarrier_search::Error;
    let message = in_python(&error.to_string());
    match error {
        Error::Pattern { pattern, reason } => {
            raise(py, "PatternError", (message, pattern, in_python(reason)))
        }
        Error::Line { line, reason } => raise(py, "PatternLineError", (message, line, reason)),
        Error::Set(_) => raise(py, "PatternSetError", (message,)),
        Error::Engine(_) => raise(py, "EngineError", (message,)),
        Error::Device(_) => raise(py, "DeviceError", (message,)),
        _ => raise(py, "QuarrierError", (message,)),
    }
}

/// The exception for an error of `quarrier-sparse`.
#[cold]
pub(crate) fn of_sparse(py: Python<'_>, error: &quarrier_sparse::Error) -> PyErr {
    use quarrier_sparse::Error;
    let message = error.to_string();
    match *error {
        Error::Overflow { offset, length } => {
            raise(py, "OffsetOverflowError", (message, offset, length))
        }
        Error::NotHeld { offset, length, missing } => {
            let missing = (missing.offset, missing.length);
            raise(py, "NotHeldError", (message, offset, length, missing))
        }
        Error::Conflict { offset, held, given } => {
            raise(py, "ConflictError", (message, offset, held, given))
        }
        Error::BeyondLength { offset, length, file_length } => {
            raise(py, "BeyondLengthError", (message, offset, length, file_length))
        }
        Error::Pinned { span } => raise(py, "PinnedError", (message, span.offset, span.length)),
        Error::Corrupt { at, reason } => raise(py, "CorruptError", (message, at, reason)),
        Error::Unknown { ref id } => raise(py, "UnknownFileError", (message, id)),
        Error::Exists { ref id } => raise(py, "DuplicateFileError", (message, id)),
        _ => raise(py, "QuarrierError", (message,)),
    }
}

/// The exception for an error of a source. System errors become Python's own `OSError`, or its
/// subclass for the error number.
pub(crate) fn of_core(py: Python<'_>, error: &quarrier_core::Error) -> PyErr {
    use quarrier_core::Error;
    let message = error.to_string();
    match error {
        Error::Io { source_name, error, .. } => match error.raw_os_error() {
            Some(number) => {
                let text = message.strip_prefix(&format!("{source_name}: ")).unwrap_or(&message);
                PyOSError::new_err((number, text.to_string(), source_name.clone()))
            }
            None => PyOSError::new_err(message),
        },
        Error::NotReadable { source_name, reason } => {
            raise(py, "NotReadableError", (message, source_name, reason))
        }
        Error::Shrank { source_name, opened_bytes, ended_at } => {
            raise(py, "ShrankError", (message, source_name, *opened_bytes, *ended_at))
        }
        Error::BadPlan(_) => raise(py, "PlanError", (message,)),
        Error::NoRoom { asked_bytes, left_bytes, .. } => {
            raise(py, "NoRoomError", (message, *asked_bytes, *left_bytes))
        }
        _ => raise(py, "QuarrierError", (message,)),
    }
}

/// The exception for an error while loading messages.
pub(crate) fn of_messages(py: Python<'_>, error: &quarrier_messages::Error) -> PyErr {
    use quarrier_messages::Error;
    let message = error.to_string();
    match error {
        Error::Source(error) => of_core(py, error),
        Error::Compressed { source_name, .. } => {
            raise(py, "CompressedError", (message, source_name))
        }
        Error::Columns { source_name, .. } => raise(py, "ColumnFileError", (message, source_name)),
        Error::Format { .. } => raise(py, "PlanError", (message,)),
        Error::ArrowColumn { name, reason } => {
            raise(py, "ArrowColumnError", (message, name, reason))
        }
        _ => raise(py, "QuarrierError", (message,)),
    }
}

/// The exception for an error of a condition or statement.
pub(crate) fn of_filter(py: Python<'_>, error: &quarrier_filter::Error) -> PyErr {
    use quarrier_filter::Error;
    let message = in_python(&error.to_string());
    match error {
        Error::Text { line, column, reason } => {
            raise(py, "QueryError", (message, *line, *column, reason))
        }
        Error::Column { error: inner, .. } | Error::Unanswered(inner) => {
            let class = match error {
                Error::Column { .. } => "UnknownColumnError",
                _ if sql::engine().is_none() => "NotInstalledError",
                _ => "UnansweredError",
            };
            match &**inner {
                Error::Text { line, column, reason } => {
                    raise(py, class, (message, *line, *column, in_python(reason)))
                }
                _ => raise(py, class, (&message, 0, 0, &message)),
            }
        }
        Error::Row { row, .. } => raise(py, "RowError", (message, *row)),
        _ => raise(py, "QuarrierError", (message,)),
    }
}

/// The exception for an error of the SQL engine.
pub(crate) fn of_sql(py: Python<'_>, refused: &Refused) -> PyErr {
    let of_text = |class: &str, reason: &str, place: Option<(u64, u64)>| {
        let reason = in_python(reason);
        let (line, column) = place.unwrap_or_default();
        let message = match place {
            Some(_) => format!("line {line}, column {column}: {reason}"),
            None => reason.clone(),
        };
        raise(py, class, (message, line, column, reason))
    };
    match refused {
        Refused::Statement { reason, place } => of_text("QueryError", reason, *place),
        Refused::UnknownColumn { reason } => of_text("UnknownColumnError", reason, None),
        Refused::Table { name, reason } => of_table(py, name, &in_python(reason)),
        Refused::Value { reason } => raise(py, "RowError", (in_python(reason), py.None())),
        Refused::Memory { reason } => raise(py, "NoRoomError", (in_python(reason), 0, 0)),
        Refused::Engine { reason } => raise(py, "QuarrierError", (in_python(reason),)),
        Refused::Stopped => raise(py, "QuarrierError", ("interrupted before there was an answer",)),
    }
}

/// The exception for a table that could not be opened; Python's `FileNotFoundError` if its file is
/// missing.
fn of_table(py: Python<'_>, name: &str, reason: &str) -> PyErr {
    let is_name = !quarrier::source::is_remote(name) && !name.contains(['*', '?', '[', '(']);
    let looked_at = std::fs::metadata(quarrier_core::name::path_of(name))
        .err()
        .and_then(|error| error.raw_os_error());
    match looked_at.filter(|_| is_name) {
        Some(number) => PyOSError::new_err((number, system_words(number), name.to_string())),
        None => {
            let message = format!("{name}: {reason}");
            raise(py, "NotReadableError", (message, name, reason))
        }
    }
}

/// The exception for an error of the gauge.
fn of_gauge(py: Python<'_>, error: &quarrier_gauge::Error) -> PyErr {
    use quarrier_gauge::Error;
    let message = error.to_string();
    match error {
        Error::Io { subject, what, error } => match error.raw_os_error() {
            Some(number) => {
                let text = format!("cannot {what}: {}", system_words(number));
                PyOSError::new_err((number, text, subject.clone()))
            }
            None => PyOSError::new_err(message),
        },
        Error::Wrong { measurement, .. } => {
            raise(py, "MeasurementError", (message, measurement.as_str()))
        }
        Error::NoRoom { asked_bytes, left_bytes, .. } => {
            raise(py, "NoRoomError", (message, *asked_bytes, *left_bytes))
        }
        Error::BadRequest(_) => raise(py, "PlanError", (message,)),
        _ => raise(py, "QuarrierError", (message,)),
    }
}

/// The exception for an error of carving.
fn of_carve(py: Python<'_>, error: &quarrier_carve::Error) -> PyErr {
    use quarrier_carve::Error;
    let message = in_python(&error.to_string());
    match error {
        Error::Source(error) => of_core(py, error),
        Error::Signature(_) => raise(py, "PlanError", (message,)),
        Error::Folder(_) => raise(py, "FolderError", (message,)),
        _ => raise(py, "QuarrierError", (message,)),
    }
}

/// The exception for a failed read.
pub(crate) fn of_io(py: Python<'_>, error: std::io::Error, name: &str) -> PyErr {
    of_core(py, &quarrier_core::Error::io(name, "read", error))
}

/// The exception for an error of a remote source. All are subclasses of `OSError`, like errors of
/// files.
pub(crate) fn of_remote(py: Python<'_>, error: &quarrier_remote::Error) -> PyErr {
    use quarrier_remote::Error;
    let class = match error {
        Error::NotFound { .. } => "RemoteNotFoundError",
        Error::Denied { .. } => "RemoteDeniedError",
        Error::Changed { .. } => "RemoteChangedError",
        Error::NoRanges { .. } => "RemoteRangesError",
        _ => "RemoteError",
    };
    raise(py, class, (in_python(&error.to_string()), error.source_name()))
}

/// Translates the command line's advice into Python's terms.
fn in_python(text: &str) -> String {
    let words = [
        ("`quarrier query` answers it", "pip install 'quarrier[sql]' brings all of SQL"),
        (", or give it a name with --table", ", or give it a name: query(sql, NAME=…)"),
        ("; try a larger --max-memory", ""),
        ("--regex-max-length", "regex_max_length"),
        ("--resume", "resume=True"),
        ("--unallocated", "unallocated=True"),
        ("--range", "range"),
    ];
    words.iter().fold(text.to_string(), |text, (option, keyword)| text.replace(option, keyword))
}
