//! Conversion of strings to and from C.

use std::ffi::{CString, OsString, c_char};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::error::Failure;

/// Converts a string to a C string. Drops zero bytes, which would end it early.
pub(crate) fn c_text(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

/// Copies the name of a source or file, which need not be UTF-8.
///
/// # Safety
/// The pointer is NULL, or points to bytes that end with a zero byte.
pub(crate) unsafe fn file_name(
    pointer: *const c_char,
    name: &'static str,
) -> Result<OsString, Failure> {
    if pointer.is_null() {
        return Err(Failure::Argument(name, "it is NULL"));
    }
    // SAFETY: the pointer is not NULL, and the caller promises a zero byte at the end; the bytes
    // are copied before this call returns.
    let text = unsafe { std::ffi::CStr::from_ptr(pointer) };
    Ok(OsString::from_vec(text.to_bytes().to_vec()))
}

/// Copies an optional path.
///
/// # Safety
/// That of [`file_name`].
pub(crate) unsafe fn path(
    pointer: *const c_char,
    name: &'static str,
) -> Result<Option<PathBuf>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller keeps the contract of `file_name`.
    unsafe { file_name(pointer, name) }.map(|name| Some(name.into()))
}
