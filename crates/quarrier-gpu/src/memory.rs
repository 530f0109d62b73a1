//! Memory: of the device, and of the host where the device reads it fast.

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
        // SAFETY: allocated by this driver, and jobs borrow buffers until they are done.
        unsafe { self.device.driver.free(self.raw) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.bytes)
    }
}

/// Memory of the host that a device copies from and to without a detour, or works on as its own.
pub struct Pinned {
    device: Arc<Shared>,
    raw: Raw,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its memory, as a `Box<[u8]>` does.
unsafe impl Send for Pinned {}
// SAFETY: shared access is only through `&[u8]`.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// `bytes` of them can be seen; behind them lies what kernels may read past the end.
    pub(crate) fn new(device: Arc<Shared>, raw: Raw, start: NonNull<u8>, bytes: usize) -> Self {
        device.remember(start, raw);
        Pinned { device, raw, start, bytes }
    }
}

impl Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the driver gave at least `bytes` zeroed bytes here, for this value alone. While
        // the device sees them a job borrows them, and it only reads.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Pinned {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.device.forget(self.start);
        // SAFETY: pinned by this driver; jobs borrow what they read until they are done.
        unsafe { self.device.driver.unpin(self.start, self.raw) }
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({} bytes)", self.bytes)
    }
}

// SAFETY: `start` and `bytes` never change, and the memory is this value's own until it is dropped.
unsafe impl HostMemory for Pinned {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
