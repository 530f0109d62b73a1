//! EWF images, as forensic tools write them: `image.E01` and the segments that follow it.
//!
//! ```text
//!  image.E01                        image.E02
//!  header volume [sectors table table2] next  →  [sectors table table2]* hash done
//!                    chunks  where each lies
//! ```
//!
//! An image is cut into chunks (32 KiB by default), each stored as it is or compressed, each
//! with a checksum. An [`EwfSource`] reads them at any offset, from many threads: it keeps a few
//! chunks, but no table, so that the memory it takes does not grow with the image. Whatever is
//! wrong with a chunk is an error of that chunk alone; wrong bytes are never given.
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
pub use names::{is_ewf, segments_from};
