//! Arithmetic: the clock of a core, the operations per second of each instruction set, and the
//! product of matrices.

mod peak;
mod product;

pub use crate::processor::{Isa, Lane, flop_per_cycle, fused_per_cycle};
pub use peak::measure as measure_peak;
pub use product::measure as measure_product;

use crate::Request;
use crate::error::{Error, Result};
use crate::processor::clock;
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Session, Team, ThreadWork};

/// Steps of the clock's chain in a trial: 25 million additions, some 7 ms.
const CLOCK_STEPS: u64 = 400_000;

/// Steps of a short trial, about half a millisecond, for callers that need only the clock.
const CLOCK_STEPS_SHORT: u64 = 30_000;

/// Order of the matrices to multiply: three of them, of 64-bit numbers, take 24 MiB.
const ORDER: usize = 1024;

/// The order of the matrices in a quick run.
const ORDER_QUICK: usize = 512;

/// Measures the area.
///
/// # Errors
/// If a result is wrong, or the caller stops the run.
pub(crate) fn measure(request: &Request, session: &mut Session<'_>) -> Result<()> {
    measure_clock(session)?;
    let least = if request.quick { Isa::best() } else { Isa::Portable };
    for isa in Isa::available().filter(|&isa| isa >= least) {
        for lane in Lane::ALL {
            for &threads in &request.threads {
                peak::measure(session, isa, lane, threads)?;
            }
        }
    }
    let order = if request.quick { ORDER_QUICK } else { ORDER };
    for lane in [Lane::F64, Lane::F32] {
        for &threads in &request.threads {
            product::measure(session, lane, order, threads)?;
        }
    }
    Ok(())
}

/// Measures the clock of the first CPU by a chain of dependent additions, one per cycle.
///
/// # Errors
/// If this architecture has no such chain, or the caller stops the run.
pub fn measure_clock(session: &mut Session<'_>) -> Result<()> {
    let parameters = Parameters::new().with("threads", 1);
    let subject = Subject::new(Area::Cpu, "dependent add", parameters, Unit::OpPerSecond);
    if clock::chain(1).is_err() || !session.wants(&subject) {
        return Ok(());
    }
    session.measure(subject, Needs::Cpu, |team| {
        team.run(&mut [()], |_, ()| {
            let additions = clock::chain(CLOCK_STEPS)?;
            Ok(ThreadWork { units: additions as f64, check: additions })
        })
    })
}

/// Returns the cycles per second of the team's first CPU.
///
/// # Errors
/// If the chain's sum is wrong, or a thread cannot be started.
pub fn clock_hertz(team: &Team) -> Result<f64> {
    team.prepare(1, |_| clock::fastest(9, CLOCK_STEPS_SHORT))?
        .first()
        .copied()
        .ok_or(Error::Stopped)
}
