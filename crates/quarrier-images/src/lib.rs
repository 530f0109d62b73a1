//! Disk images and compressed files, as sources of the disk's bytes.
//!
//! ```text
//!  file ──→ Kind::of (its first and last bytes) ──→ a reader ──→ Source: the disk's bytes and offsets
//!                                                     │
//!                                                     └──→ Siblings: parts of it, and its parent disks
//! ```
//!
//! [`open`] detects the format by content, regardless of the name. Every reader is a
//! [`Source`](quarrier_core::source::Source) that many threads can read at once, within bounded memory.
//! Damage is an error for the affected range, and wrong bytes are never returned.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicBool;
//!
//! use quarrier_core::source::Source;
//! use quarrier_images::{FolderSiblings, Content};
//!
//! let path = "disk.qcow2".as_ref();
//! let file = Arc::from(quarrier_core::source::open(path)?);
//! let (beside, stop) = (FolderSiblings::new(path, false), AtomicBool::new(false));
//! let image = quarrier_images::open(file, &beside, &[], &stop)?;
//! if let Content::Disk(disk) = image.content {
//!     println!("{} bytes", disk.length());
//! }
//! # Ok::<(), quarrier_core::Error>(())
//! ```

pub mod aff4;
mod around;
mod bytes;
mod disk;
mod dmg;
pub mod ewf;
mod ewf2;
mod fault;
mod kind;
mod open;
mod packed;
mod parallels;
mod qcow2;
mod scratch;
mod tables;
mod unpack;
mod vdi;
mod vhd;
mod vhdx;
mod vmdk;

pub use around::{FolderSiblings, NoSiblings, Siblings};
pub use kind::Kind;
pub use open::{Content, Image, open};
pub use packed::Sequential;
pub use scratch::ScratchFolder;
