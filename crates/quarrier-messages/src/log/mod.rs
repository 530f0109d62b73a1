//! A durable log of messages: what is acknowledged is on the disk, and is found again after a crash
//! and around damage.
//!
//! ```text
//!  Batch ─→ Log: queue ─→ writer ─→ segments ─→ Reader: batches, damage, torn end ─→ replay
//!           checksum      marks      log/<first mark>.qlog       Log::follow: what is durable
//!                         one sync a group
//! ```
//!
//! A segment is a file of 256 MiB whose room is taken beforehand, written past the page cache and
//! never a second time. `docs/log.md` draws it byte by byte. The messages' own bytes are kept.
//!
//! A writer that stops at any moment, for whatever reason, leaves a log with a whole beginning:
//! every batch that was acknowledged, perhaps some that were not yet, and nothing else. What breaks
//! later is told from that, because each group says how far the log was durable before it.

mod appender;
mod batch;
pub mod disk;
mod entry;
mod error;
mod follow;
mod lock;
mod options;
mod output;
mod placed;
mod publishers;
mod queue;
mod reader;
mod recovered;
mod retain;
pub mod rows;
pub(crate) mod segment;
mod skim;
mod steps;
mod sync;
mod walk;
mod window;
mod writer;

pub use batch::{Batch, Encoding, PAYLOAD_BYTES_MAX, Publication};
pub(crate) use batch::{EXTENSION_BYTES, Sealed, payload_sum};
pub use entry::{Cut, Damage, Entry, Event};
pub(crate) use entry::{Place, unpacked};
pub(crate) use error::is_full;
pub use error::{Error, Result};
pub use follow::Follower;
pub use options::Options;
pub(crate) use output::Output;
pub use publishers::Publishers;
pub(crate) use reader::LOG_FOLDER;
pub use reader::Reader;
pub(crate) use recovered::DAMAGES_MAX;
pub use recovered::Recovered;
pub use retain::{Removed, Retention};
pub(crate) use segment::crc32;
pub(crate) use skim::skim;
pub(crate) use steps::{Sealing, sealings};
pub use writer::{Chain, Committed, Growth, Log, Opener, Pending};
