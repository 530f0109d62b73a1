//! Queries: workers run fragments of plans over the units of Parquet files.
//!
//! ```text
//!  client: engine of quarrier-sql ─→ spread: fragment, files ─→ job of units ─→ rows of all units, in order
//!  worker: unit ─→ engine: scan of the unit ─→ codec: fragment over it ─→ rows, as an Arrow IPC stream
//! ```

mod codec;
mod packed;
mod spread;
mod unit;

pub(crate) use spread::{connect, wait_for_runs};
pub(crate) use unit::UnitQuery;
