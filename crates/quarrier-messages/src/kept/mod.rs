//! Stored tables: messages in a durable log, by the names of their tables.
//!
//! ```text
//!  source ─→ blocks of whole messages ─→ workers: checked, counted ─→ order ─→ Log (acknowledged)
//!                                                                               │
//!  Table ←─ Load ←─ Run: its messages as one source ←─ index: places of batches ┘
//! ```
//!
//! The log has the messages' own bytes, and everything else is derived from it. A [`Run`] presents the
//! messages of a table, as far as they have one format, as a [`Source`](quarrier_core::source::Source), so
//! any reader of message files reads a log. Derived columns are stored beside it (a checkpoint), so that
//! reopening the folder parses only newer messages.
//!
//! A table whose [`Definition`] has a key contains, of the messages with the same key, the latest, unless it
//! was removed since.
//!
//! `docs/log.md` draws the log and the catalog, which has the names of tables.

mod blocks;
mod catalog;
mod changes;
mod columns;
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
mod order;
mod removal;
mod resume;
mod run;
mod segment;
mod snapshot;
mod spool;
mod store;
mod whole;

pub use changes::Changes;
pub use definition::{DefinedColumn, Definition, Misfit};
pub use index::KeptTable;
pub use intake::{Intake, IntakeOptions, Sent, Taken};
pub use load::{LoadOptions, LoadWatch, Origin, Progress, Stored};
pub use run::Run;
pub use store::{Store, is_log};
