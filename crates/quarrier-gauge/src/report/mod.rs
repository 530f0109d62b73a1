//! All readings of one run with their conditions, and their output for people and programs.
//!
//! ```text
//!  Report ─→ json    the stored form, with a published schema
//!         ─→ figure  readings arranged as sweeps, a line for each value of the other parameters;
//!                    load, matrix and over_time arrange those that are no sweeps
//!              ├─→ table   a terminal: bars and sparklines
//!              └─→ html    one page: charts, roofline, conditions
//! ```

mod ceilings;
mod day;
mod figure;
mod html;
mod json;
mod load;
mod matrix;
mod over_time;
mod prometheus;
mod quantity;
mod table;
mod words;

use serde::{Deserialize, Serialize};

use crate::conditions::{Conditions, Machine};
use crate::reading::Reading;

pub use html::{EarlierReport, html};
pub use prometheus::prometheus;
pub use quantity::value;
pub use table::{Line, Role, Span, changes, table};
pub use words::{parameter, parameters};

pub(crate) use ceilings::{Ceilings, count as parameter_count};

/// The number of the report's layout; it changes when fields change their meaning.
pub const FORMAT: u32 = 1;

/// All readings of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// The [`FORMAT`] of the version that wrote the report.
    pub format: u32,
    /// The version of quarrier that wrote the report.
    pub quarrier: String,
    /// The start of the run, in seconds since 1970.
    pub when: u64,
    /// The duration of the run in seconds.
    pub seconds: f64,
    /// The machine.
    pub machine: Machine,
    /// The [`limits`](Machine::limits) of the machine in words, if there are any: `quota 1.5 CPUs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    /// The conditions during the run.
    pub conditions: Conditions,
    /// The readings, in the order of measurement.
    pub readings: Vec<Reading>,
}
