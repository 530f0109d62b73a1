//! Receives the progress of a measurement.

use crate::reading::{Area, Parameters, Reading, Unit};

/// Receives the progress of a measurement. All methods default to doing nothing.
pub trait Progress {
    /// Visit `number` of `of` begins, counted from 1. Each visit measures everything requested.
    fn visit(&mut self, number: u32, of: u32) {
        let _ = (number, of);
    }

    /// A measurement begins.
    fn begin(&mut self, area: Area, measurement: &str, parameters: &Parameters) {
        let _ = (area, measurement, parameters);
    }

    /// A measurement that takes long has this rate now; `times` are the seconds so far, and of all.
    fn during(&mut self, rate: f64, unit: Unit, times: (f64, f64)) {
        let _ = (rate, unit, times);
    }

    /// A measurement of this visit is done; the reading includes all visits so far.
    fn reading(&mut self, reading: &Reading) {
        let _ = reading;
    }
}

/// Ignores all progress.
impl Progress for () {}
