//! All readings of one run, with what they were taken on.

use serde::{Deserialize, Serialize};

use crate::conditions::{Conditions, Machine};
use crate::reading::Reading;

/// The number of the report's layout: another one means that fields changed their meaning.
pub const FORMAT: u32 = 1;

/// All readings of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`] of whoever made it.
    pub format: u32,
    /// The version of quarrier that made it.
    pub quarrier: String,
    /// When it was begun, in seconds since 1970.
    pub when: u64,
    /// How long it took.
    pub seconds: f64,
    /// What was measured.
    pub machine: Machine,
    /// What held meanwhile.
    pub conditions: Conditions,
    /// In the order in which they were taken.
    pub readings: Vec<Reading>,
}
