//! A sparse file, alone or in a store, and its locking rules.
//!
//! Two rules prevent deadlocks. A thread that holds the file's lock runs no Python code and does
//! not take the interpreter's lock. A thread that waits for the file's lock releases the
//! interpreter's lock first, so that other threads can run.

use std::sync::{PoisonError, RwLock, TryLockError};

use pyo3::prelude::*;
use quarrier_sparse::{SharedFile, SparseFile};

/// A file alone, or one of a store.
///
/// Boxed, because Python's allocator does not align its objects to cache lines as a file asks.
pub(super) enum Place {
    Own(Box<SparseFile>),
    Store(SharedFile),
}

/// A file with its lock.
pub(super) struct Held {
    place: RwLock<Place>,
}

/// Whether an operation releases the interpreter's lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Ends before other threads would notice.
    Short,
    /// Takes long enough that others should run meanwhile.
    Long,
}

impl Work {
    /// Classifies a copy of this many bytes.
    pub(super) fn of_copy(bytes: usize) -> Self {
        if bytes < super::COPY_BYTES_MIN { Work::Short } else { Work::Long }
    }
}

impl Held {
    pub(super) fn new(place: Place) -> Self {
        Held { place: RwLock::new(place) }
    }

    /// Runs `look` on the file under a shared lock. It must not touch Python.
    #[inline]
    pub(super) fn look<R: Send>(
        &self,
        py: Python<'_>,
        work: Work,
        look: impl FnOnce(&SparseFile) -> R + Send,
    ) -> R {
        if work == Work::Short {
            let place = match self.place.try_read() {
                Ok(place) => Some(place),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(place) = place
                && let Place::Own(file) = &*place
            {
                return look(file);
            }
        }
        self.look_detached(py, look)
    }

    #[cold]
    fn look_detached<R: Send>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&SparseFile) -> R + Send,
    ) -> R {
        py.detach(|| {
            let place = self.place.read().unwrap_or_else(PoisonError::into_inner);
            let shared = match &*place {
                Place::Own(file) => return look(file),
                Place::Store(shared) => shared.clone(),
            };
            drop(place);
            shared.with(look)
        })
    }

    /// Runs `change` on the file under an exclusive lock. It must not touch Python.
    #[inline]
    pub(super) fn change<R: Send>(
        &self,
        py: Python<'_>,
        work: Work,
        change: impl FnOnce(&mut SparseFile) -> R + Send,
    ) -> R {
        if work == Work::Short {
            let place = match self.place.try_write() {
                Ok(place) => Some(place),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(mut place) = place
                && let Place::Own(file) = &mut *place
            {
                return change(file);
            }
        }
        self.change_detached(py, change)
    }

    #[cold]
    fn change_detached<R: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut SparseFile) -> R + Send,
    ) -> R {
        py.detach(|| {
            let mut place = self.place.write().unwrap_or_else(PoisonError::into_inner);
            let shared = match &mut *place {
                Place::Own(file) => return change(file),
                Place::Store(shared) => shared.clone(),
            };
            drop(place);
            shared.with_mut(change)
        })
    }

    /// Runs `exchange` on the place itself, to move a file into a store.
    pub(super) fn exchange<R: Send>(
        &self,
        py: Python<'_>,
        exchange: impl FnOnce(&mut Place) -> R + Send,
    ) -> R {
        py.detach(|| exchange(&mut self.place.write().unwrap_or_else(PoisonError::into_inner)))
    }
}
