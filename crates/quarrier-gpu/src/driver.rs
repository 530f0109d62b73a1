//! The operations that a driver must provide, and no others, so that a third driver is one file.

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
    /// C, for the CPU: benchmarks compare devices with it.
    C,
}

/// The ways to reach devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DriverName {
    /// Devices of any vendor, and CPUs.
    OpenCl,
    /// Devices of NVIDIA.
    Cuda,
    /// A driver that this crate does not know, such as a test's.
    Other,
}

impl DriverName {
    /// The name in reports: `opencl`, `cuda`.
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
    /// The device's name, as its driver reports it.
    pub name: String,
    /// The driver API that reaches it.
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
    /// Maximum number of work items in a group.
    pub items_max: u32,
    /// Whether the device works in host memory, so that nothing has to be copied.
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

/// One command of a queue: commands run in order, and the host does not wait between them.
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
        /// The number of bytes.
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
        /// The number of bytes.
        bytes: usize,
    },
    /// Device to device.
    Copy {
        /// Source buffer.
        from: Raw,
        /// Target buffer: another one, which does not overlap the source.
        to: Raw,
        /// The number of bytes, from the start of both.
        bytes: usize,
    },
    /// Zeros, in whole words.
    Zero {
        /// The buffer.
        buffer: Raw,
        /// The number of bytes from its start; a multiple of four.
        bytes: usize,
    },
    /// Lets a unified device see pinned memory. The host must not touch it until
    /// [`Hide`](Self::Hide).
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
        /// The arguments, in the order of the kernel's parameters.
        arguments: &'s [RawArgument],
        /// The number of work groups.
        groups: u32,
        /// The number of work items in each group.
        items: u32,
    },
}

/// The interval of some steps of a job, measured from its submission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// Start of the first step.
    pub start: Duration,
    /// End of the last step.
    pub end: Duration,
    /// Sum of the durations of the steps.
    pub busy: Duration,
}

impl Moment {
    /// Adds one step.
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

/// The interface of a driver to one opened device, in terms of raw handles.
///
/// All other code uses [`Device`](crate::Device), which keeps the objects behind the handles alive.
///
/// # Safety
/// `pin` returns memory that nobody else has and that stays valid until `unpin`. After `collect`
/// the device accesses none of the host memory that the steps named.
pub unsafe trait Driver: Send + Sync {
    /// The device's properties. They never change.
    fn facts(&self) -> &Facts;

    /// The language of its kernels.
    fn dialect(&self) -> Dialect;

    /// Compiles `source` and returns a handle for each of `kernels`; the handles are valid as long
    /// as the driver lives.
    ///
    /// # Errors
    /// [`Error::Compile`](crate::Error::Compile) with the compiler's log.
    fn compile(&self, source: &str, kernels: &[&str]) -> Result<Vec<Raw>>;

    /// Allocates a buffer of `bytes` bytes with undefined contents.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn allocate(&self, bytes: usize) -> Result<Raw>;

    /// Frees a buffer.
    ///
    /// # Safety
    /// [`allocate`](Self::allocate) of this driver returned it, and no job uses it.
    unsafe fn free(&self, buffer: Raw);

    /// Allocates zeroed host memory that the device reads fast or works in directly.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn pin(&self, bytes: usize) -> Result<(NonNull<u8>, Raw)>;

    /// Frees pinned memory.
    ///
    /// # Safety
    /// [`pin`](Self::pin) of this driver returned it, and nobody uses it.
    unsafe fn unpin(&self, start: NonNull<u8>, pinned: Raw);

    /// Opens a queue. It runs its jobs in order, and concurrently with those of other queues.
    ///
    /// # Errors
    /// [`Error::Failed`](crate::Error::Failed).
    fn open_queue(&self) -> Result<Raw>;

    /// Closes a queue.
    ///
    /// # Safety
    /// [`open_queue`](Self::open_queue) of this driver returned it, it is not used afterwards, and
    /// none of its jobs is running.
    unsafe fn close_queue(&self, queue: Raw);

    /// Starts the steps of a job, and returns at once.
    ///
    /// # Errors
    /// The error of the first step that fails to start. Earlier steps may be running: call
    /// [`collect`](Self::collect), which waits for them.
    ///
    /// # Safety
    /// All handles are this driver's. The host memory named in the steps stays valid until
    /// `collect` returns: readable where the device reads, and exclusive where it writes. Copies
    /// and kernels stay within their buffers. One thread at a time uses a queue.
    unsafe fn submit(&self, queue: Raw, steps: &[Step<'_>]) -> Result<()>;

    /// Waits until every submitted step has finished or failed.
    ///
    /// # Errors
    /// The error of a step that failed; no step is running then, either.
    ///
    /// # Safety
    /// [`open_queue`](Self::open_queue) of this driver returned the queue, and one thread at a time
    /// uses it.
    unsafe fn collect(&self, queue: Raw) -> Result<Times>;
}
