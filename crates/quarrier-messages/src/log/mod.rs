//! A durable log of messages (a write-ahead log). Acknowledged messages are on the disk; a reader finds them
//! again after a crash, and skips damage.
//!
//! ```text
//!  Batch ─→ Log: queue ─→ writer ─→ segments ─→ Reader: batches, damage, torn end ─→ replay
//!           checksum      marks      log/<first mark>.qlog       Log::follow: durable batches
//!                         one sync a group
//! ```
//!
//! A segment is a file of 256 MiB whose space is allocated in advance. It is written with direct I/O, and no
//! byte is written twice. `docs/log.md` draws it byte by byte. The log keeps the messages' original bytes.
//!
//! A writer that stops at any moment, for any reason, leaves a log with an intact prefix: every acknowledged
//! batch, perhaps some unacknowledged ones, and nothing else. Each group records the end of the durable log
//! before it, which distinguishes later damage from a torn write.

mod appender;
mod batch;
pub mod disk;
mod entry;
mod error;
mod extent;
mod follow;
mod lock;
mod options;
mod output;
mod placed;
mod publishers;
mod queue;
mod reader;
mod recent;
mod recovered;
mod retain;
pub mod rows;
pub(crate) mod segment;
mod skim;
mod state;
mod steps;
mod sync;
mod walk;
mod window;
mod writer;

pub use batch::{Batch, Encoding, PAYLOAD_BYTES_MAX, Publication};
pub(crate) use batch::{EXTENSION_BYTES, Sealed, SumOfPieces, payload_sum};
pub use entry::{Cut, Damage, Entry, Event};
pub(crate) use entry::{Place, unpacked};
pub(crate) use error::is_full;
pub use error::{Error, Result};
pub(crate) use extent::{Durable, SegmentExtent, extents_from};
pub use follow::Follower;
pub(crate) use lock::FolderLock;
pub use options::Options;
pub(crate) use output::Output;
pub use publishers::Publishers;
pub(crate) use reader::LOG_FOLDER;
pub use reader::Reader;
pub(crate) use recent::Recent;
pub(crate) use recovered::DAMAGES_MAX;
pub use recovered::Recovered;
pub use retain::{Removed, Retention};
pub(crate) use segment::crc32;
pub(crate) use skim::skim;
pub use state::LogState;
pub(crate) use steps::{Sealing, sealings};
pub use writer::{Chain, Committed, Growth, Log, Opener, Pending};
