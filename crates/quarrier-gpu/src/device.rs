//! A device, and what it compiles.

use std::collections::HashMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;

use crate::driver::{Driver, Facts, Raw};
use crate::error::{Error, Result};
use crate::memory::{Buffer, Pinned};
use crate::program::{Constant, Program, Signature};
use crate::queue::{Arguments, Queue};

/// Bytes that kernels may read behind what they were given.
pub(crate) const PADDING_BYTES: usize = 64;

/// What everything that belongs to a device holds on to.
pub(crate) struct Shared {
    pub(crate) driver: Box<dyn Driver>,
    /// Kernels by their whole text: one that was compiled once is not compiled again.
    compiled: Mutex<HashMap<String, Vec<Raw>>>,
    /// Pinned memory that exists, by its first byte.
    pinned: Mutex<HashMap<usize, Raw>>,
}

impl Shared {
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

/// A device. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    shared: Arc<Shared>,
}

impl Device {
    /// A device by any driver: how tests make devices that fail.
    pub fn by(driver: Box<dyn Driver>) -> Self {
        let (compiled, pinned) = Default::default();
        Device { shared: Arc::new(Shared { driver, compiled, pinned }) }
    }

    /// What it is.
    pub fn facts(&self) -> &Facts {
        self.shared.driver.facts()
    }

    /// The kernels of a program, in its order. Compiling takes from milliseconds to seconds; what
    /// was compiled stays for as long as the device is held.
    ///
    /// # Errors
    /// [`Error::Compile`] with what the compiler said.
    pub fn compile(&self, program: &Program, constants: &[Constant]) -> Result<Vec<Kernel>> {
        let source = program.source(self.shared.driver.dialect(), constants);
        let names: Vec<&str> = program.kernels.iter().map(|kernel| kernel.name).collect();
        let mut compiled = lock(&self.shared.compiled);
        let raw = match compiled.get(&source) {
            Some(raw) => raw.clone(),
            None => {
                let raw = self.shared.driver.compile(&source, &names)?;
                compiled.insert(source, raw.clone());
                raw
            }
        };
        drop(compiled);
        let kernel = |(&signature, raw)| Kernel { device: self.clone(), signature, raw };
        Ok(program.kernels.iter().zip(raw).map(kernel).collect())
    }

    /// A buffer of `bytes` bytes, and 64 more that kernels may read; with anything in it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn buffer(&self, bytes: usize) -> Result<Buffer> {
        // Drivers copy and clear whole words.
        let raw = self.shared.driver.allocate(bytes.next_multiple_of(4) + PADDING_BYTES)?;
        Ok(Buffer::new(Arc::clone(&self.shared), raw, bytes))
    }

    /// A buffer that holds `content`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or as [`Queue::run`].
    pub fn buffer_with(&self, queue: &mut Queue, content: &[u8]) -> Result<Buffer> {
        let buffer = self.buffer(content.len())?;
        let mut job = crate::Job::new();
        job.write(&buffer, content);
        queue.run(job)?;
        Ok(buffer)
    }

    /// `bytes` zeroed bytes of the host's memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn pinned(&self, bytes: usize) -> Result<Pinned> {
        let (start, raw) = self.shared.driver.pin(bytes + PADDING_BYTES)?;
        Ok(Pinned::new(Arc::clone(&self.shared), raw, start, bytes))
    }

    /// A queue of jobs. Those of different queues run at the same time where the device can.
    ///
    /// # Errors
    /// [`Error::Failed`] or [`Error::OutOfMemory`].
    pub fn queue(&self) -> Result<Queue> {
        let raw = self.shared.driver.open_queue()?;
        Ok(Queue::new(self.clone(), Arc::clone(&self.shared), raw))
    }

    pub(crate) fn is(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.facts())
    }
}

/// A compiled kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub(crate) device: Device,
    pub(crate) signature: Signature,
    pub(crate) raw: Raw,
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.signature.name
    }

    /// Starts binding its arguments.
    pub fn bind<'b>(&self) -> Arguments<'b> {
        Arguments::of(self.signature)
    }

    pub(crate) fn wrong(&self, what: impl fmt::Display) -> Error {
        Error::Arguments(format!("kernel {}: {what}", self.signature.name))
    }
}
