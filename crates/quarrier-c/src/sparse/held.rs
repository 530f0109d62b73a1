//! A sparse file as C sees it: a separate one, or one in a store.

use std::cell::UnsafeCell;

use quarrier_sparse::{SharedFile, SparseFile as Own};

/// A partial copy of a file: the parts fetched so far, by offset.
///
/// Several threads may use a file in a store, in any way. Any other file follows the rule at the head of
/// this header: several threads read, or one writes.
pub struct SparseFile {
    pub(super) place: Place,
}

pub(super) enum Place {
    Own(Box<Exclusive>),
    Store(SharedFile),
}

/// A file outside of any store. The callers of the C functions keep others out while one of them
/// changes it.
pub(super) struct Exclusive {
    file: UnsafeCell<Own>,
}

impl SparseFile {
    pub(super) fn own(file: Own) -> Self {
        SparseFile { place: Place::Own(Box::new(Exclusive { file: UnsafeCell::new(file) })) }
    }

    pub(super) fn in_store(file: SharedFile) -> Self {
        SparseFile { place: Place::Store(file) }
    }

    /// Runs `look` on the file.
    #[inline]
    pub(super) fn look<R>(&self, look: impl FnOnce(&Own) -> R) -> R {
        match &self.place {
            // SAFETY: only functions that take a pointer to const call this, and the header
            // requires that no thread passes the file without const meanwhile, as the callers of
            // `change` do; so no `&mut` to the file exists. The reference ends with `look`.
            Place::Own(own) => look(unsafe { &*own.file.get() }),
            Place::Store(shared) => shared.with(look),
        }
    }

    /// Runs `change` on the file.
    ///
    /// # Safety
    /// If the file is not in a store, nobody else uses it meanwhile.
    #[inline]
    pub(super) unsafe fn change<R>(&self, change: impl FnOnce(&mut Own) -> R) -> R {
        match &self.place {
            // SAFETY: the caller promises that nobody else uses the file, so this is the only
            // reference; it ends with `change`.
            Place::Own(own) => change(unsafe { &mut *own.file.get() }),
            Place::Store(shared) => shared.with_mut(change),
        }
    }
}

impl Exclusive {
    /// Returns the name of the file.
    pub(super) fn id(&mut self) -> String {
        self.file.get_mut().id().to_string()
    }

    /// Returns the file itself.
    pub(super) fn into_inner(self) -> Own {
        self.file.into_inner()
    }
}
