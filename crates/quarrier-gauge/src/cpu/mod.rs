//! Arithmetic: the clock, and how many operations a second the cores do.

mod clock;
mod isa;

pub use clock::clock_hertz;
pub use isa::Isa;

use crate::Wanted;
use crate::error::Result;
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Session};

/// Measures the area.
///
/// # Errors
/// A result was wrong, or the caller stopped it.
pub(crate) fn measure(_wanted: &Wanted, session: &mut Session<'_>) -> Result<()> {
    let parameters = Parameters::new().with("threads", 1);
    let subject = Subject::new(Area::Cpu, "clock", parameters, Unit::Hertz);
    session.measure(subject, Needs::Cpu, |team| team.run(&mut [()], |_, ()| clock::chain(400_000)))
}
