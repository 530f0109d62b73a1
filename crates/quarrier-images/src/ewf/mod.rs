//! EWF images: `image.E01` and the segments that follow it, as forensic tools write them.
//!
//! ```text
//!  image.E01                        image.E02
//!  header volume [sectors table table2] next  →  [sectors table table2]* hash done
//!                    chunks  where each lies
//! ```
//!
//! An image is split into chunks (32 KiB by default), each with a checksum and compressed unless
//! incompressible. An [`EwfSource`] reads them at any offset, from many threads. It caches a few chunks
//! but no table entries, so its memory use does not grow with the image. Damage to a chunk affects only
//! that chunk, and wrong bytes are never returned.
//!
//! ```no_run
//! use quarrier_core::source::Source;
//! use quarrier_images::ewf::EwfSource;
//!
//! let image = EwfSource::open("image.E01".as_ref())?;
//! println!("{} bytes in {} segments", image.length(), image.segments());
//! if let Some(verified) = image.verify(&mut |_| true)? {
//!     assert!(verified.holds());
//! }
//! # Ok::<(), quarrier_images::ewf::Error>(())
//! ```

mod chunk;
mod error;
mod files;
mod globbed;
mod hashes;
mod image;
mod layout;
mod names;
mod parts;
mod segment;
mod table;

pub use error::{Error, Result};
pub use files::{files, parts_from};
pub use hashes::{Check, StoredHashes, Verified};
pub use image::EwfSource;
pub(crate) use names::following;
pub use names::{is_ewf, segments_among, segments_from};
