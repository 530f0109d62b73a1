//! Messages of a log (JSON lines, FIX, CSV …) as columns that a condition can be asked of.
//!
//! ```text
//!  bytes ─→ frame ─→ format/<name> ─→ column::raw ─→ column (packed segments) ─→ Table
//!           records   fields, typed    as they came    narrow, with min and max
//! ```
//!
//! What does not parse is listed with its line, its place and the reason, and stops nothing.

mod kind;
pub use kind::Kind;

mod value;
pub use value::Value;

mod schema;
pub use schema::{Field, Schema};

pub mod column;

mod table;
pub use table::{Column, Part, PartField, PartSegment, Table};
