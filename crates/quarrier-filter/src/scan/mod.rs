//! The shared scan: evaluates all conditions on a block of rows while the block is in the cache.
//!
//! ```text
//!  queries ─→ plan: one graph of tests, operands ordered by measured cost and share of rows
//!               │
//!  segment ─→ bind: each test in terms of the segment; zone maps decide whole blocks
//!               │
//!  block   ─→ narrow: bitmaps, word by word of the remaining rows; shared results are cached
//!               │
//!               └─→ gather: counts, rows, the first rows of an order
//! ```

mod bind;
mod block;
mod calculate;
mod coarse;
mod explain;
mod gather;
mod heap;
mod members;
mod passes;
mod plan;
mod rank;
mod row;
mod run;
mod scanner;
mod touched;
mod worker;

pub(crate) use bind::nearest;
pub use explain::{Explanation, PlanStep, QueryPlan, Work};
pub use gather::Matches;
pub use passes::{PassResult, Passes};
pub use run::{Answer, Scan};
pub use scanner::{Scanner, Ticket};
