//! Stored tables: messages in a durable log, by the names of their tables.
//!
//! ```text
//!  source ─→ blocks of whole messages ─→ workers: checked, counted ─→ order ─→ Log (acknowledged)
//!                                                                               │
//!  Table ←─ Load ←─ Run: its messages as one source ←─ index: places of batches ┘
//! ```
//!
//! The log has the messages' original bytes, and everything else is derived from it. A [`Run`] presents the
//! messages of a table that have one format as a [`Source`](quarrier_core::source::Source), so any reader of
//! message files can read a log. Derived columns are stored next to it (a checkpoint), so that reopening the
//! folder parses only newer messages.
//!
//! If the [`Definition`] of a table has a key, then among the messages with the same key, the table contains
//! only the latest, unless its row was removed since.
//!
//! `docs/log.md` draws the log, and the catalog with the names of tables.

mod ahead;
mod batches;
mod blocks;
mod catalog;
mod changes;
mod columns;
mod copy;
mod definition;
mod encoding;
mod files;
mod history;
mod index;
mod index_file;
mod intake;
mod key;
mod keyed;
mod load;
mod memo;
mod observe;
mod order;
mod removal;
mod resume;
mod retained;
mod run;
mod segment;
mod snapshot;
mod spool;
mod store;
mod whole;

pub use changes::{Changes, ReadyChanges};
pub use copy::{CopyError, CopyLag, CopyProgress, CopyStore, LogCopier, Restored, restore};
pub use definition::{DefinedColumn, Definition, Misfit};
pub use index::KeptTable;
pub use intake::{AppendResult, Intake, IntakeOptions, PendingAppend};
pub use load::{LoadOptions, LoadWatch, Origin, Progress, Stored};
pub use observe::{LoadSample, Observer, ObserverWorker};
pub use run::Run;
pub use segment::{SegmentFolder, SegmentObject, is_segment_head, is_segment_name};
pub use store::{RetainResult, Store, Tended, is_log};
