//! Errors, as a number and as an object.

mod failure;

pub(crate) use failure::Failure;

use std::ffi::{CString, c_char};

use crate::span::Span;

/// The result of a call. Later versions may add values.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It succeeded.
    Ok = 0,
    /// A callback or a quarrier_stop ended it; everything handed out before is right.
    Stopped = 1,
    /// An argument cannot be used: NULL, no UTF-8, a range that ends before it begins.
    Argument = 2,
    /// Bytes were read that the sparse file does not hold; see quarrier_error_span().
    NotHeld = 3,
    /// A write differs from the bytes held; see quarrier_error_span() and quarrier_error_values().
    Conflict = 4,
    /// A range passes the end of the file.
    BeyondLength = 5,
    /// A range passes the greatest offset, 2^64 - 1.
    Overflow = 6,
    /// Bytes are pinned; see quarrier_error_span().
    Pinned = 7,
    /// Stored bytes are damaged.
    Corrupt = 8,
    /// The store has no file of this name.
    UnknownFile = 9,
    /// The store has a file of this name already.
    DuplicateFile = 10,
    /// A name stands for no file, and for nothing that a server has.
    NotFound = 11,
    /// The system refused; see quarrier_error_errno().
    System = 12,
    /// A name or source stands for something that cannot be used in this way.
    Unusable = 13,
    /// A remote source failed.
    Remote = 14,
    /// A pattern, a set of patterns or an engine cannot search.
    Pattern = 15,
    /// A condition or statement is wrong, names a column that is not there, or has no value for a row.
    Query = 16,
    /// A source is damaged, or has not the content that it was opened for.
    Data = 17,
    /// There is not as much memory as the call needs.
    Memory = 18,
    /// The object is used in a child that was forked after it was made.
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

/// The numbers of an error, where it has any.
#[derive(Debug, Clone, Copy, Default)]
struct Details {
    /// Missing, pinned, beyond the end, or that differs.
    span: Option<Span>,
    /// The values of a byte in conflict: the one held and the one given.
    values: Option<(u8, u8)>,
    errno: i32,
}

/// Gives the kind of the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_error_status(error: *const Error) -> Status {
    // SAFETY: the header requires that `error` is NULL or an error that is not freed yet; nothing
    // changes an error.
    unsafe { error.as_ref() }.map_or(Status::Ok, |error| error.status)
}

/// Gives the message: the failure, its place and a remedy, in one line. It lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_error_message(error: *const Error) -> *const c_char {
    // SAFETY: the header requires that `error` is NULL or an error that is not freed yet; nothing
    // changes an error.
    let message = unsafe { error.as_ref() }.map(|error| error.message.as_c_str());
    message.unwrap_or_default().as_ptr()
}

/// The range that the error is about: missing, pinned, or beyond the end; of a conflict the byte that
/// differs. False where it is about none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_error_span(error: *const Error, span: *mut Span) -> bool {
    // SAFETY: the header requires that `error` is NULL or an error that is not freed yet, which
    // nothing changes.
    let error = unsafe { error.as_ref() };
    let Some(about) = error.and_then(|error| error.details.span) else { return false };
    if !span.is_null() {
        // SAFETY: the header requires that `span` is writable where it is not NULL.
        unsafe { span.write(about) };
    }
    true
}

/// Gives the value of the byte as held and as given, if the error is a conflict; false for other errors.
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
            // SAFETY: the header requires that the places are writable where they are not NULL;
            // they may be the same.
            unsafe { place.write(value) };
        }
    }
    true
}

/// The error number (errno) where the system refused, else 0.
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
