//! Device memory, and pinned host memory.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use quarrier_core::region::HostMemory;

use crate::driver::Raw;
use crate::shared::Shared;

/// Bytes of the device's own memory.
pub struct Buffer {
    pub(crate) device: Arc<Shared>,
    pub(crate) raw: Raw,
    bytes: usize,
}

impl Buffer {
    pub(crate) fn new(device: Arc<Shared>, raw: Raw, bytes: usize) -> Self {
        Buffer { device, raw, bytes }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: `allocate` of this driver returned the handle, and this value frees it once. No
        // job uses the buffer, since a job borrows its buffers until `collect` has returned.
        unsafe { self.device.driver.free(self.raw) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.bytes)
    }
}

/// Pinned host memory: the device copies to and from it directly, or works in it.
pub struct Pinned {
    device: Arc<Shared>,
    raw: Raw,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: this value alone owns its memory, as a `Box<[u8]>` does, and the driver is `Send + Sync`.
unsafe impl Send for Pinned {}
// SAFETY: a shared reference only gives `&[u8]`, and the driver is `Sync`.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// `bytes` of the memory are visible; kernels may read the padding after them.
    pub(crate) fn new(device: Arc<Shared>, raw: Raw, start: NonNull<u8>, bytes: usize) -> Self {
        device.remember(start, raw);
        Pinned { device, raw, start, bytes }
    }
}

impl Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: by the contract of `Driver::pin` the memory at `start` has at least `bytes`
        // initialised (zeroed) bytes, which are valid until `unpin` in `drop` and which nobody else
        // has. Writing needs `&mut self`, which the lifetime of the slice excludes. While a job
        // shows the memory to the device, the job borrows it, and kernels only read their input. A
        // `u8` is aligned anywhere.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Pinned {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: by the contract of `Driver::pin` the memory at `start` has at least `bytes`
        // initialised (zeroed) bytes, which are valid until `unpin` in `drop` and which nobody else
        // has. `&mut self` lives as long as the slice, so there is no other reference, and no job
        // borrows the memory. A `u8` is aligned anywhere.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.device.forget(self.start);
        // SAFETY: `pin` of this driver returned `start` and `raw`, and this value unpins them once.
        // Nobody uses the memory: slices of it borrow this value, and a job borrows its input until
        // it has ended.
        unsafe { self.device.driver.unpin(self.start, self.raw) }
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({} bytes)", self.bytes)
    }
}

// SAFETY: `start` and `bytes` never change, and the driver gave the memory to this value alone,
// until `drop` unpins it.
unsafe impl HostMemory for Pinned {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
