//! A device, and the kernels it compiles.

use std::fmt;
use std::sync::Arc;

use crate::driver::{Driver, Facts, Raw};
use crate::error::{Error, Result};
use crate::memory::{Buffer, Pinned};
use crate::program::{Constant, Program, Signature};
use crate::shared::Shared;

/// Bytes that kernels may read after the end of their buffers.
pub(crate) const PADDING_BYTES: usize = 64;

/// A device. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    shared: Arc<Shared>,
}

impl Device {
    /// A device by any driver, so that tests can make devices that fail.
    pub fn by(driver: Box<dyn Driver>) -> Self {
        Device { shared: Arc::new(Shared::new(driver)) }
    }

    /// The device's properties.
    pub fn facts(&self) -> &Facts {
        self.shared.driver.facts()
    }

    /// Compiles the kernels of a program and returns them in its order. Compiling takes
    /// milliseconds to seconds; the device keeps compiled kernels as long as it lives.
    ///
    /// # Errors
    /// [`Error::Compile`] with the compiler's log.
    pub fn compile(&self, program: &Program, constants: &[Constant]) -> Result<Vec<Kernel>> {
        let source = program.source(self.shared.driver.dialect(), constants);
        let names: Vec<&str> = program.kernels.iter().map(|kernel| kernel.name).collect();
        let raw = self.shared.compile(source, &names)?;
        let kernel = |(&signature, raw)| Kernel { device: self.clone(), signature, raw };
        Ok(program.kernels.iter().zip(raw).map(kernel).collect())
    }

    /// Allocates a buffer of `bytes` bytes, followed by 64 more that kernels may read. The contents
    /// are undefined.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn buffer(&self, bytes: usize) -> Result<Buffer> {
        // Drivers copy and clear whole 32-bit words.
        let raw = self.shared.driver.allocate(bytes.next_multiple_of(4) + PADDING_BYTES)?;
        Ok(Buffer::new(Arc::clone(&self.shared), raw, bytes))
    }

    /// Allocates `bytes` zeroed bytes of pinned host memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn pinned(&self, bytes: usize) -> Result<Pinned> {
        let (start, raw) = self.shared.driver.pin(bytes + PADDING_BYTES)?;
        Ok(Pinned::new(Arc::clone(&self.shared), raw, start, bytes))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
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

    pub(crate) fn wrong(&self, what: impl fmt::Display) -> Error {
        Error::Arguments(format!("kernel {}: {what}", self.signature.name))
    }
}
