//! Devices that run kernels, found at run time. A machine without any is normal.
//!
//! ```text
//!  find() ─→ Device ──→ compile(Program) ─→ Kernel ─→ bind() ─→ Arguments
//!            │ Driver                                              │
//!            │ (OpenCL, CUDA)                                      ▼
//!            ├──→ buffer() pinned() ───────────────→ Job: input, launch, read
//!            └──→ queue() ─────────────────────────→ Queue::run(job) ─→ Times
//! ```
//!
//! The crate links no driver: it loads OpenCL's loader and NVIDIA's driver when it searches for
//! devices, and finds none without them. A kernel is source text in the common subset of OpenCL C 1.2,
//! CUDA C and C (see `kernels/`), compiled by the device's own driver. One table lists its parameters,
//! and both its signature and the binding of its arguments derive from that table, so they cannot
//! disagree.
//!
//! ```
//! // The devices of this machine, in the order of `--device gpu:N`.
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
