//! Queries: workers run fragments of plans over the units of Parquet files.
//!
//! ```text
//!  client: engine of quarrier-sql ─→ spread: fragment, files ─→ job of units ─→ rows of all units, in order
//!  worker: unit ─→ engine: scan of the unit ─→ codec: fragment over it ─→ rows, as an Arrow IPC stream
//! ```

pub(crate) mod codec;
pub(crate) mod packed;
mod unit;

pub(crate) use unit::UnitQuery;
