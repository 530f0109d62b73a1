//! Many sparse files under one budget.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;

use quarrier_core::sync::lock;
use quarrier_sparse::Error as Refused;

use super::bytes::Bytes;
use super::held::{Place, SparseFile};
use crate::error::{Error, Failure, Status};
use crate::guard::{run, value};
use crate::input::{bytes, free, object, object_mut, put_new, text};

/// Sparse files by name, with a shared budget of bytes. Several threads may use a store in any way, and the
/// files in it too.
pub struct SparseStore {
    store: quarrier_sparse::SparseStore,
    /// Held during an insertion, so that a name found free stays free.
    inserting: Mutex<()>,
}

impl SparseStore {
    fn of(store: quarrier_sparse::SparseStore) -> Self {
        SparseStore { store, inserting: Mutex::new(()) }
    }
}

/// Creates a store whose files hold at most bytes_max bytes together; QUARRIER_UNKNOWN for no limit. Free it
/// with quarrier_sparse_store_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_new(
    bytes_max: u64,
    store: *mut *mut SparseStore,
    error: *mut *mut Error,
) -> Status {
    let bytes_max = Some(bytes_max).filter(|&bytes| bytes != u64::MAX);
    // SAFETY: the header requires that `error` and `store` are NULL or writable.
    unsafe {
        run(error, || {
            let made = quarrier_sparse::SparseStore::new(bytes_max);
            put_new(store, "store", SparseStore::of(made))
        })
    }
}

/// Frees a store. Files that callers have from it remain valid, outside of any budget.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_free(store: *mut SparseStore) {
    // SAFETY: the header requires that `store` is NULL or comes from this library, and the caller
    // frees it once.
    value((), || unsafe { free(store) });
}

/// Adds a file under its name. The caller must still free it, and may continue to use it; during this
/// call, no other thread may use it. Returns QUARRIER_STATUS_DUPLICATE_FILE if the store has a file of
/// this name, QUARRIER_STATUS_ARGUMENT if the file is or was in a store; the file then stays unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_insert(
    store: *const SparseStore,
    file: *mut SparseFile,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `store` is NULL or alive, and
    // all threads share it as a pointer to const during the call; `file` is NULL or alive, and only
    // this thread uses it, as it is passed without const.
    unsafe {
        run(error, || {
            let (store, file) = (object(store, "store")?, object_mut(file, "file")?);
            insert(store, &mut file.place)
        })
    }
}

fn insert(store: &SparseStore, place: &mut Place) -> Result<(), Failure> {
    let _inserting = lock(&store.inserting);
    let id = match place {
        Place::Store(_) => {
            return Err(Failure::Argument(
                "file",
                "it is or was in a store; copy it through its bytes",
            ));
        }
        Place::Own(own) => own.id(),
    };
    if store.store.get(&id).is_some() {
        return Err(Refused::Exists { id }.into());
    }
    // The field holds a valid file at every moment, even if a step between panics.
    let empty = SparseFile::own(quarrier_sparse::SparseFile::new("")).place;
    let Place::Own(own) = std::mem::replace(place, empty) else { return Ok(()) };
    *place = Place::Store(store.store.insert(own.into_inner())?);
    Ok(())
}

/// Returns the file of this name, which the caller must free. Returns QUARRIER_STATUS_UNKNOWN_FILE if there
/// is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_get(
    store: *const SparseStore,
    id: *const c_char,
    file: *mut *mut SparseFile,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `file` are NULL or writable; `id` is NULL or
    // ends with a zero byte; `store` is NULL or alive, and all threads share it as a pointer to
    // const during the call.
    unsafe {
        run(error, || {
            let (store, id) = (object(store, "store")?, text(id, "id")?);
            let found =
                store.store.get(id).ok_or_else(|| Refused::Unknown { id: id.to_string() })?;
            put_new(file, "file", SparseFile::in_store(found))
        })
    }
}

/// Returns whether the store has a file of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_has(
    store: *const SparseStore,
    id: *const c_char,
) -> bool {
    // SAFETY: the header requires that `id` is NULL or ends with a zero byte; `store` is NULL or
    // alive, and all threads share it as a pointer to const during the call.
    value(false, || unsafe {
        let (Ok(store), Ok(id)) = (object(store, "store"), text(id, "id")) else { return false };
        store.store.get(id).is_some()
    })
}

/// Removes the file of this name from the store. Callers that have it may continue to use it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_remove(
    store: *const SparseStore,
    id: *const c_char,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `id` is NULL or ends with a
    // zero byte; `store` is NULL or alive, and all threads share it as a pointer to const during
    // the call.
    unsafe {
        run(error, || {
            let (store, id) = (object(store, "store")?, text(id, "id")?);
            match store.store.remove(id) {
                Some(_) => Ok(()),
                None => Err(Refused::Unknown { id: id.to_string() }.into()),
            }
        })
    }
}

/// Returns the number of files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_num_files(store: *const SparseStore) -> usize {
    // SAFETY: the header requires that `store` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe { object(store, "store").map_or(0, |store| store.store.len()) })
}

/// Returns the number of bytes held by all files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_num_bytes(store: *const SparseStore) -> u64 {
    // SAFETY: the header requires that `store` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe { object(store, "store").map_or(0, |store| store.store.num_bytes()) })
}

/// Evicts bytes of any file, the least recently used first, until at most bytes_max are held, and returns
/// the number of bytes evicted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_evict(
    store: *const SparseStore,
    bytes_max: u64,
) -> u64 {
    // SAFETY: the header requires that `store` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe { object(store, "store").map_or(0, |store| store.store.evict(bytes_max)) })
}

/// Calls callback with the name of each file, in order, until it returns a value other than 0. The store
/// may change meanwhile: the names are those at the time of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_ids(
    store: *const SparseStore,
    callback: IdCallback,
    context: *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `store` is NULL or alive, and
    // all threads share it as a pointer to const during the call. `callback` may be called with
    // `context`; `text` ends with a zero byte and outlives the call.
    unsafe {
        run(error, || {
            let callback = callback.ok_or(Failure::Argument("callback", "it is NULL"))?;
            for id in object(store, "store")?.store.ids() {
                let mut text = id.into_bytes();
                text.push(0);
                if callback(text.as_ptr().cast(), context) != 0 {
                    return Err(Failure::Stopped);
                }
            }
            Ok(())
        })
    }
}

/// Receives the name of a file, which is valid until the callback returns. Return 0 to continue, any
/// other value to stop.
pub type IdCallback =
    Option<unsafe extern "C" fn(id: *const c_char, context: *mut c_void) -> std::ffi::c_int>;

/// Serialises all files without their pins, with checksums.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_to_bytes(
    store: *const SparseStore,
    stored: *mut *mut Bytes,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `stored` are NULL or writable; `store` is NULL
    // or alive, and all threads share it as a pointer to const during the call.
    unsafe {
        run(error, || {
            let bytes = object(store, "store")?.store.to_bytes();
            put_new(stored, "stored", Bytes { bytes })
        })
    }
}

/// Restores a store from the bytes of quarrier_sparse_store_to_bytes(), with a budget as for
/// quarrier_sparse_store_new().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_sparse_store_from_bytes(
    data: *const c_void,
    length: usize,
    bytes_max: u64,
    store: *mut *mut SparseStore,
    error: *mut *mut Error,
) -> Status {
    let bytes_max = Some(bytes_max).filter(|&bytes| bytes != u64::MAX);
    // SAFETY: the header requires that `error` and `store` are NULL or writable; `data` holds
    // `length` bytes that nobody changes during the call.
    unsafe {
        run(error, || {
            let data = bytes(data, length, "data")?;
            let read = quarrier_sparse::SparseStore::from_bytes(data, bytes_max)?;
            put_new(store, "store", SparseStore::of(read))
        })
    }
}
