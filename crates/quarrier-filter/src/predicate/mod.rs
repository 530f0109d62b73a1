//! Conditions as a graph of tests on columns.
//!
//! ```text
//!  Expr ─→ compile ─→ Graph: And, Or, Not of
//!             │        ├ Set         a column's value is in a set (`set`); conditions on a
//!             │        │             dictionary are evaluated once per string (`text`)
//!             │        ├ Calculated  numbers calculated, proven not to overflow (`calculation`)
//!             │        └ Row         anything else, row by row (`naive`)
//!             └ constant: the position of a literal among a column's keys
//! ```
//!
//! A condition has four outcomes, a node two: a condition becomes the node of the rows where it is
//! true, the node of those where it is false, if needed, and the node of those where it has no
//! value (fault). Equal nodes are shared, within a condition and across all of them.

mod calculation;
mod compile;
mod constant;
mod graph;
mod prefixes;
mod set;
mod text;
pub(crate) mod wording;

pub(crate) use calculation::{Calculation, STACK_MAX, Step, Within};
pub(crate) use compile::{Compiler, columns_of};
pub(crate) use constant::{place, turned};
pub(crate) use graph::{Graph, Node, NodeId, Outcome, RowTest};
pub(crate) use prefixes::Prefixes;
pub(crate) use set::{Set, Share, gaps};
