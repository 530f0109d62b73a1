//! Pointers that callers give, looked at before they are believed.

use std::ffi::{CStr, c_char, c_void};

use crate::error::Failure;

const NULL: &str = "it is NULL";

/// The object behind a pointer, shared with other threads.
///
/// # Safety
/// The pointer is NULL, or valid for `'a` and nobody changes the object meanwhile.
#[inline]
pub(crate) unsafe fn object<'a, T>(
    pointer: *const T,
    name: &'static str,
) -> Result<&'a T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or(Failure::Argument(name, NULL))
}

/// The object behind a pointer, which the calling thread is alone with.
///
/// # Safety
/// The pointer is NULL, or valid for `'a` and nobody else uses the object meanwhile.
#[inline]
pub(crate) unsafe fn object_mut<'a, T>(
    pointer: *mut T,
    name: &'static str,
) -> Result<&'a mut T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_mut() }.ok_or(Failure::Argument(name, NULL))
}

/// Text.
///
/// # Safety
/// The pointer is NULL, or of bytes that end with a zero and stay for `'a`.
pub(crate) unsafe fn text<'a>(
    pointer: *const c_char,
    name: &'static str,
) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::Argument(name, NULL));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::Argument(name, "it is not UTF-8"))
}

/// Text that may be left out.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn optional_text<'a>(
    pointer: *const c_char,
    name: &'static str,
) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    unsafe { text(pointer, name) }.map(Some)
}

/// Bytes to read from; of a length of 0 the pointer is not looked at.
///
/// # Safety
/// The pointer is NULL, or of `length` bytes that nobody changes for `'a`.
#[inline]
pub(crate) unsafe fn bytes<'a>(
    pointer: *const c_void,
    length: usize,
    name: &'static str,
) -> Result<&'a [u8], Failure> {
    // SAFETY: as the caller promises.
    unsafe { items(pointer.cast(), length, name) }
}

/// As [`bytes`], of any values.
///
/// # Safety
/// The pointer is NULL, or of `count` values that nobody changes for `'a`.
#[inline]
pub(crate) unsafe fn items<'a, T>(
    pointer: *const T,
    count: usize,
    name: &'static str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, count, name)?;
    // SAFETY: as the caller promises; `check` has seen that it is aligned, not NULL, and no longer than any
    // object may be.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Room for values; of a count of 0 the pointer is not looked at.
///
/// # Safety
/// The pointer is NULL, or of `count` values that were written once and that nobody else uses for `'a`.
#[inline]
pub(crate) unsafe fn items_mut<'a, T>(
    pointer: *mut T,
    count: usize,
    name: &'static str,
) -> Result<&'a mut [T], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer, count, name)?;
    // SAFETY: as for `items`.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

fn check<T>(pointer: *const T, count: usize, name: &'static str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::Argument(name, NULL));
    }
    if !pointer.is_aligned() {
        return Err(Failure::Argument(name, "it is not aligned"));
    }
    let is_possible =
        count.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize);
    if is_possible { Ok(()) } else { Err(Failure::Argument(name, "it is longer than the memory")) }
}

/// Stores a result where the caller wants it.
///
/// # Safety
/// The pointer is NULL or can be written to.
#[inline]
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as the caller promises.
        unsafe { place.write(value) };
    }
}

/// Stores an object where the caller wants it, who frees it.
///
/// # Safety
/// The pointer is NULL or can be written to.
pub(crate) unsafe fn put_new<T>(
    place: *mut *mut T,
    name: &'static str,
    value: T,
) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::Argument(name, NULL));
    }
    // SAFETY: as the caller promises.
    unsafe { place.write(Box::into_raw(Box::new(value))) };
    Ok(())
}

/// Frees an object that [`put_new`] handed out.
///
/// # Safety
/// The pointer is NULL, or from `put_new` and not freed yet.
pub(crate) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// A structure of plain numbers and pointers that begins with its size in bytes, and grows at its end from
/// version to version.
///
/// # Safety
/// Any bytes are a value of the type, its first field is a `usize`, and it has no padding at its end that
/// later versions fill.
pub(crate) unsafe trait Sized: Copy + Default {}

/// A structure of the caller's; what it does not know of is as in the default.
///
/// # Safety
/// The pointer is NULL, or that of a structure that is as long as it says.
pub(crate) unsafe fn structure<T: Sized>(
    pointer: *const T,
    name: &'static str,
) -> Result<T, Failure> {
    let mut value = T::default();
    if pointer.is_null() {
        return Ok(value);
    }
    // SAFETY: as the caller promises, and by the trait every such structure begins with its size.
    let struct_bytes = unsafe { pointer.cast::<usize>().read_unaligned() };
    let bytes = usable(struct_bytes, size_of::<T>(), name)?;
    // SAFETY: both have so many bytes, and by the trait any of them are a value.
    unsafe {
        std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut value).cast::<u8>(), bytes)
    };
    Ok(value)
}

/// Fills a structure of the caller's, as far as that knows the fields; its size stays.
///
/// # Safety
/// The pointer is NULL, or that of a structure that is as long as it says.
pub(crate) unsafe fn fill<T: Sized>(
    pointer: *mut T,
    value: &T,
    name: &'static str,
) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::Argument(name, NULL));
    }
    // SAFETY: as the caller promises, and by the trait every such structure begins with its size.
    let struct_bytes = unsafe { pointer.cast::<usize>().read_unaligned() };
    let bytes = usable(struct_bytes, size_of::<T>(), name)?;
    let skipped = size_of::<usize>();
    // SAFETY: both have so many bytes.
    unsafe {
        let from = (&raw const *value).cast::<u8>().add(skipped);
        std::ptr::copy_nonoverlapping(from, pointer.cast::<u8>().add(skipped), bytes - skipped);
    }
    Ok(())
}

/// The bytes of a structure that both sides know.
fn usable(struct_bytes: usize, known_bytes: usize, name: &'static str) -> Result<usize, Failure> {
    if struct_bytes < size_of::<usize>() || struct_bytes > STRUCT_BYTES_MAX {
        return Err(Failure::Argument(name, "set its struct_bytes to its sizeof"));
    }
    Ok(struct_bytes.min(known_bytes))
}

/// No structure will ever be as long; what says so was not initialised.
const STRUCT_BYTES_MAX: usize = 4096;
