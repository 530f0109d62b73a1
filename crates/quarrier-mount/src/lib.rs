//! Mounts a source as a file, by FUSE.
//!
//! ```text
//!  kernel ─→ /dev/fuse ─→ requests: names and attributes are answered at once
//!                            └─ reads ─→ queue ─→ readers ─→ quarrier::mount::Tree ─→ bytes or EIO
//! ```
//!
//! [`quarrier::mount::Tree`] defines the contents of the mount; this crate connects it to the kernel. The
//! crate `fuser` speaks the protocol. `device` mounts and unmounts, because `fuser` unmounts the path when a
//! session ends, even if somebody else's file system is there by then.
//!
//! A reader that hangs, for example on a network, delays no answer about names, and delays other reads only
//! if all readers hang. Each reader has a buffer of at most a MiB, which bounds the memory.

mod device;
mod error;
mod readers;
mod requests;
mod session;

pub use error::{Error, Result};
pub use session::{MountOptions, Mounted, check_mount_point, mount};
