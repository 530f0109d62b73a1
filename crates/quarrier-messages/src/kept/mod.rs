//! Tables that are kept: messages in a durable log, by the names of their tables.
//!
//! ```text
//!  source ─→ blocks of whole messages ─→ workers: checked, counted ─→ order ─→ Log (acknowledged)
//!                                                                               │
//!  Table ←─ Load ←─ Run: its messages as one source ←─ index: where batches lie ┘
//! ```
//!
//! The log has the messages' own bytes, and everything else is made from it: a [`Run`] shows the
//! messages of a table, as far as they are written in one way, as a [`Source`](quarrier_core::source::Source),
//! so whatever reads files of messages reads a log. Columns that were made of it are stored beside it,
//! so that only what came since is parsed when the folder is opened again.
//!
//! A table whose [`Definition`] has a key has, of the messages with the same key, the one that came last, and
//! none that was removed since.
//!
//! `docs/log.md` draws the log and the catalog, which says what tables are called.

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
