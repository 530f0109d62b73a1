//! Probes how much of a core its threads get: multiply-adds in registers, counted in cycles.
//!
//! A host can give the other half of a core to another guest, or two halves of one core to this
//! machine. No counter of the system shows that: the clock stays the same, and a chain of additions
//! is as fast. Code that needs all units of the core is slower.

use std::time::Instant;

use super::{Isa, Lane, arch, clock, units};

/// Slices of the clock's chain before and after the multiply-adds. The fastest one gives the clock,
/// since an interruption can only make a slice slower.
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
    /// The clock in cycles per second.
    pub(crate) clock_hertz: f64,
    /// Fused multiply-add instructions that started per cycle.
    pub(crate) fused_per_cycle: f64,
}

/// Probes the core of the calling thread, for about 0.2 ms. Returns `None` if there is no chain of
/// additions for the clock.
pub(crate) fn core_now() -> Option<Core> {
    let before_hertz = clock::fastest(CLOCK_SLICES, CLOCK_STEPS).ok()?;
    // 512-bit instructions slow some processors down for a while.
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
    // A late thread leaves the core to the others in the first slices, and an interruption slows a few:
    // neither affects a quarter of the slices.
    let slice = slices[SLICES * 3 / 4];
    let fused = f64::from(STEPS) * arch::CHAINS as f64;
    let fused_per_cycle = fused / slice / clock_hertz;
    // A higher value means that every slice of the clock was interrupted.
    let most = units::fused_per_cycle(isa).map_or(f64::INFINITY, f64::from);
    Some(Core { clock_hertz, fused_per_cycle: fused_per_cycle.min(most) })
}
