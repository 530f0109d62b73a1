//! The scan of messages as a plan of the engine.
//!
//! ```text
//!  Wanted: columns, condition, order, limit ─→ MessagesExec ─→ selection (once, all threads)
//!                                                  │ partitions      │ rows found
//!                                                  ├── batches ←─────┤
//!                                    GroupsExec ───┴── groups ←──────┘
//!
//!  join ←─ KeysExec ←─ the side that is read first      (keys ─→ the MessagesExec of the other side, or
//!                                                        the KeepExec above what reads Parquet)
//! ```

mod batches;
mod counted;
mod exec;
mod figures;
mod file;
mod groups;
mod held;
mod keep;
mod keys;
mod over_input;
mod selection;
mod statistics;
mod together;
mod translate;

pub(crate) use counted::CountExec;
pub(crate) use exec::MessagesExec;
pub(crate) use file::{FileExec, of_file};
pub(crate) use groups::{GroupsExec, State};
pub(crate) use held::HeldExec;
pub(crate) use keep::{KeepExec, Wish};
pub(crate) use keys::{Asked, JoinKeys, KeysExec, is_whole};
pub(crate) use statistics::of_columns;
pub(crate) use together::search_together;
pub(crate) use translate::{Condition, is_pushed, logical};

use quarrier_filter::Order;

/// What is wanted of a table.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The columns' places in the table.
    pub(crate) columns: Vec<usize>,
    /// Rows for which it is true.
    pub(crate) condition: Condition,
    /// The first decides; columns by their places in the table.
    pub(crate) order: Vec<Order>,
    /// At most so many rows.
    pub(crate) fetch: Option<usize>,
}

impl Wanted {
    /// Whether every row is.
    fn is_everything(&self) -> bool {
        self.condition.expr().is_none() && self.order.is_empty()
    }
}
