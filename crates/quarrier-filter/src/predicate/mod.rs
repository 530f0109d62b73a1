//! Conditions as a graph of tests on columns.
//!
//! ```text
//!  Expr ─→ compile ─→ Graph: And, Or, Not of
//!             │        ├ Set         a column's value is in a set (`set`); what stands in a
//!             │        │             dictionary is looked up there once (`text`)
//!             │        ├ Calculated  numbers calculated, proven not to overflow (`calculation`)
//!             │        └ Row         anything else, row by row (`naive`)
//!             └ constant: where a literal stands among a column's keys
//! ```
//!
//! Truth has four outcomes, a node two: a condition becomes the rows where it is true, if needed those
//! where it is false, and those where it has no value (fault). Equal nodes are shared, within a
//! condition and across all of them.

mod beginnings;
mod calculation;
mod compile;
mod constant;
mod graph;
mod set;
mod text;
pub(crate) mod wording;

pub(crate) use beginnings::Beginnings;
pub(crate) use calculation::{Calculation, STACK_MAX, Step, Within};
pub(crate) use compile::{Compiler, columns_of};
pub(crate) use constant::{place, turned};
pub(crate) use graph::{Graph, Node, NodeId, Outcome, RowTest};
pub(crate) use set::{Set, Share, gaps};
