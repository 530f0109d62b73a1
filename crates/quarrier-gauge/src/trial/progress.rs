//! Receives the progress of a measurement.

use crate::reading::{Area, Parameters, Reading};

/// Hears how the measurement goes. Nothing need be done with it.
pub trait Progress {
    /// Visit `number` of `of` begins, counted from 1: each measures all that is wanted.
    fn visit(&mut self, number: u32, of: u32) {
        let _ = (number, of);
    }

    /// A measurement begins.
    fn begin(&mut self, area: Area, measurement: &str, parameters: &Parameters) {
        let _ = (area, measurement, parameters);
    }

    /// A measurement is done for this visit; the reading is that of all visits so far.
    fn reading(&mut self, reading: &Reading) {
        let _ = reading;
    }
}

/// Nobody listens.
impl Progress for () {}
