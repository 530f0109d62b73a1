//! Receives the progress of a measurement.

use crate::reading::{Area, Parameters, Reading};

/// Receives the progress of the measurement. All methods may do nothing.
pub trait Progress {
    /// Visit `number` of `of` begins, counted from 1. Each visit measures all that is wanted.
    fn visit(&mut self, number: u32, of: u32) {
        let _ = (number, of);
    }

    /// A measurement begins.
    fn begin(&mut self, area: Area, measurement: &str, parameters: &Parameters) {
        let _ = (area, measurement, parameters);
    }

    /// This visit is done with a measurement; the reading includes all visits so far.
    fn reading(&mut self, reading: &Reading) {
        let _ = reading;
    }
}

/// Ignores all progress.
impl Progress for () {}
