//! Probes how much of a core the threads on it get: multiply-adds in registers, counted in cycles.
//!
//! A host can give the other half of a core to another guest, or two halves of one core to us. No
//! counter of the system shows that; the clock stays the same, and a chain of additions is as fast.
//! Code that needs all of the core's units is slower then.

use std::time::Instant;

use super::{Isa, Lane, arch, clock, units};

/// Slices of the clock's chain before and after the multiply-adds. The fastest one gives the clock: an
/// interruption can only make one slower.
const CLOCK_SLICES: u32 = 4;
/// Steps of the chain in a slice: about 5 microseconds.
const CLOCK_STEPS: u64 = 300;
/// Slices of multiply-adds.
const SLICES: usize = 24;
/// Steps of a slice: about 7 microseconds.
const STEPS: u32 = 1 << 12;

/// The probe of one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Core {
    /// Cycles a second.
    pub(crate) clock_hertz: f64,
    /// Fused multiply-adds that began in a cycle, as instructions.
    pub(crate) fused_per_cycle: f64,
}

/// Probes the core of the calling thread, over about 0.2 ms; `None` without a chain of additions for
/// the clock.
pub(crate) fn core_now() -> Option<Core> {
    let before_hertz = clock::fastest(CLOCK_SLICES, CLOCK_STEPS).ok()?;
    // 512 bits make some processors slower for a while.
    let isa = Isa::available().filter(|&isa| isa <= Isa::Avx2).last().unwrap_or(Isa::Portable);
    let mut slices: Vec<f64> = (0..SLICES)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(arch::run_steps(isa, Lane::F64, STEPS));
            start.elapsed().as_secs_f64()
        })
        .collect();
    let clock_hertz = before_hertz.max(clock::fastest(CLOCK_SLICES, CLOCK_STEPS).ok()?);
    slices.sort_by(f64::total_cmp);
    // A thread that comes late leaves the others alone for the first slices, and an interruption
    // makes a few slow: neither reaches a quarter.
    let slice = slices[SLICES * 3 / 4];
    let fused = f64::from(STEPS) * arch::CHAINS as f64;
    let fused_per_cycle = fused / slice / clock_hertz;
    // More than the design allows is a clock that was interrupted in every slice.
    let most = units::fused_per_cycle(isa).map_or(f64::INFINITY, f64::from);
    Some(Core { clock_hertz, fused_per_cycle: fused_per_cycle.min(most) })
}
