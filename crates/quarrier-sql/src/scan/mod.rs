//! The scan of messages as a DataFusion plan.
//!
//! ```text
//!  ScanSpec: columns, condition, order, limit ─→ MessagesExec ─→ selection (once, all threads)
//!                                                  │ partitions      │ rows found
//!                                                  ├── batches ←─────┤
//!                                    GroupsExec ───┴── groups ←──────┘
//!
//!  join ←─ JoinKeyCollectExec ←─ the build side
//!                 └ keys (a runtime filter) ─→ the MessagesExec of the probe side, or the JoinKeyFilterExec
//!                                              above a Parquet scan
//! ```

mod batches;
mod counted;
mod exec;
mod figures;
mod file;
mod groups;
mod held;
mod key_collect;
mod key_filter;
mod over_input;
mod selection;
mod statistics;
mod together;
mod translate;

pub(crate) use counted::CountExec;
pub(crate) use exec::MessagesExec;
pub(crate) use file::{FileExec, FileName, of_file};
pub(crate) use groups::{GroupsExec, State};
pub(crate) use held::HeldExec;
pub(crate) use key_collect::{JoinKeyCollectExec, JoinKeys, RequestedKey, is_whole};
pub(crate) use key_filter::{JoinKeyColumn, JoinKeyFilterExec};
pub(crate) use statistics::of_columns;
pub(crate) use together::search_together;
pub(crate) use translate::{Condition, is_pushed, logical};

use quarrier_filter::Order;

/// The rows and columns that a scan has to produce.
#[derive(Debug, Clone)]
pub(crate) struct ScanSpec {
    /// The columns, by their indices in the table.
    pub(crate) columns: Vec<usize>,
    /// The predicate that rows must satisfy.
    pub(crate) condition: Condition,
    /// The sort order, most significant column first; columns by their index in the table.
    pub(crate) order: Vec<Order>,
    /// The maximum number of rows to produce.
    pub(crate) fetch: Option<usize>,
}

impl ScanSpec {
    /// Whether the scan produces every row.
    fn is_everything(&self) -> bool {
        self.condition.expr().is_none() && self.order.is_empty()
    }
}
