//! Devices that run kernels, found at run time. None is a normal answer.
//!
//! ```text
//!  find() ─→ Device ──→ compile(Program) ─→ Kernel ─→ bind() ─→ Arguments
//!            │ Driver                                              │
//!            │ (OpenCL, CUDA)                                      ▼
//!            ├──→ buffer() pinned() ───────────────→ Job: input, launch, read
//!            └──→ queue() ─────────────────────────→ Queue::run(job) ─→ Times
//! ```
//!
//! No driver is linked: OpenCL's loader and NVIDIA's driver are loaded when devices are searched for,
//! and without either there are no devices. A kernel is text in the common subset of OpenCL C 1.2, CUDA
//! C and C (see `kernels/`), compiled by the device's own driver. Its parameters are listed in one
//! table, from which its signature is written and its arguments are
//! bound, so that the two cannot disagree.
//!
//! ```
//! // Whatever this machine has, in the order in which `--device gpu:N` counts.
//! for device in quarrier_gpu::find() {
//!     println!("{}: {} units", device.facts().name, device.facts().units);
//! }
//! ```

mod program;

mod driver;

mod shared;

mod device;

mod memory;

mod queue;

mod opencl;

mod cuda;

mod cache;

mod find;

pub mod kernels;

mod error;

pub use cache::Cache;
pub use cuda::compile_to_ptx;
pub use device::{Device, Kernel};
pub use driver::{Dialect, Driver, DriverName, Facts, Kind, Moment, Raw, RawArgument, Step, Times};
pub use error::{Error, Result};
pub use find::{DeviceChoice, drivers, find, find_with};
pub use memory::{Buffer, Pinned};
pub use program::{Constant, Parameter, Program, Signature};
pub use queue::{Arguments, Job, Queue};
