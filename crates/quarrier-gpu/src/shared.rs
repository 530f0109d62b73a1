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
    /// Kernels by their complete source text, so that each is compiled once.
    compiled: Mutex<HashMap<String, Vec<Raw>>>,
    /// Pinned memory, by the address of its first byte.
    pinned: Mutex<HashMap<usize, Raw>>,
}

impl Shared {
    pub(crate) fn new(driver: Box<dyn Driver>) -> Self {
        let (compiled, pinned) = Default::default();
        Shared { driver, compiled, pinned }
    }

    /// Returns the kernels `names` of `source`; compiles them the first time.
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

    /// Returns the pinned memory that begins where `bytes` does.
    pub(crate) fn pinned_at(&self, bytes: &[u8]) -> Option<Raw> {
        lock(&self.pinned).get(&bytes.as_ptr().addr()).copied()
    }
}
