//! The shared scan: all conditions over a block of rows while it is in the cache.
//!
//! ```text
//!  queries ─→ plan: one graph of tests, operands ordered by measured cost and share of rows
//!               │
//!  segment ─→ bind: what each test comes to there; blocks that zones decide
//!               │
//!  block   ─→ narrow: bitmaps, word by word of what is left; tests used twice are kept
//!               │
//!               └─→ gather: counts, rows, the best rows of an order
//! ```

mod bind;
mod block;
mod calculate;
mod coarse;
mod explain;
mod gather;
mod heap;
mod members;
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
pub use run::{Answer, Scan};
pub use scanner::{Scanner, Ticket};
