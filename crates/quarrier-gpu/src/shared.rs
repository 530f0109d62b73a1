//! State shared by all objects of a device.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::Mutex;

use quarrier_core::sync::lock;

use crate::driver::{Driver, Raw};
use crate::error::Result;

/// A driver, with its compiled kernels and pinned memory.
pub(crate) struct Shared {
    pub(crate) driver: Box<dyn Driver>,
    /// Kernels by their whole text: one that was compiled once is not compiled again.
    compiled: Mutex<HashMap<String, Vec<Raw>>>,
    /// Pinned memory that exists, by its first byte.
    pinned: Mutex<HashMap<usize, Raw>>,
}

impl Shared {
    pub(crate) fn new(driver: Box<dyn Driver>) -> Self {
        let (compiled, pinned) = Default::default();
        Shared { driver, compiled, pinned }
    }

    /// The kernels `names` of `source`, compiled now unless they were before.
    pub(crate) fn compile(&self, source: String, names: &[&str]) -> Result<Vec<Raw>> {
        let mut compiled = lock(&self.compiled);
        if let Some(raw) = compiled.get(&source) {
            return Ok(raw.clone());
        }
        let raw = self.driver.compile(&source, names)?;
        compiled.insert(source, raw.clone());
        Ok(raw)
    }

    pub(crate) fn remember(&self, start: NonNull<u8>, raw: Raw) {
        lock(&self.pinned).insert(start.addr().get(), raw);
    }

    pub(crate) fn forget(&self, start: NonNull<u8>) {
        lock(&self.pinned).remove(&start.addr().get());
    }

    /// The pinned memory that begins where `bytes` do.
    pub(crate) fn pinned_at(&self, bytes: &[u8]) -> Option<Raw> {
        lock(&self.pinned).get(&bytes.as_ptr().addr()).copied()
    }
}
