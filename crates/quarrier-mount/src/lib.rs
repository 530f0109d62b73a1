//! Mounts a source as a file, by FUSE.
//!
//! ```text
//!  kernel ─→ /dev/fuse ─→ requests: names and attributes are answered at once
//!                            └─ reads ─→ queue ─→ readers ─→ quarrier::mount::Tree ─→ bytes or EIO
//! ```
//!
//! [`quarrier::mount::Tree`] defines what the mount shows; this crate connects it to the kernel. The crate
//! `fuser` speaks the protocol. `device` mounts and unmounts, because `fuser` unmounts what is at the path
//! again when a session ends, which may be somebody else's file system.
//!
//! A reader that hangs, as over a network, delays no answer about names, and other reads only if all
//! readers hang. Memory is bounded by the readers' buffers of at most a MiB each.

mod device;
mod error;
mod readers;
mod requests;
mod session;

pub use error::{Error, Result};
pub use session::{MountOptions, Mounted, check_mount_point, mount};
