//! The operations that a driver must provide, and no more: a third driver should be one file.

use std::fmt;
use std::ptr::NonNull;
use std::time::Duration;

use crate::error::Result;

/// A handle that only its driver understands.
pub type Raw = u64;

/// The languages in which a kernel's text can be compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenCL C 1.2.
    OpenCl,
    /// CUDA C.
    Cuda,
    /// C, for the CPU: what benchmarks compare with.
    C,
}

/// The ways to reach devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DriverName {
    /// Any vendor's devices, and CPUs.
    OpenCl,
    /// NVIDIA's.
    Cuda,
    /// One that this crate does not know, such as a test's.
    Other,
}

impl DriverName {
    /// As in accounts: `opencl`, `cuda`.
    pub fn name(self) -> &'static str {
        match self {
            DriverName::OpenCl => "opencl",
            DriverName::Cuda => "cuda",
            DriverName::Other => "other",
        }
    }
}

/// The type of processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A graphics processor.
    Gpu,
    /// Some other processor beside the CPU.
    Accelerator,
    /// The CPU itself, under OpenCL.
    Cpu,
}

/// The properties of a device.
#[derive(Debug, Clone)]
pub struct Facts {
    /// As its driver calls it.
    pub name: String,
    /// How it is reached.
    pub driver: DriverName,
    /// The driver's own version.
    pub version: String,
    /// The type of processor.
    pub kind: Kind,
    /// Compute units: multiprocessors, cores.
    pub units: u32,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Memory that the work items of a group share, in bytes.
    pub local_bytes: u64,
    /// Work items in a group at most.
    pub items_max: u32,
    /// Whether it works on the host's memory, so that nothing has to be copied.
    pub is_unified: bool,
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.driver.name())
    }
}

/// A kernel's argument as the driver binds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawArgument {
    /// A buffer, or pinned memory that is [shown](Step::Show).
    Buffer(Raw),
    /// A 32-bit number.
    Number(u32),
}

/// One thing to do, in order, without waiting for the one before.
#[derive(Debug)]
pub enum Step<'s> {
    /// Host to device.
    Write {
        /// The buffer.
        to: Raw,
        /// First byte in it.
        at: usize,
        /// Readable until the job is collected.
        from: *const u8,
        /// How many.
        bytes: usize,
    },
    /// Device to host.
    Read {
        /// The buffer.
        from: Raw,
        /// First byte in it.
        at: usize,
        /// Writable until the job is collected.
        to: *mut u8,
        /// How many.
        bytes: usize,
    },
    /// Device to device.
    Copy {
        /// Source buffer.
        from: Raw,
        /// Target buffer, another one.
        to: Raw,
        /// How many, from the start of both.
        bytes: usize,
    },
    /// Zeros, in whole words.
    Zero {
        /// The buffer.
        buffer: Raw,
        /// How many, from its start; a multiple of four.
        bytes: usize,
    },
    /// Lets a unified device see pinned memory, which the host leaves alone until it is hidden.
    Show {
        /// The result of [`Driver::pin`].
        pinned: Raw,
    },
    /// Gives pinned memory back to the host.
    Hide {
        /// The pinned memory.
        pinned: Raw,
    },
    /// Runs a kernel.
    Launch {
        /// The result of [`Driver::compile`].
        kernel: Raw,
        /// In the order of its parameters.
        arguments: &'s [RawArgument],
        /// Work groups.
        groups: u32,
        /// Work items in each.
        items: u32,
    },
}

/// From when to when, since the job was submitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// Begin of the first step of its kind.
    pub start: Duration,
    /// End of the last.
    pub end: Duration,
    /// Time of these steps together.
    pub busy: Duration,
}

impl Moment {
    /// Takes in one more step.
    pub fn add(&mut self, start: Duration, end: Duration) {
        let is_first = self.busy.is_zero() && self.end.is_zero();
        self.start = if is_first { start } else { self.start.min(start) };
        self.end = self.end.max(end);
        self.busy += end.saturating_sub(start);
    }
}

/// Times of a job by the device's own clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Host to device.
    pub copy: Moment,
    /// Kernels, and copies within the device.
    pub kernel: Moment,
    /// Device to host.
    pub collect: Moment,
}

/// An opened device, as low as a driver can be: handles in, handles out.
///
/// All other code uses [`Device`](crate::Device), which keeps the objects behind the handles alive.
///
/// # Safety
/// `pin` returns exclusive memory, valid until `unpin`. After `collect` the device touches no memory of
/// the host that was named in steps.
pub unsafe trait Driver: Send + Sync {
    /// The device's properties. They never change.
    fn facts(&self) -> &Facts;

    /// The language of its kernels.
    fn dialect(&self) -> Dialect;

    /// Compiles `source` and returns a handle for each of `kernels`, which live as long as this.
    ///
    /// # Errors
    /// [`Error::Compile`](crate::Error::Compile) with the compiler's words.
    fn compile(&self, source: &str, kernels: &[&str]) -> Result<Vec<Raw>>;

    /// A buffer of `bytes` bytes with anything in it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn allocate(&self, bytes: usize) -> Result<Raw>;

    /// Gives a buffer back.
    ///
    /// # Safety
    /// It was allocated here, and no job uses it.
    unsafe fn free(&self, buffer: Raw);

    /// Memory of the host that the device reads fast, or as its own; zeroed.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn pin(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)>;

    /// Gives pinned memory back.
    ///
    /// # Safety
    /// It was pinned here, and nobody uses it.
    unsafe fn unpin(&self, start: NonNull<u8>, pinned: Raw);

    /// A queue: its jobs run one after the other, beside those of other queues.
    ///
    /// # Errors
    /// [`Error::Failed`](crate::Error::Failed).
    fn open_queue(&self) -> Result<Raw>;

    /// Ends a queue.
    ///
    /// # Safety
    /// It was opened here, and no job of it is under way.
    unsafe fn close_queue(&self, queue: Raw);

    /// Starts the steps of a job, and returns at once.
    ///
    /// # Errors
    /// As the driver has it. Some steps may have been started: [`collect`](Self::collect) waits
    /// for them.
    ///
    /// # Safety
    /// All handles are this driver's, host memory lies where steps say until `collect` returns,
    /// and kernels stay within their buffers. One thread at a time uses a queue.
    unsafe fn submit(&self, queue: Raw, steps: &[Step<'_>]) -> Result<()>;

    /// Waits until all that was submitted is done or has failed.
    ///
    /// # Errors
    /// When a step failed; nothing is under way then either.
    ///
    /// # Safety
    /// The queue was opened here; one thread at a time uses it.
    unsafe fn collect(&self, queue: Raw) -> Result<Times>;
}
