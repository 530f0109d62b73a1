//! Remote objects as sources: HTTP(S) servers, and buckets of S3, Google and Azure.
//!
//! ```text
//!  read_at ─→ held in memory? ──────────────────────────────→ copied out
//!                │ no                                            ↑
//!             claimed on disk? ─→ checked by its checksum ───────┤
//!                │ no                                            │
//!             ReadAhead: how much more than asked, and by       │
//!             which requests; Streams: what will be read soon   │
//!                                          │ not under way yet   │
//!             Remote's thread: requests side by side, retried,   │
//!             answers judged ─→ bytes ─→ memory, disk ───────────┘
//! ```
//!
//! A [`Remote`] owns the single thread that makes all requests, and ends it when dropped. Its
//! sources hold fetched bytes in a `SparseStore` with a memory budget. They accept bytes only after
//! the response was verified. A failure is retried or returned as an error, and never yields wrong
//! bytes or zeros.
//!
//! ```no_run
//! use quarrier_core::source::Source;
//! use quarrier_remote::{Options, Remote};
//!
//! let remote = Remote::new(Options::default())?;
//! let image = remote.open("https://example.org/disk.img")?;
//! let mut boot = [0; 512];
//! image.read_at(0, &mut boot)?;
//! println!("{} bytes, {} requests", image.length(), image.counters().requests);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod location;
mod options;

mod answer;
mod attempts;
mod client;
mod connector;
mod counters;
mod credentials;
mod fault;
mod flight;
mod link;
mod object;
mod opening;
mod secrets;
mod shared;
mod source;
mod streams;
mod transport;

mod bucket;
mod cache;
mod folder;
pub mod journal;
pub mod listing;

pub use cache::{Cache, CachedObject, Checked};
pub use client::Remote;
pub use counters::Counters;
pub use credentials::{Credentials, Header, Login};
pub use error::{Error, Result, Unnamed};
pub use folder::BucketFolder;
pub use listing::ListedObject;
pub use location::{is_bucket, is_remote, redacted};
pub use opening::FirstBytes;
pub use options::{CacheOptions, Options, Proxy, Retry, Timeouts};
pub use source::RemoteSource;
