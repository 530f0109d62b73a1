//! A sparse file.

use std::ffi::{c_char, c_void};

use quarrier_sparse::{Merge, OnConflict};

use super::held::SparseFile;
use super::room::Room;
use crate::error::{Error, Failure, Status};
use crate::guard::{run, value};
use crate::input::{
    Sized, bytes, fill, free, items_mut, object, optional_text, put, put_new, structure, text,
};
use crate::span::Span;

/// Options of a new sparse file. `quarrier_sparse_options options = {.struct_bytes = sizeof options};` sets
/// every field to its default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SparseOptions {
    /// sizeof(quarrier_sparse_options).
    pub struct_bytes: usize,
    /// The modification time of the file, in seconds since 1970; ignored if has_modified is 0.
    pub modified: f64,
    /// The length of the file in bytes; ignored if has_length is 0. Nothing beyond it is needed or
    /// accepted.
    pub length: u64,
    /// The entity tag of this version of the file, or NULL.
    pub etag: *const c_char,
    /// Whether modified is set.
    pub has_modified: u8,
    /// Whether length is set.
    pub has_length: u8,
    /// Whether a write that differs from the bytes held replaces them. By default it fails.
    pub replaces: u8,
    /// Whether to overwrite memory before freeing it.
    pub wipes: u8,
}

impl Default for SparseOptions {
    fn default() -> Self {
        SparseOptions {
            struct_bytes: size_of::<Self>(),
            modified: 0.0,
            length: 0,
            etag: std::ptr::null(),
            has_modified: 0,
            has_length: 0,
            replaces: 0,
            wipes: 0,
        }
    }
}

// SAFETY: the fields are numbers and a pointer, so any bytes are a value; the first is a `usize`;
// version 0.1.0 is the first one, so no field lies in the padding of an earlier one.
unsafe impl Sized for SparseOptions {}

/// Counts of the calls on a file since its creation. Set `quarrier_sparse_counters counters =
/// {.struct_bytes = sizeof counters};` before a call fills it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct SparseCounters {
    /// sizeof(quarrier_sparse_counters).
    pub struct_bytes: usize,
    /// The number of reads that found all their bytes.
    pub hits: u64,
    /// The number of reads that missed bytes.
    pub misses: u64,
    /// The number of bytes read.
    pub read_bytes: u64,
    /// The number of accepted writes.
    pub writes: u64,
    /// The number of bytes written.
    pub written_bytes: u64,
    /// The number of bytes written that were already held, and so fetched in vain.
    pub wasted_bytes: u64,
    /// The number of bytes erased.
    pub erased_bytes: u64,
    /// The number of bytes evicted to stay within a budget.
    pub evicted_bytes: u64,
}

// SAFETY: the fields are numbers, so any bytes are a value; the first is a `usize`; the structure ends
// without padding.
unsafe impl Sized for SparseCounters {}

/// Creates a file that holds no bytes. options may be NULL. Free it with quarrier_sparse_file_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_new(
    id: *const c_char,
    options: *const SparseOptions,
    file: *mut *mut SparseFile,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `file` are NULL or writable; `options` is NULL
    // or as long as its `struct_bytes` says, with strings that are NULL or end with a zero byte; `id`
    // is NULL or ends with a zero byte.
    unsafe {
        run(error, || {
            let options = structure(options, "options")?;
            let mut builder = quarrier_sparse::SparseFile::builder(text(id, "id")?)
                .on_conflict(if options.replaces == 0 {
                    OnConflict::Raise
                } else {
                    OnConflict::Replace
                })
                .wipe(options.wipes != 0);
            if let Some(etag) = optional_text(options.etag, "etag")? {
                builder = builder.etag(etag);
            }
            if options.has_modified != 0 {
                builder = builder.modified(options.modified);
            }
            if options.has_length != 0 {
                builder = builder.length(options.length);
            }
            put_new(file, "file", SparseFile::own(builder.build()))
        })
    }
}

/// Frees a file, or a handle to a file in a store, which keeps its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_free(file: *mut SparseFile) {
    // SAFETY: the header requires that `file` is NULL or comes from this library, and the caller
    // frees it once.
    value((), || unsafe { free(file) });
}

/// Copies the name of the file to buffer as a string that ends with a zero byte, truncated to capacity,
/// and returns the full length of the name without the zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_id(
    file: *const SparseFile,
    buffer: *mut c_char,
    capacity: usize,
) -> usize {
    // SAFETY: the header requires that `file` is NULL or alive, that all threads share it as a
    // pointer to const during the call, and that `buffer` has room for `capacity` bytes that nobody
    // else uses meanwhile.
    value(0, || unsafe {
        let Ok(file) = object(file, "file") else { return 0 };
        let Ok(room) = items_mut(buffer.cast::<u8>(), capacity, "buffer") else { return 0 };
        file.look(|file| {
            let id = file.id().as_bytes();
            if let Some(last) = room.len().checked_sub(1) {
                let shown = id.len().min(last);
                room[..shown].copy_from_slice(&id[..shown]);
                room[shown] = 0;
            }
            id.len()
        })
    })
}

/// Stores the modification time of the file, in seconds since 1970. Returns false if it is unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_modified(
    file: *const SparseFile,
    seconds: *mut f64,
) -> bool {
    // SAFETY: the header requires that `seconds` is NULL or writable; `file` is NULL or alive, and
    // all threads share it as a pointer to const during the call.
    value(false, || unsafe {
        let modified = object(file, "file").ok().and_then(|file| file.look(|file| file.modified()));
        modified.map(|modified| put(seconds, modified)).is_some()
    })
}

/// Stores the length of the file in bytes. Returns false if it is unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_length(
    file: *const SparseFile,
    length: *mut u64,
) -> bool {
    // SAFETY: the header requires that `length` is NULL or writable; `file` is NULL or alive, and
    // all threads share it as a pointer to const during the call.
    value(false, || unsafe {
        let known = object(file, "file").ok().and_then(|file| file.look(|file| file.length()));
        known.map(|known| put(length, known)).is_some()
    })
}

/// Sets the length of the file in bytes. Returns QUARRIER_STATUS_BEYOND_LENGTH if the file holds a byte
/// beyond it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_set_length(
    file: *mut SparseFile,
    length: u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `file` is NULL or alive, and
    // only this thread uses it unless it lies in a store, as it is passed without const.
    unsafe { run(error, || Ok(object(file, "file")?.change(|file| file.set_length(length))?)) }
}

/// Returns whether all bytes of the range are held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_has(
    file: *const SparseFile,
    offset: u64,
    length: u64,
) -> bool {
    // SAFETY: the header requires that `file` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(false, || unsafe {
        object(file, "file").is_ok_and(|file| file.look(|file| file.has(offset, length)))
    })
}

/// Writes length bytes of data; they join the blocks that they touch. Stores in new_bytes, unless it is
/// NULL, how many of them were not held before. Writes nothing if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_write(
    file: *mut SparseFile,
    offset: u64,
    data: *const c_void,
    length: usize,
    new_bytes: *mut u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `new_bytes` are NULL or writable; `file` is NULL
    // or alive, and only this thread uses it unless it lies in a store, as it is passed without
    // const; `data` holds `length` bytes that nobody changes during the call.
    unsafe {
        run(error, || {
            let data = bytes(data, length, "data")?;
            let new = object(file, "file")?.change(|file| file.write(offset, data))?;
            put(new_bytes, new);
            Ok(())
        })
    }
}

/// Reads length bytes into buffer. Returns QUARRIER_STATUS_NOT_HELD if one is missing; buffer may be
/// partly written then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_read(
    file: *const SparseFile,
    offset: u64,
    buffer: *mut c_void,
    length: usize,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `file` is NULL or alive, and
    // all threads share it as a pointer to const during the call; `buffer` has room for `length`
    // bytes that nobody else uses during the call. They may be uninitialised: `read_into` only
    // copies to them, and `copy_from_slice` reads nothing of its destination.
    unsafe {
        run(error, || {
            let buffer = items_mut(buffer.cast::<u8>(), length, "buffer")?;
            Ok(object(file, "file")?.look(|file| file.read_into(offset, buffer))?)
        })
    }
}

/// Stores the missing ranges, in order; if greedy is not 0, ranges are at least greedy bytes long. spans
/// has room for capacity ranges and gets the first ones; count gets the total. If count is greater,
/// allocate room for as many and call again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_need(
    file: *const SparseFile,
    offset: u64,
    length: u64,
    greedy: u64,
    spans: *mut Span,
    capacity: usize,
    count: *mut usize,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `count` are NULL or writable; `file` is NULL or
    // alive, and all threads share it as a pointer to const during the call; `spans` has room for
    // `capacity` ranges that nobody else uses during the call.
    unsafe {
        run(error, || {
            let mut room = Room::new(spans, capacity)?;
            let file = object(file, "file")?;
            let wanted = quarrier_sparse::Span::new(offset, length);
            if greedy == 0 {
                file.look(|file| file.for_each_need(wanted, |span| room.push(span)))?;
            } else {
                let merge = Merge::Greedy { bytes_min: greedy };
                let needed = file.look(|file| file.need_many(&[wanted], &merge))?;
                needed.into_iter().for_each(|span| room.push(span));
            }
            room.tell(count)
        })
    }
}

/// Erases the bytes held in the range; stores their number in erased, unless it is NULL. Returns
/// QUARRIER_STATUS_PINNED, and erases nothing, if one of them is pinned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_erase(
    file: *mut SparseFile,
    offset: u64,
    length: u64,
    erased: *mut u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `erased` are NULL or writable; `file` is NULL or
    // alive, and only this thread uses it unless it lies in a store, as it is passed without const.
    unsafe {
        run(error, || {
            put(erased, object(file, "file")?.change(|file| file.erase(offset, length))?);
            Ok(())
        })
    }
}

/// Erases everything that is not pinned, and returns the number of bytes erased.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_clear(file: *mut SparseFile) -> u64 {
    // SAFETY: the header requires that `file` is NULL or alive, and only this thread uses it unless
    // it lies in a store, as it is passed without const.
    value(0, || unsafe {
        object(file, "file").map_or(0, |file| file.change(quarrier_sparse::SparseFile::clear))
    })
}

/// Evicts bytes, the least recently used first, until at most bytes_max are held, and returns the number
/// of bytes evicted. Pinned bytes stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_evict(file: *mut SparseFile, bytes_max: u64) -> u64 {
    // SAFETY: the header requires that `file` is NULL or alive, and only this thread uses it unless
    // it lies in a store, as it is passed without const.
    value(0, || unsafe {
        object(file, "file").map_or(0, |file| file.change(|file| file.evict(bytes_max)))
    })
}

/// Protects a range from eviction and erasure until it is unpinned as often as it was pinned. Its bytes need
/// not be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_pin(
    file: *mut SparseFile,
    offset: u64,
    length: u64,
    error: *mut *mut Error,
) -> Status {
    let span = quarrier_sparse::Span::new(offset, length);
    // SAFETY: the header requires that `error` is NULL or writable; `file` is NULL or alive, and
    // only this thread uses it unless it lies in a store, as it is passed without const.
    unsafe { run(error, || Ok(object(file, "file")?.change(|file| file.pin(span))?)) }
}

/// Undoes one quarrier_sparse_file_pin() of exactly this range. Returns QUARRIER_STATUS_PINNED if there
/// is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_unpin(
    file: *mut SparseFile,
    offset: u64,
    length: u64,
    error: *mut *mut Error,
) -> Status {
    let span = quarrier_sparse::Span::new(offset, length);
    // SAFETY: the header requires that `error` is NULL or writable; `file` is NULL or alive, and
    // only this thread uses it unless it lies in a store, as it is passed without const.
    unsafe { run(error, || Ok(object(file, "file")?.change(|file| file.unpin(span))?)) }
}

/// Stores the blocks that are held, in order; no block touches another. Otherwise like
/// quarrier_sparse_file_need().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_blocks(
    file: *const SparseFile,
    spans: *mut Span,
    capacity: usize,
    count: *mut usize,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `count` are NULL or writable; `file` is NULL or
    // alive, and all threads share it as a pointer to const during the call; `spans` has room for
    // `capacity` ranges that nobody else uses during the call.
    unsafe {
        run(error, || {
            let mut room = Room::new(spans, capacity)?;
            let blocks = object(file, "file")?.look(quarrier_sparse::SparseFile::blocks);
            blocks.into_iter().for_each(|span| room.push(span));
            room.tell(count)
        })
    }
}

/// Returns the offset after the last byte held, or 0 if none is held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_held_end(file: *const SparseFile) -> u64 {
    // SAFETY: the header requires that `file` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe { object(file, "file").map_or(0, |file| file.look(|file| file.held_end())) })
}

/// Returns the number of bytes held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_num_bytes(file: *const SparseFile) -> u64 {
    // SAFETY: the header requires that `file` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe {
        object(file, "file").map_or(0, |file| file.look(|file| file.num_bytes()))
    })
}

/// Returns the number of blocks held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_num_blocks(file: *const SparseFile) -> usize {
    // SAFETY: the header requires that `file` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe {
        object(file, "file").map_or(0, |file| file.look(|file| file.num_blocks()))
    })
}

/// Returns the memory of the file in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_memory_bytes(file: *const SparseFile) -> usize {
    // SAFETY: the header requires that `file` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe {
        object(file, "file").map_or(0, |file| file.look(|file| file.memory_bytes()))
    })
}

/// Stores the counts of the calls on the file so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_file_counters(
    file: *const SparseFile,
    counters: *mut SparseCounters,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `counters` is NULL or as long
    // as its `struct_bytes` says; `file` is NULL or alive, and all threads share it as a pointer to
    // const during the call.
    unsafe {
        run(error, || {
            let counts = object(file, "file")?.look(quarrier_sparse::SparseFile::counters);
            let counts = SparseCounters {
                hits: counts.hits,
                misses: counts.misses,
                read_bytes: counts.read_bytes,
                writes: counts.writes,
                written_bytes: counts.written_bytes,
                wasted_bytes: counts.wasted_bytes,
                erased_bytes: counts.erased_bytes,
                evicted_bytes: counts.evicted_bytes,
                ..SparseCounters::default()
            };
            fill(counters, &counts, "counters")
        })
    }
}

/// Converts the requested ranges to those of the sparse crate.
///
/// # Safety
/// `spans` is NULL or points to `count` ranges that nobody changes during the call.
pub(super) unsafe fn wanted(
    spans: *const Span,
    count: usize,
) -> Result<Vec<quarrier_sparse::Span>, Failure> {
    // SAFETY: the caller keeps the contract of `items`, which is the same as that of this function.
    let spans = unsafe { crate::input::items(spans, count, "wanted") }?;
    Ok(spans.iter().map(|&span| span.into()).collect())
}
