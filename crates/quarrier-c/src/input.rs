//! Validates the pointers that callers pass.

use std::ffi::{CStr, c_char, c_void};

use crate::error::Failure;

const NULL: &str = "it is NULL";

/// Borrows the object at a pointer that several threads may share.
///
/// # Safety
/// The pointer is NULL, or aligned and valid for `'a`, and nobody changes the object meanwhile.
#[inline]
pub(crate) unsafe fn object<'a, T>(
    pointer: *const T,
    name: &'static str,
) -> Result<&'a T, Failure> {
    // SAFETY: the caller promises that the pointer is NULL, or aligned, valid and unchanged for
    // `'a`.
    unsafe { pointer.as_ref() }.ok_or(Failure::Argument(name, NULL))
}

/// Borrows the object at a pointer that only the calling thread uses.
///
/// # Safety
/// The pointer is NULL, or aligned and valid for `'a`, and nobody else uses the object meanwhile.
#[inline]
pub(crate) unsafe fn object_mut<'a, T>(
    pointer: *mut T,
    name: &'static str,
) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller promises that the pointer is NULL, or aligned, valid and used by nobody
    // else for `'a`.
    unsafe { pointer.as_mut() }.ok_or(Failure::Argument(name, NULL))
}

/// Borrows a string.
///
/// # Safety
/// The pointer is NULL, or points to bytes that end with a zero byte, stay valid for `'a`, and do
/// not change meanwhile.
pub(crate) unsafe fn text<'a>(
    pointer: *const c_char,
    name: &'static str,
) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::Argument(name, NULL));
    }
    // SAFETY: the pointer is not NULL, and the caller promises a zero byte at the end and bytes
    // that stay valid and unchanged for `'a`.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::Argument(name, "it is not UTF-8"))
}

/// Borrows an optional string.
///
/// # Safety
/// That of [`text`].
pub(crate) unsafe fn optional_text<'a>(
    pointer: *const c_char,
    name: &'static str,
) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller keeps the contract of `text`.
    unsafe { text(pointer, name) }.map(Some)
}

/// Borrows bytes to read. Does not look at the pointer if the length is 0.
///
/// # Safety
/// The pointer is NULL, or valid for `length` bytes that nobody changes for `'a`: the head of the header asks
/// that of callers, for all their threads and processes.
#[inline]
pub(crate) unsafe fn bytes<'a>(
    pointer: *const c_void,
    length: usize,
    name: &'static str,
) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller promises `length` bytes, and any byte is a valid `u8`.
    unsafe { items(pointer.cast(), length, name) }
}

/// Borrows values to read, like [`bytes`].
///
/// # Safety
/// The pointer is NULL, or valid for `count` values that nobody changes for `'a`.
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
    // SAFETY: `check` has seen that the pointer is not NULL, that it is aligned, and that `count`
    // values are at most `isize::MAX` bytes. The caller promises that all of them are there,
    // initialised, and unchanged for `'a`.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Borrows room for values. Does not look at the pointer if the count is 0.
///
/// # Safety
/// The pointer is NULL, or valid for `count` values that nobody else uses for `'a`: the head of the header asks
/// that of callers. C may not have written them yet; callees write each before they read it.
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
    // SAFETY: `check` has seen that the pointer is not NULL, that it is aligned, and that `count`
    // values are at most `isize::MAX` bytes. The caller promises that all of them are there and used
    // by nobody else for `'a`. Values are numbers, for which any bits are valid, and memory that comes
    // from beyond Rust has some bits everywhere.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

/// Checks a pointer to `count` values without reading them.
///
/// # Errors
/// If it is NULL or not aligned, or the values would not fit in memory.
pub(crate) fn check<T>(pointer: *const T, count: usize, name: &'static str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::Argument(name, NULL));
    }
    if !pointer.is_aligned() {
        return Err(Failure::Argument(name, "it is not aligned"));
    }
    let is_possible =
        count.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize);
    if is_possible {
        Ok(())
    } else {
        Err(Failure::Argument(name, "it is longer than the address space"))
    }
}

/// Stores a result if the caller wants it.
///
/// # Safety
/// The pointer is NULL, or aligned and writable.
#[inline]
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: it is not NULL, and the caller promises that it is aligned and writable. `write`
        // does not read the old value.
        unsafe { place.write(value) };
    }
}

/// Stores a new object, which the caller must free.
///
/// # Safety
/// The pointer is NULL, or aligned and writable.
pub(crate) unsafe fn put_new<T>(
    place: *mut *mut T,
    name: &'static str,
    value: T,
) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::Argument(name, NULL));
    }
    // SAFETY: it is not NULL, and the caller promises that it is aligned and writable. `write` does
    // not read the old value.
    unsafe { place.write(Box::into_raw(Box::new(value))) };
    Ok(())
}

/// Frees an object from [`put_new`].
///
/// # Safety
/// The pointer is NULL, or comes from `put_new` of the same type and was not freed yet.
pub(crate) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: it is not NULL, so the caller promises that it comes from the `Box::into_raw` of
        // `put_new` and that nobody has freed it.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// A structure of numbers and pointers. Its first field is its own size in bytes, and later versions
/// add fields at its end.
///
/// # Safety
/// Any bytes are a value of the type, its first field is a `usize`, and no field lies where an
/// earlier version has padding at its end.
pub(crate) unsafe trait Sized: Copy + Default {}

/// Copies a structure from the caller. Fields that the caller's version lacks get their defaults.
///
/// # Safety
/// The pointer is NULL, or points to a structure of as many bytes as its first field says.
pub(crate) unsafe fn structure<T: Sized>(
    pointer: *const T,
    name: &'static str,
) -> Result<T, Failure> {
    let mut value = T::default();
    if pointer.is_null() {
        return Ok(value);
    }
    // SAFETY: the pointer is not NULL, and the caller promises a structure there, which by the
    // contract of `Sized` begins with a `usize`; the read needs no alignment.
    let struct_bytes = unsafe { pointer.cast::<usize>().read_unaligned() };
    let bytes = usable(struct_bytes, size_of::<T>(), name)?;
    // SAFETY: `usable` has limited `bytes` to the size of both structures: the caller's has
    // `struct_bytes`, and `value` has `size_of::<T>()`. `value` is a local, so that they do not
    // overlap. By the contract of `Sized` any bytes are a `T`.
    unsafe {
        std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut value).cast::<u8>(), bytes)
    };
    Ok(value)
}

/// Writes the fields that the caller's version of a structure has; its size stays.
///
/// # Safety
/// The pointer is NULL, or points to a writable structure of as many bytes as its first field says.
pub(crate) unsafe fn fill<T: Sized>(
    pointer: *mut T,
    value: &T,
    name: &'static str,
) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::Argument(name, NULL));
    }
    // SAFETY: the pointer is not NULL, and the caller promises a structure there, which by the
    // contract of `Sized` begins with a `usize`; the read needs no alignment.
    let struct_bytes = unsafe { pointer.cast::<usize>().read_unaligned() };
    let bytes = usable(struct_bytes, size_of::<T>(), name)?;
    let skipped = size_of::<usize>();
    // SAFETY: `usable` has limited `bytes` to the size of both structures, and has refused fewer
    // bytes than `skipped`. The caller's structure is not the library's `value`, so that they do
    // not overlap.
    unsafe {
        let from = (&raw const *value).cast::<u8>().add(skipped);
        std::ptr::copy_nonoverlapping(from, pointer.cast::<u8>().add(skipped), bytes - skipped);
    }
    Ok(())
}

/// Returns how many bytes of a structure both sides know.
fn usable(struct_bytes: usize, known_bytes: usize, name: &'static str) -> Result<usize, Failure> {
    if struct_bytes < size_of::<usize>() || struct_bytes > STRUCT_BYTES_MAX {
        return Err(Failure::Argument(name, "set its struct_bytes to its sizeof"));
    }
    Ok(struct_bytes.min(known_bytes))
}

/// Longer than any structure will be: a greater size comes from memory that was not initialised.
const STRUCT_BYTES_MAX: usize = 4096;
