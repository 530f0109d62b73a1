//! All readings of one run with their conditions, and their forms for people and programs.
//!
//! ```text
//!  Report ─→ json    as it is kept, with a published schema
//!         ─→ figure  readings put together: sweeps, a line for each of the other parameters
//!              ├─→ table   a terminal: bars and sparklines
//!              └─→ html    one page: charts, roofline, conditions
//! ```

mod ceilings;
mod day;
mod figure;
mod html;
mod json;
mod prometheus;
mod quantity;
mod table;
mod words;

use serde::{Deserialize, Serialize};

use crate::conditions::{Conditions, Machine};
use crate::reading::Reading;

pub use html::{Against, html};
pub use prometheus::prometheus;
pub use quantity::value;
pub use table::{Line, Role, Span, changes, table};
pub use words::{parameter, parameters};

pub(crate) use ceilings::{Ceilings, count as parameter_count};

/// The number of the report's layout: another one means that fields changed their meaning.
pub const FORMAT: u32 = 1;

/// All readings of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// The [`FORMAT`] of the version that made it.
    pub format: u32,
    /// The version of quarrier that made it.
    pub quarrier: String,
    /// When it was begun, in seconds since 1970.
    pub when: u64,
    /// How long it took.
    pub seconds: f64,
    /// The machine.
    pub machine: Machine,
    /// Its [`limits`](Machine::limits) in words, if there are any: `quota 1.5 CPUs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    /// The conditions meanwhile.
    pub conditions: Conditions,
    /// In the order in which they were taken.
    pub readings: Vec<Reading>,
}
