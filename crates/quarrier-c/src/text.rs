//! Text for C.

use std::ffi::{CString, OsString, c_char};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::error::Failure;

/// Text as C has it: without the zero bytes that would end it early.
pub(crate) fn c_text(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

/// The name of a source or file, which need not be UTF-8.
///
/// # Safety
/// The pointer is NULL, or of bytes that end with a zero.
pub(crate) unsafe fn file_name(
    pointer: *const c_char,
    name: &'static str,
) -> Result<OsString, Failure> {
    if pointer.is_null() {
        return Err(Failure::Argument(name, "it is NULL"));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { std::ffi::CStr::from_ptr(pointer) };
    Ok(OsString::from_vec(text.to_bytes().to_vec()))
}

/// A path that may be left out.
///
/// # Safety
/// As for [`file_name`].
pub(crate) unsafe fn path(
    pointer: *const c_char,
    name: &'static str,
) -> Result<Option<PathBuf>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    unsafe { file_name(pointer, name) }.map(|name| Some(name.into()))
}
