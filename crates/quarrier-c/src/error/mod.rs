//! Errors, as a status and as an object.

mod failure;

pub(crate) use failure::Failure;

use std::ffi::{CString, c_char};

use crate::span::Span;

/// The result of a call. Later versions may add values.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// A callback or a quarrier_stop ended the call; everything passed to callbacks before is correct.
    Stopped = 1,
    /// An argument is invalid: NULL, not UTF-8, a range that ends before it begins.
    Argument = 2,
    /// A read touched bytes that the sparse file does not hold; see quarrier_error_span().
    NotHeld = 3,
    /// A write differs from the bytes held; see quarrier_error_span() and quarrier_error_values().
    Conflict = 4,
    /// A range extends past the end of the file.
    BeyondLength = 5,
    /// A range extends past the greatest offset, 2^64 - 1.
    Overflow = 6,
    /// Bytes are pinned; see quarrier_error_span().
    Pinned = 7,
    /// Stored bytes are damaged.
    Corrupt = 8,
    /// The store has no file of this name.
    UnknownFile = 9,
    /// The store already has a file of this name.
    DuplicateFile = 10,
    /// A name refers to nothing, locally or on a server.
    NotFound = 11,
    /// The operating system returned an error; see quarrier_error_errno().
    System = 12,
    /// A name or source cannot be used in this way.
    Unusable = 13,
    /// A remote source failed.
    Remote = 14,
    /// A pattern, a set of patterns or an engine is invalid.
    Pattern = 15,
    /// A condition or statement is invalid, names a missing column, or has no value for a row.
    Query = 16,
    /// A source is damaged, or does not have the expected content.
    Data = 17,
    /// The call needs more memory than there is.
    Memory = 18,
    /// The object is used in a child that was forked after the object was created.
    Forked = 19,
    /// An internal error: a defect of the library. Please report it.
    Internal = 20,
}

/// Why a call failed.
pub struct Error {
    status: Status,
    message: CString,
    details: Details,
}

/// The numbers of an error, if it has any.
#[derive(Debug, Clone, Copy, Default)]
struct Details {
    /// The range that is missing, pinned, beyond the end, or different.
    span: Option<Span>,
    /// The values of a byte in conflict: the one held and the one given.
    values: Option<(u8, u8)>,
    errno: i32,
}

/// Returns the status of an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_error_status(error: *const Error) -> Status {
    // SAFETY: the header requires that `error` is NULL or an error that is not freed yet; nothing
    // changes an error.
    unsafe { error.as_ref() }.map_or(Status::Ok, |error| error.status)
}

/// Returns the message: the problem, its place and what to try, in one line. It is valid as long as the
/// error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_error_message(error: *const Error) -> *const c_char {
    // SAFETY: the header requires that `error` is NULL or an error that is not freed yet; nothing
    // changes an error.
    let message = unsafe { error.as_ref() }.map(|error| error.message.as_c_str());
    message.unwrap_or_default().as_ptr()
}

/// Stores the range that the error is about: missing, pinned, or beyond the end; for a conflict, the
/// byte that differs. Returns false if the error has no range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_error_span(error: *const Error, span: *mut Span) -> bool {
    // SAFETY: the header requires that `error` is NULL or an error that is not freed yet, which
    // nothing changes.
    let error = unsafe { error.as_ref() };
    let Some(about) = error.and_then(|error| error.details.span) else { return false };
    if !span.is_null() {
        // SAFETY: the header requires that `span` is writable if it is not NULL.
        unsafe { span.write(about) };
    }
    true
}

/// Stores the value of the byte as held and as given, if the error is a conflict. Returns false for
/// other errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_error_values(
    error: *const Error,
    held: *mut u8,
    given: *mut u8,
) -> bool {
    // SAFETY: the header requires that `error` is NULL or an error that is not freed yet, which
    // nothing changes.
    let error = unsafe { error.as_ref() };
    let Some(values) = error.and_then(|error| error.details.values) else { return false };
    for (place, value) in [(held, values.0), (given, values.1)] {
        if !place.is_null() {
            // SAFETY: the header requires that the places are writable if they are not NULL; they may
            // be the same.
            unsafe { place.write(value) };
        }
    }
    true
}

/// Returns the error number (errno) of the operating system, or 0 for other errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_error_errno(error: *const Error) -> i32 {
    // SAFETY: the header requires that `error` is NULL or an error that is not freed yet; nothing
    // changes an error.
    unsafe { error.as_ref() }.map_or(0, |error| error.details.errno)
}

/// Frees an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_error_free(error: *mut Error) {
    if !error.is_null() {
        // SAFETY: `error` is not NULL; callers get errors only from `Box::into_raw` of a
        // `Box<Error>`, and the header lets them free each once.
        drop(unsafe { Box::from_raw(error) });
    }
}
